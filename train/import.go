package train

import (
	"fmt"

	"github.com/gangline/gangline/checkpoint"
	"github.com/gangline/gangline/graph"
	"github.com/gangline/gangline/job"
	"github.com/gangline/gangline/tensor"
)

// imported returns the parameters that the job takes from a file; nil if it takes
// none.
func imported(j job.Job, dataDir string, step *graph.Step) (State, error) {
	if j.Import.Path == "" {
		return nil, nil
	}
	s := NewState(step).paramsOnly(step)
	if err := j.Import.Map.Import(inDir(dataDir, j.Import.Path), s, j.Import.Unused); err != nil {
		return nil, &job.FieldError{Field: "import", Fix: err.Error()}
	}
	return s, nil
}

// begin replaces initial values by imported ones, if there are any.
func (s State) begin(params State) {
	for name, t := range params {
		copy(s[name].Bytes(), t.Bytes())
	}
}

// paramsOf describes the parameters of a step for a manifest.
func paramsOf(step *graph.Step) []checkpoint.Param {
	params := make([]checkpoint.Param, len(step.Params))
	for i := range step.Params {
		v := step.Params[i].Var
		p := &params[i]
		p.Name, p.DType, p.Shape = v.Name, v.DType.String(), v.Shape
		p.Init.Kind, p.Init.Scale, p.Init.Seed = string(v.Attr.Init.Kind), v.Attr.Init.Scale, v.Attr.Init.Seed
	}
	return params
}

// Parameters reads the parameters of a checkpoint, whole and without slots,
// without the job that made it.
func Parameters(c *checkpoint.Checkpoint) (State, error) {
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
