// Package measure holds the commands that time this machine: bench and probe.
package measure

import (
	"encoding/json"
	"fmt"
	"runtime"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/gangline/gangline/bench"
	"github.com/gangline/gangline/cli/command"
	"github.com/gangline/gangline/job"
)

// NewBench returns the command that times this machine.
func NewBench() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "bench",
		Short: "Time this machine",

		Example: "  gangline bench step --case mlp",
		Args:    cobra.NoArgs,
		RunE:    func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	cmd.AddCommand(newBenchStep(), newBenchCollective())
	return cmd
}

func newBenchStep() *cobra.Command {
	var names []string
	var asJSON bool
	var c bench.Config
	cmd := &cobra.Command{
		Use:   "step",
		Short: "Time training steps on one machine, without network",
		Long: "Step times cases of fixed shapes, each through the serial plan and the executor:\n\n" + bench.About() + `
median and min are wall clock seconds of one step, cpu is the processor's over
all threads. Nothing else should run on the machine.`,
		Example: `  gangline bench step
  gangline bench step --case sgemm1024,gpt --threads 2 --json`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			for _, n := range names {
				if err := bench.Check(n); err != nil {
					return command.RequestError{Err: err}
				}
			}
			if c.Threads < 1 || c.Threads > job.MaxThreads || c.Iterations < 0 || c.Time < 0 {
				return command.Wrong("--threads %d --iterations %d --time %v: want 1 to %d threads, and no negative numbers", c.Threads, c.Iterations, c.Time, job.MaxThreads)
			}
			return benchSteps(cmd, names, c, asJSON)
		},
	}
	f := cmd.Flags()
	f.StringSliceVar(&names, "case", bench.Cases(), "which cases: "+strings.Join(bench.Cases(), ", "))
	command.Complete(cmd, "case", command.Words(bench.Cases()...))
	f.IntVar(&c.Threads, "threads", 1, "how many cores to use")
	f.IntVar(&c.Iterations, "iterations", 0, "how many steps to time (default: as many as --time takes)")
	f.DurationVar(&c.Time, "time", 4*time.Second, "how long to time each case")
	f.BoolVar(&asJSON, "json", false, "print an array of {name, threads, iterations, median_s, min_s, cpu_s}")
	return cmd
}

// benchSteps runs the cases. Neither the reader nor the collector gets a core
// beside those that were asked for.
func benchSteps(cmd *cobra.Command, names []string, c bench.Config, asJSON bool) error {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(c.Threads))
	results := []bench.Result{}
	for _, n := range names {
		r, err := bench.Run(cmd.Context(), n, c)
		if err != nil {
			return err
		}
		results = append(results, r)
		runtime.GC() // the tables of one case before those of the next
	}
	out := cmd.OutOrStdout()
	if asJSON {
		e := json.NewEncoder(out)
		e.SetIndent("", "  ")
		return e.Encode(results)
	}
	t := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "case\tthreads\titerations\tmedian ms\tmin ms\tcpu ms\tsteps/s\t")
	for _, r := range results {
		fmt.Fprintf(t, "%s\t%d\t%d\t%.3f\t%.3f\t%.3f\t%.1f\t\n", r.Name, r.Threads, r.Iterations, 1e3*r.Median, 1e3*r.Min, 1e3*r.CPU, 1/r.Median)
	}
	return t.Flush()
}
