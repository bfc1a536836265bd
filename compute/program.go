package compute

import (
	"fmt"
	"slices"

	"github.com/gangline/gangline/graph"
	"github.com/gangline/gangline/tensor"
)

// Call is one operator about to be computed.
//
// Guarantees: (1) the inputs have the dtypes the operator demands and shapes
// that fit together; (2) Out has the shape that follows from them, with
// undefined elements; (3) Out is memory of its own, except that it may be the
// input that Options.InPlace named. For an update Out is the variable itself.
type Call struct {
	Node *graph.Node
	Step int64
	In   []*tensor.Tensor
	Out  *tensor.Tensor
}

// Kernel computes one operator on plain memory. It checks values (ids, labels)
// and reports them by an error, which the program completes with the node.
type Kernel func(c *Call) error

// Options is what backends decide differently about a program.
type Options struct {
	// Kernel returns what computes a node, or an error if the backend lacks it.
	// It is called once a node, so a kernel may own scratch memory.
	Kernel func(n *graph.Node) (Kernel, error)
	// Reuse lets inner values whose last reader has run give their memory to
	// later ones.
	Reuse bool
	// InPlace lists the inputs whose memory the result may take over when
	// nothing reads them later; only asked with Reuse. May be nil.
	InPlace func(n *graph.Node) []int
	// Fuse names the nodes that are computed in one go, and Fused returns what
	// does. Both may be nil.
	Fuse  func(seg *graph.Segment) []Group
	Fused func(g Group) (GroupKernel, error)
}

// Group is nodes of a segment that one kernel computes, where the last of them
// stands.
//
// Guarantees that Fuse must give: (1) the nodes are in the order of the segment
// and all but the last are read by a later one of the group; (2) no other node
// reads one of them before the last stands; (3) if InPlace names inputs, all nodes
// have the dtype and the shape of the last, whatever the batch.
type Group struct {
	Nodes []*graph.Node
	// Kept says of every node whether its value is read outside the group or is an
	// output; the last is kept. A value that is not gets a shape and no memory.
	Kept []bool
	// InPlace are inputs whose memory the last result may take over.
	InPlace []*graph.Node
}

// GroupKernel computes the operators of a group, a Call each in their order.
type GroupKernel func(calls []*Call) error

// Build compiles a segment to a program that calls one kernel a node, in
// order. It does what every backend needs: it checks the segment, finds the
// shape of every value from the shapes that come in, gives inner values memory
// that grows to what the largest batch needs and stays, and writes results
// that are read outside directly to the tensors of the caller. With Reuse, an
// inner value that only has another shape than its input is a view of it. What the
// segment has in 16 bits is computed in float32 and rounded.
//
// The cost of a Run besides its kernels is about 50 ns a node.
func Build(seg *graph.Segment, o Options) (Program, error) {
	seg = lowered(seg)
	p := &program{seg: seg, vals: make([]*tensor.Tensor, len(seg.In)+len(seg.Nodes))}
	index := make(map[*graph.Node]int, len(p.vals))
	for i, n := range seg.In {
		index[n] = i
	}
	if err := p.addSteps(index, o); err != nil {
		return nil, fmt.Errorf("compute: segment %q: %w", seg.Name, err)
	}
	for _, n := range seg.Out {
		v, ok := index[n]
		if !ok {
			return nil, fmt.Errorf("compute: segment %q: output %q is neither a node nor an input of it", seg.Name, n.Name)
		}
		p.outs = append(p.outs, v)
	}
	p.assign(o)
	return p, nil
}

// Effective returns the node that is computed where n stands in the segment: n
// itself or, for a Dropout of an evaluation, the identity under its name.
func Effective(seg *graph.Segment, n *graph.Node) *graph.Node {
	if !seg.Eval || n.Op != graph.Dropout || len(n.In) == 0 {
		return n
	}
	same := *n
	same.Op, same.In, same.Attr = graph.Scale, n.In[:1], graph.Attr{Alpha: 1}
	return &same
}

type program struct {
	seg   *graph.Segment
	steps []step
	outs  []int            // for every output its index in vals
	vals  []*tensor.Tensor // inputs, then nodes
}

// Run implements Program.
func (p *program) Run(stepOfRun int64, in, out []*tensor.Tensor) error {
	if err := p.bind(in, out); err != nil {
		return fmt.Errorf("compute: segment %q: %w", p.seg.Name, err)
	}
	for i := range p.steps {
		s := &p.steps[i]
		if n, err := s.run(p.vals, stepOfRun); err != nil {
			return fmt.Errorf("compute: segment %q: %w", p.seg.Name, nodeError(n, err))
		}
	}
	return nil
}

// bind checks the tensors of the caller against the segment and puts them in
// their places.
func (p *program) bind(in, out []*tensor.Tensor) error {
	if len(in) != len(p.seg.In) || len(out) != len(p.seg.Out) {
		return fmt.Errorf("got %d inputs and %d outputs, want %d and %d", len(in), len(out), len(p.seg.In), len(p.seg.Out))
	}
	for i, n := range p.seg.In {
		t := in[i]
		if t == nil || t.DType() != n.DType || !n.Shape.Matches(t.Shape()) {
			return fmt.Errorf("input %q is %s, want %v %v", n.Name, describe(t), n.DType, n.Shape)
		}
		p.vals[i] = t
	}
	for j, n := range p.seg.Out {
		v := p.outs[j]
		if v < len(in) {
			if out[j] != in[v] {
				return fmt.Errorf("output %q must be the tensor of input %q", n.Name, p.seg.In[v].Name)
			}
			continue
		}
		if out[j] == nil || out[j].DType() != n.DType {
			return fmt.Errorf("output %q is %s, want %v %v", n.Name, describe(out[j]), n.DType, n.Shape)
		}
		if i := slices.Index(in, out[j]); i >= 0 {
			return fmt.Errorf("output %q is the tensor of input %q", n.Name, p.seg.In[i].Name)
		}
		p.vals[v] = out[j]
	}
	return nil
}

func describe(t *tensor.Tensor) string {
	if t == nil {
		return "missing"
	}
	return fmt.Sprintf("%v %v", t.DType(), t.Shape())
}

func nodeError(n *graph.Node, err error) error {
	return fmt.Errorf("node %q (%s): %w", n.Name, n.Op, err)
}
