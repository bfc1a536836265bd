package native_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/gangline/gangline/compute/native"
	"github.com/gangline/gangline/graph"
	"github.com/gangline/gangline/model"
	"github.com/gangline/gangline/optim"
	"github.com/gangline/gangline/tensor"
)

// BenchmarkStep is whole training steps, updates and all, as one program.
func BenchmarkStep(b *testing.B) {
	for _, c := range []struct {
		name   string
		config model.Config
		rule   optim.Rule
		rows   int
		flops  float64
	}{
		{
			"mlp",
			model.Config{Kind: "mlp", Inputs: []model.Column{{Name: "x", Dim: 784}}, Hidden: []int{512, 512}, Classes: 10},
			optim.Rule{Kind: optim.SGD, LR: .01},
			128, 2 * 128 * (2*784*512 + 3*512*512 + 3*512*10),
		},
		{
			"gpt",
			model.Config{Kind: "gpt", Inputs: []model.Column{{Name: "x", Dim: 256, Ragged: true, PerRow: 128}}, Dim: 256, Layers: 4, Heads: 4},
			optim.Rule{Kind: optim.Adam, LR: .001},
			8, 6 * 1024 * (4*12*256*256 + 4*128*256 + 256*256),
		},
	} {
		for _, threads := range []int{1, 2} {
			b.Run(fmt.Sprintf("%s/%d", c.name, threads), func(b *testing.B) {
				c.config.Float = tensor.F32
				g, m, err := model.Build(c.config)
				if err != nil {
					b.Fatal(err)
				}
				if _, err := graph.Train(g, m, c.rule); err != nil {
					b.Fatal(err)
				}
				p, in, res := wholeOf(b, g, []native.Option{native.Threads(threads)}, c.rows, m.Loss)
				r := rand.New(rand.NewPCG(1, 2))
				for _, t := range in {
					if t.DType() == tensor.I64 {
						for i := range t.I64() {
							t.I64()[i] = r.Int64N(256)
						}
						continue
					}
					for i := range t.F32() {
						t.F32()[i] = r.Float32() / 32
					}
				}
				labels(g, in, r)
				benchmark(b, c.flops, p, in, res)
			})
		}
	}
}

// labels makes whole numbers of labels, a weight of the total, and zeros of slots.
func labels(g *graph.Graph, in []*tensor.Tensor, r *rand.Rand) {
	i := 0
	for _, n := range g.Nodes() {
		if !n.IsSource() {
			continue
		}
		switch {
		case n.Op == graph.Total:
			in[i].SetScalar(128)
		case n.Op == graph.SlotVar:
			clear(in[i].F32())
		case n.Op == graph.Input && n.DType == tensor.F32 && n.Attr.Column == "label":
			for j := range in[i].F32() {
				in[i].F32()[j] = float32(r.IntN(10))
			}
		}
		i++
	}
}
