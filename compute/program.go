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
}

// Build compiles a segment to a program that calls one kernel a node, in
// order. It does what every backend needs: it checks the segment, finds the
// shape of every value from the shapes that come in, gives inner values memory
// that grows to what the largest batch needs and stays, and writes results
// that are read outside directly to the tensors of the caller. With Reuse, an
// inner value that only has another shape than its input is a view of it.
//
// The cost of a Run besides its kernels is about 50 ns a node.
func Build(seg *graph.Segment, o Options) (Program, error) {
	p := &program{seg: seg, vals: make([]*tensor.Tensor, len(seg.In)+len(seg.Nodes))}
	index := make(map[*graph.Node]int, len(p.vals))
	for i, n := range seg.In {
		index[n] = i
	}
	for i, n := range seg.Nodes {
		s, err := newStep(seg, n, index, o)
		if err != nil {
			return nil, err
		}
		s.dst = len(seg.In) + i
		if isUpdate(n.Op) {
			s.dst = s.args[0] // the result is the variable
		}
		index[n] = s.dst
		p.steps = append(p.steps, s)
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

type step struct {
	call   Call
	kernel Kernel
	args   []int // of vals
	dst    int   // of vals
	view   bool  // the result is the first input in another shape
	shape  tensor.Shape
	room   []tensor.Shape // for the shapes of the inputs
}

func newStep(seg *graph.Segment, n *graph.Node, index map[*graph.Node]int, o Options) (step, error) {
	fail := func(err error) (step, error) {
		return step{}, fmt.Errorf("compute: segment %q: %w", seg.Name, nodeError(n, err))
	}
	n = Effective(seg, n)
	s := step{call: Call{Node: n, In: make([]*tensor.Tensor, len(n.In))}, shape: make(tensor.Shape, 0, 8)}
	s.room = make([]tensor.Shape, 0, len(n.In))
	for _, a := range n.In {
		v, ok := index[a]
		if !ok {
			return fail(fmt.Errorf("reads %q, which is neither an earlier node nor an input of the segment", a.Name))
		}
		s.args = append(s.args, v)
	}
	if err := checkSignature(n); err != nil {
		return fail(err)
	}
	var err error
	if s.kernel, err = o.Kernel(n); err != nil {
		return fail(err)
	}
	return s, nil
}

// assign gives every inner value a tensor. A value that is an output gets the
// caller's tensor at every Run instead.
func (p *program) assign(o Options) {
	nIn := len(p.seg.In)
	inner := func(v int) bool { return v >= nIn && !slices.Contains(p.outs, v) }
	owner := make([]int, len(p.vals)) // the value whose memory a value lies in
	for v := range owner {
		owner[v] = v
	}
	for i := range p.steps {
		if s := &p.steps[i]; o.Reuse && inner(s.dst) && isView(s.call.Node.Op) {
			s.view = true
			owner[s.dst] = owner[s.args[0]]
		}
	}
	last := make([]int, len(p.vals)) // the step that reads a value's memory last
	for i, s := range p.steps {
		last[owner[s.dst]] = max(last[owner[s.dst]], i)
		for _, a := range s.args {
			last[owner[a]] = i
		}
	}
	free := make(map[tensor.DType][]*tensor.Tensor)
	for i, s := range p.steps {
		owners := make([]int, 0, len(s.args)+1)
		for _, a := range s.args {
			owners = append(owners, owner[a])
		}
		n := s.call.Node
		switch {
		case !inner(s.dst):
		case s.view:
			p.vals[s.dst] = tensor.New(n.DType, 0)
			owners = append(owners, owner[s.dst])
		default:
			p.vals[s.dst] = p.memory(&s, owners, o, free, last, i, inner)
			owners = append(owners, s.dst)
		}
		p.release(free, owners, last, i, inner, o.Reuse)
	}
}

// isView reports whether an operator changes nothing but the shape.
func isView(op graph.Op) bool { return op == graph.Reshape || op == graph.ReshapeLike }

// memory returns the tensor for the result of step i: an input's that it may
// overwrite, one that nothing reads any more, or a new one.
func (p *program) memory(s *step, owners []int, o Options, free map[tensor.DType][]*tensor.Tensor, last []int, i int, inner func(int) bool) *tensor.Tensor {
	d := s.call.Node.DType
	if v := p.inPlace(s, owners, o, last, i, inner); v >= 0 {
		last[v] = -1 // taken over: not to be released
		return p.vals[v]
	}
	if f := free[d]; len(f) > 0 {
		free[d] = f[:len(f)-1]
		return f[len(f)-1]
	}
	return tensor.New(d, 0)
}

// inPlace returns the owner of the input whose memory step i may overwrite, or -1.
func (p *program) inPlace(s *step, owners []int, o Options, last []int, i int, inner func(int) bool) int {
	if !o.Reuse || o.InPlace == nil {
		return -1
	}
	for _, k := range o.InPlace(s.call.Node) {
		v := owners[k]
		if inner(v) && last[v] == i && p.vals[v].DType() == s.call.Node.DType {
			return v
		}
	}
	return -1
}

func (p *program) release(free map[tensor.DType][]*tensor.Tensor, vals, last []int, i int, inner func(int) bool, reuse bool) {
	for _, v := range vals {
		if reuse && inner(v) && last[v] == i {
			last[v] = -1
			d := p.vals[v].DType()
			free[d] = append(free[d], p.vals[v])
		}
	}
}

// Run implements Program.
func (p *program) Run(stepOfRun int64, in, out []*tensor.Tensor) error {
	if err := p.bind(in, out); err != nil {
		return fmt.Errorf("compute: segment %q: %w", p.seg.Name, err)
	}
	for i := range p.steps {
		s := &p.steps[i]
		if err := s.run(p.vals, stepOfRun); err != nil {
			return fmt.Errorf("compute: segment %q: %w", p.seg.Name, nodeError(s.call.Node, err))
		}
	}
	return nil
}

func (s *step) run(vals []*tensor.Tensor, stepOfRun int64) error {
	c := &s.call
	for k, v := range s.args {
		c.In[k] = vals[v]
	}
	c.Step, c.Out = stepOfRun, vals[s.dst]
	shape, err := shapeOf(s.shape[:0], c.Node, c.In, s.room)
	if err != nil {
		return err
	}
	s.shape = shape
	if s.view {
		c.Out.View(c.In[0], shape...)
		return nil
	}
	if !isUpdate(c.Node.Op) {
		c.Out.Resize(shape...)
	}
	return s.kernel(c)
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
