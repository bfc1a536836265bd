package computetest

import (
	"fmt"
	"testing"

	"github.com/gangline/gangline/compute"
	"github.com/gangline/gangline/tensor"
)

// forward compares every operator with ref in float64 on all sizes, and proves
// that a warm run allocates nothing and repeats its bits.
func forward(t *testing.T, b compute.Backend, d tensor.DType) {
	for _, c := range allCases() {
		t.Run(fmt.Sprintf("%s/%s", c.op, c.name), func(t *testing.T) {
			g := newGen(1)
			seg := segmentOf(c.op, c.attr, d, c.in(g, 1))
			p, out := compile(t, b, seg), tensors{dirty(seg.Out[0].DType)}
			for _, rows := range sizes() {
				r := &result{op: c.op, attr: c.attr, in: c.in(g, rows)}
				r.want = reference(t, c.op, c.attr, r.in)
				in := convertAll(r.in, d)
				if err := p.Run(0, in, out); err != nil {
					t.Fatalf("%d rows: %v", rows, err)
				}
				compare(t, out[0], r.want, c.tol(t, r))
				for k, x := range convertAll(r.in, d) {
					if string(x.Bytes()) != string(in[k].Bytes()) {
						t.Errorf("%d rows: input %d was changed", rows, k)
					}
				}
				first := string(out[0].Bytes())
				allocFree(t, func() error { return p.Run(0, in, out) })
				if string(out[0].Bytes()) != first {
					t.Errorf("%d rows: a second run gave other bits", rows)
				}
			}
		})
	}
}

// shapes compares the shapes of every operator with ref, and wants zeros.
func shapes(t *testing.T, b compute.Backend, d tensor.DType) {
	for _, c := range allCases() {
		t.Run(fmt.Sprintf("%s/%s", c.op, c.name), func(t *testing.T) {
			g := newGen(1)
			seg := segmentOf(c.op, c.attr, d, c.in(g, 1))
			p, out := compile(t, b, seg), tensors{dirty(seg.Out[0].DType)}
			for _, rows := range sizes() {
				in := c.in(g, rows)
				want := reference(t, c.op, c.attr, in)
				clear(want.Bytes())
				in = convertAll(in, d)
				if err := p.Run(0, in, out); err != nil {
					t.Fatalf("%d rows: %v", rows, err)
				}
				compare(t, out[0], want, exact(t, nil))
				allocFree(t, func() error { return p.Run(1, in, out) })
			}
		})
	}
}

// allocFree fails if run allocates, or fails, once it has run already. What is
// counted is of the whole process, and the runtime allocates for every thread that
// it starts, which it does when a loaded machine keeps one off for long: so one
// count of none is enough, since what run allocates is in all of them.
func allocFree(t *testing.T, run func() error) {
	t.Helper()
	n := 0.0
	for range 5 {
		n = testing.AllocsPerRun(3, func() {
			if err := run(); err != nil {
				t.Error(err)
			}
		})
		if n == 0 || t.Failed() {
			return
		}
	}
	t.Errorf("a warm run allocates %v times", n)
}
