package simtest

import (
	"fmt"
	"math/rand/v2"

	"github.com/gangline/gangline/data"
	"github.com/gangline/gangline/graph"
	"github.com/gangline/gangline/graph/cut"
	"github.com/gangline/gangline/model"
	"github.com/gangline/gangline/plan"
	"github.com/gangline/gangline/ps"
	"github.com/gangline/gangline/strategy"
)

// problem is what is trained, and how: all that a rank works out from the job.
type problem struct {
	step        *graph.Step
	program     *plan.Program
	plan        *plan.Plan   // the step plan
	beside      []plan.Value // what of the state is not of the step
	digest      string       // of all plans
	src         data.Source
	order       data.Order
	fingerprint data.Fingerprint
	inputs      []data.InputSpec
	layouts     []ps.Layout
	others      []ps.Layout // on another number of servers
}

// newProblem builds the model of a scenario, differentiates it and asks the
// strategy for its plan.
func newProblem(s *scenario) (*problem, error) {
	p := &problem{src: source{rows: s.rows, model: s.model}, order: data.Order{Seed: s.seed, Rows: s.rows, Batch: s.batch, Shuffle: true}}
	g, m, err := model.Build(modelConfig(s))
	if err != nil {
		return nil, err
	}
	if s.scale.Start > 0 {
		g.LossScale = s.scale
	}
	if p.step, err = graph.Train(g, m, s.rule); err != nil {
		return nil, err
	}
	if s.stage == 3 && s.strategy == "zero" {
		p.step = cut.Step(p.step, 1+s.bucket)
	}
	plans, err := strategy.ByName(s.strategy)
	if err != nil {
		return nil, err
	}
	p.program, err = plans(p.step, strategy.Cluster{
		Workers: s.workers, Servers: s.servers, Bucket: s.bucket, Hosts: s.hosts, Costs: s.costs,
		Micro: s.micro, Slices: s.slices, Stage: s.stage, Averaging: s.averaging, Compression: s.compression,
	})
	if err != nil {
		return nil, err
	}
	p.plan, p.digest, p.beside = p.program.Plans[strategy.StepPlan], plan.ProgramDigest(p.program), strategy.Beside(p.program, p.step)
	for _, n := range strategy.Inputs(p.step, strategy.StepPlan) {
		p.inputs = append(p.inputs, data.InputSpec{Column: n.Attr.Column, Part: string(n.Attr.Part), DType: n.DType, Dims: len(n.Shape)})
	}
	if p.fingerprint, err = p.order.Fingerprint(p.src); err != nil {
		return nil, err
	}
	if p.layouts, err = p.layoutsOf(p.plan); err != nil || s.servers == 0 {
		return p, err
	}
	other, err := plans(p.step, strategy.Cluster{Workers: s.workers, Servers: s.otherServers})
	if err != nil {
		return nil, err
	}
	p.others, err = p.layoutsOf(other.Plans[strategy.StepPlan])
	return p, err
}

func (p *problem) layoutsOf(of *plan.Plan) ([]ps.Layout, error) {
	var all []ps.Layout
	for i := range of.Stores {
		l, err := ps.LayoutOf(p.step, of, i)
		if err != nil {
			return nil, err
		}
		all = append(all, l)
	}
	return all, nil
}

// modelConfig makes small models: a few dozen numbers in all.
func modelConfig(s *scenario) model.Config {
	c := model.Config{Kind: s.model, Table: s.table, Seed: s.seed, Float: s.precision}
	for _, col := range (source{}).Columns() {
		in := model.Column{Name: col.Name, Dim: col.Dim, Ragged: col.Kind == data.RaggedColumn, PerRow: col.PerRow}
		if col.Name != "label" && (s.model != "ctr" || !in.Ragged || in.PerRow > 0) {
			c.Inputs = append(c.Inputs, in)
		}
	}
	switch s.model {
	case "softmax":
		c.Classes = 3
	case "mlp":
		c.Hidden = []int{3}
	case "ctr":
		c.Hidden, c.Dim = []int{3}, 2
	}
	return c
}

// source is a Source of rows that are a function of their number.
type source struct {
	rows  int
	model string
}

// Columns implements data.Source.
func (source) Columns() []data.ColumnSpec {
	return []data.ColumnSpec{
		{Name: "label", Kind: data.DenseColumn, Dim: 1},
		{Name: "x", Kind: data.DenseColumn, Dim: 2},
		{Name: "user", Kind: data.RaggedColumn, Dim: 17, PerRow: 2},
		{Name: "words", Kind: data.RaggedColumn, Dim: 12},
	}
}

// Rows implements data.Source.
func (s source) Rows() int { return s.rows }

// Close implements data.Source.
func (source) Close() error { return nil }

// Read implements data.Source.
func (s source) Read(rows []int, b *data.Batch) error {
	*b = data.Batch{Rows: len(rows), Columns: make([]data.Column, 4)}
	label, x, user, words := &b.Columns[0], &b.Columns[1], &b.Columns[2], &b.Columns[3]
	user.Offsets, words.Offsets = []int64{0}, []int64{0}
	for _, row := range rows {
		if row < 0 || row >= s.rows {
			return fmt.Errorf("no row %d", row)
		}
		r := rand.New(rand.NewPCG(uint64(row), 9))
		switch s.model {
		case "linear":
			label.Values = append(label.Values, r.Float32()*2-1)
		case "softmax":
			label.Values = append(label.Values, float32(r.IntN(3)))
		default:
			label.Values = append(label.Values, float32(r.IntN(2)))
		}
		x.Values = append(x.Values, r.Float32()*2-1, r.Float32()*2-1)
		add := func(c *data.Column, n, ids int) {
			for range n {
				c.IDs = append(c.IDs, r.Int64N(int64(ids)))
				c.Values = append(c.Values, .5+r.Float32())
			}
			c.Offsets = append(c.Offsets, int64(len(c.IDs)))
		}
		add(user, 2, 17)
		add(words, r.IntN(4), 12)
	}
	return nil
}
