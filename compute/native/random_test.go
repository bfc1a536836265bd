package native_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/gangline/gangline/compute"
	"github.com/gangline/gangline/compute/native"
	"github.com/gangline/gangline/compute/ref"
	"github.com/gangline/gangline/graph"
	"github.com/gangline/gangline/tensor"
)

// value is a node of a random graph: mult·B rows of a batch of B, or as many as
// dims[0] if mult is 0, and elements below bound.
type value struct {
	*graph.Node
	mult  int
	dims  []int // all but the rows of a batch
	bound float64
}

// alike reports whether two values have one shape, whatever the batch.
func (v value) alike(w value) bool { return v.mult == w.mult && slices.Equal(v.dims, w.dims) }

// sketch draws a graph that has many of what kernels are fused from: chains,
// products, values that are repeated, other shapes between, late readers.
type sketch struct {
	*rand.Rand
	g      *graph.Graph
	values []value
}

func newSketch(seed uint64, d tensor.DType) *sketch {
	s := &sketch{Rand: rand.New(rand.NewPCG(seed, 31)), g: graph.New(d)}
	s.g.Index()
	s.values = []value{{s.g.Input("x", 18), 1, []int{18}, 1}, {s.g.Input("y", 18), 1, []int{18}, 1}}
	s.values = append(s.values, s.parameter(3, 18))
	return s
}

// parameter is a new variable.
func (s *sketch) parameter(dims ...int) value {
	name := fmt.Sprintf("w%d", len(s.g.Nodes()))
	return value{s.g.Variable(name, graph.Init{}, dims...), 0, dims, 1}
}

// weights are a variable for a product, small enough that this is no larger than
// what it is made of, so that it can be read more than once.
func (s *sketch) weights(rows, cols int) *graph.Node {
	return s.g.Scale(s.parameter(rows, cols).Node, 1/float64(max(rows, cols)))
}

// pick draws a value, the last one half of the time.
func (s *sketch) pick() value {
	if s.IntN(2) == 0 {
		return s.values[len(s.values)-1]
	}
	return s.values[s.IntN(len(s.values))]
}

// partner draws what an operator can join with v, of the same shape or repeated.
func (s *sketch) partner(v value) value {
	var same []value
	for _, w := range s.values {
		if v.alike(w) {
			same = append(same, w)
		}
	}
	if s.IntN(3) > 0 {
		return same[s.IntN(len(same))]
	}
	full := v.dims
	if v.mult > 0 {
		full = append([]int{1}, full...)
	}
	switch s.IntN(6) {
	case 0:
		return s.parameter()
	case 1:
		return s.parameter(1)
	case 2: // some of the last dims, as a bias
		return s.parameter(full[len(full)-1-s.IntN(len(full)):]...)
	case 3: // leading ones
		return s.parameter(append([]int{1}, full[len(full)-1:]...)...)
	case 4: // one element a row, which no chain repeats
		one := slices.Clone(full)
		one[len(one)-1] = 1
		return s.parameter(one...)
	}
	n := max(1, len(full)-1)
	if len(full) == 1 {
		return s.parameter(full...)
	}
	return value{s.g.SumAxis(v.Node, n, true), v.mult, append(slices.Clone(v.dims[:len(v.dims)-1]), 1), v.bound * float64(full[n])}
}

// add takes a node up, made small enough to go on with.
func (s *sketch) add(n *graph.Node, mult int, dims []int, bound float64) {
	if err := s.g.Err(); err != nil {
		panic(err)
	}
	if bound > 4 {
		n, bound = s.g.Scale(n, 4/bound), 4
	}
	s.values = append(s.values, value{n, mult, dims, bound})
}

// grow appends an operator or two.
func (s *sketch) grow() {
	switch k := s.IntN(20); {
	case k < 6:
		s.unary(s.pick())
	case k < 13:
		v := s.pick()
		s.binary(v, s.partner(v))
	case k < 16:
		s.product(s.pick())
	case k < 18:
		s.reshape(s.pick())
	default:
		s.other(s.pick())
	}
}

func (s *sketch) unary(v value) {
	g := s.g
	f := []func() (*graph.Node, float64){
		func() (*graph.Node, float64) { return g.Tanh(v.Node), 1 },
		func() (*graph.Node, float64) { return g.Sigmoid(v.Node), 1 },
		func() (*graph.Node, float64) { return g.Relu(v.Node), v.bound },
		func() (*graph.Node, float64) { return g.LeakyRelu(v.Node, .25), v.bound },
		func() (*graph.Node, float64) { return g.Scale(v.Node, -.75), v.bound },
		func() (*graph.Node, float64) { return g.Square(v.Node), v.bound * v.bound },
		func() (*graph.Node, float64) { return g.Gelu(v.Node), v.bound },
		func() (*graph.Node, float64) { return g.Silu(v.Node), v.bound },
		func() (*graph.Node, float64) { return g.Softplus(v.Node), v.bound + 1 },
		func() (*graph.Node, float64) { return g.Exp(g.Tanh(v.Node)), 3 },
		func() (*graph.Node, float64) { return g.Log(g.Softplus(g.Tanh(v.Node))), 2 },
		func() (*graph.Node, float64) { return g.Rsqrt(g.Exp(g.Tanh(v.Node))), 2 },
	}[s.IntN(12)]
	n, bound := f()
	s.add(n, v.mult, v.dims, bound)
}

func (s *sketch) binary(v, w value) {
	a, b := v.Node, w.Node
	if s.IntN(2) == 0 {
		a, b = b, a
	}
	g := s.g
	bound := v.bound + w.bound
	var n *graph.Node
	switch s.IntN(8) {
	case 0, 1:
		n = g.Add(a, b)
	case 2:
		n = g.Sub(a, b)
	case 3:
		n, bound = g.Mul(a, b), v.bound*w.bound
	case 4:
		n, bound = g.Div(a, g.Exp(g.Tanh(b))), 3*bound
	case 5:
		n = g.Maximum(a, b)
	case 6:
		n = g.Minimum(a, b)
	default:
		// Of values that are given, so that rounding does not decide.
		n = g.Where(g.Less(s.parameter(v.dims[len(v.dims)-1]).Node, g.Const(0)), a, b)
	}
	s.add(n, v.mult, v.dims, bound)
}

// product multiplies matrices: plain, batched, by something shared, transposed.
func (s *sketch) product(v value) {
	g, c := s.g, v.dims[len(v.dims)-1]
	n := []int{1, 2, 6, 17, 18, 33}[s.IntN(6)]
	rows := append(slices.Clone(v.dims[:len(v.dims)-1]), n)
	rank := len(v.dims)
	if v.mult > 0 {
		rank++
	}
	switch s.IntN(5) {
	case 0, 1:
		if rank > 1 {
			s.add(g.MatMul(v.Node, s.weights(c, n)), v.mult, rows, v.bound)
		}
	case 2:
		if rank > 1 {
			s.add(g.MatMulT(v.Node, s.weights(n, c), false, true), v.mult, rows, v.bound)
		}
	case 3: // as for the gradient of a parameter: the batch is what is summed over
		if rank == 2 && v.mult > 0 {
			p := g.MatMulT(v.Node, v.Node, true, false)
			if s.IntN(2) == 0 {
				p = g.MatMulT(v.Node, g.SumAxis(v.Node, 1, true), true, false)
				s.add(p, 0, []int{c, 1}, v.bound*v.bound*float64(c)*sizeMax*18)
				return
			}
			s.add(p, 0, []int{c, c}, v.bound*v.bound*sizeMax*18)
		}
	default:
		if rank == 2 && v.mult > 0 && c%3 == 0 {
			v, rank = value{g.Reshape(v.Node, tensor.Dynamic, 3, c/3), v.mult, []int{3, c / 3}, v.bound}, 3
			c /= 3
		}
		if rank == 3 && v.mult > 0 {
			p := g.MatMulT(v.Node, v.Node, true, false)
			dims, bound := []int{c, c}, v.bound*v.bound*float64(v.dims[0])
			if s.IntN(2) == 0 {
				p, dims, bound = g.MatMulT(v.Node, v.Node, false, true), []int{v.dims[0], v.dims[0]}, v.bound*v.bound*float64(c)
			}
			s.add(p, v.mult, dims, bound)
		}
	}
}

// reshape gives a value of a batch other dims.
func (s *sketch) reshape(v value) {
	all := 1
	for _, d := range v.dims {
		all *= d
	}
	if v.mult == 0 {
		s.add(s.g.Reshape(v.Node, 1, all), 0, []int{1, all}, v.bound)
		return
	}
	for _, d := range []int{2, 3, 6} {
		if all%d == 0 && s.IntN(2) == 0 {
			if s.IntN(3) == 0 && v.mult*d <= 18 {
				s.add(s.g.Reshape(v.Node, tensor.Dynamic, all/d), v.mult*d, []int{all / d}, v.bound)
				return
			}
			s.add(s.g.Reshape(v.Node, tensor.Dynamic, d, all/d), v.mult, []int{d, all / d}, v.bound)
			return
		}
	}
	s.add(s.g.Reshape(v.Node, tensor.Dynamic, all), v.mult, []int{all}, v.bound)
}

// other appends what ends a chain.
func (s *sketch) other(v value) {
	switch {
	case v.mult > 0 && s.IntN(3) == 0:
		s.add(s.g.Dropout(v.Node, .5, 7), v.mult, v.dims, v.bound)
	case len(v.dims) == 2 && v.mult > 0 && s.IntN(2) == 0:
		s.add(s.g.Transpose(v.Node, 0, 2, 1), v.mult, []int{v.dims[1], v.dims[0]}, v.bound)
	default:
		s.add(s.g.Softmax(v.Node), v.mult, v.dims, 1)
	}
}

// sizeMax is the largest batch.
const sizeMax = 700

// segment is the evaluation of a random graph; a quarter of its values and the
// last are delivered.
func (s *sketch) segment() *graph.Segment {
	for range 4 + s.IntN(22) {
		s.grow()
	}
	seg := &graph.Segment{Name: "random", Eval: true}
	for _, n := range s.g.Nodes() {
		if n.IsSource() {
			seg.In = append(seg.In, n)
		} else {
			seg.Nodes = append(seg.Nodes, n)
		}
	}
	for i, n := range seg.Nodes {
		if i == len(seg.Nodes)-1 || s.IntN(4) == 0 {
			seg.Out = append(seg.Out, n)
		}
	}
	return seg
}

// feed fills the inputs of a segment for a batch with numbers of float32.
func feed(r *rand.Rand, seg *graph.Segment, batch int) (in []*tensor.Tensor) {
	for _, n := range seg.In {
		shape := n.Shape.Clone()
		for i, d := range shape {
			if d == tensor.Dynamic {
				shape[i] = batch
			}
		}
		t := tensor.New(n.DType, shape...)
		for i := range t.Elems() {
			v := float32(2*r.Float64() - 1)
			switch n.DType {
			case tensor.F32:
				t.F32()[i] = v
			case tensor.F64:
				t.F64()[i] = float64(v)
			case tensor.I64, tensor.I32, tensor.BF16, tensor.F16, tensor.Invalid:
			}
		}
		in = append(in, t)
	}
	return in
}

// empty returns tensors for the results.
func empty(seg *graph.Segment) (out []*tensor.Tensor) {
	for _, n := range seg.Out {
		out = append(out, tensor.New(n.DType, 0))
	}
	return out
}

// floats returns the elements of a tensor.
func floats(t *tensor.Tensor) []float64 {
	if t.DType() == tensor.F64 {
		return t.F64()
	}
	all := make([]float64, t.Elems())
	for i, v := range t.F32() {
		all[i] = float64(v)
	}
	return all
}

// TestRandomGraphs compares evaluations of random graphs with ref in float64, on
// batches that grow and shrink. Results must be within 2¹⁴ roundings of 1 or of
// their size (every operator here takes an error up by 18·3 at most, few of them
// by more than 4), and have the same bits on any number of threads and with the
// tiles of AVX2.
func TestRandomGraphs(t *testing.T) {
	for seed := range uint64(120) {
		d, eps := tensor.F32, 0x1p-23
		if seed%3 == 2 {
			d, eps = tensor.F64, 0x1p-52
		}
		seg, exact := newSketch(seed, d).segment(), newSketch(seed, tensor.F64).segment()
		t.Run(fmt.Sprint(seed), func(t *testing.T) { randomGraph(t, seed, seg, exact, eps) })
	}
}

func randomGraph(t *testing.T, seed uint64, seg, exact *graph.Segment, eps float64) {
	var text strings.Builder
	for _, n := range seg.Nodes {
		fmt.Fprintln(&text, n)
	}
	judge, want := program(t, ref.New(), exact), empty(exact)
	first := map[bool][][]*tensor.Tensor{} // by whether assembly is used: results for every size
	sizes := []int{5, 0, 1, 67, 3}
	if seed%8 == 0 {
		sizes = []int{3, sizeMax, 0, 1, 67}
	}
	for name, b := range backends() {
		p, plain := program(t, b, seg), strings.HasPrefix(name, "go")
		out := empty(seg)
		for i, batch := range sizes {
			r := rand.New(rand.NewPCG(seed, uint64(batch)))
			if err := p.Run(0, feed(r, seg, batch), out); err != nil {
				t.Fatalf("%s: %v\n%s", name, err, &text)
			}
			if len(first[plain]) == i {
				r := rand.New(rand.NewPCG(seed, uint64(batch)))
				if err := judge.Run(0, feed(r, exact, batch), want); err != nil {
					t.Fatal(err)
				}
				near(t, seg, out, want, eps, fmt.Sprintf("%s, batch %d\n%s", name, batch, &text))
				var kept []*tensor.Tensor
				for _, o := range out {
					kept = append(kept, o.Clone())
				}
				first[plain] = append(first[plain], kept)
			}
			for k, o := range out {
				if string(o.Bytes()) != string(first[plain][i][k].Bytes()) {
					t.Fatalf("%s, batch %d: %q has other bits than elsewhere\n%s", name, batch, seg.Out[k].Name, &text)
				}
			}
		}
	}
}

// near compares results with those of ref.
func near(t *testing.T, seg *graph.Segment, got, want []*tensor.Tensor, eps float64, about string) {
	t.Helper()
	for k := range got {
		if !got[k].Shape().Equal(want[k].Shape()) {
			t.Fatalf("%q is %v, want %v: %s", seg.Out[k].Name, got[k].Shape(), want[k].Shape(), about)
		}
		w := floats(want[k])
		for i, v := range floats(got[k]) {
			if off := math.Abs(v - w[i]); !(off <= 0x1p14*eps*max(1, math.Abs(w[i]))) {
				t.Fatalf("%q: element %d of %v is %v, want %v: %s", seg.Out[k].Name, i, got[k].Shape(), v, w[i], about)
			}
		}
	}
}

// backends are all ways to compute: those of one kind, go or asm, must agree to
// the bit.
func backends() map[string]compute.Backend {
	all := map[string]compute.Backend{
		"go": native.New(native.Fallback()), "go on 3": native.New(native.Fallback(), native.Threads(3)),
	}
	if native.Assembly() {
		all["asm"], all["asm on 3"] = native.New(), native.New(native.Threads(3))
		all["AVX2"] = native.NewAVX2()
	}
	return all
}

func program(t *testing.T, b compute.Backend, seg *graph.Segment) compute.Program {
	t.Helper()
	p, err := b.Compile(seg)
	if err != nil {
		t.Fatal(err)
	}
	return p
}
