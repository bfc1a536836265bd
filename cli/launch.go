package cli

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"time"

	"github.com/spf13/cobra"

	"github.com/gangline/gangline/coord"
	"github.com/gangline/gangline/launch"
)

// launchFlags are the flags of launch.
type launchFlags struct {
	ranks    int
	restarts int
	timeout  time.Duration
	verbose  bool
}

// envProgram says that launch started a rank, which takes no reports of training: train
// refuses to be one, since its table, report and trace would be lost.
const envProgram = "GANGLINE_PROGRAM"

func newLaunch() *cobra.Command {
	f := launchFlags{}
	cmd := &cobra.Command{
		Use:   "launch -n RANKS -- PROGRAM [ARGUMENT ...]",
		Short: "Start a program as several ranks on this machine",
		Long: `Launch starts PROGRAM as many times as there are ranks, coordinates them, and ends
them all when one fails. The program joins with package gangline; the place of a
rank is in its environment. What ranks print comes line by line behind their name.`,
		Example: `  gangline launch -n 4 -- ./prog
  gangline launch -n 2 --restarts 3 -- go run ./examples/collective`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			return f.run(c.Context(), args, c.OutOrStdout(), c.ErrOrStderr())
		},
	}
	cmd.Flags().IntVarP(&f.ranks, "ranks", "n", 1, "how many ranks")
	cmd.Flags().IntVar(&f.restarts, "restarts", 0, "start all ranks again so often when one is lost")
	cmd.Flags().DurationVar(&f.timeout, "join-timeout", coord.DefaultJoinTimeout, "how long ranks have to join")
	cmd.Flags().BoolVarP(&f.verbose, "verbose", "v", false, "log every decision on stderr")
	return cmd
}

func (f *launchFlags) run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	exe, err := exec.LookPath(args[0])
	switch {
	case err != nil:
		return requestError{fmt.Errorf("cannot start %s: %w", args[0], err)}
	case f.ranks < 1 || f.ranks > coord.MaxWorld:
		return requestError{fmt.Errorf("--ranks %d: want 1 to %d", f.ranks, coord.MaxWorld)}
	case f.restarts < 0:
		return requestError{fmt.Errorf("--restarts %d: want 0 or more", f.restarts)}
	case f.timeout <= 0:
		return requestError{fmt.Errorf("--join-timeout %v: want more than 0", f.timeout)}
	}
	level := slog.LevelWarn
	if f.verbose {
		level = slog.LevelDebug
	}
	_, err = launch.Run(ctx, launch.Config{
		Exe: exe, Args: func(int, int) []string { return args[1:] }, Env: append(os.Environ(), envProgram+"=1"), World: f.ranks,
		Restart: launch.Restart{Max: f.restarts}, Stdout: stdout, Stderr: stderr,
		Logger:      slog.New(slog.NewTextHandler(stderr, &slog.HandlerOptions{Level: level})),
		Coordinator: coord.ServerConfig{JoinTimeout: f.timeout},
	})
	return err
}
