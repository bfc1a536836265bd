package lbfgs

import (
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/gangline/gangline/ps/vector"
)

func TestRosenbrock(t *testing.T) {
	for _, n := range []int{2, 10, 1000} {
		x := slices.Repeat([]float64{-1.2, 1}, n/2)
		end, c := minimise(t, whole(n, rosenbrock), Config{GradTolerance: 1e-10}, x...)
		r := end.Result
		if end.Kind != ActionDone || r.Reason != GradientSmall || r.Objective > 1e-18 {
			t.Fatalf("n = %d: %+v", n, end)
		}
		if d := far(c.x("x"), slices.Repeat([]float64{1}, n)); d > 1e-9 {
			t.Errorf("n = %d: x is off by %g", n, d)
		}
		if r.Iterations > 60 || r.Evaluations > 80 {
			t.Errorf("n = %d: %d iterations, %d evaluations; others need about 40 and 50", n, r.Iterations, r.Evaluations)
		}
	}
}

// TestQuadratic: x'Ax/2 - b'x with a known minimum and a wide spectrum, with L2.
func TestQuadratic(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 16).Draw(t, "n")
		rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))
		l2 := rapid.SampledFrom([]float64{0, .5}).Draw(t, "l2")
		weight := rapid.SampledFrom([]float64{1, 64}).Draw(t, "weight")
		a, want, start := make([]float64, n), make([]float64, n), make([]float64, n)
		for i := range a {
			a[i], want[i], start[i] = math.Pow(10, 3*rng.Float64()), rng.NormFloat64(), rng.NormFloat64()
		}
		p := whole(n, func(x, g []float64) (f float64) {
			for i := range x {
				b := (a[i] + l2) * want[i] // so that want is the minimum with L2
				f += weight * (a[i]*x[i]*x[i]/2 - b*x[i])
				g[i] += weight * (a[i]*x[i] - b)
			}
			return f
		})
		eval := p.eval
		p.eval = func(x, g []float64, lo, hi int) (float64, float64) {
			loss, w := eval(x, g, lo, hi)
			return loss, w * weight
		}
		end, c := minimise(t, p, Config{GradTolerance: 1e-8, L2: l2, Memory: rapid.IntRange(1, 12).Draw(t, "memory")}, start...)
		if end.Kind != ActionDone || end.Result.Reason != GradientSmall || far(c.x("x"), want) > 1e-8 {
			t.Fatalf("%+v, off by %g", end, far(c.x("x"), want))
		}
		f := 0.
		for i := range want {
			f -= (a[i] + l2) * want[i] * want[i] / 2
		}
		if math.Abs(end.Result.Objective-f) > 1e-10*math.Abs(f) {
			t.Fatalf("objective %g, want %g", end.Result.Objective, f)
		}
	})
}

// TestTwoLoops: the direction from dot products is that of the two-loop recursion
// on the vectors (Nocedal and Wright, algorithm 7.4), at every iteration.
func TestTwoLoops(t *testing.T) {
	x := slices.Repeat([]float64{-1.2, 1}, 5)
	x[3] = 7
	cfg := Config{GradTolerance: 1e-8, Memory: 4, Portions: 1}
	c := newCluster(t, whole(10, rosenbrock), &cfg, x, 2, 1)
	directions := 0
	c.look = func(s *Solver) {
		if s.phase != aiming {
			return
		}
		directions++
		q := c.x("g")
		h := &s.history
		alpha := make([]float64, len(h.pairs))
		dot := func(a, b []float64) (sum float64) {
			for i := range a {
				sum += a[i] * b[i]
			}
			return sum
		}
		for i := len(h.pairs) - 1; i >= 0; i-- {
			sv, yv := c.x(sName(h.pairs[i])), c.x(yName(h.pairs[i]))
			alpha[i] = dot(sv, q) / dot(sv, yv)
			for j := range q {
				q[j] -= alpha[i] * yv[j]
			}
		}
		for i, p := range h.pairs {
			sv, yv := c.x(sName(p)), c.x(yName(p))
			if i == 0 {
				last := h.pairs[len(h.pairs)-1]
				sl, yl := c.x(sName(last)), c.x(yName(last))
				for j := range q {
					q[j] *= dot(sl, yl) / dot(yl, yl)
				}
			}
			beta := dot(yv, q) / dot(sv, yv)
			for j := range q {
				q[j] += (alpha[i] - beta) * sv[j]
			}
		}
		for j := range q {
			q[j] = -q[j]
		}
		if d := far(q, c.x("d")); d > 1e-9*(1+far(q, make([]float64, len(q)))) {
			t.Errorf("direction %d from %d pairs is off by %g", directions, len(h.pairs), d)
		}
	}
	if end := c.run(solver(t, cfg)); end.Kind != ActionDone || end.Result.Reason != GradientSmall || directions < 20 {
		t.Errorf("after %d directions: %+v", directions, end)
	}
}

// TestWolfe: every step that is accepted satisfies the strong conditions, and
// the objective never goes up.
func TestWolfe(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := 2 * rapid.IntRange(1, 4).Draw(t, "pairs")
		x := rapid.SliceOfN(rapid.Float64Range(-3, 3), n, n).Draw(t, "x")
		cfg := Config{
			// With a memory of one pair some of these take thousands of steps.
			GradTolerance: 1e-6, Portions: 1, Memory: rapid.IntRange(1, 8).Draw(t, "memory"), MaxIterations: 20000,
			C2: rapid.SampledFrom([]float64{.1, .5, .9}).Draw(t, "c2"),
		}
		c := newCluster(t, whole(n, rosenbrock), &cfg, x, rapid.IntRange(1, 3).Draw(t, "servers"), 1)
		steps := 0
		c.look = func(s *Solver) {
			if s.phase != pairing {
				return
			}
			steps++
			from := s.search.from
			g, slope := make([]float64, n), 0.
			f := rosenbrock(c.x("x"), g)
			for i, d := range c.x("d") {
				slope += g[i] * d
			}
			strong := f <= from.f+1e-4*s.step*from.df*(1-1e-9)+1e-15 && math.Abs(slope) <= -s.cfg.C2*from.df*(1+1e-9)
			if !strong && math.Abs(f-from.f) > flat*from.f {
				t.Fatalf("step %g from f %g, slope %g: f %g, slope %g", s.step, from.f, from.df, f, slope)
			}
			if f != s.last.Objective || f > from.f*(1+flat) {
				t.Fatalf("objective %g said to be %g, was %g", f, s.last.Objective, from.f)
			}
		}
		if end := c.run(solver(t, cfg)); end.Kind != ActionDone || end.Result.Reason != GradientSmall || end.Result.Iterations > steps+1 {
			t.Fatalf("after %d steps: %+v", steps, end)
		}
	})
}

// TestNotFinite: where the loss or the gradient is not finite a step is too long;
// only where the search begins it is an error.
func TestNotFinite(t *testing.T) {
	// x - log x, without a value at 0 and below, has its minimum at 1. At 30 the
	// curvature is small, and steps go too far.
	wall := whole(1, func(x, g []float64) float64 {
		if x[0] < .5 {
			g[0] = math.Inf(-1)
			return 0 // looks like a good place, but for its slope
		}
		if x[0] < .7 {
			return math.NaN()
		}
		g[0] += 40 * (1 - 1/x[0])
		return 40 * (x[0] - math.Log(x[0]))
	})
	end, c := minimise(t, wall, Config{GradTolerance: 1e-9}, 30)
	if end.Kind != ActionDone || end.Result.Reason != GradientSmall || math.Abs(c.x("x")[0]-1) > 1e-9 || end.Result.NotFinite == 0 {
		t.Errorf("%+v at %g", end, c.x("x"))
	}
	for _, x := range []float64{.1, .6} {
		end, _ := minimise(t, wall, Config{}, x)
		if end.Kind != ActionFail || !errors.Is(end.Err, ErrNotFinite) || !strings.Contains(end.Err.Error(), "begin elsewhere") {
			t.Errorf("from %g: %+v", x, end)
		}
	}
	// Without a value anywhere but where it begins there is no step.
	end, c = minimise(t, whole(1, func(x, g []float64) float64 {
		g[0] = 1
		if x[0] != 5 {
			return math.Inf(1)
		}
		return 3
	}), Config{}, 5)
	if end.Kind != ActionDone || end.Result.Reason != Stalled || end.Result.Objective != 3 || c.x("x")[0] != 5 || end.Result.NotFinite != 20 {
		t.Errorf("%+v at %g", end, c.x("x"))
	}
}

// TestRestart: where no step along a direction goes down the history is dropped,
// once; x and g are where it was best, also if the limit comes first.
func TestRestart(t *testing.T) {
	for limit, reason := range map[int]Reason{0: Stalled, 10: EvaluationLimit} {
		calls := 0
		end, c := minimise(t, whole(2, func(x, g []float64) float64 {
			f := rosenbrock(x, g)
			if calls++; calls > 8 {
				return 1000 // whatever the slope promises
			}
			return f
		}), Config{GradTolerance: 1e-9, MaxEvaluations: limit}, -1.2, 1)
		g := make([]float64, 2)
		f := rosenbrock(c.x("x"), g)
		r := end.Result
		if end.Kind != ActionDone || r.Reason != reason || r.Objective != f || !slices.Equal(g, c.x("g")) || f > 24 ||
			(r.Restarts == 1) != (reason == Stalled) {
			t.Errorf("%+v, f %g, g %v and %v", end, f, g, c.x("g"))
		}
	}
}

func TestUnbounded(t *testing.T) {
	end, _ := minimise(t, whole(2, func(x, g []float64) float64 {
		g[0], g[1] = -1, -2
		return -x[0] - 2*x[1]
	}), Config{}, 0, 0)
	if end.Kind != ActionFail || !errors.Is(end.Err, ErrUnbounded) {
		t.Errorf("%+v", end)
	}
}

// TestReasons: each limit ends the search with its reason, and x and g are those
// of the result.
func TestReasons(t *testing.T) {
	for reason, cfg := range map[Reason]Config{
		GradientSmall:   {GradTolerance: 1e-3},
		DecreaseSmall:   {Tolerance: 1e-2},
		IterationLimit:  {MaxIterations: 7},
		EvaluationLimit: {MaxEvaluations: 6},
		Stalled:         {}, // as no tolerance ends it
	} {
		// 1 more than Rosenbrock: rounding hides what there is to gain at the end.
		p := whole(2, func(x, g []float64) float64 { return 1 + rosenbrock(x, g) })
		end, c := minimise(t, p, cfg, -1.2, 1)
		r := end.Result
		if end.Kind != ActionDone || r.Reason != reason && (reason != Stalled || r.Reason != GradientSmall || r.GradNorm != 0) {
			t.Errorf("%v: %+v", reason, end)
			continue
		}
		g := make([]float64, 2)
		f := 1 + rosenbrock(c.x("x"), g)
		if f != r.Objective || !slices.Equal(g, c.x("g")) || math.Abs(math.Hypot(g[0], g[1])-r.GradNorm) > 1e-12*r.GradNorm {
			t.Errorf("%v: f %g and g %v at x, result %+v with g %v", reason, f, g, r, c.x("g"))
		}
		if reason == IterationLimit && r.Iterations != 7 || reason == EvaluationLimit && r.Evaluations != 6 {
			t.Errorf("%v: %+v", reason, r)
		}
	}
}

// TestTraffic: bytes between coordinator and server are the same for 2 and for
// 20,000 parameters, to the last one.
func TestTraffic(t *testing.T) {
	var first traffic
	for i, n := range []int{2, 20_000} {
		x := make([]float64, n)
		x[0], x[1] = -1.2, 1
		p := whole(n, func(x, g []float64) float64 { return rosenbrock(x[:2], g[:2]) })
		for _, servers := range []int{1, 3} {
			cfg := Config{GradTolerance: 1e-9, Portions: 1}
			c := newCluster(t, p, &cfg, x, servers, 1)
			end := c.run(solver(t, cfg))
			if end.Kind != ActionDone || end.Result.Reason != GradientSmall {
				t.Fatalf("n = %d: %+v", n, end)
			}
			if i == 0 && servers == 1 {
				first = c.traffic
			}
			if c.traffic.total != first.total {
				t.Errorf("%d parameters on %d servers: %d bytes, want %d", n, servers, c.traffic.total, first.total)
			}
			each := c.traffic.total / end.Result.Iterations
			t.Logf("%d parameters on %d servers: %d bytes, %d an iteration", n, servers, c.traffic.total, each)
			if most := 100*cfg.filled().Memory*2 + 1000; each > most {
				t.Errorf("%d bytes an iteration, want at most %d", each, most)
			}
		}
	}
}

// TestRepeated: commands that arrive twice change nothing.
func TestRepeated(t *testing.T) {
	var want []float64
	for _, repeat := range []bool{false, true} {
		cfg := Config{GradTolerance: 1e-9, Portions: 1}
		c := newCluster(t, whole(2, rosenbrock), &cfg, []float64{-1.2, 1}, 2, 1)
		c.repeat = repeat
		if end := c.run(solver(t, cfg)); end.Kind != ActionDone {
			t.Fatalf("%+v", end)
		}
		if want == nil {
			want = c.x("x")
		}
		if got := c.x("x"); !slices.Equal(got, want) {
			t.Errorf("%v, want %v", got, want)
		}
	}
}

// TestSuccessor: a coordinator that dies is replaced by one that goes on from x,
// without the history.
func TestSuccessor(t *testing.T) {
	cfg := Config{GradTolerance: 1e-9, Portions: 1, MaxIterations: 12}
	c := newCluster(t, whole(2, rosenbrock), &cfg, []float64{-1.2, 1}, 3, 2)
	first := c.run(solver(t, cfg)).Result
	cfg.After, cfg.MaxIterations = c.servers[0].Last(), 0
	end := c.run(solver(t, cfg))
	if end.Kind != ActionDone || end.Result.Reason != GradientSmall || first.Reason != IterationLimit ||
		end.Result.Objective > 1e-18 || end.Result.Iterations > 40 {
		t.Errorf("first %+v, then %+v", first, end)
	}
}

// TestOutOfPlace: any event that is not waited for is refused and changes
// nothing.
func TestOutOfPlace(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		cfg := Config{GradTolerance: 1e-9, Portions: 1}
		c := newCluster(t, whole(2, rosenbrock), &cfg, []float64{-1.2, 1}, 1, 1)
		refused := 0
		c.look = func(s *Solver) {
			for range rapid.IntRange(0, 1).Draw(t, "wrong") {
				wrong := Event{
					Kind:       EventKind(rapid.IntRange(0, 4).Draw(t, "kind")),
					Evaluation: s.waits + rapid.Uint64Range(1, 9).Draw(t, "evaluation"), Weight: 1,
					Number: s.waits, Dots: make([]float64, len(s.pairs)+1),
				}
				if actions, _ := s.Step(wrong); len(actions) != 1 || actions[0].Kind != ActionRefuse || !errors.Is(actions[0].Err, ErrUsage) {
					t.Fatalf("%+v: %+v", wrong, actions)
				}
				refused++
			}
		}
		s := solver(t, cfg)
		if actions, _ := s.Step(Event{Kind: EventDotted}); actions[0].Kind != ActionRefuse {
			t.Fatalf("dots before the start: %+v", actions)
		}
		end := c.run(s)
		if end.Kind != ActionDone || end.Result.Objective > 1e-18 {
			t.Fatalf("after %d wrong events: %+v", refused, end)
		}
		if actions, _ := s.Step(Event{Kind: EventStart}); actions[0].Kind != ActionRefuse {
			t.Fatalf("a start after the end: %+v", actions)
		}
	})
}

func TestNoData(t *testing.T) {
	s := solver(t, Config{Portions: 1})
	s.Step(Event{Kind: EventStart})
	actions, _ := s.Step(Event{Kind: EventEvaluated, Evaluation: s.waits})
	if len(actions) != 1 || !errors.Is(actions[0].Err, ErrUsage) || !strings.Contains(actions[0].Err.Error(), "is there no data?") {
		t.Errorf("%+v", actions)
	}
}

func TestConfigs(t *testing.T) {
	for _, cfg := range []Config{
		{},
		{Portions: vector.PortionsMax + 1},
		{Portions: 1, Memory: -1},
		{Portions: 1, Memory: MemoryMax + 1},
		{Portions: 1, L2: -1},
		{Portions: 1, L2: math.Inf(1)},
		{Portions: 1, Tolerance: math.NaN()},
		{Portions: 1, GradTolerance: -1},
		{Portions: 1, MaxIterations: -1},
		{Portions: 1, C1: .6, C2: .9},
		{Portions: 1, C1: .2, C2: .1},
		{Portions: 1, C2: 1},
	} {
		if _, err := New(cfg); err == nil {
			t.Errorf("%+v is taken", cfg)
		}
	}
}

// TestGuard: pairs without curvature do not count, and the search goes on.
func TestGuard(t *testing.T) {
	h := newHistory(2)
	dots := map[vector.Pair]float64{{"s00", "y00"}: 1e-20, {"y00", "y00"}: 1}
	h.gram = dots
	if h.admit(0) || len(h.pairs) != 0 {
		t.Error("a pair without curvature counts")
	}
	for slot, want := range [][]int{{0}, {0, 1}, {1, 2}} {
		h.gram[vector.Pair{sName(slot), yName(slot)}], h.gram[vector.Pair{yName(slot), yName(slot)}] = 1, 1
		if got := h.spare(); got != slot {
			t.Errorf("spare slot %d, want %d", got, slot)
		}
		if !h.admit(slot) || !slices.Equal(h.pairs, want) {
			t.Errorf("pairs %v, want %v", h.pairs, want)
		}
	}
	if got := h.spare(); got != 0 {
		t.Errorf("spare slot %d, want that of the oldest pair", got)
	}
}
