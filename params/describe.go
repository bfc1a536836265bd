package params

import (
	"fmt"

	"github.com/gangline/gangline/checkpoint"
	"github.com/gangline/gangline/graph"
	"github.com/gangline/gangline/tensor"
)

// Describe describes the parameters of a step for a manifest.
func Describe(step *graph.Step) []checkpoint.Param {
	params := make([]checkpoint.Param, len(step.Params))
	for i := range step.Params {
		v := step.Params[i].Var
		p := &params[i]
		p.Name, p.DType, p.Shape = v.Name, v.DType.String(), v.Shape
		p.Init.Kind, p.Init.Scale, p.Init.Seed = string(v.Attr.Init.Kind), v.Attr.Init.Scale, v.Attr.Init.Seed
	}
	return params
}

// Read reads the parameters of a checkpoint, whole and without slots,
// without the job that made it.
func Read(c *checkpoint.Checkpoint) (State, error) {
	if len(c.Manifest.Params) == 0 {
		return nil, fmt.Errorf("checkpoint %s does not describe its parameters: an older program wrote it; resume and end the run once to have one that does", c.Dir)
	}
	s := State{}
	for _, p := range c.Manifest.Params {
		t, err := initial(p)
		if err != nil {
			return nil, fmt.Errorf("checkpoint %s: %w: parameter %q: %w", c.Dir, checkpoint.ErrCorrupt, p.Name, err)
		}
		s[p.Name] = t
	}
	return s, s.Restore(c)
}

// initial makes a parameter with the values that it was born with.
func initial(p checkpoint.Param) (*tensor.Tensor, error) {
	d, err := tensor.ParseDType(p.DType)
	if err != nil {
		return nil, err
	}
	if !d.IsFloat() {
		return nil, fmt.Errorf("dtype %v is none of a parameter", d)
	}
	n := 1
	for _, dim := range p.Shape {
		if dim < 0 || dim > 0 && n > graph.MaxElems/dim {
			return nil, fmt.Errorf("impossible shape %v", p.Shape)
		}
		n *= dim
	}
	in := graph.Init{Kind: graph.InitKind(p.Init.Kind), Scale: p.Init.Scale, Seed: p.Init.Seed}
	switch in.Kind {
	case "", graph.Zeros, graph.Uniform, graph.Normal, graph.Constant:
	default:
		return nil, fmt.Errorf("unknown initial values %q", in.Kind)
	}
	t := tensor.New(d, p.Shape...)
	if d == tensor.F64 {
		graph.Fill(in, p.Name, 0, t.F64())
		return t, nil
	}
	graph.Fill(in, p.Name, 0, t.F32())
	return t, nil
}
