// Package cli is the command line, for gangline itself and for programs that add
// models, update rules and strategies of their own:
//
//	func main() {
//		os.Exit(cli.Main(cli.Model("mine", graph.Binary, build)))
//	}
//
// Such a program has every command of gangline, and jobs in which kind names
// what was added. Its ranks are processes of the same program.
package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/gangline/gangline/cli/command"
	"github.com/gangline/gangline/cli/measure"
	"github.com/gangline/gangline/coord"
	"github.com/gangline/gangline/graph"
	"github.com/gangline/gangline/job"
	"github.com/gangline/gangline/launch"
	"github.com/gangline/gangline/model"
	"github.com/gangline/gangline/optim"
	"github.com/gangline/gangline/strategy"
)

// The exit statuses.
const (
	exitDone    = 0
	exitFailed  = 1
	exitRequest = launch.ExitRequest
)

// Option adds something to what ships.
type Option func(*job.Extensions)

// Model adds a model: jobs ask for it with model.kind. build makes the graph of
// the forward part and the loss, the same one each time; task says what it
// predicts.
func Model(kind string, task graph.Task, build func(g *graph.Graph, c model.Config) graph.Model) Option {
	return func(e *job.Extensions) {
		e.Models = append(e.Models, &model.Custom{Name: kind, Task: task, Func: build})
	}
}

// Rule adds an update rule: jobs ask for it with optimizer.kind.
func Rule(r optim.Custom) Option {
	return func(e *job.Extensions) { e.Rules = append(e.Rules, &r) }
}

// Strategy adds a strategy: jobs ask for it with strategy.kind. Its plans are
// proved like those of ours before anything runs.
func Strategy(kind string, build strategy.Strategy) Option {
	return func(e *job.Extensions) {
		e.Strategies = append(e.Strategies, &strategy.Custom{Name: kind, Func: build})
	}
}

// Main runs the command line of this process and returns its exit status: 0
// done; 1 the run failed; 2 the request was wrong. An interrupt or SIGTERM ends
// it in order.
func Main(options ...Option) int {
	var ext job.Extensions
	for _, o := range options {
		o(&ext)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	return run(ctx, ext, os.Args[1:], os.Stdout, os.Stderr)
}

// errorPrefix begins the one line that says why a command failed.
const errorPrefix = "gangline: "

// run is Main without the process.
func run(ctx context.Context, ext job.Extensions, args []string, stdout, stderr io.Writer) int {
	root := newRoot(ext) //nolint:contextcheck // its commands get ctx from ExecuteContext
	root.SetArgs(args)
	root.SetOut(stdout)
	root.SetErr(stderr)
	command.AddShells(root)
	err := ext.Check()
	if err == nil {
		err = root.ExecuteContext(ctx)
	}
	if err == nil {
		return exitDone
	}
	if !errors.Is(err, errSaid) {
		fmt.Fprintln(stderr, errorPrefix+tidy(plain(err)))
	}
	return statusOf(err)
}

// errSaid marks an error that somebody else tells the user.
var errSaid = errors.New("already said")

// requestError is a wrong request: a flag, an argument, a job.
type requestError struct{ error }

// Unwrap returns the cause.
func (e requestError) Unwrap() error { return e.error }

// statusOf is the exit status of a failed command.
func statusOf(err error) int {
	if _, ok := errors.AsType[requestError](err); ok {
		return exitRequest
	}
	if _, ok := errors.AsType[command.RequestError](err); ok {
		return exitRequest
	}
	if _, ok := errors.AsType[*job.FieldError](err); ok {
		return exitRequest
	}
	if e, ok := errors.AsType[*launch.RankError](err); ok && e.Request {
		return exitRequest
	}
	return exitFailed
}

// plain is the text of an error; of a rank that said why it ended and then ended,
// what it said.
func plain(err error) string {
	e, ok := errors.AsType[*launch.RankError](err)
	if !ok || e.Cause.Kind != coord.ProcessExited {
		return err.Error()
	}
	for i, line := range e.Lines {
		if said, ok := strings.CutPrefix(line, errorPrefix); ok {
			return strings.Join(append([]string{e.Name + ": " + said}, e.Lines[i+1:]...), "\n")
		}
	}
	return err.Error()
}

// tidy takes the program's name from inner errors, and indents all lines but the
// first: what is not indented is a message of its own.
func tidy(text string) string {
	lines := strings.Split(strings.TrimPrefix(text, errorPrefix), "\n")
	for i, line := range lines {
		if i > 0 && !strings.HasPrefix(line, " ") {
			lines[i] = "  " + line
		}
	}
	return strings.Join(lines, "\n")
}

func newRoot(ext job.Extensions) *cobra.Command {
	root := &cobra.Command{
		Use:   "gangline",
		Short: "Distributed training: the plan you check is the plan you run",
		Example: `  gangline train
  gangline init clicks.csv
  gangline train clicks.yaml --report out.json`,
		SilenceErrors: true,
		SilenceUsage:  true,
		Args:          cobra.NoArgs,
		RunE:          func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	root.SetFlagErrorFunc(func(c *cobra.Command, err error) error {
		return requestError{fmt.Errorf("%w%s (see: %s --help)", err, hintFlag(c, err), c.CommandPath())}
	})
	root.AddCommand(newTrain(ext), newLaunch(), newInit(), newEval(ext), newPredict(ext), newExport(ext), newPlan(ext), newData(ext), measure.NewBench(), measure.NewProbe(), newTune(ext), newVersion())
	for _, c := range root.Commands() {
		argsAreRequests(c)
	}
	root.Args = wrapArgs(cobra.NoArgs)
	completeFlags(root, ext)
	return root
}

// argsAreRequests lets wrong arguments end with the status of a wrong request.
func argsAreRequests(c *cobra.Command) {
	if c.Args != nil {
		c.Args = wrapArgs(c.Args)
	}
	for _, sub := range c.Commands() {
		argsAreRequests(sub)
	}
}

func wrapArgs(check cobra.PositionalArgs) cobra.PositionalArgs {
	return func(c *cobra.Command, args []string) error {
		if err := check(c, args); err != nil {
			return requestError{fmt.Errorf("%w%s (see: %s --help)", err, hintCommand(c, args), c.CommandPath())}
		}
		return nil
	}
}
