package train

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/gangline/gangline/params"
	"github.com/gangline/gangline/report"

	"github.com/gangline/gangline/checkpoint"
	"github.com/gangline/gangline/collective/compressed"
	"github.com/gangline/gangline/compute"
	"github.com/gangline/gangline/compute/native"
	"github.com/gangline/gangline/compute/ref"
	"github.com/gangline/gangline/coord/crew"
	"github.com/gangline/gangline/data"
	"github.com/gangline/gangline/exec"
	"github.com/gangline/gangline/exec/cycle"
	"github.com/gangline/gangline/job"
	"github.com/gangline/gangline/metric"
	"github.com/gangline/gangline/plan"
	"github.com/gangline/gangline/strategy"
	"github.com/gangline/gangline/train/residual"
	"github.com/gangline/gangline/train/resume"
)

// worker is a rank that computes.
type worker struct {
	*member
	backend     compute.Backend
	holder      holder
	order       data.Order
	fingerprint data.Fingerprint
	steps       *cycle.Driver
	tests       map[data.Source]*tester
	main        report.Summary
	recent      recent
	skipped     int   // steps in a row
	hopeless    error // why the run gives up; it has called stop
	stop        context.CancelCauseFunc
	saved       string
	savedAt     int64
	patient     *metric.Patience // judges tests; nil: nobody does
	bestDir     string           // checkpoint of the best test
	tested      metric.Result    // the last test, after so many steps
	testedAt    int64
	curves      report.Curves
}

// train is the life of a worker rank.
func (m *member) train(ctx context.Context, report *report.Rank) (err error) {
	w, err := m.newWorker()
	if err != nil {
		return fmt.Errorf("rank %d: %w", m.cfg.Rank, err)
	}
	defer func() { err = errors.Join(err, w.close()) }()
	if err := w.agree(ctx); err != nil {
		return err
	}
	if err := w.loop(ctx); err != nil {
		return err
	}
	return w.finish(ctx, report)
}

// newWorker puts together what the loop drives.
func (m *member) newWorker() (*worker, error) {
	w := &worker{member: m, savedAt: -1, testedAt: -1, tests: map[data.Source]*tester{}}
	var err error
	if w.backend, err = backend(m.setup.Job, m.neighbours()); err != nil {
		return nil, err
	}
	w.order = m.setup.trainOrder(m.rows.Train)
	if err := w.order.Validate(); err != nil {
		return nil, err
	}
	if w.fingerprint, err = w.order.Fingerprint(m.rows.Train); err != nil {
		return nil, err
	}
	if m.from != nil {
		if err := resume.CheckCursor(m.from, w.order, w.fingerprint); err != nil {
			return nil, err
		}
		w.savedAt, w.saved = m.first(), m.from.Dir
	}
	if err := w.newJudge(); err != nil {
		return nil, err
	}
	if w.holder, err = m.newHolder(); err != nil {
		return nil, err
	}
	w.main.Resumed = m.first()
	w.steps, err = cycle.New(m.setup.Program, func(plan string) (*exec.Exec, error) {
		cfg := exec.Config{Trace: m.trace}
		if plan == strategy.StepPlan {
			cfg.OnStep = w.onStep
		}
		return w.executor(plan, m.rows.Train, w.order, w.holder.stores(), cfg)
	})
	if err != nil {
		return nil, err
	}
	if err := w.keepLost(); err != nil {
		return nil, errors.Join(err, w.close())
	}
	return w, nil
}

// keepLost makes what compressed gradients lose part of the checkpoints, and goes on with
// what the one has that this run goes on from.
func (w *worker) keepLost() error {
	buckets := w.steps.Step().Compressed()
	if l, ok := w.holder.(*local); ok && slices.ContainsFunc(buckets, func(b *compressed.Bucket) bool { return b.Spec.Feedback }) {
		l.lost = func() []checkpoint.Piece { return residual.Pieces(buckets) }
	}
	if w.from == nil {
		return nil
	}
	left, err := residual.Restore(buckets, w.from)
	if len(left) > 0 && w.cfg.Rank == 0 {
		w.cfg.Logger.Warn("what compression lost before is given up: strategy.compression is now without feedback, or of other parameters",
			"parameters", strings.Join(left, " "))
	}
	return err
}

// newHolder says where this worker's parameters live.
func (m *member) newHolder() (holder, error) {
	if sh := plannedShards(m.setup.Program.Plans[strategy.StepPlan], m.cfg.Rank); sh != nil {
		return newSharded(m, sh)
	}
	if m.setup.Cluster.Servers == 0 {
		return newLocal(m.setup, m.cfg.Rank, m.from, m.imported)
	}
	client, err := m.client()
	return &remote{setup: m.setup, rank: m.cfg.Rank, client: client, copies: params.State{}}, err
}

// executor binds a plan to rows of a source.
func (w *worker) executor(name string, src data.Source, o data.Order, stores exec.Stores, cfg exec.Config) (*exec.Exec, error) {
	feeder, err := w.feeder(name, src, o)
	if err != nil {
		return nil, err
	}
	if cfg.Plan == nil {
		cfg.Plan = w.setup.Program.Plans[name]
	}
	cfg.Rank, cfg.Step, cfg.Backend = w.cfg.Rank, w.setup.Step, w.backend
	if cfg.Streams = w.streams; w.joined != nil {
		cfg.Calls = &w.board
	}
	cfg.Endpoint, cfg.Feeder, cfg.Stores, cfg.State = w.endpoint, feeder, stores, w.holder.shared()
	cfg.Deadline = crew.Patience(time.Duration(w.setup.Job.Network.TaskTimeout))
	return exec.New(cfg)
}

// feeder reads rows for a plan.
func (w *worker) feeder(name string, src data.Source, o data.Order) (exec.Feeder, error) {
	if n := w.setup.Cluster.Slices; n > 0 {
		part := plan.Part(n, w.setup.Cluster.Workers, w.cfg.Rank)
		return data.NewPartFeeder(src, o, part.Lo, part.Hi, n, w.setup.inputSpecs(name))
	}
	parts := 1
	if name == strategy.StepPlan {
		parts = max(w.setup.Job.MicroBatches, 1)
	}
	return data.NewMicroFeeder(src, o, w.cfg.Rank, w.setup.Cluster.Workers, parts, w.setup.inputSpecs(name))
}

// loop runs steps from boundary to boundary: evaluation, checkpoint, end. All
// workers have the same boundaries, between which nothing is in flight.
func (w *worker) loop(ctx context.Context) error {
	at, end := w.first(), w.setup.steps(w.order)
	j := &w.setup.Job
	ctx, w.stop = context.WithCancelCause(ctx)
	defer w.stop(nil)
	for at < end && !w.patient.Done() {
		next := boundary(at, end, j.Eval.Every, j.Checkpoint.Every)
		if warm := w.first() + w.cfg.Trial; at < warm {
			next = min(next, warm)
		}
		start := time.Now()
		err := w.steps.Run(ctx, at, next)
		if w.hopeless != nil {
			return w.hopeless
		}
		if err != nil {
			return err
		}
		if at = next; at > w.first()+w.cfg.Trial || w.cfg.Trial == 0 {
			w.main.Seconds += time.Since(start).Seconds()
		}
		if at == end {
			break
		}
		if err := w.pause(ctx, at); err != nil {
			return err
		}
	}
	w.main.Steps = at
	if at < end {
		w.main.Stopped = w.patient.Why()
	}
	if w.main.Skipped > 0 && w.main.Skipped == at-w.first() { // fewer than skipsMax, but all
		return w.giveUp(at)
	}
	return nil
}

// pause does what is due at a boundary before the end: a test, and a checkpoint,
// which knows of the test.
func (w *worker) pause(ctx context.Context, at int64) error {
	j, best := &w.setup.Job, false
	if due(at, j.Eval.Every) && w.rows.Eval != nil {
		m, err := w.evaluate(ctx, at, w.rows.Eval, true)
		if err != nil {
			return err
		}
		w.tested, w.testedAt = m, at
		w.curves.Test(at, &m)
		if best, err = w.judge(ctx, at, &m); err != nil {
			return err
		}
		w.progress(at, &m)
	}
	if due := due(at, j.Checkpoint.Every); !due && (!best || !j.Checkpoint.Best) {
		return nil
	}
	return w.keep(ctx, at, best)
}

// giveUp is the error of a run whose last steps before a step changed nothing.
func (w *worker) giveUp(step int64) error {
	if w.skipped == 0 {
		return fmt.Errorf("rank %d: all %d steps were skipped: the weights of all rows are 0; look at the column of weights", w.cfg.Rank, w.main.Skipped)
	}
	return fmt.Errorf("rank %d: the last %d steps before step %d were skipped: values were not finite; lower optimizer.lr or look at the data",
		w.cfg.Rank, w.skipped, step)
}

// boundary is the next step after at that something is due before.
func boundary(at, end int64, every ...int64) int64 {
	for _, e := range every {
		if e > 0 {
			end = min(end, (at/e+1)*e)
		}
	}
	return end
}

// due reports whether something that happens every so many steps is due at a boundary.
func due(at, every int64) bool { return every > 0 && at%every == 0 }

// finish evaluates, saves, accounts and says goodbye.
func (w *worker) finish(ctx context.Context, report *report.Rank) error {
	version := w.main.Steps
	var loss *float64
	if w.cfg.Trial == 0 {
		best, err := w.lastTest(ctx, version)
		if err != nil {
			return err
		}
		if err := w.keep(ctx, version, best); err != nil {
			return fmt.Errorf("at the end: %w", err)
		}
		trained, err := w.evaluate(ctx, version, w.rows.Train, false)
		if err != nil {
			return err
		}
		loss = trained.Loss
	}
	var err error
	if report.Gradients, err = w.holder.gradients(ctx, w.steps.Step()); err != nil {
		return err
	}
	if w.cfg.Rank == 0 || w.holder.spread() {
		state, err := w.holder.params(ctx, version)
		if err != nil {
			return err
		}
		if w.cfg.Rank == 0 {
			if report.Main, err = w.mainReport(state, loss); err != nil {
				return err
			}
		}
	}
	report.StepTime, report.BadRows, report.Skipped = w.stepTime(), w.rows.Bad(), w.main.Skipped
	report.Memory = w.memory()
	report.Compression = residual.Reports(w.steps.Step().Compressed())
	bye, cancel := context.WithTimeout(ctx, byeTimeout)
	defer cancel()
	return w.holder.leave(bye)
}

// mainReport is what rank 0 says for all: it looks at every parameter once.
func (w *worker) mainReport(state params.State, trainLoss *float64) (m *report.Main, err error) {
	m = &report.Main{Summary: w.main, Params: params.Count(w.setup.Step)}
	m.TrainRows = w.rows.Train.Rows()
	if m.TrainLoss = trainLoss; trainLoss != nil {
		m.Objective = metric.Finite(*trainLoss + w.setup.Job.Optimizer.Penalty()/2*state.SquareNorm(w.setup.Step))
	}
	m.Checkpoint, m.Best = w.saved, w.best()
	w.lastScale(m.LossScale)
	m.Curves = w.curves.All(w.setup.Job.Optimizer.Scaled(w.setup.Job.Batch))
	if m.Seconds > 0 {
		m.ExamplesPerSecond = float64(m.Examples) / m.Seconds
	}
	if n := w.setup.Cluster.Slices; n > 0 {
		m.Reproducible = &report.Reproducible{Slices: n, AddingShare: w.stepTime().Adding / max(m.Seconds, 1e-9)}
	}
	m.ParamsSHA256, err = state.Digest(w.setup.Step)
	return m, err
}

// stepTime adds up where the time of the steps went.
func (w *worker) stepTime() *report.StepTime {
	t := w.steps.Times()
	return &report.StepTime{
		Rank: w.cfg.Rank, Compute: t.Compute.Seconds(), Communication: t.Communication.Seconds(),
		Wait: t.Wait.Seconds(), WaitInput: t.WaitInput.Seconds(), Input: t.Input.Seconds(), Update: t.Update.Seconds(),
		Adding: t.Adding.Seconds(),
	}
}

// memory says what this rank holds of the state, and what it holds for a while.
func (w *worker) memory() *report.Memory {
	m := w.steps.Step().Memory()
	for _, t := range w.tests {
		m.Temporary += t.exec.Memory().Temporary
	}
	return &report.Memory{Parameters: m.Parameters, Gradients: m.Gradients, OptimizerState: m.Slots, Temporary: m.Temporary}
}

func (w *worker) close() error {
	var errs []error
	if w.steps != nil {
		errs = append(errs, w.steps.Close())
	}
	for _, t := range w.tests {
		errs = append(errs, t.exec.Close())
	}
	return errors.Join(errs...)
}

// neighbours counts the workers of this worker's host, itself among them; who
// has joined no one takes all to be there.
func (m *member) neighbours() int {
	if m.session == nil {
		return m.setup.Cluster.Workers
	}
	n, peers := 0, m.session.Peers
	for _, p := range peers {
		if p.Rank < m.setup.Cluster.Workers && p.Host == peers[m.cfg.Rank].Host {
			n++
		}
	}
	return n
}

// backend makes what computes for one of so many workers of a host.
func backend(j job.Job, workers int) (compute.Backend, error) {
	threads := j.Threads
	if threads == 0 {
		threads = max(1, runtime.GOMAXPROCS(0)/max(1, workers))
	}
	for _, b := range []compute.Backend{native.New(native.Threads(threads)), ref.New()} {
		if b.Name() == j.Backend {
			return b, nil
		}
	}
	return nil, &job.FieldError{Field: "backend", Fix: fmt.Sprintf("there is no backend %q", j.Backend)}
}

// StrategyOf is what a report says of how a job is spread.
func StrategyOf(j job.Job) report.Strategy {
	s := j.Strategy
	r := report.Strategy{Kind: s.Kind, Workers: s.Workers, Servers: s.Servers, Consistency: s.Consistency.Kind}
	r.Every, r.Alpha, r.Slots = s.Every, s.Alpha, string(s.Slots)
	if s.Outer.Momentum > 0 || s.Outer.LR != 0 && s.Outer.LR != 1 {
		r.Outer = &report.Outer{Momentum: s.Outer.Momentum, LR: s.Outer.LR, Nesterov: s.Outer.Nesterov}
	}
	return r
}
