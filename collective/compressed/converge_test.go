package compressed_test

import (
	"context"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/gangline/gangline/collective"
	"github.com/gangline/gangline/collective/compress"
	"github.com/gangline/gangline/collective/compressed"
	"github.com/gangline/gangline/tensor"
	"github.com/gangline/gangline/transport/mem"
)

// problem is a logistic regression with several classes: examples drawn from one, with
// labels that are wrong now and then, so that no loss is near zero.
type problem struct {
	classes, features int
	x                 [][]float32
	label             []int
}

func newProblem(classes, features, examples int) *problem {
	p := &problem{classes: classes, features: features}
	r := rand.New(rand.NewPCG(11, 12))
	truth := vector(100, 0, classes*features)
	for range examples {
		x := make([]float32, features)
		best, most := 0, math.Inf(-1)
		for k := range x {
			x[k] = float32(r.NormFloat64())
		}
		for c := range classes {
			score := 3 * r.NormFloat64()
			for k, v := range x {
				score += float64(v * truth[c*features+k])
			}
			if score > most {
				best, most = c, score
			}
		}
		p.x, p.label = append(p.x, x), append(p.label, best)
	}
	return p
}

// gradient adds that of one example to g, and returns its loss.
func (p *problem) gradient(w, g []float32, example int) float64 {
	x := p.x[example]
	scores, largest := make([]float64, p.classes), math.Inf(-1)
	for c := range scores {
		var score float32
		for k, v := range w[c*p.features:][:len(x)] {
			score += v * x[k]
		}
		scores[c] = float64(score)
		largest = max(largest, scores[c])
	}
	total := 0.0
	for _, s := range scores {
		total += math.Exp(s - largest)
	}
	for c, s := range scores {
		d := float32(math.Exp(s-largest) / total)
		if c == p.label[example] {
			d--
		}
		row := g[c*p.features:][:len(x)]
		for k, v := range x {
			row[k] += d * v
		}
	}
	return math.Log(total) + largest - scores[p.label[example]]
}

// loss is the mean over all examples, with a penalty that makes the optimum one.
func (p *problem) loss(w []float32) float64 {
	sum, g := 0.0, make([]float32, len(w))
	for i := range p.x {
		sum += p.gradient(w, g, i)
	}
	n := compress.Norm(w)
	return sum/float64(len(p.x)) + penalty/2*n*n
}

const penalty = .01

// train is synchronous SGD on ranks that each have a part of the examples: what one rank
// runs, with a sum over the ranks. It returns the loss in the end, which is the same on all, and
// what rank 0 reports.
func (p *problem) train(t *testing.T, ranks, steps int, with func(party collective.Party, elems int) (sum, error)) (float64, compress.Report) {
	t.Helper()
	const batch = 8
	w := newWorld(ranks, mem.Options{})
	defer w.close()
	elems := p.classes * p.features
	losses, reports := make([]float64, ranks), make([]compress.Report, ranks)
	must(t, w.each(func(i int) error {
		s, err := with(w.party(i), elems)
		if err != nil {
			return err
		}
		weights, g := make([]float32, elems), tensor.New(tensor.F32, elems)
		r := rand.New(rand.NewPCG(uint64(i), 99))
		for step := range steps {
			clear(g.F32())
			for range batch {
				p.gradient(weights, g.F32(), r.IntN(len(p.x)/ranks)*ranks+i)
			}
			if err := s.Run(t.Context(), g); err != nil {
				return err
			}
			rate := .2 / (1 + float64(step)/200)
			for k, d := range g.F32() {
				weights[k] -= float32(rate) * (d/float32(batch*ranks) + penalty*weights[k])
			}
		}
		losses[i], reports[i] = p.loss(weights), s.Report()
		return nil
	}))
	for i, l := range losses {
		if l != losses[0] {
			t.Errorf("rank %d ends with loss %v, rank 0 with %v", i, l, losses[0])
		}
	}
	return losses[0], reports[0]
}

// plain is the sum without compression.
type plain struct{ *collective.Runner }

func (plain) Revert()                        {}
func (plain) State() compress.State          { return compress.State{} }
func (plain) Restore([]compress.State) error { return nil }
func (plain) Report() compress.Report        { return compress.Report{} }

func (p plain) Run(ctx context.Context, t *tensor.Tensor) error { return p.Runner.Run(ctx, t) }

// Training with every way of compression ends within 1 % of the loss without. Without feedback
// the coarse ones do not, which shows that the test can tell.
func TestTrainingConvergesAsWithoutCompression(t *testing.T) {
	const ranks, steps = 4, 800
	p := newProblem(8, 50, 400)
	start := p.loss(make([]float32, 400))
	want, _ := p.train(t, ranks, steps, func(party collective.Party, elems int) (sum, error) {
		r, err := collective.NewRunner(party, collective.RingAllReduce(ranks), tensor.F32, elems)
		return plain{r}, err
	})
	t.Logf("loss %v at the start, %v without compression", start, want)
	if want > .8*start {
		t.Fatalf("the loss goes from %v to %v only: the test shows nothing", start, want)
	}
	i8, _ := compress.NewInt8(256)
	one, _ := compress.NewOneBit(512)
	for _, c := range []struct {
		name     string
		codec    func() compress.Codec
		feedback bool
		near     bool
	}{
		{"f16", func() compress.Codec { return compress.F16{} }, false, true},
		{"bf16", func() compress.Codec { return compress.BF16{} }, false, true},
		{"int8", func() compress.Codec { return i8 }, true, true},
		{"onebit", func() compress.Codec { return one }, true, true},
		{"topk", func() compress.Codec { c, _ := compress.NewTopK(.01); return c }, true, true},
		{"powersgd", nil, true, true},
		{"onebit without feedback", func() compress.Codec { return one }, false, false},
		{"topk without feedback", func() compress.Codec { c, _ := compress.NewTopK(.01); return c }, false, false},
	} {
		got, r := p.train(t, ranks, steps, func(party collective.Party, elems int) (sum, error) {
			if c.codec == nil {
				return compressed.NewPowerSGD(party, elems, 2, []compress.Matrix{{Rows: p.classes, Cols: p.features}})
			}
			return compressed.NewAllReduce(party, c.codec(), elems, c.feedback)
		})
		t.Logf("%-24s loss %.5f, %+.2f %%; %.1f times fewer bytes, residual %.2f of a gradient",
			c.name, got, 100*(got/want-1), float64(r.Plain)/float64(r.Bytes), r.Relative())
		if near := got < 1.01*want; near != c.near {
			t.Errorf("%s: loss %v, without compression %v", c.name, got, want)
		}
	}
}
