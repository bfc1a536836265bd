package compress_test

import (
	"errors"
	"math"
	"slices"
	"testing"

	"github.com/gangline/gangline/collective/compress"
)

// addTo is the all-reduce of a factor in one process.
func addTo(ranks []*compress.LowRank, of func(*compress.LowRank) []float32) {
	sum := slices.Clone(of(ranks[0]))
	for _, l := range ranks[1:] {
		for i, x := range of(l) {
			sum[i] += x
		}
	}
	for _, l := range ranks {
		copy(of(l), sum)
	}
}

// powerStep is a step of all ranks; v become the sums.
func powerStep(ranks []*compress.LowRank, v [][]float32) (finite bool) {
	for i, l := range ranks {
		l.Sketch(v[i])
	}
	addTo(ranks, (*compress.LowRank).P)
	for _, l := range ranks {
		l.Solve()
	}
	addTo(ranks, (*compress.LowRank).Q)
	finite = true
	for i, l := range ranks {
		finite = l.Finish(v[i]) && finite
	}
	return finite
}

func keepAll(ranks []*compress.LowRank) {
	for _, l := range ranks {
		l.Keep()
	}
}

// powerRanks makes ranks of one layout: plain elements, a matrix, plain elements, a matrix too
// small to gain, one more that gains, and plain elements at the end.
func powerRanks(t *testing.T, n, rank int) (ranks []*compress.LowRank, matrices []compress.Matrix, elems int) {
	t.Helper()
	matrices = []compress.Matrix{{Lo: 200, Rows: 2, Cols: 2}, {Lo: 3, Rows: 13, Cols: 9}, {Lo: 210, Rows: 7, Cols: 30}}
	elems = 425
	for range n {
		l, err := compress.NewLowRank(elems, rank, matrices)
		if err != nil {
			t.Fatal(err)
		}
		ranks = append(ranks, l)
	}
	return ranks, []compress.Matrix{matrices[1], matrices[2]}, elems
}

// outside lists the elements of no matrix.
func outside(matrices []compress.Matrix, elems int) []int {
	var out []int
	for i := range elems {
		in := false
		for _, m := range matrices {
			in = in || m.Lo <= i && i < m.Lo+m.Rows*m.Cols
		}
		if !in {
			out = append(out, i)
		}
	}
	return out
}

// Over many steps what came out and what is left on all ranks is what all gave; elements of
// no matrix are summed as they are; all ranks have the same bits.
func TestLowRankLosesNothing(t *testing.T) {
	for n := 1; n <= 4; n++ {
		for rank := 1; rank <= 3; rank++ {
			ranks, matrices, elems := powerRanks(t, n, rank)
			r := source(uint64(n*10 + rank))
			in, out := make([]float64, elems), make([]float64, elems)
			for range 12 {
				var v [][]float32
				plain := make([]float32, elems)
				for range n {
					v = append(v, normal(r, elems))
					for i, x := range v[len(v)-1] {
						in[i] += float64(x)
						plain[i] += x
					}
				}
				if !powerStep(ranks, v) {
					t.Fatal("not finite")
				}
				keepAll(ranks)
				for i := range n {
					if !slices.Equal(v[i], v[0]) {
						t.Fatalf("rank %d has another sum", i)
					}
				}
				for _, i := range outside(matrices, elems) {
					if v[0][i] != plain[i] {
						t.Fatalf("element %d, of no matrix, is %v, not %v", i, v[0][i], plain[i])
					}
				}
				for i, x := range v[0] {
					out[i] += float64(x)
				}
			}
			for i := range in {
				left := 0.0
				for _, l := range ranks {
					left += float64(l.State().First[i])
				}
				if math.Abs(in[i]-out[i]-left) > 1e-4 {
					t.Fatalf("%d ranks, rank %d: element %d: in %v, out %v, left %v", n, rank, i, in[i], out[i], left)
				}
			}
		}
	}
}

// One step is P P' M for the M of that step, with P from the Q of the step before, computed
// here in float64 and without any of the code. The first Q is taken from the state.
func TestLowRankAgainstTheObvious(t *testing.T) {
	const rows, cols, rank, n = 17, 11, 2, 3
	var ranks []*compress.LowRank
	for range n {
		l, err := compress.NewLowRank(rows*cols, rank, []compress.Matrix{{Rows: rows, Cols: cols}})
		if err != nil {
			t.Fatal(err)
		}
		ranks = append(ranks, l)
	}
	r := source(5)
	left := make([]float64, rows*cols)
	for step := range 4 {
		q := slices.Clone(ranks[0].State().Warm)
		m := slices.Clone(left)
		var v [][]float32
		for range n {
			v = append(v, normal(r, rows*cols))
			for i, x := range v[len(v)-1] {
				m[i] += float64(x)
			}
		}
		var p [rank][rows]float64
		for k := range rank {
			for i := range rows {
				for j := range cols {
					p[k][i] += m[i*cols+j] * float64(q[k*cols+j])
				}
			}
			for o := range k {
				dot := 0.0
				for i := range rows {
					dot += p[k][i] * p[o][i]
				}
				for i := range rows {
					p[k][i] -= dot * p[o][i]
				}
			}
			norm := 0.0
			for _, x := range p[k] {
				norm += x * x
			}
			for i := range p[k] {
				p[k][i] /= math.Sqrt(norm)
			}
		}
		powerStep(ranks, v)
		keepAll(ranks)
		for i := range rows {
			for j := range cols {
				want := 0.0
				for k := range rank {
					back := 0.0
					for o := range rows {
						back += m[o*cols+j] * p[k][o]
					}
					want += p[k][i] * back
				}
				if got := float64(v[0][i*cols+j]); math.Abs(got-want) > 1e-4 {
					t.Fatalf("step %d: element %d %d is %v, want %v", step, i, j, got, want)
				}
				left[i*cols+j] = m[i*cols+j] - want
			}
		}
	}
}

// A sum of rank 2 comes through two steps whole; one of rank 1 does too, and one of zeros: a
// column that is not needed neither hurts nor is lost for later.
func TestLowRankOfLowRank(t *testing.T) {
	const rows, cols = 20, 30
	l, err := compress.NewLowRank(rows*cols, 2, []compress.Matrix{{Rows: rows, Cols: cols}})
	if err != nil {
		t.Fatal(err)
	}
	r := source(9)
	for step, rank := range []int{2, 2, 0, 1, 1, 2, 2} {
		want := make([]float32, rows*cols)
		for range rank {
			a, b := normal(r, rows), normal(r, cols)
			for i := range want {
				want[i] += a[i/cols] * b[i%cols]
			}
		}
		v := slices.Clone(want)
		if !powerStep([]*compress.LowRank{l}, [][]float32{v}) {
			t.Fatal("not finite")
		}
		l.Keep()
		for i := range v {
			if math.Abs(float64(v[i]-want[i])) > 1e-3 { // of numbers up to 10
				t.Fatalf("step %d: element %d is %v, want %v", step, i, v[i], want[i])
			}
		}
	}
}

// What is not finite on one rank is seen on all, and leaves no trace; a step can be reverted.
func TestLowRankNotFinite(t *testing.T) {
	const n = 3
	for _, at := range []int{0, 3, 50, 119, 300, 419, 424} {
		for _, bad := range []float32{float32(math.NaN()), float32(math.Inf(1)), math.MaxFloat32} {
			ranks, matrices, elems := powerRanks(t, n, 2)
			r := source(uint64(at))
			step := func() [][]float32 {
				var v [][]float32
				for range n {
					v = append(v, normal(r, elems))
				}
				return v
			}
			powerStep(ranks, step())
			keepAll(ranks)
			before := ranks[1].State()
			first, warm := slices.Clone(before.First), slices.Clone(before.Warm)
			v := step()
			v[1][at] = bad
			if bad == math.MaxFloat32 {
				if slices.Contains(outside(matrices, elems), at) {
					v[0][at] = bad
				} else {
					v[1][at] /= 2
				}
			}
			finite := powerStep(ranks, v)
			if want := bad == math.MaxFloat32 && !slices.Contains(outside(matrices, elems), at); finite != want {
				t.Fatalf("%v at %d: finite %v", bad, at, finite)
			}
			for i := range v {
				if compress.Finite(v[i]) != finite {
					t.Errorf("%v at %d: rank %d does not see it", bad, at, i)
				}
			}
			if s := ranks[1].State(); !slices.Equal(s.First, first) || !slices.Equal(s.Warm, warm) {
				t.Error("a step that was not kept has left a trace")
			}
			powerStep(ranks, step())
			keepAll(ranks)
			if s := ranks[1].State(); slices.Equal(s.First, first) || slices.Equal(s.Warm, warm) {
				t.Error("a step has changed nothing")
			}
			if !ranks[1].Revert() || ranks[1].Revert() {
				t.Error("revert does not say what it did")
			}
			if s := ranks[1].State(); !slices.Equal(s.First, first) || !slices.Equal(s.Warm, warm) {
				t.Error("a step that was reverted has left a trace")
			}
		}
	}
}

// Near the ends of what a float32 can say: a sum that is too large is seen, and of a matrix so
// small that what a second column has left is rounding, nothing is counted twice.
func TestLowRankAtTheEnds(t *testing.T) {
	const rows, cols = 20, 30
	layout := []compress.Matrix{{Rows: rows, Cols: cols}}
	l, err := compress.NewLowRank(rows*cols, 1, layout)
	if err != nil {
		t.Fatal(err)
	}
	v := make([]float32, rows*cols)
	q := l.State().Warm
	for i := range v {
		v[i] = float32(math.Copysign(math.MaxFloat32, float64(q[i%cols])))
	}
	if powerStep([]*compress.LowRank{l}, [][]float32{v}) || compress.Finite(v) {
		t.Error("factors that are too large are not seen")
	}
	for seed := range uint64(20) {
		if l, err = compress.NewLowRank(rows*cols, 3, layout); err != nil {
			t.Fatal(err)
		}
		r := source(seed)
		a, b := normal(r, rows), normal(r, cols)
		want := make([]float32, rows*cols)
		for i := range want {
			want[i] = a[i/cols] * b[i%cols] * 1e-37
		}
		v := slices.Clone(want)
		if !powerStep([]*compress.LowRank{l}, [][]float32{v}) {
			t.Fatal("not finite")
		}
		for i := range v {
			if math.Abs(float64(v[i]-want[i])) > 1e-3*compress.Norm(want) {
				t.Fatalf("seed %d: element %d is %v, want %v", seed, i, v[i], want[i])
			}
		}
	}
}

// Residuals of three ranks go on to two, to five and to one, which gives them all out.
func TestLowRankRestore(t *testing.T) {
	ranks, _, elems := powerRanks(t, 3, 2)
	r := source(2)
	for range 3 {
		powerStep(ranks, [][]float32{normal(r, elems), normal(r, elems), normal(r, elems)})
		keepAll(ranks)
	}
	states := func(ranks []*compress.LowRank) (all []compress.State) {
		for _, l := range ranks {
			all = append(all, l.State())
		}
		return all
	}
	want := total(states(ranks), elems)
	for _, n := range []int{1, 2, 3, 5} {
		others, _, _ := powerRanks(t, n, 2)
		for range 2 { // another life
			v := make([][]float32, n)
			for i := range v {
				v[i] = normal(r, elems)
			}
			powerStep(others, v)
			keepAll(others)
		}
		for i, l := range others {
			if err := l.Restore(i, n, states(ranks)); err != nil {
				t.Fatal(err)
			}
			if !slices.Equal(l.State().Warm, ranks[0].State().Warm) {
				t.Errorf("%d ranks: rank %d is cold", n, i)
			}
		}
		got := total(states(others), elems)
		for i := range got {
			if math.Abs(float64(got[i]-want[i])) > 1e-5 {
				t.Fatalf("%d ranks: element %d: %v is left, was %v", n, i, got[i], want[i])
			}
		}
		if n == 1 {
			v := make([]float32, elems)
			if !others[0].Whole(v) {
				t.Error("not finite")
			}
			others[0].Keep()
			if s := others[0].State(); !slices.Equal(v, got) || compress.Norm(s.First) != 0 || !slices.Equal(s.Warm, ranks[0].State().Warm) {
				t.Error("a rank alone keeps residuals, or forgets factors")
			}
		}
	}
	other, _, _ := powerRanks(t, 1, 1)
	if err := other[0].Restore(0, 1, states(ranks)); !errors.Is(err, compress.ErrState) {
		t.Errorf("another rank of the factors: %v", err)
	}
	cold, _, _ := powerRanks(t, 1, 2)
	if err := ranks[0].Restore(0, 1, nil); err != nil || !slices.Equal(ranks[0].State().Warm, cold[0].State().Warm) || compress.Norm(ranks[0].State().First) != 0 {
		t.Errorf("of no states: %v, or not as new", err)
	}
}

func TestLowRankRefuses(t *testing.T) {
	for name, m := range map[string][]compress.Matrix{
		"beyond":   {{Lo: 1, Rows: 10, Cols: 10}},
		"overlap":  {{Lo: 0, Rows: 6, Cols: 6}, {Lo: 35, Rows: 8, Cols: 8}},
		"negative": {{Lo: -1, Rows: 6, Cols: 6}},
		"huge":     {{Lo: 0, Rows: math.MaxInt / 2, Cols: 4}},
	} {
		if _, err := compress.NewLowRank(100, 1, m); err == nil {
			t.Errorf("%s: taken", name)
		}
	}
	if _, err := compress.NewLowRank(100, 0, nil); err == nil {
		t.Error("rank 0 is taken")
	}
}

func TestLayers(t *testing.T) {
	got := compress.Layers([]int{0, 30, 40}, [][]int{{5, 6}, {7}, {2, 3, 4}})
	want := []compress.Matrix{{0, 5, 6}, {40, 2, 12}}
	if !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

// What another codec lost of elements that are in no matrix is given out by the first step.
func TestLowRankGivesOutTheRest(t *testing.T) {
	const n = 10*20 + 3
	l, err := compress.NewLowRank(n, 1, []compress.Matrix{{Lo: 3, Rows: 10, Cols: 20}})
	if err != nil {
		t.Fatal(err)
	}
	first := make([]float32, n)
	copy(first, []float32{1, -2, 3})
	if err := l.Restore(0, 1, []compress.State{{First: first, Warm: l.State().Warm}}); err != nil {
		t.Fatal(err)
	}
	for _, want := range [][]float32{{11, 8, 13}, {10, 10, 10}} {
		v := make([]float32, n)
		copy(v, []float32{10, 10, 10})
		l.Sketch(v)
		l.Solve()
		l.Finish(v)
		l.Keep()
		if !slices.Equal(v[:3], want) {
			t.Errorf("got %v, want %v", v[:3], want)
		}
	}
}
