package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/gangline/gangline/cli/command"
	"github.com/gangline/gangline/collective/cost"
	"github.com/gangline/gangline/data"
	"github.com/gangline/gangline/data/stats"
	"github.com/gangline/gangline/job"
	"github.com/gangline/gangline/plan"
	"github.com/gangline/gangline/strategy"
	"github.com/gangline/gangline/train"
	"github.com/gangline/gangline/train/input"
)

// version of the next release.
const version = "0.1.0-dev"

func versionText() string {
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, s := range info.Settings {
			if s.Key == "vcs.revision" {
				return version + "+" + s.Value[:min(12, len(s.Value))]
			}
		}
	}
	return version
}

func newVersion() *cobra.Command {
	return &cobra.Command{
		Use:     "version",
		Short:   "Print the version",
		Example: "  gangline version",
		Args:    cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			_, err := fmt.Fprintf(c.OutOrStdout(), "gangline %s %s %s/%s\n", versionText(), runtime.Version(), runtime.GOOS, runtime.GOARCH)
			return err
		},
	}
}

func newEval(ext job.Extensions) *cobra.Command {
	f := common{ext: ext}
	var from, report string
	cmd := &cobra.Command{
		Use:   "eval [JOB.yaml]",
		Short: "Test the parameters of a checkpoint on the job's eval rows",
		Long: `Eval prints every metric that the model's task has, on the job's eval rows. The
parameters are those of --checkpoint, else of the job's checkpoint.dir, else those
that the job imports (import.path).`,
		Example: `  gangline eval job.yaml --checkpoint ckpt
  gangline eval job.yaml --checkpoint ckpt/step-000000000500 --set data.eval.path=other.svm
  gangline eval examples/mnist-import.yaml --data-dir DIR`,
		Args: cobra.MaximumNArgs(1),

		ValidArgsFunction: jobFiles,
		RunE: func(c *cobra.Command, args []string) error {
			f.absent = []string{"data.train"} // a checkpoint knows what was learned of them
			j, err := f.job(c.Context(), args)
			if err != nil {
				return err
			}
			if from == "" {
				from = j.Checkpoint.Dir
			}
			if err := errors.Join(f.spare("--report", report), command.CheckOut("--report", report)); err != nil {
				return err
			}
			m, err := train.Evaluate(c.Context(), j, f.dataDir, from)
			if err != nil {
				return err
			}
			if report != "" {
				if err := writeJSON(report, m); err != nil {
					return err
				}
			}
			fmt.Fprintf(c.OutOrStdout(), "step %d: ", m.Step)
			return printMetrics(c.OutOrStdout(), &m.Eval)
		},
	}
	f.add(cmd)
	addReport(cmd, &report)
	cmd.Flags().StringVar(&from, "checkpoint", "", "checkpoint directory, or a directory of them (default: the job's checkpoint.dir)")
	return cmd
}

func newPlan(ext job.Extensions) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "plan",
		Short: "Print or prove the plan of a job",
		Example: `  gangline plan show examples/adult.yaml --data-dir DIR
  gangline plan check examples/adult.yaml --data-dir DIR`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	cmd.AddCommand(newPlanShow(ext), newPlanCheck(ext))
	return cmd
}

// setupOf works out a job's plans.
func setupOf(ctx context.Context, f *common, args []string) (*train.Setup, error) {
	j, err := f.job(ctx, args)
	if err != nil {
		return nil, err
	}
	columns, err := input.Columns(ctx, j, f.dataDir)
	if err != nil {
		return nil, err
	}
	return f.setup(j, columns)
}

// setup is setupOf for a job whose columns are known.
func (c *common) setup(j job.Job, columns []data.ColumnSpec) (*train.Setup, error) {
	if err := j.Network.ReadCosts(input.Path(c.dataDir, j.Network.Costs)); err != nil {
		return nil, err
	}
	return train.NewSetup(j, columns)
}

func newPlanShow(ext job.Extensions) *cobra.Command {
	f := common{ext: ext}
	var name string
	var explain bool
	cmd := &cobra.Command{
		Use:   "show [JOB.yaml]",
		Short: "Print what every rank does in a step",
		Example: `  gangline plan show examples/adult.yaml --data-dir DIR --set strategy.kind=ps
  gangline plan show examples/adult.yaml --data-dir DIR --set strategy.kind=allreduce --explain`,
		Args: cobra.MaximumNArgs(1),

		ValidArgsFunction: jobFiles,
		RunE: func(c *cobra.Command, args []string) error {
			s, err := setupOf(c.Context(), &f, args)
			if err != nil {
				return err
			}
			p := s.Program.Plans[name]
			if p == nil {
				return requestError{fmt.Errorf("--plan %q: want %s", name, strings.Join(planNames(s.Program), " or "))}
			}
			if explain {
				sayCosts(c.OutOrStdout(), s)
				return cost.Explain(c.OutOrStdout(), p, s.Cluster.Machine())
			}
			_, err = fmt.Fprint(c.OutOrStdout(), plan.Format(p))
			return err
		},
	}
	f.add(cmd)
	cmd.Flags().StringVar(&name, "plan", strategy.StepPlan, "which plan: step, eval; of localsgd and sma also average, settle, init")
	cmd.Flags().BoolVar(&explain, "explain", false, "say instead by which algorithm each collective is done, and what others would take")
	return cmd
}

// sayCosts says what the choice of algorithms goes by.
func sayCosts(w io.Writer, s *train.Setup) {
	m := s.Cluster.Machine()
	if m.Costs == (cost.Table{}) {
		m.Costs = cost.Default()
	}
	from := "default costs (gangline probe measures those of this machine)"
	if name := s.Job.Network.Costs; name != "" {
		from = "costs from " + name
	}
	say := func(p cost.Path) string {
		l := m.Costs[p]
		return fmt.Sprintf("by %v %.3g µs a message, %.3g ns a byte, %.3g ns a byte added", p, 1e6*l.Alpha, 1e9*l.Beta, 1e9*l.Gamma)
	}
	fmt.Fprintf(w, "%s: within a host %s", from, say(m.Local))
	if len(m.Hosts) > 1 {
		fmt.Fprintf(w, "; between hosts %s", say(cost.TCP))
	}
	if s.Cluster.Algorithm != "" {
		fmt.Fprintf(w, "; strategy.algorithm is %s, whatever the costs", s.Cluster.Algorithm)
	}
	fmt.Fprintln(w)
}

// planNames lists the plans of a program, the step first.
func planNames(p *plan.Program) []string {
	names := slices.Sorted(maps.Keys(p.Plans))
	slices.Reverse(names)
	return names
}

func newPlanCheck(ext job.Extensions) *cobra.Command {
	f := common{ext: ext}
	cmd := &cobra.Command{
		Use:     "check [JOB.yaml]",
		Short:   "Prove that the plans cannot hang and update every parameter once",
		Example: "  gangline plan check examples/adult.yaml --data-dir DIR --set strategy.kind=allreduce --set strategy.workers=4",
		Args:    cobra.MaximumNArgs(1),

		ValidArgsFunction: jobFiles,
		RunE: func(c *cobra.Command, args []string) error {
			s, err := setupOf(c.Context(), &f, args) // which checks them
			if err != nil {
				return err
			}
			t := tabwriter.NewWriter(c.OutOrStdout(), 0, 0, 2, ' ', 0)
			for _, name := range planNames(s.Program) {
				p := s.Program.Plans[name]
				tasks := 0
				for _, r := range p.Ranks {
					tasks += len(r)
				}
				fmt.Fprintf(t, "%s\tholds\t%s, %s, %s, digest %.16s\n", name, plural(len(p.Ranks), "worker"), plural(len(p.Stores), "store"), plural(tasks, "task"), plan.Digest(p))
			}
			return t.Flush()
		},
	}
	f.add(cmd)
	return cmd
}

func newData(ext job.Extensions) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "data",
		Short: "Look at data",
		Example: `  gangline data head examples/adult.yaml --data-dir DIR
  gangline data stats clicks.csv`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	f := common{ext: ext}
	var n int
	var eval bool
	head := &cobra.Command{
		Use:     "head [JOB.yaml]",
		Short:   "Print the columns and first rows of a job's data",
		Example: "  gangline data head examples/adult.yaml --data-dir DIR -n 3",
		Args:    cobra.MaximumNArgs(1),

		ValidArgsFunction: jobFiles,
		RunE: func(c *cobra.Command, args []string) error {
			if n < 1 {
				return requestError{fmt.Errorf("-n %d: want at least 1", n)}
			}
			j, err := f.job(c.Context(), args)
			if err != nil {
				return err
			}
			return printHead(c, j, &f, n, eval)
		},
	}
	f.add(head)
	head.Flags().IntVarP(&n, "rows", "n", 5, "how many rows")
	head.Flags().BoolVar(&eval, "eval", false, "of the eval rows instead of the training rows")
	cmd.AddCommand(head, newDataStats(ext), newConvert(ext))
	return cmd
}

func printHead(c *cobra.Command, j job.Job, f *common, n int, eval bool) error {
	src, err := input.OpenSource(c.Context(), j, f.dataDir, eval)
	if err != nil {
		return err
	}
	defer src.Close()
	return stats.Head(c.OutOrStdout(), src, n)
}
