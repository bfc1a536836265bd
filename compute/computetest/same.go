package computetest

import (
	"fmt"
	"testing"

	"github.com/gangline/gangline/compute"
	"github.com/gangline/gangline/graph"
	"github.com/gangline/gangline/optim"
	"github.com/gangline/gangline/tensor"
)

// RunSame proves that backends give the same bits: every operator on values that
// are many enough to be shared out among threads, and every update rule.
func RunSame(t *testing.T, dtypes []tensor.DType, backends ...compute.Backend) {
	t.Helper()
	for _, d := range dtypes {
		for _, c := range allCases() {
			t.Run(fmt.Sprintf("%s/%s/%s", d, c.op, c.name), func(t *testing.T) {
				in := convertAll(c.many(newGen(6)), d)
				seg := segmentOf(c.op, c.attr, d, in)
				sameBits(t, backends, func(b compute.Backend) tensors {
					out := tensors{dirty(seg.Out[0].DType)}
					if err := compile(t, b, seg).Run(0, in, out); err != nil {
						t.Fatal(err)
					}
					return out
				})
			})
		}
		for i, rule := range rules() {
			t.Run(fmt.Sprintf("%s/update/%d/%s", d, i, rule.Kind), func(t *testing.T) {
				sameBits(t, backends, func(b compute.Backend) tensors { return updated(t, b, d, rule) })
			})
		}
	}
}

// many makes inputs of 32,768 elements or more, if more rows make more of them;
// of attention, whose time is that of the rows squared, up to a thousand rows.
func (c *opCase) many(g gen) tensors {
	limit := 1 << 15
	if c.op == graph.CausalAttention || c.op == graph.CausalAttentionGrad {
		limit = 1 << 9
	}
	for rows := 12; ; rows = 2*rows + 14 { // 12 more than a multiple of 13: see imageCases
		in, most := c.in(g, rows), 0
		for _, x := range in {
			most = max(most, x.Elems())
		}
		if most >= 1<<15 || rows >= limit {
			return in
		}
	}
}

// updated is a variable and its slots after three updates by a backend.
func updated(t *testing.T, b compute.Backend, d tensor.DType, rule optim.Rule) tensors {
	const rows, dim = 4001, 11
	g := newGen(7)
	total := values(4)
	total.Resize()
	in := tensors{g.floats(rows, dim), g.floats(rows, dim), total}
	for range rule.Slots() {
		in = append(in, g.positive(rows, dim))
	}
	in = convertAll(in, d)
	seg := segmentOf(graph.Update, graph.Attr{Rule: rule}, d, in)
	seg.Out = append([]*graph.Node{seg.In[0]}, seg.In[3:]...)
	out := append(tensors{in[0]}, in[3:]...)
	p := compile(t, b, seg)
	for step := range int64(3) {
		if err := p.Run(step, in, out); err != nil {
			t.Fatal(err)
		}
	}
	return out
}

// sameBits compares what every backend delivers with what the first one does.
func sameBits(t *testing.T, backends []compute.Backend, run func(b compute.Backend) tensors) {
	t.Helper()
	var want tensors
	for k, b := range backends {
		got := run(b)
		if k == 0 {
			want = got
			continue
		}
		for i := range got {
			if !got[i].Shape().Equal(want[i].Shape()) || string(got[i].Bytes()) != string(want[i].Bytes()) {
				t.Errorf("result %d of backend %d has other bits than that of backend 0", i, k)
			}
		}
	}
}
