package graph

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/gangline/gangline/optim"
	"github.com/gangline/gangline/tensor"
)

// None is the segment index of a Param that has no such segment.
const None = -1

// Train turns a graph with a model in it into a step: it appends the backward
// pass, the total, the slots of the rule and the updates, and cuts all of it
// into segments. The graph can be trained once; its nodes stay readable.
//
// It fails if the model is incomplete, the rule is invalid or waits for the batch, or the loss does
// not depend on some trained parameter. Nodes that nothing reads are in no
// segment.
func Train(g *Graph, m Model, rule optim.Rule) (*Step, error) {
	if g.err != nil {
		return nil, g.Err()
	}
	m = m.widened(g)
	if err := m.check(g); err != nil {
		return nil, err
	}
	if err := rule.Ready(); err != nil {
		return nil, err
	}
	g.addScale()
	grads, err := Differentiate(g, m.Loss)
	if err != nil {
		return nil, err
	}
	s := &Step{Graph: g, Model: m, Total: g.add("total", Total, Attr{})}
	for _, gr := range grads {
		g.rename(gr.Of.Name+"/grad", gr.Grad)
		p := Param{Var: gr.Of, Grad: gr.Grad, Rows: gr.Rows, Rule: rule, Gather: None, EvalGather: None}
		if gr.Rows != nil {
			g.rename(gr.Of.Name+"/rows", gr.Rows)
			p.Keys = gr.Rows.In[1]
		}
		for _, slot := range rule.Slots() {
			p.Slots = append(p.Slots, g.add(gr.Of.Name+"/"+slot.Name, SlotVar, Attr{Shape: gr.Of.Shape, Value: slot.Init}))
		}
		s.Params = append(s.Params, p)
	}
	s.addGathers()
	s.addForward()
	s.addUpdates()
	s.addScaling()
	eval := segment("eval", s.cone(m.evalOut()), m.evalOut())
	eval.Eval = true
	s.Eval = s.add(eval)
	if g.err != nil {
		return nil, g.Err()
	}
	if err := s.Check(); err != nil {
		return nil, err
	}
	return s, nil
}

// check fails unless the model's nodes are what their fields promise.
func (m Model) check(g *Graph) error {
	batch, classes := tensor.Shape{tensor.Dynamic}, m.Task == Multiclass || m.Task == Tokens
	switch m.Task {
	case Binary, Multiclass, Regression, Tokens:
	default:
		return fmt.Errorf("graph: model: unknown task %q: want %s, %s, %s or %s", m.Task, Binary, Multiclass, Regression, Tokens)
	}
	for _, f := range []struct {
		field string
		n     *Node
		fits  func(s tensor.Shape) bool
		want  string
	}{
		{"loss", m.Loss, func(s tensor.Shape) bool { return len(s) == 0 }, "[]"},
		{"weight", m.Weight, func(s tensor.Shape) bool { return len(s) == 0 }, "[]"},
		{"predict", m.Predict, func(s tensor.Shape) bool {
			return s.Equal(batch) && !classes || classes && len(s) == 2 && s[0] == tensor.Dynamic && s[1] > 0
		}, map[bool]string{false: "[?]", true: "[? classes]"}[classes]},
		{"label", m.Label, func(s tensor.Shape) bool { return s.Equal(batch) }, "[?]"},
	} {
		if !g.owns(f.n) {
			return fmt.Errorf("graph: model: %s is not a node of the graph", f.field)
		}
		if !f.fits(f.n.Shape) || !f.n.DType.IsFloat() {
			return fmt.Errorf("graph: model: %s %q is %v %v, want %v %s",
				f.field, f.n.Name, f.n.DType, f.n.Shape, g.Float, f.want)
		}
		if f.n.IsSource() && f.field != "label" || f.n.Op == GatherRows {
			return fmt.Errorf("graph: model: %s %q is a %s, want a computed value", f.field, f.n.Name, f.n.Op)
		}
	}
	if m.Loss == m.Weight {
		return fmt.Errorf("graph: model: loss and weight are both %q", m.Loss.Name)
	}
	return nil
}

// evalOut is what the evaluation delivers. A label that is an input is not
// among it: who feeds the batch has it.
func (m Model) evalOut() []*Node {
	out := []*Node{m.Loss, m.Weight, m.Predict}
	if !m.Label.IsSource() && m.Label != m.Predict {
		out = append(out, m.Label)
	}
	return out
}

func (s *Step) add(seg Segment) int {
	s.Segments = append(s.Segments, seg)
	return len(s.Segments) - 1
}

// addGathers adds one segment a table; step and evaluation share it.
func (s *Step) addGathers() {
	for i := range s.Params {
		if p := &s.Params[i]; p.IsTable() {
			p.Gather = s.add(segment("gather/"+p.Var.Name, []*Node{p.Rows}, []*Node{p.Rows}))
			p.EvalGather = p.Gather
		}
	}
}

// addUpdates adds one segment a parameter.
func (s *Step) addUpdates() {
	for i := range s.Params {
		p := &s.Params[i]
		op, in := Update, []*Node{p.Var, p.Grad, s.Total}
		if p.IsTable() {
			op, in = UpdateRows, []*Node{p.Var, p.Keys, p.Grad, s.Total}
		}
		in = append(in, p.Slots...)
		u := s.Graph.add(p.Var.Name+"/update", op, Attr{Rule: p.Rule}, in...)
		p.Update = s.add(Segment{
			Name: "update/" + p.Var.Name, Nodes: []*Node{u}, In: in,
			Out: append([]*Node{p.Var}, p.Slots...),
		})
	}
}

// addForward cuts loss and gradients after each gradient. Nodes stand in the
// order in which they were made, so a cut is a range of IDs.
func (s *Step) addForward() {
	outs := []*Node{s.Model.Loss, s.Model.Weight}
	for _, p := range s.Params {
		outs = append(outs, p.Grad)
	}
	need := s.cone(outs)
	for _, p := range s.Params {
		n, _ := slices.BinarySearchFunc(need, p.Grad.ID+1, func(n *Node, id int) int { return cmp.Compare(n.ID, id) })
		nodes, rest := putOff(need[:n], need[n:], outs)
		out := slices.DeleteFunc(slices.Clone(nodes), func(n *Node) bool {
			return !slices.Contains(outs, n) && (repeated(n) || !readBy(rest, n))
		})
		s.Forward = append(s.Forward, s.add(segment("forward/"+p.Var.Name, nodes, out)))
		need = rest
	}
}

// putOff moves pieces that nodes do not read on to the rest: cut where they are
// read, they are copied to near memory, or not at all.
func putOff(nodes, rest, outs []*Node) (now, later []*Node) {
	for _, n := range nodes {
		if n.Op == Slice && !readBy(nodes, n) && !slices.Contains(outs, n) {
			later = append(later, n)
		} else {
			now = append(now, n)
		}
	}
	return now, append(later, rest...)
}

// readBy reports whether any of the nodes reads x, or a repeated node made of it.
func readBy(nodes []*Node, x *Node) bool {
	return slices.ContainsFunc(nodes, func(n *Node) bool {
		return slices.ContainsFunc(n.In, func(in *Node) bool { return in == x || repeated(in) && readBy([]*Node{in}, x) })
	})
}

// repeated reports whether a node is made again in every segment that reads it:
// a constant, a shape or the rounding of what is there anyway, which costs less than
// passing it on.
func repeated(n *Node) bool {
	return n.Op == Const || n.Op == Reshape ||
		n.Op == Cast && (n.In[0].IsSource() || n.In[0].Op == GatherRows || n.In[0].Op == Const)
}

// cone returns the nodes that out needs, in order of ID; it ends at sources and
// at gathered rows, which a segment takes as inputs.
func (s *Step) cone(out []*Node) []*Node {
	seen := map[*Node]bool{}
	var all []*Node
	stack := slices.Clone(out)
	for len(stack) > 0 {
		n := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		if seen[n] || n.IsSource() || n.Op == GatherRows {
			continue
		}
		seen[n] = true
		all = append(all, n)
		stack = append(stack, n.In...)
	}
	slices.SortFunc(all, byID)
	return all
}

func byID(a, b *Node) int { return cmp.Compare(a.ID, b.ID) }

// segment makes a segment of nodes: constants and other shapes that they read are
// repeated in it; all else that they read becomes an input.
func segment(name string, nodes, out []*Node) Segment {
	seg := Segment{Name: name, Out: out}
	inside := map[*Node]bool{}
	for _, n := range nodes {
		inside[n] = true
		seg.Nodes = append(seg.Nodes, n)
	}
	for i := 0; i < len(seg.Nodes); i++ { // which grows by those repeated
		for _, x := range seg.Nodes[i].In {
			if inside[x] {
				continue
			}
			inside[x] = true
			if repeated(x) {
				seg.Nodes = append(seg.Nodes, x)
			} else {
				seg.In = append(seg.In, x)
			}
		}
	}
	slices.SortFunc(seg.Nodes, byID)
	slices.SortFunc(seg.In, byID)
	return seg
}
