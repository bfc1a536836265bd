package vector

import (
	"errors"
	"math"
	"math/big"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/gangline/gangline/tensor"
)

func newSet(t testing.TB, lo, hi, limit int) *Set {
	t.Helper()
	s, err := New(tensor.F64, lo, hi, limit)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func bind[T tensor.Float](t testing.TB, s *Set, name string, v ...T) {
	t.Helper()
	if err := s.Bind(name, tensor.From(slices.Clone(v), len(v))); err != nil {
		t.Fatal(err)
	}
}

func do(t testing.TB, s *Set, c Command) []Sum {
	t.Helper()
	a, err := s.Do(&c)
	if err != nil {
		t.Fatalf("%v: %v", &c, err)
	}
	return a
}

func want[T tensor.Float](t testing.TB, s *Set, name string, v ...T) {
	t.Helper()
	got, err := s.Tensor(name)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(v, tensor.Data[T](got)); diff != "" {
		t.Errorf("%s (-want +got):\n%s", name, diff)
	}
}

// TestCommands does each operation on both types, with names that are the same
// where that is allowed.
func TestCommands(t *testing.T) {
	t.Run("f32", func(t *testing.T) { commands[float32](t, tensor.F32) })
	t.Run("f64", func(t *testing.T) { commands[float64](t, tensor.F64) })
}

func commands[T tensor.Float](t *testing.T, d tensor.DType) {
	s, err := New(d, 10, 13, 4)
	if err != nil {
		t.Fatal(err)
	}
	if lo, hi := s.Range(); lo != 10 || hi != 13 {
		t.Errorf("range [%d, %d), want [10, 13)", lo, hi)
	}
	bind[T](t, s, "x", 1, 2, 3)
	bind[T](t, s, "g", 1, 0, -1)
	do(t, s, Command{Op: OpCopy, Dst: "x0", Src: "x"})
	do(t, s, Command{Op: OpAxpy, Dst: "x", A: 2, Src: "g"})
	want[T](t, s, "x", 3, 2, 1)
	want[T](t, s, "x0", 1, 2, 3)
	do(t, s, Command{Op: OpAxpy, Dst: "x", A: 1, Src: "x"})
	want[T](t, s, "x", 6, 4, 2)
	do(t, s, Command{Op: OpScale, Dst: "x", A: .5})
	want[T](t, s, "x", 3, 2, 1)
	do(t, s, Command{Op: OpCombine, Dst: "x", Terms: []Term{{2, "x0"}, {-1, "x"}, {10, "g"}}})
	want[T](t, s, "x", 9, 2, -5)
	got := do(t, s, Command{Op: OpDots, Pairs: []Pair{{"x", "g"}, {"x", "x"}}})
	if diff := cmp.Diff([]Sum{{Hi: 14}, {Hi: 110}}, got); diff != "" {
		t.Error(diff)
	}
	do(t, s, Command{Op: OpFree, Dst: "g"})
	do(t, s, Command{Op: OpCombine, Dst: "new", Terms: []Term{{1, "x"}}})
	want[T](t, s, "new", 9, 2, -5)
	do(t, s, Command{Op: OpBegin, Dst: "x"})
	if diff := cmp.Diff([]string{"x"}, s.Names()); diff != "" {
		t.Error(diff)
	}
}

// TestRefused: every mistake is one clear error, and changes nothing.
func TestRefused(t *testing.T) {
	long := strings.Repeat("n", NameMax+1)
	for _, c := range []struct {
		command Command
		is      error
		says    string
	}{
		{Command{}, ErrUsage, "unknown operation 0"},
		{Command{Op: 99, Dst: "x"}, ErrUsage, "unknown operation 99"},
		{Command{Op: OpCopy, Dst: "a", Src: "xx"}, ErrUnknown, `"xx": did you mean "x"`},
		{Command{Op: OpCopy, Dst: "new", Src: "x"}, ErrFull, `there are 2, and "new" is new`},
		{Command{Op: OpGather, Dst: "new", Evaluation: 9, Portions: 1}, ErrFull, `"new" is new`},
		{Command{Op: OpCombine, Dst: "new", Terms: []Term{{1, "x"}}}, ErrFull, `"new" is new`},
		{Command{Op: OpCombine, Dst: "x", Terms: []Term{{1, "x"}, {1, "no"}}}, ErrUnknown, `"no"`},
		{Command{Op: OpCombine, Dst: "x"}, ErrUsage, "1 to 1024 terms, got 0"},
		{Command{Op: OpCombine, Dst: "x", Terms: []Term{{math.NaN(), "x"}}}, ErrUsage, `"x" must be finite, is NaN`},
		{Command{Op: OpScale, Dst: "x", A: math.Inf(1)}, ErrUsage, "must be finite, is +Inf"},
		{Command{Op: OpScale, Dst: "x", A: 1, Src: "x"}, ErrUsage, "scale has fields that it does not use"},
		{Command{Op: OpScale, Dst: "g", A: 1}, ErrIncomplete, `"g" has 1 of 2 portions of evaluation 7`},
		{Command{Op: OpAxpy, Dst: "x", A: 1, Src: "g"}, ErrIncomplete, "1 of 2"},
		{Command{Op: OpAxpy, Dst: "g", A: 1, Src: "x"}, ErrIncomplete, "1 of 2"},
		{Command{Op: OpAxpy, Dst: "x", A: 1, Src: "no"}, ErrUnknown, `"no"`},
		{Command{Op: OpCopy, Dst: "g", Src: "x"}, ErrIncomplete, "1 of 2"},
		{Command{Op: OpBegin, Dst: "g"}, ErrIncomplete, "1 of 2"},
		{Command{Op: OpBegin, Dst: "no"}, ErrUnknown, `"no"`},
		{Command{Op: OpFree, Dst: "no"}, ErrUnknown, `"no"`},
		{Command{Op: OpFree, Dst: long}, ErrUsage, "has 33"},
		{Command{Op: OpFree}, ErrUsage, `"" has 0`},
		{Command{Op: OpDots}, ErrUsage, "1 to 4096 pairs, got 0"},
		{Command{Op: OpDots, Pairs: []Pair{{"x", "g"}}}, ErrIncomplete, "1 of 2"},
		{Command{Op: OpDots, Pairs: []Pair{{"x", ""}}}, ErrUsage, `"" has 0`},
		{Command{Op: OpGather, Dst: "g", Evaluation: 8}, ErrUsage, "1 to 1048576 portions, got 0"},
		{Command{Op: OpGather, Dst: "g", Portions: 1}, ErrUsage, "numbered from 1"},
		{Command{Number: 3, Op: OpScale, Dst: "x", A: 2}, ErrUsage, "number 3 cannot follow 1"},
		{Command{Number: 1, Op: OpScale, Dst: "x", A: 2}, ErrUsage, "number 1 was another command"},
	} {
		s := newSet(t, 0, 2, 2)
		bind(t, s, "x", 1., 2)
		do(t, s, Command{Number: 1, Op: OpGather, Dst: "g", Evaluation: 7, Portions: 2})
		if _, err := s.Add(7, 1, tensor.From([]float64{5, 6}, 2)); err != nil {
			t.Fatal(err)
		}
		_, err := s.Do(&c.command)
		if !errors.Is(err, c.is) || !strings.Contains(err.Error(), c.says) || !strings.Contains(err.Error(), "[0, 2)") {
			t.Errorf("%+v: error %v, want %v that says %q", c.command, err, c.is, c.says)
		}
		if _, err := s.Add(7, 0, tensor.From([]float64{1, 1}, 2)); err != nil {
			t.Fatal(err)
		}
		want(t, s, "x", 1., 2)
		want(t, s, "g", 6., 7)
		if s.Last() != 1 || len(s.Names()) != 2 {
			t.Errorf("%+v left %v after command %d", c.command, s.Names(), s.Last())
		}
	}
}

func TestNewAndBindRefuse(t *testing.T) {
	for _, c := range []struct {
		d             tensor.DType
		lo, hi, limit int
	}{{tensor.I64, 0, 1, 1}, {tensor.F32, 2, 1, 1}, {tensor.F32, -1, 1, 1}, {tensor.F32, 0, 1, 0}, {tensor.F32, 0, 1, vectorsMax + 1}} {
		if _, err := New(c.d, c.lo, c.hi, c.limit); err == nil {
			t.Errorf("New(%v) is taken", c)
		}
	}
	s := newSet(t, 0, 2, 1)
	for _, v := range []*tensor.Tensor{tensor.New(tensor.F32, 2), tensor.New(tensor.F64, 3)} {
		if err := s.Bind("x", v); !errors.Is(err, ErrUsage) {
			t.Errorf("Bind of %v %v: %v", v.DType(), v.Shape(), err)
		}
	}
	if err := s.Bind("", tensor.New(tensor.F64, 2)); !errors.Is(err, ErrUsage) {
		t.Errorf("Bind without a name: %v", err)
	}
	bind(t, s, "x", 1., 2)
	bind(t, s, "x", 3., 4)
	want(t, s, "x", 3., 4)
	if err := s.Bind("y", tensor.New(tensor.F64, 2)); !errors.Is(err, ErrFull) {
		t.Errorf("one more vector than allowed: %v", err)
	}
	do(t, s, Command{Op: OpGather, Dst: "x", Evaluation: 1, Portions: 1})
	if err := s.Bind("x", tensor.New(tensor.F64, 2)); !errors.Is(err, ErrIncomplete) {
		t.Errorf("Bind over a vector that is gathered: %v", err)
	}
	if _, err := s.Tensor("x"); !errors.Is(err, ErrIncomplete) {
		t.Errorf("Tensor of a vector that is gathered: %v", err)
	}
}

// TestOnce: a command with a number that comes again is answered and not done.
func TestOnce(t *testing.T) {
	s := newSet(t, 0, 2, 2)
	bind(t, s, "x", 1., 2)
	for range 3 {
		do(t, s, Command{Number: 5, Op: OpBegin, Dst: "x"}) // any number above the last
	}
	for range 3 {
		do(t, s, Command{Number: 6, Op: OpScale, Dst: "x", A: 3})
	}
	want(t, s, "x", 3., 6)
	first := do(t, s, Command{Number: 7, Op: OpDots, Pairs: []Pair{{"x", "x"}}})
	if err := s.Bind("x", tensor.New(tensor.F64, 2)); err != nil {
		t.Fatal(err)
	}
	if again := do(t, s, Command{Number: 7, Op: OpDots, Pairs: []Pair{{"x", "x"}}}); first[0] != again[0] || again[0].Value() != 45 {
		t.Errorf("dots again: %v, were %v", again, first)
	}
	if _, err := s.Do(&Command{Number: 6, Op: OpScale, Dst: "x", A: 3}); !errors.Is(err, ErrUsage) {
		t.Errorf("a number of long ago: %v", err)
	}
	// One that failed has not used up its number.
	if _, err := s.Do(&Command{Number: 8, Op: OpFree, Dst: "no"}); !errors.Is(err, ErrUnknown) {
		t.Errorf("free of nothing: %v", err)
	}
	do(t, s, Command{Number: 8, Op: OpFree, Dst: "x"})
}

// TestGather: whatever arrives, how often and when, each portion counts once.
func TestGather(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s, err := New(tensor.F64, 0, 3, 2)
		if err != nil {
			t.Fatal(err)
		}
		n := rapid.IntRange(1, 130).Draw(t, "portions")
		for evaluation := uint64(1); evaluation <= 2; evaluation++ {
			if _, err := s.Do(&Command{Op: OpGather, Dst: "g", Evaluation: evaluation, Portions: n}); err != nil {
				t.Fatal(err)
			}
			arrivals := rapid.SliceOf(rapid.IntRange(0, n-1)).Draw(t, "arrivals")
			for p := range n {
				arrivals = append(arrivals, p)
			}
			got := map[int]bool{}
			for _, p := range arrivals {
				if len(got) < n {
					if _, err := s.Tensor("g"); !errors.Is(err, ErrIncomplete) {
						t.Fatalf("with %d of %d portions: %v", len(got), n, err)
					}
				}
				v := float64(p + 1)
				if taken, err := s.Add(evaluation-1, p, tensor.From([]float64{v, v, v}, 3)); err != nil || taken != Stale {
					t.Fatalf("portion of evaluation %d: %v, %v", evaluation-1, taken, err)
				}
				taken, err := s.Add(evaluation, p, tensor.From([]float64{v, 2 * v, -v}, 3))
				if err != nil || taken != map[bool]Taken{false: Counted, true: Repeated}[got[p]] {
					t.Fatalf("portion %d, there before: %v: %v, %v", p, got[p], taken, err)
				}
				got[p] = true
			}
			sum := float64(n * (n + 1) / 2)
			v, err := s.Tensor("g")
			if err != nil || !slices.Equal(v.F64(), []float64{sum, 2 * sum, -sum}) {
				t.Fatalf("gathered %v, %v, want %v times 1, 2, -1", v, err, sum)
			}
		}
		if _, err := s.Add(2, n, tensor.New(tensor.F64, 3)); !errors.Is(err, ErrUsage) {
			t.Fatalf("a portion too many: %v", err)
		}
		if _, err := s.Add(2, 0, tensor.New(tensor.F64, 2)); !errors.Is(err, ErrUsage) {
			t.Fatalf("a portion of another size: %v", err)
		}
		if taken, err := s.Add(0, 0, tensor.New(tensor.F64, 3)); err != nil || taken != Stale {
			t.Fatalf("no evaluation: %v, %v", taken, err)
		}
	})
}

// TestSumsAgree: 1 and 3 servers, and any others, agree on dot products to 1e-12
// of the result, and with the exact result, where products cancel by 1e10.
func TestSumsAgree(t *testing.T) {
	for _, d := range []tensor.DType{tensor.F32, tensor.F64} {
		t.Run(d.String(), func(t *testing.T) {
			rng := rand.New(rand.NewPCG(1, 2))
			const n = 100_003
			a, b := make([]float64, n), make([]float64, n)
			for i := range a {
				a[i], b[i] = rng.NormFloat64(), rng.NormFloat64()*math.Pow(10, 4*rng.Float64())
			}
			if d == tensor.F32 {
				for i := range a {
					a[i], b[i] = float64(float32(a[i])), float64(float32(b[i]))
				}
			}
			cancel(a, b)
			exact, size := new(big.Float).SetPrec(2000), 0.
			for i := range a {
				exact.Add(exact, new(big.Float).SetPrec(200).Mul(big.NewFloat(a[i]), big.NewFloat(b[i])))
				size += math.Abs(a[i] * b[i])
			}
			truth, _ := exact.Float64()
			if math.Abs(truth)*1e10 > size {
				t.Fatalf("the products do not cancel: %g of %g", truth, size)
			}
			for _, servers := range []int{1, 2, 3, 7} {
				if got := split(t, d, servers, a, b); math.Abs(got-truth) > 1e-12*math.Abs(truth) {
					t.Errorf("%d servers: %.17g, want %.17g: off by %.1e", servers, got, truth, got/truth-1)
				}
			}
		})
	}
}

// cancel makes the second half undo the first, but for a little.
func cancel(a, b []float64) {
	half := len(a) / 2
	for i := range half {
		a[half+i], b[half+i] = -a[i], b[i]
	}
	a[len(a)-1], b[len(a)-1] = 1.0/1024, 3.0/1024
}

func split(t *testing.T, d tensor.DType, servers int, a, b []float64) float64 {
	var sums []Sum
	for k := range servers {
		lo, hi := len(a)*k/servers, len(a)*(k+1)/servers
		s, err := New(d, lo, hi, 2)
		if err != nil {
			t.Fatal(err)
		}
		if d == tensor.F64 {
			bind(t, s, "a", a[lo:hi]...)
			bind(t, s, "b", b[lo:hi]...)
		} else {
			bind(t, s, "a", floats(a[lo:hi])...)
			bind(t, s, "b", floats(b[lo:hi])...)
		}
		sums = append(sums, do(t, s, Command{Op: OpDots, Pairs: []Pair{{"a", "b"}}})[0])
	}
	return Merge(sums...).Value()
}

func floats(v []float64) []float32 {
	out := make([]float32, len(v))
	for i, x := range v {
		out[i] = float32(x)
	}
	return out
}

// TestNotFinite: a dot product that overflows or has no value says so.
func TestNotFinite(t *testing.T) {
	s := newSet(t, 0, 5, 4)
	bind(t, s, "big", 1e300, 0, 0, 0, 0)
	bind(t, s, "inf", math.Inf(1), 0, 0, 0, 0)
	bind(t, s, "nan", 0, 0, math.NaN(), 0, 0)
	bind(t, s, "one", 1., 1, 1, 1, 1)
	got := do(t, s, Command{Op: OpDots, Pairs: []Pair{{"big", "big"}, {"inf", "one"}, {"nan", "one"}, {"one", "one"}}})
	for i, wrong := range []bool{true, true, true, false} {
		if v := Merge(got[i], Sum{Hi: 1}).Value(); finite(v) == wrong {
			t.Errorf("dot product %d is %g", i, v)
		}
	}
}

// TestEmptyRange: with more servers than elements some hold nothing.
func TestEmptyRange(t *testing.T) {
	s := newSet(t, 4, 4, 3)
	bind[float64](t, s, "x")
	do(t, s, Command{Op: OpCombine, Dst: "d", Terms: []Term{{1, "x"}, {2, "x"}}})
	if got := do(t, s, Command{Op: OpDots, Pairs: []Pair{{"d", "x"}}}); got[0] != (Sum{}) {
		t.Errorf("dot product of nothing is %v", got)
	}
	do(t, s, Command{Op: OpGather, Dst: "g", Evaluation: 1, Portions: 1})
	if taken, err := s.Add(1, 0, tensor.New(tensor.F64, 0)); taken != Counted || err != nil {
		t.Errorf("%v, %v", taken, err)
	}
}

// TestAgainstLoops compares combinations and dots over several blocks with
// plain loops.
func TestAgainstLoops(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.SampledFrom([]int{1, 3, 5, blockElems - 1, blockElems, blockElems + 1, 3*blockElems + 2}).Draw(t, "n")
		rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))
		names := []string{"a", "b", "c", "d"}[:rapid.IntRange(1, 4).Draw(t, "vectors")]
		s, err := New(tensor.F64, 0, n, 5)
		if err != nil {
			t.Fatal(err)
		}
		c := Command{Op: OpCombine, Dst: rapid.SampledFrom(append([]string{"new"}, names...)).Draw(t, "dst")}
		sum := make([]float64, n)
		vectors := map[string][]float64{}
		for k, name := range names {
			v := make([]float64, n)
			for i := range v {
				v[i] = rng.NormFloat64()
				sum[i] += float64(float64(k+1) * v[i])
			}
			vectors[name] = slices.Clone(v)
			if err := s.Bind(name, tensor.From(v, n)); err != nil {
				t.Fatal(err)
			}
			c.Terms = append(c.Terms, Term{float64(k + 1), name})
		}
		if _, err := s.Do(&c); err != nil {
			t.Fatal(err)
		}
		vectors[c.Dst] = sum
		for name, v := range vectors {
			got, err := s.Tensor(name)
			if err != nil {
				t.Fatal(err)
			}
			for i, x := range got.F64() {
				if math.Abs(x-v[i]) > 1e-14*(1+math.Abs(v[i])) {
					t.Fatalf("%s[%d] = %g, want %g", name, i, x, v[i])
				}
			}
		}
	})
}

// FuzzDecode: any bytes are a command or an error, and a command has one form.
func FuzzDecode(f *testing.F) {
	for _, c := range []Command{
		{Number: 1, Op: OpBegin, Dst: "x"},
		{Op: OpFree, Dst: "x"},
		{Op: OpCopy, Dst: "a", Src: "b"},
		{Op: OpScale, Dst: "x", A: -2},
		{Op: OpAxpy, Dst: "x", Src: "y", A: .5},
		{Op: OpCombine, Dst: "x", Terms: []Term{{1, "y"}, {-2, "z"}}},
		{Op: OpDots, Pairs: []Pair{{"x", "y"}, {"y", "y"}}},
		{Op: OpGather, Dst: "g", Evaluation: 3, Portions: 64},
	} {
		b, err := c.Append(nil)
		if err != nil {
			f.Fatal(err)
		}
		got, err := Decode(b)
		if err != nil {
			f.Fatal(err)
		}
		if diff := cmp.Diff(c, got); diff != "" {
			f.Fatalf("%v came back as (-want +got):\n%s", &c, diff)
		}
		f.Add(b)
		f.Add(b[:len(b)-1])
		f.Add(append(b, 0))
	}
	f.Fuzz(func(t *testing.T, src []byte) {
		c, err := Decode(src)
		if err != nil {
			if !errors.Is(err, ErrUsage) {
				t.Fatalf("error %v is no %v", err, ErrUsage)
			}
			return
		}
		b, err := c.Append(nil)
		if err != nil || !slices.Equal(b, src) {
			t.Fatalf("%v: % x, %v, came from % x", &c, b, err, src)
		}
	})
}

func TestSumsCodec(t *testing.T) {
	sums := []Sum{{1, 2e-17}, {-3, 0}}
	b := AppendSums(nil, sums)
	got, err := DecodeSums(b, 2)
	if err != nil || !slices.Equal(got, sums) {
		t.Errorf("%v, %v", got, err)
	}
	for _, n := range []int{-1, 1, 3} {
		if _, err := DecodeSums(b, n); !errors.Is(err, ErrUsage) {
			t.Errorf("as the answers of %d pairs: %v", n, err)
		}
	}
}

func BenchmarkDots(b *testing.B) {
	for _, d := range []tensor.DType{tensor.F32, tensor.F64} {
		b.Run(d.String(), func(b *testing.B) {
			const n = 1 << 20
			s, err := New(d, 0, n, 21)
			if err != nil {
				b.Fatal(err)
			}
			var c Command
			c.Op = OpDots
			for i := range 21 {
				if err := s.Bind(string(rune('a'+i)), tensor.New(d, n)); err != nil {
					b.Fatal(err)
				}
				for _, with := range "abc" {
					c.Pairs = append(c.Pairs, Pair{string(rune('a' + i)), string(with)})
				}
			}
			b.SetBytes(int64(n * d.Size() * 2 * len(c.Pairs)))
			for b.Loop() {
				if _, err := s.Do(&c); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
