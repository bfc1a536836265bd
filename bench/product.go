package bench

import (
	"context"
	"time"

	"github.com/gangline/gangline/compute"
	"github.com/gangline/gangline/compute/native"
	"github.com/gangline/gangline/graph"
	"github.com/gangline/gangline/tensor"
)

// product is one matrix product, called as a program.
type product struct {
	program compute.Program
	in, out []*tensor.Tensor
}

func sgemm(n int) func(threads int) (runner, error) {
	return func(threads int) (runner, error) {
		g := graph.New(tensor.F32)
		init := graph.Init{Kind: graph.Normal, Scale: 1, Seed: 1}
		a, b := g.Variable("a", init, n, n), g.Variable("b", init, n, n)
		c := g.MatMul(a, b)
		if err := g.Err(); err != nil {
			return nil, err
		}
		p := &product{in: []*tensor.Tensor{tensor.New(tensor.F32, n, n), tensor.New(tensor.F32, n, n)}}
		p.out = []*tensor.Tensor{tensor.New(tensor.F32, n, n)}
		for i, v := range []*graph.Node{a, b} {
			graph.Fill(init, v.Name, 0, p.in[i].F32())
		}
		var err error
		p.program, err = native.New(native.Threads(threads)).Compile(&graph.Segment{
			Name: "product", Nodes: []*graph.Node{c}, In: []*graph.Node{a, b}, Out: []*graph.Node{c},
		})
		return p, err
	}
}

func (p *product) run(ctx context.Context, n int, times []time.Duration) ([]time.Duration, error) {
	for range n {
		start := time.Now()
		if err := p.program.Run(0, p.in, p.out); err != nil {
			return nil, err
		}
		times = append(times, time.Since(start))
		if err := ctx.Err(); err != nil {
			return nil, context.Cause(ctx)
		}
	}
	return times, nil
}

func (p *product) close() error { return nil }
