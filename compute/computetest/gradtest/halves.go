package gradtest

import (
	"bytes"
	"math"
	"slices"
	"testing"

	"github.com/gangline/gangline/compute"
	"github.com/gangline/gangline/graph"
	"github.com/gangline/gangline/tensor"
)

// unit is the unit roundoff of a 16-bit type: half of the last place of 1.
func unit(low tensor.DType) float64 {
	if low == tensor.BF16 {
		return 0x1p-8
	}
	return 0x1p-11
}

// globalUnits bounds how far the gradient of a case may be from that in f32, in unit
// roundoffs of its norm: each of some ten roundings on the way to it can add one, times
// what the operators between make of it.
const globalUnits = 12

// RunHalves proves of all operators and their gradients, in graphs of mixed precision:
// every value of 16 bits is the one that the operator has of its inputs, as the judge
// computes it in float64, rounded once; and all others are as near as float32 allows.
// What a backend computes in one go has the same bits as operator by operator. And
// gradients are near to those of the same graph in f32.
func RunHalves(t *testing.T, b, judge compute.Backend, low tensor.DType) {
	t.Helper()
	for _, c := range append(gradientCases(), layerCases()...) {
		t.Run(c.name, func(t *testing.T) { halvesOf(t, b, judge, c, low) })
	}
}

func halvesOf(t *testing.T, b, judge compute.Backend, c lossCase, low tensor.DType) {
	const rows = 5
	g, some := differentiated(t, c, low)
	all := *some
	all.Out = all.Nodes
	in := inputsOf(some, rows)
	values := map[*graph.Node]*tensor.Tensor{}
	for i, n := range all.In {
		values[n] = in[i]
	}
	for i, v := range runOn(t, b, &all, in) {
		values[all.Out[i]] = v
	}
	for _, n := range g.Nodes() {
		if !n.IsSource() {
			judged(t, judge, n, values, unit(low))
		}
	}
	grads := runOn(t, b, some, in)
	for i, n := range some.Out {
		if !bytes.Equal(values[n].Bytes(), grads[i].Bytes()) {
			t.Errorf("%q has other bits where nothing else is asked for", n.Name)
		}
	}
	_, full := differentiated(t, c, tensor.F32)
	near(t, runOn(t, b, full, inputsOf(full, rows))[1:], grads[1:], globalUnits*unit(low))
}

// differentiated returns the graph of a case and the segment of its loss and gradients.
func differentiated(t *testing.T, c lossCase, float tensor.DType) (*graph.Graph, *graph.Segment) {
	t.Helper()
	g := graph.New(float)
	loss := c.build(g)
	grads, err := graph.Differentiate(g, loss)
	if err != nil {
		t.Fatal(err)
	}
	slices.SortFunc(grads, func(a, b graph.Gradient) int { return a.Of.ID - b.Of.ID })
	seg := &graph.Segment{Name: c.name, Out: []*graph.Node{loss}}
	for _, gr := range grads {
		want := float
		if gr.Rows != nil {
			want = g.Float
		}
		if gr.Grad.DType != want {
			t.Errorf("the gradient of %q is %v, want %v", gr.Of.Name, gr.Grad.DType, want)
		}
		seg.Out = append(seg.Out, gr.Grad)
	}
	for _, n := range g.Nodes() {
		if n.IsSource() {
			seg.In = append(seg.In, n)
		} else {
			seg.Nodes = append(seg.Nodes, n)
		}
	}
	return g, seg
}

// inputsOf makes the inputs of a segment: they depend on the names of the nodes, so that
// graphs of all types have the same.
func inputsOf(seg *graph.Segment, rows int) []*tensor.Tensor {
	var in []*tensor.Tensor
	for i, n := range seg.In {
		like := *n
		like.ID = i
		in = append(in, converted(gradientInput(&like, rows), n.DType))
	}
	return in
}

func runOn(t *testing.T, b compute.Backend, seg *graph.Segment, in []*tensor.Tensor) []*tensor.Tensor {
	t.Helper()
	p, err := b.Compile(seg)
	if err != nil {
		t.Fatal(err)
	}
	out := outputs(seg)
	if err := p.Run(0, in, out); err != nil {
		t.Fatal(err)
	}
	return out
}

// judged compares the value of a node with what the judge makes, in float64, of the
// values of its inputs.
func judged(t *testing.T, judge compute.Backend, n *graph.Node, values map[*graph.Node]*tensor.Tensor, unit float64) {
	t.Helper()
	stand, wide := map[*graph.Node]*graph.Node{}, func(d tensor.DType) tensor.DType {
		if d == tensor.I64 {
			return d
		}
		return tensor.F64
	}
	alone, seg, largest := *n, &graph.Segment{Name: n.Name}, 1.0
	alone.In, alone.DType = nil, wide(n.DType)
	var in []*tensor.Tensor
	for _, x := range n.In {
		if stand[x] == nil {
			stand[x] = &graph.Node{ID: x.ID, Name: x.Name, Op: graph.Input, DType: wide(x.DType), Shape: x.Shape}
			v := converted(values[x], wide(x.DType))
			seg.In, in = append(seg.In, stand[x]), append(in, v)
			if v.DType() == tensor.F64 {
				for _, e := range v.F64() {
					largest = max(largest, e*e)
				}
			}
		}
		alone.In = append(alone.In, stand[x])
	}
	if n.Op == graph.Cast {
		alone.Op, alone.Attr = graph.Scale, graph.Attr{Alpha: 1}
	}
	seg.Nodes, seg.Out = []*graph.Node{&alone}, []*graph.Node{&alone}
	want := runOn(t, judge, seg, in)[0]
	if !want.Shape().Equal(values[n].Shape()) {
		t.Fatalf("%v: shape %v, want %v", n, values[n].Shape(), want.Shape())
	}
	if n.DType == tensor.I64 {
		if !bytes.Equal(want.Bytes(), values[n].Bytes()) {
			t.Errorf("%v is %v, want %v", n, values[n].I64(), want.I64())
		}
		return
	}
	if !n.DType.IsHalf() {
		unit = 0
	}
	for i, got := range converted(values[n], tensor.F64).F64() {
		w := want.F64()[i]
		allowed := unit*math.Abs(w) + 0x1p-18*(math.Abs(w)+largest)
		if n.DType.IsHalf() && unit < 0x1p-10 {
			allowed += 0x1p-25 // half of the least f16
		}
		if d := math.Abs(got - w); !(d <= allowed) {
			t.Fatalf("%v: element %d is %v, want %v: off by %.3g, allowed %.3g", n, i, got, w, d, allowed)
		}
	}
}

// near compares gradients as one vector.
func near(t *testing.T, want, got []*tensor.Tensor, bound float64) {
	t.Helper()
	diff, norm := 0.0, 0.0
	for i := range want {
		w, g := converted(want[i], tensor.F64).F64(), converted(got[i], tensor.F64).F64()
		for k := range w {
			diff += (w[k] - g[k]) * (w[k] - g[k])
			norm += w[k] * w[k]
		}
	}
	if d := math.Sqrt(diff); !(d <= bound*math.Sqrt(norm)) {
		t.Errorf("the gradient is off by %.3g of %.3g, allowed are %.3g", d, math.Sqrt(norm), bound*math.Sqrt(norm))
	}
}

// converted returns the values in another type: whole numbers as they are, and to float32
// and float64 only.
func converted(x *tensor.Tensor, d tensor.DType) *tensor.Tensor {
	if x.DType() == d {
		return x
	}
	out := tensor.New(d, x.Shape()...)
	at := func(i int) float64 {
		switch x.DType() {
		case tensor.F32:
			return float64(x.F32()[i])
		case tensor.F64:
			return x.F64()[i]
		case tensor.BF16, tensor.F16, tensor.I32, tensor.I64, tensor.Invalid:
		}
		var one [1]float32
		compute.HalfOf(x.DType()).Widen(one[:], x.Halves()[i:i+1])
		return float64(one[0])
	}
	for i := range out.Elems() {
		if d == tensor.F32 {
			out.F32()[i] = float32(at(i))
		} else {
			out.F64()[i] = at(i)
		}
	}
	return out
}
