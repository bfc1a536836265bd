package native_test

import (
	"math/rand/v2"
	"sync"
	"testing"

	"go.uber.org/goleak"

	"github.com/gangline/gangline/compute/native"
	"github.com/gangline/gangline/graph"
	"github.com/gangline/gangline/tensor"
)

// TestProgramsShareThreads runs programs of one backend from several goroutines,
// some while another holds the threads and some that fail in the middle: results
// have the bits of a run alone, and no goroutine is left.
func TestProgramsShareThreads(t *testing.T) {
	defer goleak.VerifyNone(t)
	b := native.New(native.Threads(3))
	var all sync.WaitGroup
	for k := range 4 {
		g := graph.New(tensor.F32)
		x := g.Input("x", 48)
		h := g.Gelu(g.Add(g.MatMul(x, g.Variable("w", graph.Init{}, 48, 96)), g.Variable("bias", graph.Init{}, 96)))
		rows := g.Gather(h, g.Index())
		y := g.Softmax(g.MatMul(rows, g.Variable("v", graph.Init{}, 96, 40+k)))
		seg := &graph.Segment{Name: "seg", Out: []*graph.Node{y, h}}
		for _, n := range g.Nodes() {
			if n.IsSource() {
				seg.In = append(seg.In, n)
			} else {
				seg.Nodes = append(seg.Nodes, n)
			}
		}
		in, want := feed(rand.New(rand.NewPCG(7, uint64(k))), seg, 200), empty(seg)
		if err := program(t, native.New(), seg).Run(0, in, want); err != nil {
			t.Fatal(err)
		}
		all.Go(func() { share(t, b, seg, in, want, k%2 == 1) })
	}
	all.Wait()
}

// share runs a program again and again, now and then with an index that there is
// not.
func share(t *testing.T, b *native.Backend, seg *graph.Segment, in, want []*tensor.Tensor, hold bool) {
	p, err := b.Compile(seg)
	if err != nil {
		t.Error(err)
		return
	}
	if hold {
		defer b.Hold()()
	}
	out := empty(seg)
	var index *tensor.Tensor
	for i, n := range seg.In {
		if n.DType == tensor.I64 {
			index = in[i]
		}
	}
	for i := range 12 {
		index.I64()[199] = int64(1000 * (i % 3 / 2))
		switch err := p.Run(0, in, out); {
		case i%3 == 2 && err == nil:
			t.Error("no error of an index that there is not")
		case i%3 == 2:
		case err != nil:
			t.Error(err)
		default:
			for k := range out {
				if string(out[k].Bytes()) != string(want[k].Bytes()) {
					t.Errorf("run %d: output %d differs from that of a run alone", i, k)
				}
			}
		}
	}
}
