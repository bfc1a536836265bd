package cost_test

import (
	"math"
	"strings"
	"testing"

	"github.com/gangline/gangline/collective/cost"
	"github.com/gangline/gangline/plan"
	"github.com/gangline/gangline/tensor"
)

// coded is a plan of one all-reduce of a matrix and a vector by a codec, over n ranks.
func coded(n int, codec string, hosts [][]int) *plan.Plan {
	p := &plan.Plan{
		Name: "step", Window: 1, Hosts: hosts, Groups: [][]int{{}},
		Values: []plan.Value{
			{Name: "w", DType: tensor.F32, Shape: tensor.Shape{100, 80}, Class: plan.Grad, State: plan.NoState, Arena: 1},
			{Name: "b", DType: tensor.F32, Shape: tensor.Shape{192}, Class: plan.Grad, State: plan.NoState, Arena: 1, Offset: 32000},
		},
	}
	refs := []plan.Ref{{Value: 0}, {Value: 1}}
	for i := range n {
		p.Groups[0] = append(p.Groups[0], i)
		p.Ranks = append(p.Ranks, []plan.Task{{Kind: plan.Collective, Op: plan.AllReduce, Name: "w..b", In: refs, Out: refs, Codec: codec}})
	}
	return p
}

// A compressed sum costs what the formula says, and is explained by it.
func TestCompressedSum(t *testing.T) {
	const elems = 8192
	far := cost.Link{Alpha: 1e-4, Beta: 5e-9, Gamma: 1e-10}
	coding := elems * 10e-9
	for _, c := range []struct {
		codec   string
		n       int
		hosts   [][]int
		bytes   int
		seconds float64
	}{
		{"f16", 1, nil, 2 * elems, coding},
		{"f16", 4, nil, 2 * elems, coding + 2*3*link.Alpha + 2*2*elems*3./4*link.Beta},
		{"onebit(512)+feedback", 2, nil, elems/8 + elems/512*8, coding + 2*link.Alpha + 2*1152/2*link.Beta},
		{"f16", 4, [][]int{{0, 1}, {2, 3}}, 2 * elems, coding + 2*(link.Alpha+2*2048*link.Beta) + 4*(far.Alpha+2*2*2048*far.Beta)},
		// P is 2 columns of 100 and the vector, Q 2 of 80: each a ring of two.
		{"powersgd(2)+feedback", 2, nil, 4*(200+192) + 4*160, coding + 4*link.Alpha + 4*(392+160)*link.Beta + 4*(392+160)/2*link.Gamma},
	} {
		p, m := coded(c.n, c.codec, c.hosts), cost.Machine{Costs: cost.Table{cost.Unix: link, cost.TCP: far}}
		got, err := cost.CompressedSum(p, &p.Ranks[0][0], m)
		if err != nil {
			t.Fatal(err)
		}
		if got.Plain != 4*elems || got.Coded != c.bytes {
			t.Errorf("%s: %d bytes become %d, want %d", c.codec, got.Plain, got.Coded, c.bytes)
		}
		if math.Abs(got.Seconds-c.seconds) > 1e-9*c.seconds {
			t.Errorf("%s over %d ranks: %v s, want %v", c.codec, c.n, got.Seconds, c.seconds)
		}
	}
	var b strings.Builder
	if err := cost.Explain(&b, coded(2, "onebit(512)+feedback", nil), cost.Machine{}); err != nil {
		t.Fatal(err)
	}
	const want = "allreduce w..b  2 ranks on 1 host  32768 bytes  onebit(512)+feedback: 1152 bytes, 3.5 %, 0.112 ms\n"
	if b.String() != want {
		t.Errorf("explained as %q, want %q", b.String(), want)
	}
	if err := cost.Explain(&b, coded(2, "onebit", nil), cost.Machine{}); err == nil {
		t.Error("a codec that is none is explained")
	}
}
