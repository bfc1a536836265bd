package compute

import (
	"slices"

	"github.com/gangline/gangline/graph"
	"github.com/gangline/gangline/tensor"
)

// memory says which tensor every inner value gets.
type memory struct {
	*program
	o     Options
	owner []int // the value whose memory a value lies in
	last  []int // the step that reads a value's memory last; -1 once it was given on
	free  map[tensor.DType][]*tensor.Tensor
}

// assign gives every inner value a tensor. A value that is an output gets the
// caller's tensor at every Run instead.
func (p *program) assign(o Options) {
	m := &memory{p, o, make([]int, len(p.vals)), make([]int, len(p.vals)), map[tensor.DType][]*tensor.Tensor{}}
	for v := range m.owner {
		m.owner[v] = v
	}
	for i := range p.steps {
		if s := &p.steps[i]; o.Reuse && m.inner(s.last().dst) && isView(s.last().call.Node.Op) {
			s.view = true
			m.owner[s.last().dst] = m.owner[s.last().args[0]]
		}
	}
	for i := range p.steps {
		for _, x := range p.steps[i].parts {
			m.last[m.owner[x.dst]] = max(m.last[m.owner[x.dst]], i)
			for _, a := range x.args {
				m.last[m.owner[a]] = i
			}
		}
	}
	for i := range p.steps {
		m.assign(&p.steps[i], i)
	}
}

// isView reports whether an operator changes nothing but the shape.
func isView(op graph.Op) bool { return op == graph.Reshape || op == graph.ReshapeLike }

// inner reports whether a value is neither an input nor an output.
func (m *memory) inner(v int) bool { return v >= len(m.seg.In) && !slices.Contains(m.outs, v) }

// assign gives the results of step i their tensors, and those that nothing reads
// any more to later steps.
func (m *memory) assign(s *step, i int) {
	var read []int
	for k := range s.parts {
		x := &s.parts[k]
		d := x.call.Node.DType
		switch {
		case !m.inner(x.dst):
		case s.view, !x.kept:
			m.vals[x.dst] = tensor.New(d, 0)
		case k == len(s.parts)-1:
			m.vals[x.dst], x.over = m.take(s, d, i)
		default:
			m.vals[x.dst] = m.spare(d)
		}
		for _, a := range x.args {
			read = append(read, m.owner[a])
		}
		read = append(read, m.owner[x.dst])
		if !x.kept {
			m.last[x.dst] = -1 // it has no memory to give on
		}
	}
	for _, v := range read {
		if m.o.Reuse && m.inner(v) && m.last[v] == i {
			m.last[v] = -1
			d := m.vals[v].DType()
			m.free[d] = append(m.free[d], m.vals[v])
		}
	}
}

// take returns the tensor for the result of step i: an input's that it may
// overwrite, with the number of that in vals, or a spare one, with -1.
func (m *memory) take(s *step, d tensor.DType, i int) (*tensor.Tensor, int) {
	for _, a := range m.overwritable(s) {
		if v := m.owner[a]; m.inner(v) && m.last[v] == i && m.vals[v].DType() == d {
			m.last[v] = -1 // taken over: not to be given on
			return m.vals[v], v
		}
	}
	return m.spare(d), -1
}

// overwritable returns the values whose memory the result of a step may take over.
func (m *memory) overwritable(s *step) []int {
	switch {
	case !m.o.Reuse:
		return nil
	case s.group != nil:
		return s.inPlace
	case m.o.InPlace == nil:
		return nil
	}
	var all []int
	for _, k := range m.o.InPlace(s.last().call.Node) {
		all = append(all, s.last().args[k])
	}
	return all
}

// spare returns a tensor that nothing reads any more, or a new one.
func (m *memory) spare(d tensor.DType) *tensor.Tensor {
	if f := m.free[d]; len(f) > 0 {
		m.free[d] = f[:len(f)-1]
		return f[len(f)-1]
	}
	return tensor.New(d, 0)
}
