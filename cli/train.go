package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"slices"
	"time"

	"github.com/gangline/gangline/cli/command"
	"github.com/gangline/gangline/report"

	"github.com/spf13/cobra"

	"github.com/gangline/gangline/checkpoint"
	"github.com/gangline/gangline/coord"
	"github.com/gangline/gangline/job"
	"github.com/gangline/gangline/launch"
	"github.com/gangline/gangline/train"
	"github.com/gangline/gangline/train/input"
)

// trainFlags are the flags of train.
type trainFlags struct {
	common
	report   string
	trace    string
	plots    string
	progress string
	resume   bool
	trial    int64
	verbose  bool
	quiet    bool
}

func newTrain(ext job.Extensions) *cobra.Command {
	f := trainFlags{common: common{ext: ext}}
	cmd := &cobra.Command{
		Use:   "train [JOB.yaml]",
		Short: "Train a model on processes of this machine, or as one rank of a cluster",
		Long: `Train runs the job's workers and servers as processes of this program on this
machine. Where somebody else has started several ranks (mpirun, srun, or a shell
that sets RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT), it is one rank of that
job instead, and rank 0 coordinates: at MASTER_ADDR and MASTER_PORT, or
GANGLINE_ADDRESS, or, if all ranks are on one host, in a private directory. Ranks
on several hosts need GANGLINE_TOKEN, a secret that they share.

Without a job it runs a built-in one: an embedding model on generated click data,
2 workers and 2 servers.`,
		Example: `  gangline train
  gangline train examples/adult.yaml --data-dir DIR --set strategy.kind=ps
  gangline train examples/mnist.yaml --data-dir DIR --report out.json --trace trace.json
  gangline train job.yaml --set checkpoint.dir=ckpt --set checkpoint.every=500 --resume`,
		Args: cobra.MaximumNArgs(1),

		ValidArgsFunction: jobFiles,
		RunE: func(c *cobra.Command, args []string) error {
			return f.run(c.Context(), args, c.OutOrStdout(), c.ErrOrStderr())
		},
	}
	f.add(cmd)
	addReport(cmd, &f.report)
	cmd.Flags().StringVar(&f.progress, "progress", "auto", "progress on stderr: tty (a table), plain (lines), none, or auto: a table on a terminal, else lines")
	cmd.Flags().BoolVarP(&f.quiet, "quiet", "q", false, "print neither progress nor the closing table; errors and warnings stay")
	cmd.Flags().BoolVarP(&f.verbose, "verbose", "v", false, "log every decision on stderr")
	cmd.Flags().StringVar(&f.trace, "trace", "", "write a Chrome trace of all ranks to this file (open it in Perfetto)")
	cmd.Flags().StringVar(&f.plots, "plots", "", "draw curves.png and curves.svg into this directory (default: beside --report, under its name); none: do not")
	cmd.Flags().Int64Var(&f.trial, "trial", 0, "")
	_ = cmd.Flags().MarkHidden("trial") // it is there, for tune
	cmd.Flags().BoolVar(&f.resume, "resume", false, "go on from the newest checkpoint in checkpoint.dir, if there is one")
	return cmd
}

func (f *trainFlags) run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	if !slices.Contains([]string{"auto", "tty", "plain", "none"}, f.progress) {
		return requestError{fmt.Errorf("--progress %q: want auto, tty, plain or none", f.progress)}
	}
	if f.quiet {
		f.progress = "none"
	}
	if f.resume {
		f.settings = append(f.settings, "checkpoint.resume=true")
	}
	j, err := f.read(args)
	if err != nil {
		return err
	}
	place, joins, err := launch.FromEnv(os.LookupEnv)
	if err != nil {
		return requestError{err}
	}
	if _, program := os.LookupEnv(envProgram); program && joins && place.Hosted {
		return requestError{errors.New("train starts its ranks itself: leave out launch and set strategy.workers")}
	}
	if server := joins && place.Rank >= j.Strategy.Workers; !server && len(args) > 0 { // servers read no data
		if err := f.files(ctx, j); err != nil {
			return err
		}
	}
	_, launched := os.LookupEnv(launch.EnvParent)
	if !launched { // else the launcher has looked, and a rank that is killed leaves no trace of looking
		if err := f.checkPlaces(j); err != nil {
			return err
		}
	}
	switch {
	case joins && (place.Hosted || place.Rank > 0):
		return f.rank(ctx, j, place, stderr)
	case joins:
		return f.lead(ctx, j, place, stdout, stderr)
	}
	return f.launch(ctx, j, stdout, stderr)
}

// checkPlaces refuses places to write to where nothing can be written, or where
// what the job reads or the other file would be written over.
func (f *trainFlags) checkPlaces(j job.Job) error {
	if f.report != "" && f.trace != "" && sameFile(f.report, f.trace) {
		return requestError{fmt.Errorf("--report and --trace are both %s: name two files", f.report)}
	}
	for flag, path := range map[string]string{"--report": f.report, "--trace": f.trace} {
		if err := errors.Join(f.spare(flag, path), command.CheckOut(flag, path)); err != nil {
			return err
		}
	}
	if err := f.checkPlots(); err != nil || j.Checkpoint.Dir == "" {
		return err
	}
	if err := checkpoint.Probe(j.Checkpoint.Dir); err != nil {
		return &job.FieldError{Field: "checkpoint.dir", Fix: err.Error()}
	}
	return nil
}

// logger is what ranks and the launcher log with.
func (f *trainFlags) logger(w io.Writer) *slog.Logger {
	level := slog.LevelWarn
	if f.verbose {
		level = slog.LevelDebug
	}
	return slog.New(slog.NewTextHandler(w, &slog.HandlerOptions{Level: level}))
}

// rank is the life of one rank that somebody else started.
func (f *trainFlags) rank(ctx context.Context, j job.Job, place launch.Place, stderr io.Writer) error {
	if want := j.Strategy.Workers + j.Strategy.Servers; place.World != want {
		return &job.FieldError{Field: "strategy.workers", Fix: fmt.Sprintf("the job has %d ranks (%s), but the world size is %d (from %s)",
			want, ranksText(j.Strategy.Workers, j.Strategy.Servers), place.World, place.WorldVariable())}
	}
	ctx, stop, err := launch.WatchParent(ctx, os.LookupEnv)
	if err != nil {
		return err
	}
	defer stop()
	if place.Rank > 0 { // rank 0 has opened the meeting
		if place, _, err = launch.Meet(ctx, place, coord.ServerConfig{JoinTimeout: time.Duration(j.Network.JoinTimeout)}); err != nil {
			return err
		}
	}
	_, err = train.Run(ctx, train.Config{
		Job: j, DataDir: f.dataDir, Rank: place.Rank, Address: place.Address, Token: place.Token, Attempt: place.Attempt, Led: !place.Hosted, Trial: f.trial,
		TraceFile: f.spansOf(place.Rank), Logger: f.logger(stderr),
	})
	_, launched := os.LookupEnv(launch.EnvParent)
	if verdict, ok := errors.AsType[*coord.AbortError](err); ok && launched {
		return fmt.Errorf("%w: %w", errSaid, verdict) // by the launcher, whose coordinator has it already
	}
	return err
}

// spansOf is the file in which a rank leaves its spans.
func (f *trainFlags) spansOf(rank int) string {
	if f.trace == "" {
		return ""
	}
	return fmt.Sprintf("%s.rank%d", f.trace, rank)
}

// launch starts all ranks here and closes the run.
func (f *trainFlags) launch(ctx context.Context, j job.Job, stdout, stderr io.Writer) error {
	exe, err := os.Executable()
	if err != nil {
		return fmt.Errorf("cannot find this program to start it again: %w", err)
	}
	if err := f.foresee(ctx, j); err != nil {
		return err
	}
	start := time.Now()
	show := newProgress(f.progress, stderr, j)
	defer show.end()
	sayScaled(show, j)
	world := j.Strategy.Workers + j.Strategy.Servers
	outcome, err := launch.Run(ctx, launch.Config{
		Exe: exe, Args: func(int, int) []string { return os.Args[1:] }, Env: os.Environ(), World: world,
		Names:   func(rank int) string { return rankName(j, rank) },
		Restart: launch.Restart{Max: j.Restart.Max},
		Stderr:  &withoutVerdicts{w: show, last: map[string]bool{}}, Logger: f.logger(show),
		Coordinator: coord.ServerConfig{
			JoinTimeout: time.Duration(j.Network.JoinTimeout),
			OnProgress:  show.update,
		},
	})
	show.end()
	if err != nil {
		f.removeSpans(world)
		return err
	}
	var restarts []string
	for _, r := range outcome.Restarts {
		restarts = append(restarts, r.Reason)
	}
	return f.close(j, outcome.Reports, restarts, time.Since(start), stdout)
}

// foresee finds what is wrong with checkpoints, model and strategy before anything
// is started; with the latter two, unless the whole file must be read to know.
func (f *trainFlags) foresee(ctx context.Context, j job.Job) error {
	if err := train.CheckResume(j); err != nil {
		return err
	}
	if t := j.Data.Train; t.Format == "libsvm" && t.Features == 0 || t.IsTable() {
		return nil
	}
	columns, err := input.Columns(ctx, j, f.dataDir)
	if err != nil {
		return requestError{err}
	}
	_, err = train.NewSetup(j, columns)
	return err
}

// sayScaled says what became of the learning rate where the job has it scaled
// with the batch: the number in the job is not the one that trains.
func sayScaled(w io.Writer, j job.Job) {
	if o := j.Optimizer; o.ScaleWith != 0 {
		fmt.Fprintf(w, "optimizer.lr %g is meant for batches of %d: with batch %d the learning rate is %g\n",
			o.LR, o.ScaleWith, j.Batch, o.Scaled(j.Batch).LR)
	}
}

// rankName calls a rank by what it does.
func rankName(j job.Job, rank int) string {
	if rank < j.Strategy.Workers {
		return fmt.Sprintf("worker %d", rank)
	}
	return fmt.Sprintf("server %d", rank-j.Strategy.Workers)
}

// lead is rank 0 of a job that a cluster started: it coordinates too.
func (f *trainFlags) lead(ctx context.Context, j job.Job, place launch.Place, stdout, stderr io.Writer) error {
	start := time.Now()
	show := newProgress(f.progress, stderr, j)
	defer show.end()
	sayScaled(show, j)
	place, coordinator, err := launch.Meet(ctx, place, coord.ServerConfig{
		JoinTimeout: time.Duration(j.Network.JoinTimeout), Logger: f.logger(show), OnProgress: show.update,
	})
	if err != nil {
		return err
	}
	err = f.rank(ctx, j, place, show)
	outcome, verdict := coord.Outcome{}, err
	if err == nil {
		outcome, verdict = coordinator.Server.Wait(ctx)
	} else {
		coordinator.Server.Stop(err.Error())
	}
	err = errors.Join(verdict, coordinator.Close())
	show.end()
	if err != nil {
		return err
	}
	return f.close(j, outcome.Reports, nil, time.Since(start), stdout)
}

// close writes report and trace, and the closing table.
func (f *trainFlags) close(j job.Job, texts map[int][]byte, restarts []string, wall time.Duration, stdout io.Writer) error {
	ranks := make([]report.Rank, len(texts))
	for r, text := range texts {
		if err := json.Unmarshal(text, &ranks[r]); err != nil {
			return fmt.Errorf("the report of rank %d: %w", r, err)
		}
	}
	report, err := report.New(j.Name, train.StrategyOf(j), versionText(), ranks)
	if err != nil {
		return err
	}
	report.Restarts, report.WallSeconds = restarts, wall.Seconds()
	if f.report != "" {
		err = writeJSON(f.report, report)
	}
	if f.trace != "" {
		err = errors.Join(err, f.mergeSpans(len(ranks)))
	}
	err = errors.Join(err, f.writePlots(report))
	if !f.quiet {
		err = errors.Join(err, printTable(stdout, report))
	}
	return err
}
