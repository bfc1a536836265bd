package measure

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/gangline/gangline/bench/comm"
	"github.com/gangline/gangline/chart"
	"github.com/gangline/gangline/cli/command"
	"github.com/gangline/gangline/job"
)

// collectiveFlags are the flags of bench collective.
type collectiveFlags struct {
	comm.Config
	sizes  []string
	asJSON bool
	plots  string
}

func newBenchCollective() *cobra.Command {
	var f collectiveFlags
	cmd := &cobra.Command{
		Use:   "collective",
		Short: "Time all-reduce and its relatives between processes of this machine",
		Long: `Collective starts processes, checks a collective of float32 values among them, and times
it in place: all ranks begin an iteration together, and its time is that of the slowest
rank. algbw is the size by the median time, busbw that times what each rank must send
of each byte at the least (2(n-1)/n for an all-reduce). Nothing else should run on
the machine.`,
		Example: `  gangline bench collective
  gangline bench collective --op allreduce --ranks 2 --path shm --bytes 4KiB,64KiB,1MiB,16MiB --json
  gangline bench collective --ranks 4 --hosts 2,2 --algorithm all --plots .`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return f.run(cmd) },
	}
	fl := cmd.Flags()
	fl.StringVar(&f.Op, "op", "allreduce", strings.Join(comm.Ops(), ", "))
	fl.IntVar(&f.Ranks, "ranks", 2, "how many processes")
	fl.StringVar(&f.Path, "path", "auto", "how they talk: "+strings.Join(comm.Paths(), ", "))
	fl.StringVar(&f.Algorithm, "algorithm", "", "one algorithm, or all (default: the one that suits the size)")
	fl.StringSliceVar(&f.sizes, "bytes", []string{"4KiB", "64KiB", "1MiB", "16MiB", "64MiB"}, "sizes of the buffer")
	fl.IntSliceVar(&f.Hosts, "hosts", nil, "for hierarchical: how many ranks to take as on each host, 2,2 for example (default: all are on one)")
	fl.IntVar(&f.Iterations, "iterations", 0, "how many to time (default: as many as the size calls for)")
	fl.BoolVar(&f.asJSON, "json", false, "print an array of {op, ranks, path, algorithm, bytes, iterations, median_us, min_us, p99_us, algbw_gbs, busbw_gbs}")
	fl.StringVar(&f.plots, "plots", "", "draw collective.png and collective.svg into this directory")
	command.Complete(cmd, "op", command.Words(comm.Ops()...))
	command.Complete(cmd, "path", command.Words(comm.Paths()...))
	return cmd
}

func (f *collectiveFlags) run(cmd *cobra.Command) error {
	for _, text := range f.sizes {
		var s job.Size
		if err := s.UnmarshalText([]byte(text)); err != nil {
			return command.Wrong("--bytes: %w", err)
		}
		f.Bytes = append(f.Bytes, int(s))
	}
	if err := f.Validate(); err != nil {
		return command.RequestError{Err: err}
	}
	place, joins, err := joined(f.Ranks, true)
	if err != nil {
		return err
	}
	if joins {
		return asRank(cmd, func(ctx context.Context) error { return comm.Rank(ctx, f.Config, place) })
	}
	program, err := itself(cmd)
	if err != nil {
		return err
	}
	results, err := comm.Run(cmd.Context(), f.Config, program)
	if err != nil {
		return err
	}
	if err := f.draw(results); err != nil {
		return err
	}
	if f.asJSON {
		e := json.NewEncoder(cmd.OutOrStdout())
		e.SetIndent("", "  ")
		return e.Encode(results)
	}
	_, err = fmt.Fprint(cmd.OutOrStdout(), comm.Table(results), comm.Wins(results))
	return err
}

// draw writes the pictures, if they are asked for.
func (f *collectiveFlags) draw(results []comm.Result) error {
	if f.plots == "" {
		return nil
	}
	if err := os.MkdirAll(f.plots, 0o755); err != nil {
		return fmt.Errorf("--plots %s: %w", f.plots, err)
	}
	title := fmt.Sprintf("%s, %d ranks", f.Op, f.Ranks)
	var errs []error
	for _, format := range chart.Formats() {
		errs = append(errs, command.WriteWhole(filepath.Join(f.plots, "collective."+format), func(out *os.File) error {
			return chart.Draw(out, format, title, comm.Panels(results))
		}))
	}
	return errors.Join(errs...)
}
