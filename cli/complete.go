package cli

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/gangline/gangline/cli/command"
	"github.com/gangline/gangline/internal/nearest"
	"github.com/gangline/gangline/job"
)

// What a shell completes arguments and flags with. The shell asks the program
// itself, so that kinds are those that this program has.

// jobFiles completes the name of a job.
func jobFiles(_ *cobra.Command, args []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return []cobra.Completion{"yaml", "yml"}, cobra.ShellCompDirectiveFilterFileExt
}

// anyFile completes one file of any name.
func anyFile(_ *cobra.Command, args []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return nil, cobra.ShellCompDirectiveDefault
}

// exportArgs completes a checkpoint and a file.
func exportArgs(_ *cobra.Command, args []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
	switch len(args) {
	case 0:
		return nil, cobra.ShellCompDirectiveFilterDirs
	case 1:
		return []cobra.Completion{"safetensors"}, cobra.ShellCompDirectiveFilterFileExt
	}
	return nil, cobra.ShellCompDirectiveNoFileComp
}

// settings completes path.to.field=value: the field, and then its words, if it has
// some.
func settings(ext job.Extensions) cobra.CompletionFunc {
	return func(_ *cobra.Command, _ []string, toComplete string) ([]cobra.Completion, cobra.ShellCompDirective) {
		path, _, chosen := strings.Cut(toComplete, "=")
		var all []cobra.Completion
		if !chosen {
			for _, p := range job.Paths() {
				all = append(all, p+"=")
			}
			return all, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
		}
		for _, v := range ext.Values(path) {
			all = append(all, path+"="+v)
		}
		return all, cobra.ShellCompDirectiveNoFileComp
	}
}

// completeFlags says how the flags of all commands are completed.
func completeFlags(c *cobra.Command, ext job.Extensions) {
	extension := func(names ...string) cobra.CompletionFunc {
		return func(*cobra.Command, []string, string) ([]cobra.Completion, cobra.ShellCompDirective) {
			return names, cobra.ShellCompDirectiveFilterFileExt
		}
	}
	dirs := func(*cobra.Command, []string, string) ([]cobra.Completion, cobra.ShellCompDirective) {
		return nil, cobra.ShellCompDirectiveFilterDirs
	}
	for name, f := range map[string]cobra.CompletionFunc{
		"set": settings(ext), "data-dir": dirs, "checkpoint": dirs, "plots": dirs, "report": extension("json"), "trace": extension("json"),
		"progress": command.Words("auto", "tty", "plain", "none"), "plan": command.Words("step", "eval"), "map": extension("yaml", "yml"),
	} {
		if c.Flags().Lookup(name) != nil {
			command.Complete(c, name, f)
		}
	}
	for _, sub := range c.Commands() {
		completeFlags(sub, ext)
	}
}

// hintCommand is the hint for a command that there is not; "" if that is not what
// is wrong.
func hintCommand(c *cobra.Command, args []string) string {
	if !c.HasAvailableSubCommands() || len(args) == 0 {
		return ""
	}
	var known []string
	for _, sub := range c.Commands() {
		if sub.IsAvailableCommand() {
			known = append(known, sub.Name())
		}
	}
	return nearest.Hint(args[0], known)
}

// hintFlag is the same for a flag.
func hintFlag(c *cobra.Command, err error) string {
	unknown, ok := err.(interface{ GetSpecifiedName() string })
	if !ok || unknown.GetSpecifiedName() == "" {
		return ""
	}
	var known []string
	for f := range strings.FieldsSeq(c.Flags().FlagUsages()) {
		if name, ok := strings.CutPrefix(f, "--"); ok && c.Flags().Lookup(name) != nil && !slices.Contains(known, name) {
			known = append(known, name)
		}
	}
	return nearest.Hint(unknown.GetSpecifiedName(), known)
}
