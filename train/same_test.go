package train

import (
	"context"
	"fmt"
	"log/slog"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gangline/gangline/params"
	"github.com/gangline/gangline/report"

	"github.com/gangline/gangline/collective/cost"
	"github.com/gangline/gangline/coord"
	"github.com/gangline/gangline/data"
	"github.com/gangline/gangline/job"
	"github.com/gangline/gangline/optim"
	"github.com/gangline/gangline/tensor"
	"github.com/gangline/gangline/train/input"
	"github.com/gangline/gangline/transport"
	"github.com/gangline/gangline/transport/mem"
)

// sameSteps is how many steps strategies are compared after.
const sameSteps = 20

// sleepy is a source whose reads take time, another each: a skewed worker.
type sleepy struct {
	data.Source
	mu  sync.Mutex
	rng *rand.Rand
	max time.Duration
}

func (s *sleepy) Read(rows []int, b *data.Batch) error {
	s.mu.Lock()
	d := time.Duration(s.rng.Int64N(int64(s.max) + 1))
	s.mu.Unlock()
	time.Sleep(d) // virtual
	return s.Source.Read(rows, b)
}

// result is what a run of some steps left.
type result struct {
	params params.State
	shared []params.State // of every worker
	stats  []transport.Stats
	report []report.Rank
}

// trainMem runs steps of a job on all ranks over the mem transport, in virtual
// time, with links and workers of different speeds.
func trainMem(t *testing.T, j job.Job, src data.Source, steps int64) result {
	t.Helper()
	setup, err := NewSetup(j, src.Columns())
	if err != nil {
		t.Fatal(err)
	}
	world := j.Strategy.Workers + j.Strategy.Servers
	out := result{report: make([]report.Rank, world), shared: make([]params.State, world)}
	synctest.Test(t, func(t *testing.T) {
		rng := rand.New(rand.NewPCG(uint64(world), j.Seed))
		delays := make([]time.Duration, world*world)
		for i := range delays {
			delays[i] = time.Duration(rng.Int64N(int64(5 * time.Millisecond)))
		}
		net := mem.NewNetwork(world, mem.Options{Link: func(from, to int) mem.Link {
			return mem.Link{Delay: delays[from*world+to]}
		}})
		var ranks sync.WaitGroup
		for r := range world {
			m := &member{
				cfg:   Config{Job: j, Rank: r, Logger: slog.New(slog.DiscardHandler)},
				setup: setup, endpoint: net.Endpoint(r), report: func(coord.Progress) {},
			}
			out.report[r].Rank = r
			if m.cfg.role() == "worker" {
				m.rows = &input.Rows{Train: &sleepy{
					Source: src, rng: rand.New(rand.NewPCG(uint64(r), 5)), max: time.Duration(r) * 3 * time.Millisecond,
				}}
			}
			ranks.Go(func() {
				if err := runRank(t.Context(), m, steps, &out); err != nil {
					t.Errorf("rank %d: %v", r, err)
				}
			})
		}
		ranks.Wait()
		for _, e := range net.Endpoints() {
			out.stats = append(out.stats, e.Stats())
			if err := e.Close(); err != nil {
				t.Error(err)
			}
		}
	})
	return out
}

// runRank does one rank's part of trainMem.
func runRank(ctx context.Context, m *member, steps int64, out *result) error {
	report := &out.report[m.cfg.Rank]
	if m.rows == nil {
		return m.serve(ctx, report)
	}
	w, err := m.newWorker()
	if err != nil {
		return err
	}
	defer w.close()
	if err := w.steps.Run(ctx, 0, steps); err != nil {
		return err
	}
	out.shared[m.cfg.Rank] = w.holder.shared()
	if report.Gradients, err = w.holder.gradients(ctx, w.steps.Step()); err != nil {
		return err
	}
	if m.cfg.Rank == 0 || w.holder.spread() {
		params, err := w.holder.params(ctx, steps)
		if err != nil {
			return err
		}
		if m.cfg.Rank == 0 {
			out.params = params
		}
	}
	report.Memory = w.memory()
	return w.holder.leave(ctx)
}

// noise is more than what rounding makes of a parameter that starts at 0 and has
// no gradient: the bias of attention's keys, which moves all scores of a row alike.
const noise = 1e-6

// difference is |p-q| / |p| over all parameters, and the largest |p-q| of any
// element over the largest |p| of its tensor,
// but of tensors that are only noise.
func difference(p, q params.State) (global, worst float64) {
	var diff, norm float64
	for name, a := range p {
		b := q[name]
		var top, apart float64
		for i := range a.Elems() {
			x, y := element(a, i), element(b, i)
			diff += (x - y) * (x - y)
			norm += x * x
			top, apart = max(top, math.Abs(x)), max(apart, math.Abs(x-y))
		}
		if top > noise {
			worst = max(worst, apart/top)
		}
	}
	return math.Sqrt(diff / norm), worst
}

func element(t *tensor.Tensor, i int) float64 {
	if t.DType() == tensor.F32 {
		return float64(t.F32()[i])
	}
	return t.F64()[i]
}

// writeRows makes a libsvm file of random rows: sparse features, labels by a
// planted rule, the rows of very different lengths.
func writeRows(t *testing.T, classes int) data.Source {
	t.Helper()
	rng := rand.New(rand.NewPCG(3, uint64(classes)))
	var b strings.Builder
	for range 211 {
		ids := rng.Perm(40)[:1+rng.IntN(12)]
		fmt.Fprintf(&b, "%d", (ids[0]+rng.IntN(2))%classes)
		for _, id := range ids {
			fmt.Fprintf(&b, " %d:%.3f", id+1, rng.NormFloat64())
		}
		b.WriteString("\n")
	}
	path := filepath.Join(t.TempDir(), "rows.svm")
	if err := os.WriteFile(path, []byte(b.String()), 0o644); err != nil {
		t.Fatal(err)
	}
	return open(t, data.Spec{Format: "libsvm", Path: path, Features: 40})
}

func open(t *testing.T, spec data.Spec) data.Source {
	t.Helper()
	src, err := data.Open(t.Context(), spec)
	if err != nil {
		t.Fatal(err)
	}
	return src
}

// Every strategy ends with the parameters of the serial loop, on 1 to 4 workers
// of different speeds, for several models and rules. This is the test that
// finds a gradient that was averaged wrongly, lost, or read too early.
func TestSameParameters(t *testing.T) {
	clicks := open(t, data.Spec{Format: "generated", Rows: 300, Buckets: 500, Seed: 5})
	for _, c := range []struct {
		name  string
		model string
		src   data.Source
		all   bool // of the rules
	}{
		{"logistic", "{kind: logistic}", writeRows(t, 2), true},
		{"logistic-table", "{kind: logistic, table: true}", writeRows(t, 2), true},
		{"softmax", "{kind: softmax, classes: 3}", writeRows(t, 3), true},
		{"mlp", "{kind: mlp, hidden: [16, 8], classes: 3}", writeRows(t, 3), true},
		{"ctr", "{kind: ctr, hidden: [8], dim: 4}", clicks, true},
		{"cnn", "{kind: cnn, image: [1, 5, 6], filters: [3], hidden: [4], classes: 3}", writeImages(t, 30, 3), false},
		{"fm", "{kind: fm, dim: 3}", writeRows(t, 2), false},
		{"deepfm", "{kind: deepfm, hidden: [8], dim: 4}", clicks, false},
		{"dlrm", "{kind: dlrm, bottom: [5], hidden: [8], dim: 4}", clicks, false},
		{"gpt", "{kind: gpt, dim: 8, layers: 2, heads: 2, dropout: 0.2}", writeText(t), false},
	} {
		if raced && c.name != "mlp" && c.name != "ctr" && c.name != "gpt" {
			continue
		}
		// A sum that should be zero is 1e-17 in another order; rules that divide by
		// the gradient's own size would make a whole step of it, so they start from
		// something to divide by.
		rules := []string{
			"{kind: sgd, lr: 0.1}",
			"{kind: adamw, lr: 0.01, eps: 0.001, amsgrad: true, schedule: {kind: cosine, warmup: 5, steps: 18}}",
		}
		if raced {
			rules = rules[:1]
		} else if c.all {
			rules = append(rules, "{kind: momentum, lr: 0.05, nesterov: true, l2: 0.01}",
				"{kind: adagrad, lr: 0.05, l2: 0.001, initial_accumulator: 0.1}", "{kind: adam, lr: 0.01, eps: 0.001}",
				"{kind: rmsprop, lr: 0.01, eps: 0.01, centered: true, momentum: 0.5, clip_value: 0.1}",
				"{kind: ftrl, lr: 0.1, l1: 0.001, l2: 0.01}", "{kind: lamb, lr: 0.01, eps: 0.001, weight_decay: 0.1}",
				"{kind: momentum, lr: 0.05, clip_norm: 0.2, scale_with: 20, schedule: {kind: step, every: 6, factor: 0.5}}")
		}
		for _, rule := range rules {
			for _, precision := range []string{"f32", "f64"} {
				text := fmt.Sprintf("model: %s\noptimizer: %s\nprecision: %s\nbatch: 30\nepochs: 99\ndata: {train: {format: generated}}\n", c.model, rule, precision)
				t.Run(c.name+"/"+rule+"/"+precision, func(t *testing.T) {
					sameParameters(t, text, c.src, precision, strings.Contains(rule, "sgd"))
				})
			}
		}
	}
}

// sameParameters compares all strategies of one job with serial.
func sameParameters(t *testing.T, text string, src data.Source, precision string, sgd bool) {
	backend, bound := "native", 1e-5
	if precision == "f64" {
		backend, bound = "ref", 1e-12
	}
	serial := trainMem(t, parse(t, text, "backend="+backend), src, sameSteps)
	for _, s := range []struct {
		kind             string
		workers, servers int
		stage            int
	}{
		{"allreduce", 1, 0, 1},
		{"allreduce", 2, 0, 1},
		{"allreduce", 3, 0, 1},
		{"allreduce", 4, 0, 1},
		{"zero", 1, 0, 3},
		{"zero", 2, 0, 1},
		{"zero", 3, 0, 2},
		{"zero", 3, 0, 3},
		{"ps", 1, 1, 1},
		{"ps", 2, 1, 1},
		{"ps", 3, 2, 1},
		{"ps", 4, 3, 1},
	} {
		if s.kind == "ps" && parse(t, text).Optimizer.Separable() != nil {
			continue // refused, which the tests of job prove
		}
		if s.kind == "zero" && parse(t, text).Optimizer.Kind == optim.LAMB {
			continue // refused, unless for tables
		}
		j := parse(t, text, "backend="+backend, "strategy.kind="+s.kind,
			fmt.Sprintf("strategy.workers=%d", s.workers), fmt.Sprintf("strategy.servers=%d", s.servers), fmt.Sprintf("strategy.stage=%d", s.stage))
		got := trainMem(t, j, src, sameSteps)
		if t.Failed() {
			return
		}
		global, worst := difference(serial.params, got.params)
		if !(global <= bound) {
			t.Errorf("%s with %d workers, %d servers: parameters differ by %.3g from serial, the bound is %.0g", s.kind, s.workers, s.servers, global, bound)
		}
		if sgd && !(worst <= bound) {
			t.Errorf("%s with %d workers, %d servers: some element differs by %.3g of its tensor's largest", s.kind, s.workers, s.servers, worst)
		}
		var g report.Gradients
		for _, r := range got.report {
			g.Add(r.Gradients)
		}
		if g.Pushed == 0 || g.Applied != g.Pushed || g.Dropped != 0 || g.Pending != 0 {
			t.Errorf("%s with %d workers, %d servers: gradients do not add up: %+v", s.kind, s.workers, s.servers, g)
		}
	}
}

// A ring all-reduce sends exactly 2(N-1)/N of the bucket's bytes a rank, a Commit
// 17 bytes to each other rank, and the all-reduce opens with a frame of 128 bytes:
// nothing else crosses in a step.
func TestRingBytes(t *testing.T) {
	const text = "model: {kind: mlp, hidden: [16, 8], classes: 4}\noptimizer: {kind: sgd, lr: 0.1}\nbatch: 30\nepochs: 99\n" +
		"data: {train: {format: generated}}\nstrategy: {kind: allreduce}\n"
	const line = 64                                       // every gradient begins on one, and ends with one but the last
	const gradBytes = 4*(40*16+16+16*8+8*4) + line + line // the biases of 8 and 4 take a line each
	src := writeRows(t, 4)
	for _, n := range []int{1, 2, 4} {
		j := parse(t, text, fmt.Sprintf("strategy.workers=%d", n))
		j.Network.Table = cost.Table{cost.Unix: {Beta: 1}} // by which a ring is the best
		got := trainMem(t, j, src, sameSteps)
		want := int64(sameSteps * (2*(n-1)*gradBytes/n + (n-1)*17 + min(n-1, 1)*128))
		for r, s := range got.stats {
			if s.BytesSent != want || s.BytesReceived != want {
				t.Errorf("%d ranks: rank %d sent %d bytes and received %d, want %d", n, r, s.BytesSent, s.BytesReceived, want)
			}
		}
	}
}
