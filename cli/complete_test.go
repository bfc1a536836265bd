package cli

import (
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/gangline/gangline/cli/command"
	"github.com/gangline/gangline/graph"
	"github.com/gangline/gangline/job"
	"github.com/gangline/gangline/model"
)

// ours are all commands that say themselves what they do.
func ours(c *cobra.Command) (all []*cobra.Command) {
	if c.Name() == "help" || strings.HasPrefix(c.Name(), "__") {
		return nil
	}
	all = []*cobra.Command{c}
	for _, sub := range c.Commands() {
		all = append(all, ours(sub)...)
	}
	return all
}

// shellWords parts a line as a shell does, quotes and all.
func shellWords(line string) (all []string) {
	var word strings.Builder
	quoted, some := false, false
	for _, r := range line {
		switch {
		case r == '\'':
			quoted, some = !quoted, true
		case r == ' ' && !quoted:
			if some {
				all = append(all, word.String())
			}
			word.Reset()
			some = false
		default:
			word.WriteRune(r)
			some = true
		}
	}
	if some {
		all = append(all, word.String())
	}
	return all
}

// Every command has examples, they are of that command, and their flags and
// arguments are those that it takes.
func TestExamplesOfCommands(t *testing.T) {
	whole := func() *cobra.Command {
		root := newRoot(job.Extensions{})
		command.AddShells(root)
		return root
	}
	commands := ours(whole())
	if len(commands) < 19 {
		t.Fatalf("there are %d commands", len(commands))
	}
	for _, c := range commands {
		if c.Example == "" || c.Short == "" {
			t.Errorf("%s has no example, or no word on what it does", c.CommandPath())
		}
		for line := range strings.SplitSeq(c.Example, "\n") {
			line, _, _ = strings.Cut(line, " > ")
			args := shellWords(line)
			if len(args) == 0 || args[0] != "gangline" || !strings.HasPrefix(line, "  ") {
				t.Errorf("%s: the example %q is no command", c.CommandPath(), line)
				continue
			}
			root := whole() // flags keep what was parsed before
			found, rest, err := root.Find(args[1:])
			if err == nil {
				err = found.ParseFlags(rest)
			}
			if err == nil {
				err = found.ValidateArgs(found.Flags().Args())
			}
			if err != nil || !strings.HasPrefix(found.CommandPath(), c.CommandPath()) || found.HasSubCommands() && len(args) > 1 {
				t.Errorf("%s: the example %q: %v", c.CommandPath(), line, err)
			}
			out := must(t, append(strings.Fields(found.CommandPath())[1:], "--help")...)
			if !strings.Contains(out, "Examples:\n"+found.Example) {
				t.Errorf("%s --help does not show its examples:\n%s", found.CommandPath(), out)
			}
			for i, a := range args { // settings name fields that there are
				if a == "--set" && !slices.Contains(job.Paths(), strings.SplitN(args[i+1], "=", 2)[0]) {
					t.Errorf("%s: the example %q sets %s", c.CommandPath(), line, args[i+1])
				}
			}
		}
	}
}

// A shell is told files, kinds, cases, formats and fields.
func TestCompletion(t *testing.T) {
	for _, c := range []struct {
		args      []string
		want      []string // lines that are there
		directive string
	}{
		{[]string{"train", ""}, []string{"yaml", "yml"}, ":8"},
		{[]string{"train", "job.yaml", ""}, nil, ":4"},
		{[]string{"predict", ""}, []string{"yaml"}, ":8"},
		{[]string{"init", ""}, nil, ":0"},
		{[]string{"data", "stats", ""}, nil, ":0"},
		{[]string{"export", ""}, nil, ":16"},
		{[]string{"export", "ckpt", ""}, []string{"safetensors"}, ":8"},
		{[]string{"train", "--data-dir", ""}, nil, ":16"},
		{[]string{"eval", "--checkpoint", ""}, nil, ":16"},
		{[]string{"train", "--report", ""}, []string{"json"}, ":8"},
		{[]string{"train", "--progress", ""}, []string{"auto", "tty", "plain", "none"}, ":4"},
		{[]string{"plan", "show", "--plan", ""}, []string{"step", "eval"}, ":4"},
		{[]string{"bench", "step", "--case", "sgemm512,m"}, []string{"sgemm512,mlp"}, ":4"},
		{[]string{"predict", "--format", ""}, []string{"csv", "jsonl", "parquet"}, ":4"},
		{[]string{"train", "--set", "checkpoint.b"}, []string{"checkpoint.best="}, ":6"},
		{[]string{"train", "--set", "model.kind="}, []string{"model.kind=mlp", "model.kind=mine"}, ":4"},
		{[]string{"train", "--set", "strategy.kind=a"}, []string{"strategy.kind=allreduce"}, ":4"},
		{[]string{"train", "--set", "data.train.format="}, []string{"data.train.format=csv"}, ":4"},
		{[]string{"train", "--set", "checkpoint.best="}, []string{"checkpoint.best=true"}, ":4"},
		{[]string{"exp"}, []string{"export\tWrite the parameters of a checkpoint as one safetensors file"}, ":4"},
	} {
		var ext job.Extensions
		Model("mine", graph.Binary, func(*graph.Graph, model.Config) graph.Model { return graph.Model{} })(&ext)
		var out, errs strings.Builder
		if status := run(t.Context(), ext, append([]string{cobra.ShellCompRequestCmd}, c.args...), &out, &errs); status != 0 {
			t.Fatal(errs.String())
		}
		lines := strings.Split(strings.TrimSpace(out.String()), "\n")
		for _, want := range append(c.want, c.directive) {
			if !slices.Contains(lines, want) {
				t.Errorf("%q: %q is not in %q", c.args, want, lines)
			}
		}
	}
	for _, shell := range []string{"bash", "zsh", "fish", "powershell"} {
		if out := must(t, "completion", shell); !strings.Contains(out, "gangline") {
			t.Errorf("%s has no completion", shell)
		}
	}
}

// What is misspelt is answered with what was meant.
func TestHints(t *testing.T) {
	for want, args := range map[string][]string{
		`did you mean "train"?`:      {"trian"},
		`did you mean "stats"?`:      {"data", "stat"},
		`did you mean "report"?`:     {"train", "--reprot", "x"},
		`did you mean "checkpoint"?`: {"eval", "--chekpoint", "x"},
		`accepts 1 arg`:              {"predict"},
	} {
		if _, errs, status := invoke(t, args...); status != exitRequest || !strings.Contains(errs, want) || strings.Count(errs, "\n") != 1 {
			t.Errorf("%v: status %d: %s", args, status, errs)
		}
	}
}
