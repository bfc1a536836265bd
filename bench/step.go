package bench

import (
	"context"
	"time"

	"github.com/gangline/gangline/compute/native"
	"github.com/gangline/gangline/data"
	"github.com/gangline/gangline/exec"
	"github.com/gangline/gangline/graph"
	"github.com/gangline/gangline/model"
	"github.com/gangline/gangline/optim"
	"github.com/gangline/gangline/strategy"
	"github.com/gangline/gangline/tensor"
)

// spec is a training step with the rows to train on.
type spec struct {
	model func(g *graph.Graph, c model.Config) graph.Model
	// config lacks the inputs, which the columns give.
	config model.Config
	rule   optim.Rule
	batch  int
	// batches is how many different ones there are, taken in turns.
	batches int
	columns []data.ColumnSpec
}

// trainer runs the serial plan of a step.
type trainer struct {
	exec  *exec.Exec
	at    int64
	last  time.Time
	times []time.Duration
}

// step builds and differentiates the model.
func (s *spec) step() (*graph.Step, error) {
	c := s.config
	c.Label, c.Seed, c.Float = label, 1, tensor.F32
	for _, col := range s.columns {
		if col.Name != label {
			c.Inputs = append(c.Inputs, model.Column{Name: col.Name, Dim: col.Dim, Ragged: col.Kind == data.RaggedColumn, PerRow: col.PerRow})
		}
	}
	g := graph.New(c.Float)
	return graph.Train(g, s.model(g, c), s.rule)
}

// step makes a trainer for what a function specifies.
func step(of func() spec) func(threads int) (runner, error) {
	return func(threads int) (runner, error) {
		s := of()
		st, err := s.step()
		if err != nil {
			return nil, err
		}
		program, err := strategy.Serial(st, strategy.Cluster{Workers: 1})
		if err != nil {
			return nil, err
		}
		src := newRows(s.columns, s.batch*s.batches)
		feeder, err := data.NewFeeder(src, data.Order{Rows: src.Rows(), Batch: s.batch}, 0, 1, inputs(st))
		if err != nil {
			return nil, err
		}
		t := &trainer{}
		t.exec, err = exec.New(exec.Config{
			Plan: program.Plans[strategy.StepPlan], Step: st, Backend: native.New(native.Threads(threads)),
			Feeder: feeder, State: state(st), OnStep: t.stepped,
		})
		return t, err
	}
}

// stepped notes how long a step took: the time since the one before ended.
func (t *trainer) stepped(int64, exec.Result) {
	now := time.Now()
	t.times = append(t.times, now.Sub(t.last))
	t.last = now
}

func (t *trainer) run(ctx context.Context, n int, times []time.Duration) ([]time.Duration, error) {
	t.times, t.last = times, time.Now()
	err := t.exec.Run(ctx, t.at, t.at+int64(n))
	t.at += int64(n)
	return t.times, err
}

func (t *trainer) close() error { return t.exec.Close() }

// inputs says what the plan's Feed task delivers.
func inputs(st *graph.Step) []data.InputSpec {
	var specs []data.InputSpec
	for _, n := range strategy.Inputs(st, strategy.StepPlan) {
		specs = append(specs, data.InputSpec{Column: n.Attr.Column, Part: string(n.Attr.Part), DType: n.DType, Dims: len(n.Shape)})
	}
	return specs
}

// patternLen is the elements of a large table that are drawn; it repeats them,
// since drawing all would take longer than the timing.
const patternLen = 1<<16 - 1

// state makes the parameters. Slots start at zero, which executors see to.
func state(st *graph.Step) map[string]*tensor.Tensor {
	all := map[string]*tensor.Tensor{}
	for i := range st.Params {
		v := st.Params[i].Var
		t := tensor.New(v.DType, v.Shape...)
		values := t.F32()
		drawn := min(len(values), patternLen)
		graph.Fill(v.Attr.Init, v.Name, 0, values[:drawn])
		for n := drawn; n > 0 && n < len(values); n *= 2 {
			copy(values[n:], values[:n])
		}
		all[v.Name] = t
	}
	return all
}
