package optim_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/gangline/gangline/optim"
)

// flagged are the rules with every setting off its default.
func flagged() []optim.Rule {
	return []optim.Rule{
		{Kind: optim.SGD, LR: 0.13, L2: 0.05},
		{Kind: optim.Momentum, LR: 0.07, L2: 0.05, Momentum: 0.8},
		{Kind: optim.Momentum, LR: 0.07, L2: 0.05, Momentum: 0.8, Nesterov: true},
		{Kind: optim.Adagrad, LR: 0.3, L2: 0.05, Eps: 1e-3, InitialAccumulator: 0.2},
		{Kind: optim.Adam, LR: 0.02, L2: 0.05, Beta1: 0.7, Beta2: 0.95, Eps: 1e-3},
		{Kind: optim.Momentum, LR: 0.07, L2: 0.05, WeightDecay: 0.1, Momentum: 0.8, Dampening: 0.3},
		{Kind: optim.Adagrad, LR: 0.3, LRDecay: 0.2, ClipValue: 0.4},
		{Kind: optim.RMSProp, LR: 0.02, L2: 0.05, Decay: 0.9, Eps: 1e-3},
		{Kind: optim.RMSProp, LR: 0.02, L2: 0.05, Decay: 0.9, Eps: 1e-3, Centered: true, Momentum: 0.8},
		{Kind: optim.RMSProp, LR: 0.02, Decay: 0.9, Momentum: 0.8},
		{Kind: optim.Adam, LR: 0.02, L2: 0.05, Beta2: 0.6, AMSGrad: true, ClipNorm: 1},
		{Kind: optim.AdamW, LR: 0.02, WeightDecay: 0.1, Schedule: optim.Schedule{Kind: optim.InverseSqrt, Warmup: 3}},
		{Kind: optim.FTRL, LR: 0.3, L1: 0.2, L2: 0.1, Beta: 0.5, InitialAccumulator: 0.2},
		{Kind: optim.FTRL, LR: 0.3, L1: 0.2, LRPower: -0.7},
		{Kind: optim.LAMB, LR: 0.02, WeightDecay: 0.1, Beta1: 0.7, Beta2: 0.95, Eps: 1e-3},
	}
}

// separable are those that may be applied to ranges and rows on their own.
func separable() []optim.Rule {
	return slices.DeleteFunc(flagged(), func(r optim.Rule) bool { return r.Kind == optim.LAMB })
}

// TestFirstStep compares one step from p = 2, gradient sum 6, weight 3 and so a
// mean of 2 with numbers worked out by hand.
func TestFirstStep(t *testing.T) {
	for _, c := range []struct {
		rule  optim.Rule
		p     float64
		slots []float64
	}{
		{optim.Rule{Kind: optim.SGD, LR: 0.5}, 1, nil},
		// The mean gradient is 2 + 0.25·2 = 2.5.
		{optim.Rule{Kind: optim.SGD, LR: 0.5, L2: 0.25}, 0.75, nil},
		{optim.Rule{Kind: optim.Momentum, LR: 0.5, Momentum: 0.5}, 1, []float64{2}},
		// It looks ahead: 2 + 0.5·2 = 3.
		{optim.Rule{Kind: optim.Momentum, LR: 0.5, Momentum: 0.5, Nesterov: true}, 0.5, []float64{2}},
		// The accumulator is 5 + 2² = 9, the step 0.5·2/(3+1).
		{optim.Rule{Kind: optim.Adagrad, LR: 0.5, Eps: 1, InitialAccumulator: 5}, 1.75, []float64{9}},
		// Both moments, corrected, are those of the gradient: 0.5·2/(2+2). The
		// factors are powers of two, so nothing is rounded.
		{optim.Rule{Kind: optim.Adam, LR: 0.5, Beta1: 0.5, Beta2: 0.75, Eps: 2}, 1.75, []float64{1, 1}},
		// The same after a decay of 0.5·0.5·2.
		{optim.Rule{Kind: optim.AdamW, LR: 0.5, WeightDecay: 0.5, Beta1: 0.5, Beta2: 0.75, Eps: 2}, 1.25, []float64{1, 1}},
		{optim.Rule{Kind: optim.Momentum, LR: 0.5, WeightDecay: 0.5, Dampening: 0.25}, 0.75, []float64{1.5}},
		// The mean square is 0.25·2², the step 0.5·2/(1+1).
		{optim.Rule{Kind: optim.RMSProp, LR: 0.5, Decay: 0.75, Eps: 1}, 1.5, []float64{1}},
		// The mean is 0.5, and 1 - 0.25 is left below the root.
		{optim.Rule{Kind: optim.RMSProp, LR: 0.5, Decay: 0.75, Eps: 1, Centered: true}, 2 - 1/(1+math.Sqrt(0.75)), []float64{1, 0.5}},
		// z = 2 - (2/0.5)·2 is below -1 by 5, to be divided by (2+2)/0.5 + 2.
		{optim.Rule{Kind: optim.FTRL, LR: 0.5, L1: 1, L2: 2, Beta: 2}, 0.5, []float64{-6, 4}},
		{optim.Rule{Kind: optim.FTRL, LR: 0.5, L1: 6}, 0, []float64{-6, 4}},
		// The direction is 1 long, the parameter 2: a step of 0.25·2.
		{optim.Rule{Kind: optim.LAMB, LR: 0.25, Beta1: 0.5, Beta2: 0.75, Eps: 0x1p-60}, 1.5, []float64{1, 1}},
		{optim.Rule{Kind: optim.SGD, LR: 0.5, ClipValue: 1}, 1.5, nil},
		{optim.Rule{Kind: optim.SGD, LR: 0.5, Schedule: optim.Schedule{Warmup: 4}}, 1.75, nil},
	} {
		p, g := []float64{2}, []float64{6}
		var slots [][]float64
		for _, s := range c.rule.Slots() {
			slots = append(slots, []float64{s.Init})
		}
		optim.Dense(c.rule, 0, 3, p, g, slots)
		var got []float64
		for _, s := range slots {
			got = append(got, s[0])
		}
		if p[0] != c.p || !slices.Equal(got, c.slots) {
			t.Errorf("%+v: p is %v, slots %v, want %v and %v", c.rule, p[0], got, c.p, c.slots)
		}
	}
}

// plain keeps one parameter and follows the papers in float64, with running
// powers and the textbook forms of the moments.
type plain struct {
	p, a, b      float64
	pow1, pow2   float64
	rule         optim.Rule
	accumulating bool
}

// papered are the rules that plain follows; golden numbers judge all.
func papered() []optim.Rule { return flagged()[:5] }

func (s *plain) step(sum, total float64) {
	r := s.rule
	if !s.accumulating {
		s.a, s.pow1, s.pow2, s.accumulating = r.InitialAccumulator, 1, 1, true
	}
	g := sum/total + r.L2*s.p
	switch r.Kind {
	case optim.SGD:
		s.p -= r.LR * g
	case optim.Momentum:
		s.a = r.Momentum*s.a + g
		if r.Nesterov {
			s.p -= r.LR * (r.Momentum*s.a + g)
		} else {
			s.p -= r.LR * s.a
		}
	case optim.Adagrad:
		s.a += g * g
		s.p -= r.LR / (math.Sqrt(s.a) + r.Eps) * g
	case optim.Adam:
		s.pow1, s.pow2 = s.pow1*r.Beta1, s.pow2*r.Beta2
		s.a = r.Beta1*s.a + (1-r.Beta1)*g
		s.b = r.Beta2*s.b + (1-r.Beta2)*g*g
		s.p -= r.LR * (s.a / (1 - s.pow1)) / (math.Sqrt(s.b/(1-s.pow2)) + r.Eps)
	case optim.RMSProp, optim.AdamW, optim.FTRL, optim.LAMB: // golden numbers judge these
	}
}

// TestTenSteps compares ten steps of every rule, every flag on, with the plain
// implementation, in both types.
func TestTenSteps(t *testing.T) {
	for _, r := range papered() {
		t.Run(fmt.Sprint(r.Kind, r.Nesterov), func(t *testing.T) {
			tenSteps[float64](t, r, 1e-14)
			tenSteps[float32](t, r, 2e-6)
		})
	}
}

func tenSteps[T optim.Float](t *testing.T, r optim.Rule, tol float64) {
	const n = 37
	rng := rand.New(rand.NewPCG(1, 2))
	want := make([]plain, n)
	p, slots := make([]T, n), newSlots[T](r, n)
	for i := range p {
		p[i] = T(float32(rng.NormFloat64()))
		want[i] = plain{p: float64(p[i]), rule: r}
	}
	for step := range int64(10) {
		total := 1 + 10*rng.Float64()
		g := make([]T, n)
		for i := range g {
			g[i] = T(float32(total * rng.NormFloat64()))
			want[i].step(float64(g[i]), total)
		}
		optim.Dense(r, step, total, p, g, slots)
		for i := range p {
			if d := math.Abs(float64(p[i]) - want[i].p); !(d <= tol*(1+math.Abs(want[i].p))) {
				t.Fatalf("%T: step %d: p[%d] is %v, want %v", p[i], step, i, p[i], want[i].p)
			}
			if len(slots) > 0 && math.Abs(float64(slots[0][i])-want[i].a) > 10*tol*(1+math.Abs(want[i].a)) {
				t.Fatalf("%T: step %d: slot 0 [%d] is %v, want %v", p[i], step, i, slots[0][i], want[i].a)
			}
		}
	}
}

func newSlots[T optim.Float](r optim.Rule, n int) [][]T {
	var slots [][]T
	for _, s := range r.Slots() {
		v := make([]T, n)
		for i := range v {
			v[i] = T(s.Init)
		}
		slots = append(slots, v)
	}
	return slots
}

func clone[T any](v [][]T) [][]T {
	var c [][]T
	for _, s := range v {
		c = append(c, slices.Clone(s))
	}
	return c
}

// state draws parameters, gradients and slots after some steps.
func state(t *rapid.T, r optim.Rule, n int) (p, g []float32, slots [][]float32) {
	rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1))
	slots = newSlots[float32](r, n)
	p, g = make([]float32, n), make([]float32, n)
	for i := range p {
		p[i], g[i] = float32(rng.NormFloat64()), float32(rng.NormFloat64())
		for _, s := range slots {
			s[i] += rng.Float32()
		}
	}
	return p, g, slots
}

// TestRanges proves that a server which holds a range of an array gets the bits
// of the whole.
func TestRanges(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := rapid.SampledFrom(separable()).Draw(t, "rule")
		n := rapid.IntRange(0, 70).Draw(t, "n")
		step := rapid.Int64Range(0, 1e6).Draw(t, "step")
		p, g, slots := state(t, r, n)
		q, qs := slices.Clone(p), clone(slots)
		optim.Dense(r, step, 7, p, g, slots)
		for lo := 0; lo < n; {
			hi := rapid.IntRange(lo+1, n).Draw(t, "cut")
			var part [][]float32
			for _, s := range qs {
				part = append(part, s[lo:hi])
			}
			optim.Dense(r, step, 7, q[lo:hi], g[lo:hi], part)
			lo = hi
		}
		if diff := cmp.Diff(p, q); diff != "" {
			t.Fatalf("parameters: %s", diff)
		}
		if diff := cmp.Diff(slots, qs); diff != "" {
			t.Fatalf("slots: %s", diff)
		}
	})
}

// TestRows proves that touched rows get the bits of Dense and others stay.
func TestRows(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := rapid.SampledFrom(separable()).Draw(t, "rule")
		rows, dim := rapid.IntRange(0, 12).Draw(t, "rows"), rapid.IntRange(1, 9).Draw(t, "dim")
		touched := rapid.SliceOfN(rapid.Bool(), rows, rows).Draw(t, "touched")
		p, g, slots := state(t, r, rows*dim)
		want, wantSlots := slices.Clone(p), clone(slots)
		optim.Dense(r, 5, 3, want, g, wantSlots)
		q, qs := slices.Clone(p), clone(slots)
		var at []int
		var sparse []float32
		for i, yes := range touched {
			lo, hi := i*dim, (i+1)*dim
			if yes {
				at = append(at, i)
				sparse = append(sparse, g[lo:hi]...)
				continue
			}
			copy(want[lo:hi], p[lo:hi])
			for k := range slots {
				copy(wantSlots[k][lo:hi], slots[k][lo:hi])
			}
		}
		optim.Rows(r, 5, 3, q, at, dim, sparse, qs)
		if diff := cmp.Diff(want, q); diff != "" {
			t.Fatalf("parameters: %s", diff)
		}
		if diff := cmp.Diff(wantSlots, qs); diff != "" {
			t.Fatalf("slots: %s", diff)
		}
	})
}

// TestNoExamples proves that a total of 0 leaves everything as it was, and that
// nothing is allocated.
func TestNoExamples(t *testing.T) {
	for _, r := range flagged() {
		p, g, slots := []float32{1, 2}, []float32{3, 4}, newSlots[float32](r, 2)
		q, qs, at := slices.Clone(p), clone(slots), []int{0, 1}
		optim.Dense(r, 0, 0, p, g, slots)
		optim.Rows(r, 0, 0, p, at, 1, g, slots)
		if !slices.Equal(p, q) || !cmp.Equal(slots, qs) {
			t.Errorf("%s: total 0 changed something", r.Kind)
		}
		if n := testing.AllocsPerRun(10, func() {
			optim.Dense(r, 0, 2, p, g, slots)
			optim.Rows(r, 0, 2, p, at, 1, g, slots)
		}); n != 0 {
			t.Errorf("%s allocates %v times", r.Kind, n)
		}
	}
}

// TestZeroGradient proves that nothing moves where nothing pulls, even from a
// zero accumulator.
func TestZeroGradient(t *testing.T) {
	for _, r := range []optim.Rule{
		{Kind: optim.SGD, LR: 1},
		{Kind: optim.Momentum, LR: 1},
		{Kind: optim.Adagrad, LR: 1},
		{Kind: optim.Adam, LR: 1},
		{Kind: optim.RMSProp, LR: 1, Centered: true, Momentum: .5},
		{Kind: optim.Adam, LR: 1, AMSGrad: true},
		{Kind: optim.LAMB, LR: 1},
	} {
		p := []float32{3}
		optim.Dense(r, 0, 2, p, []float32{0}, newSlots[float32](r, 1))
		if p[0] != 3 {
			t.Errorf("%s: p is %v, want 3", r.Kind, p[0])
		}
	}
}

// TestMisuse proves that slices that do not fit panic before anything changes.
func TestMisuse(t *testing.T) {
	adam := optim.Rule{Kind: optim.Adam, LR: 1}
	two := []float32{1, 2}
	for name, f := range map[string]func(){
		"gradient": func() { optim.Dense(adam, 0, 1, two, []float32{1}, newSlots[float32](adam, 2)) },
		"slots":    func() { optim.Dense(adam, 0, 1, two, two, newSlots[float32](adam, 2)[:1]) },
		"slot":     func() { optim.Dense(adam, 0, 1, two, two, newSlots[float32](adam, 3)) },
		"rows":     func() { optim.Rows(adam, 0, 1, two, []int{0}, 1, two, newSlots[float32](adam, 2)) },
		"kind":     func() { optim.Dense(optim.Rule{Kind: "x", LR: 1}, 0, 1, two, two, nil) },
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s: no panic", name)
				}
			}()
			f()
		}()
	}
}

func BenchmarkDense(b *testing.B) {
	for _, r := range flagged() {
		b.Run(fmt.Sprint(r.Kind, len(r.Slots())), func(b *testing.B) {
			const n = 1 << 16
			p, g, slots := make([]float32, n), make([]float32, n), newSlots[float32](r, n)
			b.SetBytes(4 * n)
			for b.Loop() {
				optim.Dense(r, 1, 128, p, g, slots)
			}
		})
	}
}

func BenchmarkRows(b *testing.B) {
	for _, r := range flagged() {
		for _, dim := range []int{1, 4, 10, 16} {
			b.Run(fmt.Sprint(r.Kind, len(r.Slots()), "/", dim), func(b *testing.B) {
				const rows = 1 << 10
				p, g, slots := make([]float32, 4*rows*dim), make([]float32, rows*dim), newSlots[float32](r, 4*rows*dim)
				at := make([]int, rows)
				for i := range at {
					at[i] = 4*i + i%3
				}
				for b.Loop() {
					optim.Rows(r, 1, 128, p, at, dim, g, slots)
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(rows*dim), "ns/elem")
			})
		}
	}
}

func BenchmarkSquareNorm(b *testing.B) {
	v := make([]float32, 1<<14)
	for b.Loop() {
		optim.SquareNorm(v)
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(len(v)), "ns/elem")
}
