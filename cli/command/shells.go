package command

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"
)

// AddShells adds the command with which shells learn to complete: that of cobra, whose
// help has no examples. Other commands must be there already, and so must the output of
// root, to which it writes.
func AddShells(root *cobra.Command) {
	root.InitDefaultCompletionCmd()
	for _, c := range root.Commands() {
		if c.Name() != "completion" {
			continue
		}
		var examples []string
		for _, shell := range c.Commands() {
			shell.Example = "  " + shell.CommandPath() + " > " + place(shell.Name(), root.Name())
			examples = append(examples, shell.Example)
		}
		slices.Sort(examples)
		c.Example = strings.Join(examples, "\n")
	}
}

// place is where a shell looks for what completes a program.
func place(shell, program string) string {
	switch shell {
	case "bash":
		return "~/.local/share/bash-completion/completions/" + program
	case "zsh":
		return "~/.zfunc/_" + program
	case "fish":
		return "~/.config/fish/completions/" + program + ".fish"
	}
	return program + ".ps1"
}
