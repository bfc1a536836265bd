package compute

import (
	"fmt"

	"github.com/gangline/gangline/graph"
	"github.com/gangline/gangline/tensor"
)

// step is one call of a kernel: of one node, or of a group.
type step struct {
	parts   []part
	view    bool // the result is the first input in another shape
	kernel  Kernel
	group   GroupKernel
	calls   []*Call // of the parts
	inPlace []int   // of vals: what the result of a group may take over
}

// part is one node of a step.
type part struct {
	call  Call
	kept  bool
	args  []int // of vals
	dst   int   // of vals
	over  int   // of vals: whose memory the result takes over; -1: nobody's
	shape tensor.Shape
	room  []tensor.Shape // for the shapes of the inputs
}

// last is the part that the step is named after.
func (s *step) last() *part { return &s.parts[len(s.parts)-1] }

// addSteps makes the steps of the segment and numbers their values in index.
func (p *program) addSteps(index map[*graph.Node]int, o Options) error {
	member, groups := map[*graph.Node]int{}, []Group(nil)
	if o.Fuse != nil {
		groups = o.Fuse(p.seg)
	}
	for i, g := range groups {
		for _, n := range g.Nodes {
			member[n] = i
		}
	}
	at := make(map[*graph.Node]int, len(p.seg.Nodes))
	for i, n := range p.seg.Nodes {
		at[n] = len(p.seg.In) + i
	}
	for _, n := range p.seg.Nodes {
		g := Group{Nodes: []*graph.Node{n}, Kept: []bool{true}}
		if i, ok := member[n]; ok {
			if g = groups[i]; n != g.Nodes[len(g.Nodes)-1] {
				continue
			}
		}
		s, err := p.newStep(g, index, at, o)
		if err != nil {
			return err
		}
		p.steps = append(p.steps, s)
	}
	return nil
}

// newStep makes the step of a group, of one node alone for most.
func (p *program) newStep(g Group, index, at map[*graph.Node]int, o Options) (s step, err error) {
	s.parts = make([]part, len(g.Nodes))
	for i, n := range g.Nodes {
		x := &s.parts[i]
		if err := x.set(Effective(p.seg, n), index); err != nil {
			return step{}, nodeError(n, err)
		}
		x.kept, x.dst = g.Kept[i], at[n]
		if isUpdate(n.Op) {
			x.dst = x.args[0] // the result is the variable
		}
		index[n] = x.dst
		s.calls = append(s.calls, &x.call)
	}
	for _, n := range g.InPlace {
		s.inPlace = append(s.inPlace, index[n])
	}
	if len(g.Nodes) > 1 {
		s.group, err = o.Fused(g)
	} else {
		s.kernel, err = o.Kernel(s.parts[0].call.Node)
	}
	if err != nil {
		return step{}, nodeError(g.Nodes[len(g.Nodes)-1], err)
	}
	return s, nil
}

// set finds the inputs of a node.
func (x *part) set(n *graph.Node, index map[*graph.Node]int) error {
	x.call, x.over = Call{Node: n, In: make([]*tensor.Tensor, len(n.In))}, -1
	x.shape, x.room = make(tensor.Shape, 0, 8), make([]tensor.Shape, 0, len(n.In))
	for _, a := range n.In {
		v, ok := index[a]
		if !ok {
			return fmt.Errorf("reads %q, which is neither an earlier node nor an input of the segment", a.Name)
		}
		x.args = append(x.args, v)
	}
	return checkSignature(n)
}

// run computes the step. An error is about the node that is returned.
func (s *step) run(vals []*tensor.Tensor, stepOfRun int64) (*graph.Node, error) {
	for i := range s.parts {
		x := &s.parts[i]
		if err := x.prepare(vals, stepOfRun, s.view); err != nil {
			return x.call.Node, err
		}
	}
	switch {
	case s.view:
		return nil, nil
	case s.group != nil:
		return s.last().call.Node, s.group(s.calls)
	}
	return s.parts[0].call.Node, s.kernel(s.calls[0])
}

// prepare gives the call its tensors and the result its shape.
func (x *part) prepare(vals []*tensor.Tensor, stepOfRun int64, view bool) error {
	c := &x.call
	for k, v := range x.args {
		c.In[k] = vals[v]
	}
	c.Step, c.Out = stepOfRun, vals[x.dst]
	shape, err := shapeOf(x.shape[:0], c.Node, c.In, x.room)
	if err != nil {
		return err
	}
	x.shape = shape
	if x.over >= 0 && vals[x.over].Elems() != shape.Elems() {
		// The nodes have one shape, so that nothing else can differ.
		return fmt.Errorf("got %v: dims that the batch decides must be equal in all inputs", x.room[:len(c.In)])
	}
	switch {
	case view:
		c.Out.View(c.In[0], shape...)
	case !x.kept:
		c.Out.Outline(shape...)
	case !isUpdate(c.Node.Op):
		c.Out.Resize(shape...)
	}
	return nil
}
