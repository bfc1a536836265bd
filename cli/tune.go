package cli

import (
	"context"
	"fmt"
	"io"
	"os"
	"runtime"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/gangline/gangline/cli/command"
	"github.com/gangline/gangline/data"
	"github.com/gangline/gangline/job"
	"github.com/gangline/gangline/plan"
	"github.com/gangline/gangline/train/input"
	"github.com/gangline/gangline/tune"
)

// tuneFlags are the flags of tune.
type tuneFlags struct {
	common
	budget   time.Duration
	maxError float64
	out      string
	quiet    bool
}

func newTune(ext job.Extensions) *cobra.Command {
	f := tuneFlags{common: common{ext: ext}}
	cmd := &cobra.Command{
		Use:   "tune [JOB.yaml]",
		Short: "Find settings with which a job trains faster here, by short trainings",
		Long: `Tune trains the job for some steps again and again, each time with another size of
buckets, algorithm or number of threads, and, if --max-error allows for it, with
compressed gradients. Candidates take turns with the job as it is; the slower half is
dropped after each round, and the last ones run in pairs with it. It recommends a change
only if that was faster in every pair; gangline train job.yaml --overlay tuned.yaml then
trains with it. Nothing is saved or tested. Nothing else should run on the machine.`,
		Example: `  gangline tune job.yaml --out tuned.yaml
  gangline tune job.yaml --budget 5m --max-error 0.01`,
		Args: cobra.MaximumNArgs(1),

		ValidArgsFunction: jobFiles,
		RunE: func(c *cobra.Command, args []string) error {
			return f.run(c.Context(), args, c.OutOrStdout(), c.ErrOrStderr())
		},
	}
	f.add(cmd)
	cmd.Flags().DurationVar(&f.budget, "budget", time.Minute, "about how long to search")
	cmd.Flags().Float64Var(&f.maxError, "max-error", 0, "by what share the training loss may differ with compressed gradients; 0: do not try any")
	cmd.Flags().StringVarP(&f.out, "out", "o", "", "keep what was found in this file, for --overlay of train")
	cmd.Flags().BoolVarP(&f.quiet, "quiet", "q", false, "print no line a trial")
	return cmd
}

func (f *tuneFlags) run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	switch {
	case f.budget < tune.BudgetMin || f.budget > tune.BudgetMax:
		return requestError{fmt.Errorf("--budget %v: want %v to %v", f.budget, tune.BudgetMin, tune.BudgetMax)}
	case !(f.maxError >= 0 && f.maxError < 1):
		return requestError{fmt.Errorf("--max-error %g: want a share of the loss from 0 to below 1, 0.01 for example", f.maxError)}
	case f.overlay != "":
		return requestError{fmt.Errorf("--overlay %s: tune begins with the job as it is; name its settings with --set to search from there", f.overlay)}
	}
	j, err := f.job(ctx, args)
	if err != nil {
		return err
	}
	if err := tune.Check(&j); err != nil {
		return err
	}
	if err := f.spare("--out", f.out); err != nil {
		return err
	}
	if err := command.CheckOut("--out", f.out); err != nil {
		return err
	}
	candidates, err := f.candidates(ctx, j, args)
	if err != nil {
		return err
	}
	exe, err := os.Executable()
	if err != nil {
		return fmt.Errorf("cannot find this program to start it again: %w", err)
	}
	trials := tune.Processes{Exe: exe, Args: f.trainArgs(args), Env: os.Environ(), Job: j, Stderr: io.Discard}
	cfg := tune.Config{Candidates: candidates, Budget: f.budget, MaxError: f.maxError}
	if !f.quiet {
		cfg.OnTrial = func(c *tune.Candidate, t tune.Trial, spent time.Duration) {
			fmt.Fprintf(stderr, "%v: %.3f ms a step (%v of %v)\n", c, 1e3*t.Step, spent.Round(100*time.Millisecond), f.budget)
		}
	}
	found, err := tune.Search(ctx, cfg, trials.Run)
	if err != nil {
		return err
	}
	return f.close(&j, found, stdout)
}

// trainArgs are the arguments with which a rank of a trial is started.
func (f *tuneFlags) trainArgs(args []string) []string {
	all := append([]string{"train", "--quiet"}, args...)
	if f.dataDir != "" {
		all = append(all, "--data-dir", f.dataDir)
	}
	for _, s := range f.settings {
		all = append(all, "--set", s)
	}
	return all
}

// candidates are the settings to try.
func (f *tuneFlags) candidates(ctx context.Context, j job.Job, args []string) ([]tune.Candidate, error) {
	var columns []data.ColumnSpec
	columns, err := input.Columns(ctx, j, f.dataDir)
	if err != nil {
		return nil, requestError{err}
	}
	return tune.Candidates(&j, runtime.NumCPU(), f.maxError, func(settings []string) (string, error) {
		with, err := f.parse(args, append(append([]string(nil), f.settings...), settings...))
		if err != nil {
			return "", err
		}
		s, err := f.setup(with, columns)
		if err != nil {
			return "", err
		}
		return plan.ProgramDigest(s.Program), nil
	})
}

// close prints what was found, and keeps it.
func (f *tuneFlags) close(j *job.Job, r *tune.Result, stdout io.Writer) error {
	t := tabwriter.NewWriter(stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "settings\ttrials\tms a step\tratio\tleast\tmost\tpairs\t")
	for _, row := range r.Rows {
		fmt.Fprintf(t, "%v\t%d\t%.3f\t%.3f\t%.3f\t%.3f\t%d\t%s\n", &row.Candidate, row.Trials, 1e3*row.Step, row.Ratio, row.Low, row.High, row.Pairs, row.Dropped)
	}
	if err := t.Flush(); err != nil {
		return err
	}
	fmt.Fprintln(stdout)
	if r.Best != nil {
		fmt.Fprintf(stdout, "%v: ", &r.Best.Candidate)
	}
	fmt.Fprintf(stdout, "%s\n", r.Why)
	if f.out == "" {
		return nil
	}
	o, err := tune.NewOverlay(j, r)
	if err != nil {
		return err
	}
	text, err := o.Encode()
	if err != nil {
		return err
	}
	return command.WriteWhole(f.out, func(file *os.File) error { _, err := file.Write(text); return err })
}
