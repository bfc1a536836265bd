package kernel

import (
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"

	"github.com/gangline/gangline/tensor"
)

// special are values at which kernels go wrong.
var special = []float32{
	0, float32(math.Copysign(0, -1)), 1, -1, math.SmallestNonzeroFloat32, -math.SmallestNonzeroFloat32,
	0x1p-126, -0x1p-126, 0x1.fffffcp-127, math.MaxFloat32, -math.MaxFloat32,
	float32(math.Inf(1)), float32(math.Inf(-1)), float32(math.NaN()),
	88.72283, 88.72284, -87.33654, -103.97207, -103.97208, -104, 89, 90, 0.625, -0.625, 14.5, -14.5, 100, -100,
}

// vectorOf returns n values between canaries, at an odd address.
func vectorOf[T tensor.Float](r *rand.Rand, n int) (whole, part []T) {
	at := 1 + r.IntN(9)
	whole = make([]T, at+n+9)
	for i := range whole {
		whole[i] = 4321
	}
	part = whole[at : at+n : at+n]
	for i := range part {
		switch r.IntN(8) {
		case 0:
			part[i] = T(special[r.IntN(len(special))])
		case 1:
			part[i] = T(math.Float32frombits(r.Uint32()))
		case 2:
			part[i] = T(r.IntN(3)) // equals
		default:
			part[i] = T(r.NormFloat64() * 3)
		}
	}
	return whole, part
}

// bitsOf are the bits of v; one NaN is as good as another.
func bitsOf[T tensor.Float](v T) uint64 {
	if v != v {
		v = T(math.NaN())
	}
	return math.Float64bits(float64(v))
}

// TestAssemblyHasTheBitsOfGo calls every kernel of both tables with the same
// values: lengths that are no multiple of the vector, odd addresses, NaN,
// infinities and subnormals, in place and not, between canaries.
func TestAssemblyHasTheBitsOfGo(t *testing.T) {
	if !Assembly() {
		t.Skip("this machine cannot run the assembly")
	}
	t.Run("float32", testTables[float32])
	t.Run("float64", testTables[float64])
}

func testTables[T tensor.Float](t *testing.T) {
	fast, plain := reflect.ValueOf(For[T](true)).Elem(), reflect.ValueOf(For[T](false)).Elem()
	for f := range fast.NumField() {
		name := fast.Type().Field(f).Name
		if fast.Field(f).Kind() != reflect.Func || fast.Field(f).IsNil() || slices.Contains([]string{"Gather", "AddRows", "Turn", "Second", "AddSecond", "SumRows", "SumNormProducts"}, name) {
			continue // with tests of their own
		}
		operands := slices.Contains([]string{"Add", "Sub", "Mul", "Div", "Maximum", "Minimum", "Less", "LessEqual", "Equal", "Where"}, name)
		t.Run(name, func(t *testing.T) {
			r := rand.New(rand.NewPCG(uint64(f), 7))
			for trial := range 400 {
				n, single := trial%67, 0
				if operands {
					single = trial / 2 % 8
				}
				if name == "First" {
					n++
				}
				testSame[T](t, r, n, single, trial%3 == 0, fast.Field(f), plain.Field(f))
			}
		})
	}
}

// testSame calls two functions with equal arguments, those whose bit is set in
// single being of one element.
func testSame[T tensor.Float](t *testing.T, r *rand.Rand, n, single int, inPlace bool, fast, plain reflect.Value) {
	t.Helper()
	typ := fast.Type()
	var wholes [2][][]T
	var args [2][]reflect.Value
	for i := range typ.NumIn() {
		kind := typ.In(i).Kind()
		if kind == reflect.Slice {
			size := n
			if i > 0 && single>>(i-1)&1 == 1 {
				size = 1
			} else if i == 1 && inPlace && typ.NumOut() == 0 {
				args[0], args[1] = append(args[0], args[0][0]), append(args[1], args[1][0])
				continue
			}
			whole, part := vectorOf[T](r, size)
			again := slices.Clone(whole)
			at := len(whole) - size - 9
			wholes[0], wholes[1] = append(wholes[0], whole), append(wholes[1], again)
			args[0] = append(args[0], reflect.ValueOf(part))
			args[1] = append(args[1], reflect.ValueOf(again[at:at+size]))
			continue
		}
		v := reflect.ValueOf(r.Uint32())
		if kind != reflect.Uint32 {
			v = reflect.ValueOf(float32(r.NormFloat64())).Convert(typ.In(i))
		}
		args[0], args[1] = append(args[0], v), append(args[1], v)
	}
	got, want := fast.Call(args[0]), plain.Call(args[1])
	for i := range got {
		if got[i].Kind() == reflect.Bool && got[i].Bool() != want[i].Bool() {
			t.Fatalf("length %d: result is %v in assembly and %v in Go", n, got[i], want[i])
		}
		if got[i].CanInt() && got[i].Int() != want[i].Int() {
			t.Fatalf("length %d: result is %v in assembly and %v in Go", n, got[i], want[i])
		}
		if got[i].CanFloat() && bitsOf(got[i].Float()) != bitsOf(want[i].Float()) {
			t.Fatalf("length %d: result is %v in assembly and %v in Go", n, got[i], want[i])
		}
	}
	for a := range wholes[0] {
		for i, g := range wholes[0][a] {
			if w := wholes[1][a][i]; bitsOf(g) != bitsOf(w) {
				t.Fatalf("length %d, single %b: argument %d, element %d is %v (%#x) in assembly and %v (%#x) in Go", n, single, a, i, g, bitsOf(g), w, bitsOf(w))
			}
		}
	}
}

// ulpsOff is how far v is from the exact value, in units of the last place of
// a float32 of that size.
func ulpsOff(v float32, exact float64) float64 {
	rounded := float32(exact)
	if v == rounded || v != v && rounded != rounded {
		return 0
	}
	if math.IsInf(float64(v), 0) || math.IsInf(float64(rounded), 0) || v != v || rounded != rounded {
		// One step from the largest number to infinity is one unit.
		if math.Abs(exact) > math.MaxFloat32*(1-0x1p-23) && math.Abs(float64(v)) >= math.MaxFloat32*(1-0x1p-23) {
			return 1
		}
		return math.Inf(1)
	}
	unit := math.Ldexp(1, max(math.Ilogb(exact)-23, -149))
	return math.Abs(float64(v)-exact) / unit
}

// TestFunctionErrors sweeps over all magnitudes and states the errors.
func TestFunctionErrors(t *testing.T) {
	table := For[float32](false)
	phi := func(x float64) float64 { return math.Erfc(-x/math.Sqrt2) / 2 }
	sigmoid := sigmoid64
	for _, c := range []struct {
		name  string
		f     func(out, x []float32)
		exact func(float64) float64
		ulps  float64
	}{
		{"exp", table.Exp, math.Exp, 1.5},
		{"sigmoid", table.Sigmoid, sigmoid, 3},
		{"tanh", table.Tanh, math.Tanh, 3},
		{"silu", table.Silu, func(x float64) float64 { return x * sigmoid(x) }, 4},
		{"gelu", table.Gelu, func(x float64) float64 { return x * phi(x) }, 6},
		{"log", table.Log, math.Log, 1},
		{"softplus", table.Softplus, softplusOf(math.Exp, math.Log1p), 4},
		{"sqrt", table.Sqrt, math.Sqrt, 0.51},
		{"rsqrt", table.Rsqrt, func(x float64) float64 { return 1 / math.Sqrt(x) }, 1.5},
	} {
		t.Run(c.name, func(t *testing.T) {
			var x []float32
			for i := range 1 << 18 {
				x = append(x, math.Float32frombits(uint32(i)<<14|uint32(i)*2654435761>>18))
			}
			for i := -150_000; i < 150_000; i++ { // where functions bend
				x = append(x, float32(i)*1e-4)
			}
			x = append(x, special...)
			out, worst, at := make([]float32, len(x)), 0.0, float32(0)
			c.f(out, x)
			for i, v := range x {
				if math.IsInf(float64(v), -1) && (c.name == "silu" || c.name == "gelu") {
					continue // -Inf·0
				}
				if exact := c.exact(float64(v)); math.Abs(exact) < 0x1p-119 && math.Abs(float64(out[i])-exact) < 0x1p-140 {
					continue // a factor of the product was subnormal
				}
				if e := ulpsOff(out[i], c.exact(float64(v))); e > worst {
					worst, at = e, v
				}
			}
			t.Logf("largest error %.2f units in the last place, at %v", worst, at)
			if worst > c.ulps {
				t.Errorf("want at most %v", c.ulps)
			}
		})
	}
}

// TestLogisticErrors states the errors of the logistic loss and its gradient, a
// row at a time, for labels that are 0 or 1 and for others.
func TestLogisticErrors(t *testing.T) {
	r, table := rand.New(rand.NewPCG(3, 4)), For[float32](false)
	loss, hard, soft := 0.0, 0.0, 0.0
	out := make([]float32, 1)
	for i := range 200_000 {
		z, y := float32(r.NormFloat64()*math.Exp(4*r.NormFloat64())), float32(i%2)
		if math.Abs(float64(z)) > 80 {
			continue // where exp(-|z|) is subnormal
		}
		if i%3 == 0 {
			y = r.Float32()
		}
		z64, y64 := float64(z), float64(y)
		exact := math.Abs(z64)*(1-y64) + math.Log1p(math.Exp(-math.Abs(z64)))
		p := (1 - y64 - y64*math.Exp(-z64)) / (1 + math.Exp(-z64))
		if z < 0 {
			exact = -z64*y64 + math.Log1p(math.Exp(z64))
			p = ((1-y64)*math.Exp(z64) - y64) / (1 + math.Exp(z64))
		}
		loss = max(loss, ulpsOff(float32(table.LogisticLoss([]float32{z}, []float32{y})), exact))
		table.LogisticGrad(out, []float32{z}, []float32{y}, 1)
		if i%3 == 0 {
			soft = max(soft, math.Abs(float64(out[0])-p)*0x1p23)
		} else {
			hard = max(hard, ulpsOff(out[0], p))
		}
	}
	t.Logf("largest errors: loss %.2f, gradient %.2f of labels 0 and 1, %.2f of those between", loss, hard, soft)
	if loss > 4 || hard > 4 || soft > 4 || loss == 0 || hard == 0 || soft == 0 {
		t.Error("want at most 4 units in the last place, and some")
	}
}

// TestLines takes every second element of lines, of both types, that end with
// the last of them and with one more, and adds back.
func TestLines(t *testing.T) {
	t.Run("float32", testLines[float32])
	t.Run("float64", testLines[float64])
}

func testLines[T tensor.Float](t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	for trial := range 200 {
		n := trial % 41
		_, x := vectorOf[T](r, max(0, 2*n-trial%2))
		for _, asm := range variants() {
			table := For[T](asm)
			out, sums := make([]T, n), slices.Clone(x)
			table.Second(out, x)
			table.AddSecond(sums, out)
			for i, v := range x {
				want := v
				if i%2 == 0 {
					if bitsOf(out[i/2]) != bitsOf(v) {
						t.Fatalf("asm=%t: element %d of %d is %v, want %v", asm, i/2, n, out[i/2], v)
					}
					want = v + v
				}
				if bitsOf(sums[i]) != bitsOf(want) {
					t.Fatalf("asm=%t: sum %d of %d is %v, want %v", asm, i, n, sums[i], want)
				}
			}
		}
	}
}

// TestInside puts one element at or beyond a bound, at every place.
func TestInside(t *testing.T) {
	t.Run("float32", testInside[float32])
	t.Run("float64", testInside[float64])
}

func testInside[T tensor.Float](t *testing.T) {
	for _, asm := range variants() {
		table := For[T](asm)
		for n := range 20 {
			for at := range n {
				for _, v := range []float64{-1, -2, 3, 3.5, math.NaN(), math.Inf(1), math.Inf(-1)} {
					x := make([]T, n)
					x[at] = T(v)
					if got, want := table.Inside(x, -1, 3), v >= -1 && v <= 3; got != want {
						t.Errorf("asm=%t: element %d of %d is %v: %t", asm, at, n, v, got)
					}
				}
			}
			if !table.Inside(make([]T, n), 0, 0) || !table.Inside(make([]T, 0), 1, 2) {
				t.Errorf("asm=%t: %d zeros are not inside", asm, n)
			}
		}
	}
}

// TestTurn turns blocks of matrices of all sizes and looks at what lies around.
func TestTurn(t *testing.T) {
	t.Run("float32", testTurn[float32])
	t.Run("float64", testTurn[float64])
}

func testTurn[T tensor.Float](t *testing.T) {
	for size := range 20 * 20 {
		rows, cols := size/20, size%20
		const xRow, outRow = 23, 21
		x := make([]T, 19*xRow+cols)
		for i := range x {
			x[i] = T(i + 1)
		}
		for _, asm := range variants() {
			out := make([]T, 20*outRow)
			For[T](asm).Turn(out, outRow, x, xRow, rows, cols)
			for i, v := range out {
				c, r, want := i/outRow, i%outRow, T(0)
				if c < cols && r < rows {
					want = T(r*xRow + c + 1)
				}
				if v != want {
					t.Fatalf("asm=%t, %d × %d: element %d, %d is %v, want %v", asm, rows, cols, c, r, v, want)
				}
			}
		}
	}
}

// TestSumOrder states the order of sums.
func TestSumOrder(t *testing.T) {
	x := make([]float32, 21)
	for i := range x {
		x[i] = 1 / float32(i+1)
	}
	var l [8]float64
	for i, v := range x {
		l[i%8] += float64(v)
	}
	want := ((l[0] + l[4]) + (l[2] + l[6])) + ((l[1] + l[5]) + (l[3] + l[7]))
	for _, asm := range variants() {
		if got := For[float32](asm).Sum(x); got != want {
			t.Errorf("asm=%t: sum is %v, want %v", asm, got, want)
		}
	}
}

func BenchmarkTable(b *testing.B) {
	const n = 4096
	x, y, out := make([]float32, n), make([]float32, n), make([]float32, n)
	for i := range x {
		x[i], y[i] = float32(i%19-9)/3, float32(i%23-11)/4
	}
	for _, asm := range variants() {
		table := For[float32](asm)
		for _, c := range []struct {
			name string
			f    func()
		}{
			{"add", func() { table.Add(out, x, y) }},
			{"relu", func() { table.Relu(out, x) }},
			{"exp", func() { table.Exp(out, x) }},
			{"tanh", func() { table.Tanh(out, x) }},
			{"gelu", func() { table.Gelu(out, x) }},
			{"gelugrad", func() { table.GeluGrad(out, x, y) }},
			{"sum", func() { table.Sum(x) }},
			{"dot", func() { table.Dot(x, y) }},
			{"expsum", func() { table.ExpSum(out, x, 3) }},
			{"max", func() { table.Max(x) }},
			{"normalize", func() { table.Normalize(out, x, y, y, 1, 2) }},
		} {
			b.Run(map[bool]string{true: "asm/", false: "go/"}[asm]+c.name, func(b *testing.B) {
				for b.Loop() {
					c.f()
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/n, "ns/elem")
			})
		}
	}
}

// TestRuns moves rows to runs and back, of which some are not there.
func TestRuns(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for range 400 {
		dim, per, runs, count, lo := 1+r.IntN(20), 1+r.IntN(4), 1+r.IntN(20), 1+r.IntN(30), r.IntN(9)
		if r.IntN(2) == 0 {
			dim = 8 * (1 + r.IntN(4))
		}
		n := max(1, per*runs-r.IntN(per))
		at := Runs{Per: per, Step: per*dim + r.IntN(9)}
		rows, ids := make([]float32, 50*dim), make([]int64, n)
		for i := range rows {
			rows[i] = float32(i)
		}
		for i := range ids {
			ids[i] = r.Int64N(50)
		}
		size := (runs-1)*at.Step + per*dim
		gathered, sums := make([]float32, size), make([]float32, count*dim)
		for e, id := range ids {
			for j := range dim {
				v := rows[int(id)*dim+j]
				gathered[e/per*at.Step+e%per*dim+j] = v
				if i := int(id) - lo; i >= 0 && i < count {
					sums[i*dim+j] += v
				}
			}
		}
		for _, asm := range variants() {
			out, added := make([]float32, size), make([]float32, count*dim)
			For[float32](asm).Gather(out, at, rows, ids, dim)
			For[float32](asm).AddRows(added, out, at, ids, lo, dim)
			if !slices.Equal(out, gathered) || !slices.Equal(added, sums) {
				t.Fatalf("dim %d, %d rows in %+v, from %d %d rows: got %v and %v, want %v and %v", dim, n, at, lo, count, out, added, gathered, sums)
			}
		}
	}
}

// TestGather reads rows of lengths that vectors fit and do not fit.
func TestGather(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for _, dim := range []int{1, 3, 8, 16, 24, 40} {
		for n := range 30 {
			rows, ids := make([]float32, 50*dim), make([]int64, n)
			for i := range rows {
				rows[i] = float32(i)
			}
			for i := range ids {
				ids[i] = r.Int64N(50)
			}
			for _, asm := range variants() {
				whole, out := vectorOf[float32](r, n*dim)
				at := len(whole) - n*dim - 9
				For[float32](asm).Gather(out, Side(dim), rows, ids, dim)
				for i, v := range whole {
					want := float32(4321)
					if e := i - at; e >= 0 && e < n*dim {
						want = float32(int(ids[e/dim])*dim + e%dim)
					}
					if v != want {
						t.Fatalf("dim %d, %d rows: element %d is %v, want %v", dim, n, i-at, v, want)
					}
				}
			}
		}
	}
}
