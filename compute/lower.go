package compute

import (
	"slices"

	"github.com/gangline/gangline/graph"
	"github.com/gangline/gangline/tensor"
)

// lowered returns a segment of float32 that computes what one of mixed precision says:
// every operator in float32, and its result rounded to the nearest 16-bit value where
// the graph has it in 16 bits. Inputs of 16 bits are widened when they are first read,
// and outputs made 16 bits. A segment without is returned as it is.
//
// Backends so need nothing of 16 bits but Cast and Round, and gradients that an Update
// reads. Values inside take the memory of float32.
func lowered(seg *graph.Segment) *graph.Segment {
	isLow := func(n *graph.Node) bool { return n.DType.IsHalf() }
	if !slices.ContainsFunc(seg.Nodes, func(n *graph.Node) bool { return isLow(n) || slices.ContainsFunc(n.In, isLow) }) {
		return seg
	}
	l := &lowering{
		to:  map[*graph.Node]*graph.Node{},
		raw: map[*graph.Node]*graph.Node{},
		seg: &graph.Segment{Name: seg.Name, In: seg.In, Eval: seg.Eval},
	}
	outs := map[*graph.Node]*graph.Node{}
	for _, n := range seg.Nodes {
		l.flush(n)
		l.node(n)
		if slices.Contains(seg.Out, n) {
			outs[n] = l.out(n)
		}
	}
	l.flush(nil)
	for _, n := range seg.Out {
		if o := outs[n]; o != nil {
			n = o
		}
		l.seg.Out = append(l.seg.Out, n)
	}
	return l.seg
}

// lowering makes a segment of another.
type lowering struct {
	seg *graph.Segment
	// to is the float32 node that has the value of a node, and raw the one that has it
	// not rounded yet, if it must be.
	to, raw map[*graph.Node]*graph.Node
	late    []*graph.Node // outputs of 16 bits that are to be made
}

func (l *lowering) add(n graph.Node) *graph.Node {
	l.seg.Nodes = append(l.seg.Nodes, &n)
	return &n
}

// node adds what stands for a node.
func (l *lowering) node(n *graph.Node) {
	switch {
	case isUpdate(n.Op): // reads what is there, a gradient of 16 bits too
		l.to[n] = l.add(*n)
		return
	case n.Op == graph.Cast && n.DType.IsHalf():
		l.raw[n] = l.value(n.In[0])
		return
	case n.Op == graph.Cast:
		l.to[n] = l.value(n.In[0])
		return
	}
	c := *n
	c.In = make([]*graph.Node, len(n.In))
	for i, x := range n.In {
		c.In[i] = l.value(x)
	}
	if !n.DType.IsHalf() {
		l.to[n] = l.add(c)
		return
	}
	c.DType = tensor.F32
	if same := l.add(c); chooses(n) {
		l.to[n] = same
	} else {
		l.raw[n] = same
	}
}

// value is the node of float32 that has a value.
func (l *lowering) value(n *graph.Node) *graph.Node {
	if l.to[n] != nil {
		return l.to[n]
	}
	v := n
	if raw := l.raw[n]; raw != nil {
		v = l.add(graph.Node{
			ID: n.ID, Name: n.Name, Op: graph.Round, In: []*graph.Node{raw}, DType: tensor.F32, Shape: n.Shape,
			Attr: graph.Attr{Low: n.DType},
		})
	} else if n.DType.IsHalf() { // an input
		v = l.add(graph.Node{ID: n.ID, Name: n.Name, Op: graph.Cast, In: []*graph.Node{n}, DType: tensor.F32, Shape: n.Shape})
	}
	l.to[n] = v
	return v
}

// out is the node that delivers an output.
func (l *lowering) out(n *graph.Node) *graph.Node {
	if n.DType.IsHalf() {
		from := l.raw[n]
		if from == nil {
			from = l.to[n]
		}
		narrow := &graph.Node{ID: n.ID, Name: n.Name, Op: graph.Cast, In: []*graph.Node{from}, DType: n.DType, Shape: n.Shape}
		l.late = append(l.late, narrow)
		return narrow
	}
	if n.Op != graph.Cast {
		return l.to[n]
	}
	return l.add(graph.Node{
		ID: n.ID, Name: n.Name, Op: graph.Scale, In: []*graph.Node{l.to[n]}, DType: n.DType, Shape: n.Shape, Attr: graph.Attr{Alpha: 1},
	})
}

// flush adds outputs of 16 bits before a node of another shape: element-wise operators
// on one value are left together, for backends that compute them in one go.
func (l *lowering) flush(next *graph.Node) {
	keep := l.late[:0]
	for _, n := range l.late {
		if next != nil && next.Op != graph.MatMul && next.Shape.Equal(n.Shape) {
			keep = append(keep, n)
		} else {
			l.seg.Nodes = append(l.seg.Nodes, n)
		}
	}
	l.late = keep
}

// chooses reports whether an operator makes 16-bit values of 16-bit values: it moves
// them or chooses among them.
func chooses(n *graph.Node) bool {
	switch n.Op {
	case graph.Reshape, graph.ReshapeLike, graph.Transpose, graph.Concat, graph.Slice, graph.PadSlice, graph.Gather,
		graph.Relu, graph.ReluGrad, graph.Max, graph.MaxGrad, graph.Maximum, graph.Minimum, graph.Where, graph.MaxPool2D,
		graph.SpreadRows, graph.SpreadAxis, graph.FillLike, graph.Less, graph.LessEqual, graph.Equal:
		return true
	case graph.Scale:
		return n.Attr.Alpha == 1 || n.Attr.Alpha == -1
	}
	return false
}
