package compute_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/gangline/gangline/compute"
	"github.com/gangline/gangline/graph"
	"github.com/gangline/gangline/tensor"
)

// chain is x -> relu -> tanh -> ... of n nodes; the last is delivered. A late
// reader adds the first node at the end.
func chain(n int, late bool) *graph.Segment {
	g := graph.New(tensor.F32)
	x := g.Input("x", 3)
	first := g.Relu(x)
	last := first
	for range n - 1 {
		last = g.Tanh(last)
	}
	if late {
		last = g.Add(last, first)
	}
	return &graph.Segment{Name: "chain", In: []*graph.Node{x}, Nodes: g.Nodes()[1:], Out: []*graph.Node{last}}
}

// TestMemory proves how many tensors a program uses: one a node unless it may
// reuse them, two where a node cannot work in place, one where all can, and
// never the one that is read later.
func TestMemory(t *testing.T) {
	first := func(*graph.Node) []int { return []int{0} }
	for _, c := range []struct {
		name    string
		late    bool
		reuse   bool
		inPlace func(*graph.Node) []int
		want    int
	}{
		{"none", false, false, nil, 6},
		{"none despite in place", false, false, first, 6},
		{"reuse", false, true, nil, 3},
		{"in place", false, true, first, 2},
		{"late reader", true, true, nil, 4},
		{"late reader in place", true, true, first, 3},
	} {
		t.Run(c.name, func(t *testing.T) {
			seen := map[*tensor.Tensor]bool{}
			held := map[*graph.Node]*tensor.Tensor{}
			p, err := compute.Build(chain(6, c.late), compute.Options{
				Reuse: c.reuse, InPlace: c.inPlace,
				Kernel: func(*graph.Node) (compute.Kernel, error) {
					return func(call *compute.Call) error {
						seen[call.Out] = true
						held[call.Node] = call.Out
						for i, in := range call.Node.In {
							if held[in] != nil && held[in] != call.In[i] {
								t.Errorf("%s reads another tensor than %s wrote", call.Node.Name, in.Name)
							}
						}
						return nil
					}, nil
				},
			})
			if err != nil {
				t.Fatal(err)
			}
			in, out := tensor.New(tensor.F32, 2, 3), tensor.New(tensor.F32, 0)
			if err := p.Run(0, []*tensor.Tensor{in}, []*tensor.Tensor{out}); err != nil {
				t.Fatal(err)
			}
			if !seen[out] || seen[in] {
				t.Errorf("the result went to the caller's tensor: %t; the input was written: %t", seen[out], seen[in])
			}
			if len(seen) != c.want {
				t.Errorf("%d tensors, want %d", len(seen), c.want)
			}
		})
	}
}

// TestKernelError proves that errors of a backend and of a kernel keep their
// cause and gain segment and node.
func TestKernelError(t *testing.T) {
	cause := errors.New("no such thing")
	check := func(err error) {
		t.Helper()
		if !errors.Is(err, cause) || !strings.Contains(err.Error(), "chain") || !strings.Contains(err.Error(), "relu") {
			t.Errorf("error is %v", err)
		}
	}
	_, err := compute.Build(chain(1, false), compute.Options{
		Kernel: func(*graph.Node) (compute.Kernel, error) { return nil, cause },
	})
	check(err)
	p, err := compute.Build(chain(1, false), compute.Options{
		Kernel: func(*graph.Node) (compute.Kernel, error) { return func(*compute.Call) error { return cause }, nil },
	})
	if err != nil {
		t.Fatal(err)
	}
	check(p.Run(0, []*tensor.Tensor{tensor.New(tensor.F32, 2, 3)}, []*tensor.Tensor{tensor.New(tensor.F32, 0)}))
}

// BenchmarkRun is the cost of a program besides its kernels, a hundred nodes.
func BenchmarkRun(b *testing.B) {
	p, err := compute.Build(chain(100, false), compute.Options{
		Reuse:  true,
		Kernel: func(*graph.Node) (compute.Kernel, error) { return func(*compute.Call) error { return nil }, nil },
	})
	if err != nil {
		b.Fatal(err)
	}
	in, out := []*tensor.Tensor{tensor.New(tensor.F32, 2, 3)}, []*tensor.Tensor{tensor.New(tensor.F32, 0)}
	for b.Loop() {
		if err := p.Run(0, in, out); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/100, "ns/node")
}
