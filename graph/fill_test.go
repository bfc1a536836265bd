package graph_test

import (
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/gangline/gangline/graph"
)

func fill(in graph.Init, name string, n int) []float64 {
	v := make([]float64, n)
	graph.Fill(in, name, 0, v)
	return v
}

// TestFillSplits proves that a variable filled in parts is the variable filled
// at once, and that f32 is f64 rounded.
func TestFillSplits(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := graph.Init{
			Kind:  rapid.SampledFrom([]graph.InitKind{graph.Zeros, graph.Uniform, graph.Normal, graph.Constant}).Draw(t, "kind"),
			Scale: rapid.Float64Range(0, 100).Draw(t, "scale"),
			Seed:  rapid.Uint64().Draw(t, "seed"),
		}
		name := rapid.StringN(1, 8, 8).Draw(t, "name")
		n := rapid.IntRange(1, 50).Draw(t, "n")
		cut := rapid.IntRange(0, n).Draw(t, "cut")
		whole, parts, single := make([]float64, n), make([]float64, n), make([]float32, n)
		at := rapid.IntRange(0, 1<<40).Draw(t, "at")
		graph.Fill(in, name, at, whole)
		graph.Fill(in, name, at+cut, parts[cut:])
		graph.Fill(in, name, at, parts[:cut])
		graph.Fill(in, name, at, single)
		for i, v := range whole {
			if parts[i] != v || single[i] != float32(v) {
				t.Fatalf("element %d: whole %v, in parts %v, f32 %v", i, v, parts[i], single[i])
			}
		}
	})
}

// TestFillMoments compares mean, variance and the correlation of neighbours
// with those of the distribution, within 5 standard errors.
func TestFillMoments(t *testing.T) {
	const n, scale = 200_000, 0.3
	for kind, variance := range map[graph.InitKind]float64{graph.Uniform: scale * scale / 3, graph.Normal: scale * scale} {
		for _, name := range []string{"w", "w1", "embed"} {
			v := fill(graph.Init{Kind: kind, Scale: scale, Seed: 7}, name, n)
			var sum, sq, next float64
			for i, x := range v {
				sum += x
				sq += x * x
				next += x * v[(i+1)%n]
			}
			bound := 5 / math.Sqrt(n)
			if m := sum / n / math.Sqrt(variance); math.Abs(m) > bound {
				t.Errorf("%s %s: mean %v", kind, name, m)
			}
			if r := sq/n/variance - 1; math.Abs(r) > bound*math.Sqrt2 {
				t.Errorf("%s %s: variance off by %v", kind, name, r)
			}
			if c := next / n / variance; math.Abs(c) > bound {
				t.Errorf("%s %s: neighbours correlate by %v", kind, name, c)
			}
			least, most := slices.Min(v), slices.Max(v)
			if kind == graph.Uniform && (least < -scale || most >= scale || least > -scale*.999 || most < scale*.999) {
				t.Errorf("uniform %s: from %v to %v", name, least, most)
			}
			if kind == graph.Normal && (most < 3.5*scale || most > 6.5*scale) {
				t.Errorf("normal %s: up to %v", name, most)
			}
		}
	}
}

// TestFillNormal compares the shares within 1, 2 and 3 deviations.
func TestFillNormal(t *testing.T) {
	const n = 200_000
	v := fill(graph.Init{Kind: graph.Normal, Scale: 1}, "x", n)
	for k := 1.0; k <= 3; k++ {
		in := 0
		for _, x := range v {
			if math.Abs(x) <= k {
				in++
			}
		}
		p := math.Erf(k / math.Sqrt2)
		if share := float64(in) / n; math.Abs(share-p) > 5*math.Sqrt(p*(1-p)/n) {
			t.Errorf("%v of the values within %v deviations, want %v", share, k, p)
		}
	}
}

// TestFillStreams proves that another name or seed gives unrelated values.
func TestFillStreams(t *testing.T) {
	const n = 50_000
	in := graph.Init{Kind: graph.Uniform, Scale: math.Sqrt(3), Seed: 1}
	base := fill(in, "w", n)
	other := in
	other.Seed = 2
	for name, v := range map[string][]float64{
		"name": fill(in, "x", n), "longer name": fill(in, "ww", n), "seed": fill(other, "w", n), "swapped": fill(other, "x", n),
	} {
		dot := 0.0
		for i := range v {
			dot += v[i] * base[i]
		}
		if r := dot / n; math.Abs(r) > 5/math.Sqrt(n) {
			t.Errorf("another %s correlates by %v", name, r)
		}
	}
}

// TestFillGolden pins values, because a checkpoint or another rank may rest on
// them: a change here is a change of every model's start.
func TestFillGolden(t *testing.T) {
	got := fill(graph.Init{Kind: graph.Uniform, Scale: 1, Seed: 42}, "w", 3)
	want := []float64{-0.45782768726348877, 0.125970721244812, 0.6992940902709961} // from the formula, worked out in Python
	if !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	if got := fill(graph.Init{Kind: graph.Constant, Scale: 2}, "w", 2); !slices.Equal(got, []float64{2, 2}) {
		t.Errorf("constant: %v", got)
	}
	dirty := []float32{1, 2}
	if graph.Fill(graph.Init{}, "w", 0, dirty); dirty[0] != 0 || dirty[1] != 0 {
		t.Errorf("zeros: %v", dirty)
	}
}

func BenchmarkFill(b *testing.B) {
	v := make([]float32, 4096)
	for _, kind := range []graph.InitKind{graph.Uniform, graph.Normal} {
		b.Run(string(kind), func(b *testing.B) {
			b.SetBytes(int64(4 * len(v)))
			for b.Loop() {
				graph.Fill(graph.Init{Kind: kind, Scale: 1}, "w", 0, v)
			}
		})
	}
}
