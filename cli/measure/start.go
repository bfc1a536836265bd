package measure

import (
	"context"
	"fmt"
	"os"
	"slices"

	"github.com/spf13/cobra"

	"github.com/gangline/gangline/bench/comm"
	"github.com/gangline/gangline/cli/command"
	"github.com/gangline/gangline/launch"
)

// itself is this program, to be started again as ranks that are asked for the same, with
// some more arguments.
func itself(cmd *cobra.Command, more ...string) (comm.Program, error) {
	exe, err := os.Executable()
	if err != nil {
		return comm.Program{}, fmt.Errorf("cannot find this program to start it again: %w", err)
	}
	return comm.Program{Exe: exe, Args: append(slices.Clone(os.Args[1:]), more...), Env: os.Environ(), Stderr: cmd.ErrOrStderr()}, nil
}

// joined says where this process is a rank of several, if it is one. Of so many
// ranks it must be one if the user has said how many.
func joined(ranks int, said bool) (place launch.Place, joins bool, err error) {
	place, joins, err = launch.FromEnv(os.LookupEnv)
	if err != nil {
		return place, false, command.RequestError{Err: err}
	}
	if joins && said && place.World != ranks {
		return place, false, command.Wrong("--ranks %d: the world size is %d (from %s)", ranks, place.World, place.WorldVariable())
	}
	return place, joins, nil
}

// asRank is the life of a rank, which ends with the process that has started it.
func asRank(cmd *cobra.Command, life func(context.Context) error) error {
	ctx, stop, err := launch.WatchParent(cmd.Context(), os.LookupEnv)
	if err != nil {
		return err
	}
	defer stop()
	return life(ctx)
}
