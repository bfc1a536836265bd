// Command gangline trains models on many processes.
//
//	gangline train [JOB.yaml]        train; without a job, a built-in one
//	gangline eval JOB.yaml           test a checkpoint
//	gangline plan show|check JOB     print or prove the plan of a job
//	gangline data head JOB           look at rows
//	gangline version
//
// Exit status: 0 done; 1 the run failed; 2 the request was wrong.
package main

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

	"github.com/gangline/gangline/coord"
	"github.com/gangline/gangline/job"
	"github.com/gangline/gangline/launch"
)

// The exit statuses.
const (
	exitDone    = 0
	exitFailed  = 1
	exitRequest = launch.ExitRequest
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	status := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(status)
}

// errorPrefix begins the one line that says why a command failed.
const errorPrefix = "gangline: "

// run is main without the process.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	root := newRoot() //nolint:contextcheck // its commands get ctx from ExecuteContext
	root.SetArgs(args)
	root.SetOut(stdout)
	root.SetErr(stderr)
	err := root.ExecuteContext(ctx)
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

func newRoot() *cobra.Command {
	root := &cobra.Command{
		Use:           "gangline",
		Short:         "Distributed training: the plan you check is the plan you run",
		SilenceErrors: true,
		SilenceUsage:  true,
		Args:          cobra.NoArgs,
		RunE:          func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	root.SetFlagErrorFunc(func(c *cobra.Command, err error) error {
		return requestError{fmt.Errorf("%w (see: %s --help)", err, c.CommandPath())}
	})
	root.AddCommand(newTrain(), newEval(), newPlan(), newData(), newVersion())
	for _, c := range root.Commands() {
		argsAreRequests(c)
	}
	root.Args = wrapArgs(cobra.NoArgs)
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
			return requestError{fmt.Errorf("%w (see: %s --help)", err, c.CommandPath())}
		}
		return nil
	}
}
