package compressed_test

import (
	"context"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/gangline/gangline/collective"
	"github.com/gangline/gangline/collective/compress"
	"github.com/gangline/gangline/collective/compressed"
	"github.com/gangline/gangline/tensor"
	"github.com/gangline/gangline/transport/mem"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// world is n ranks in one process, over links of different delays. Rank 10-i has index i, so
// that an index is never taken for a rank.
type world struct {
	net   *mem.Network
	group []int
}

func newWorld(n int, o mem.Options) *world {
	w := &world{net: mem.NewNetwork(11, o)}
	for i := range n {
		w.group = append(w.group, 10-i)
	}
	return w
}

func uneven() mem.Options {
	return mem.Options{Link: func(from, to int) mem.Link {
		return mem.Link{Delay: time.Duration(1+(from*7+to*3)%5) * time.Millisecond}
	}}
}

func (w *world) close() {
	for _, e := range w.net.Endpoints() {
		_ = e.Close()
	}
}

func (w *world) party(i int) collective.Party {
	return collective.Party{Endpoint: w.net.Endpoint(w.group[i]), Group: w.group, Index: i, Tag: 5}
}

// each runs f for all ranks at the same time.
func (w *world) each(f func(i int) error) []error {
	errs, done := make([]error, len(w.group)), make(chan int)
	for i := range w.group {
		go func() {
			errs[i] = f(i)
			done <- i
		}()
	}
	for range w.group {
		<-done
	}
	return errs
}

func must(t testing.TB, errs []error) {
	t.Helper()
	for i, err := range errs {
		if err != nil {
			t.Fatalf("index %d: %v", i, err)
		}
	}
}

// sum is what both collectives are.
type sum interface {
	Run(ctx context.Context, t *tensor.Tensor) error
	Bytes() int64
	Revert()
	State() compress.State
	Restore(old []compress.State) error
	Report() compress.Report
}

// codec makes a codec by name.
func codec(t testing.TB, name string) compress.Codec {
	t.Helper()
	var c compress.Codec
	var err error
	switch name {
	case "f16":
		c = compress.F16{}
	case "bf16":
		c = compress.BF16{}
	case "int8":
		c, err = compress.NewInt8(64)
	case "onebit":
		c, err = compress.NewOneBit(64)
	case "topk":
		c, err = compress.NewTopK(.1)
	}
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func names() []string { return []string{"f16", "bf16", "int8", "onebit", "topk"} }

func vector(i, round, n int) []float32 {
	r := rand.New(rand.NewPCG(uint64(i), uint64(round)))
	v := make([]float32, n)
	for k := range v {
		v[k] = float32(r.NormFloat64())
	}
	return v
}

// sums makes each kind of collective on all ranks.
func sums(t testing.TB, w *world, kind string, elems int) []sum {
	t.Helper()
	out := make([]sum, len(w.group))
	for i := range out {
		var err error
		if kind == "powersgd" {
			out[i], err = compressed.NewPowerSGD(w.party(i), elems, 2, matrices(elems))
		} else {
			out[i], err = compressed.NewAllReduce(w.party(i), codec(t, kind), elems, true)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return out
}

// matrices is one matrix with 20 columns, and 3 elements before it.
func matrices(elems int) []compress.Matrix {
	return []compress.Matrix{{Lo: 3, Rows: (elems - 3) / 20, Cols: 20}}
}

func kinds() []string { return append(names(), "powersgd") }

// elems is the vector of most tests: no multiple of anything.
const elems = 403

// step runs all ranks once, on vectors of a round, changed by spoil, and returns what they got.
func step(t testing.TB, w *world, s []sum, round int, spoil func(i int, v []float32)) [][]float32 {
	t.Helper()
	out := make([][]float32, len(s))
	must(t, w.each(func(i int) error {
		out[i] = vector(i, round, elems)
		if spoil != nil {
			spoil(i, out[i])
		}
		return s[i].Run(t.Context(), tensor.From(out[i], elems))
	}))
	return out
}

// snapshot copies the states of all ranks.
func snapshot(s []sum) []compress.State {
	var out []compress.State
	for _, x := range s {
		st := x.State()
		st.First, st.Second, st.Warm = slices.Clone(st.First), slices.Clone(st.Second), slices.Clone(st.Warm)
		out = append(out, st)
	}
	return out
}

func equal(a, b []compress.State) bool {
	return slices.EqualFunc(a, b, func(x, y compress.State) bool {
		return slices.Equal(x.First, y.First) && slices.Equal(x.Second, y.Second) && slices.Equal(x.Warm, y.Warm) && x.Lo == y.Lo
	})
}

// totals adds up all residuals, by element.
func totals(states []compress.State) []float64 {
	out := make([]float64, elems)
	for _, s := range states {
		for k, x := range s.First {
			out[k] += float64(x)
		}
		for k, x := range s.Second {
			out[s.Lo+k] += float64(x)
		}
	}
	return out
}

// compare is the largest difference.
func compare(a, b []float64) float64 {
	d := 0.0
	for i := range a {
		d = max(d, math.Abs(a[i]-b[i]))
	}
	return d
}
