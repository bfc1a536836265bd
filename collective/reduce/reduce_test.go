package reduce_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"math/big"
	"math/rand/v2"
	"testing"

	"github.com/gangline/gangline/collective/reduce"
	"github.com/gangline/gangline/tensor"
)

var (
	ops    = []reduce.Op{reduce.Sum, reduce.Min, reduce.Max, reduce.Prod}
	dtypes = []tensor.DType{tensor.F32, tensor.F64, tensor.BF16, tensor.F16, tensor.I32, tensor.I64}
)

// format is what a float of some bits is made of.
type format struct{ exp, frac int }

func formatOf(d tensor.DType) format {
	return map[tensor.DType]format{tensor.F32: {8, 23}, tensor.F64: {11, 52}, tensor.BF16: {8, 7}, tensor.F16: {5, 10}}[d]
}

func (f format) bias() int { return 1<<(f.exp-1) - 1 }

func (f format) nan(bits uint64) bool {
	return bits>>f.frac&(1<<f.exp-1) == 1<<f.exp-1 && bits&(1<<f.frac-1) != 0
}

// value is what bits stand for, of what is no NaN.
func (f format) value(bits uint64) float64 {
	exp, frac := int(bits>>f.frac&(1<<f.exp-1)), float64(bits&(1<<f.frac-1))
	v := math.Inf(1)
	switch {
	case exp == 0:
		v = math.Ldexp(frac, 1-f.bias()-f.frac)
	case exp < 1<<f.exp-1:
		v = math.Ldexp(1+math.Ldexp(frac, -f.frac), exp-f.bias())
	}
	if bits>>(f.exp+f.frac) != 0 {
		return -v
	}
	return v
}

// round is the number of the format that is nearest to an exact one, the even one of
// two, found by looking for it among all, which are in the order of their bits.
func (f format) round(x *big.Float) uint64 {
	sign := uint64(0)
	if x.Signbit() {
		sign = 1 << (f.exp + f.frac)
	}
	if x.IsInf() {
		return sign | (1<<f.exp-1)<<f.frac
	}
	abs := new(big.Float).SetPrec(4000).Abs(x)
	lo, hi := uint64(0), uint64(1<<f.exp-1)<<f.frac // value(lo) <= abs < value(hi)
	for hi-lo > 1 {
		mid := (lo + hi) / 2
		if big.NewFloat(f.value(mid)).Cmp(abs) <= 0 {
			lo = mid
		} else {
			hi = mid
		}
	}
	at := func(bits uint64) *big.Float {
		v := f.value(bits)
		if math.IsInf(v, 0) { // as if the exponents went on
			v = math.Ldexp(1, f.bias()+1)
		}
		return new(big.Float).SetPrec(4000).SetFloat64(v)
	}
	low, high := at(lo), at(hi)
	switch d := new(big.Float).SetPrec(4000).Sub(abs, low).Cmp(new(big.Float).SetPrec(4000).Sub(high, abs)); {
	case d > 0, d == 0 && lo%2 == 1:
		return sign | hi
	}
	return sign | lo
}

// obvious is what an operation is to be, bit by bit. anyNaN says that every NaN is right.
func obvious(op reduce.Op, d tensor.DType, a, b uint64) (want uint64, anyNaN bool) {
	switch d { //nolint:exhaustive // floats come below
	case tensor.I32:
		return uint64(uint32(whole(op, int64(int32(a)), int64(int32(b))))), false
	case tensor.I64:
		return uint64(whole(op, int64(a), int64(b))), false
	}
	f := formatOf(d)
	all := uint64(1)<<(1+f.exp+f.frac) - 1
	quiet := uint64(1) << (f.frac - 1)
	minmax := op == reduce.Min || op == reduce.Max
	switch an, bn := f.nan(a), f.nan(b); {
	case minmax && (an || bn):
		return all, false
	case an && bn:
		return 0, true
	case an:
		return a | quiet, false
	case bn:
		return b | quiet, false
	}
	x, y := f.value(a), f.value(b)
	if minmax {
		if x < y || x == y && math.Signbit(x) {
			a, b = b, a // b is the lesser
		}
		if op == reduce.Max {
			return a, false
		}
		return b, false
	}
	machine := x + y
	if op == reduce.Prod {
		machine = x * y
	}
	if d == tensor.F64 || math.IsNaN(machine) {
		return math.Float64bits(machine), math.IsNaN(machine)
	}
	if math.IsInf(x, 0) || math.IsInf(y, 0) || machine == 0 {
		return f.round(big.NewFloat(machine)), false
	}
	exact := new(big.Float).SetPrec(4000)
	if op == reduce.Prod {
		exact.Mul(big.NewFloat(x).SetPrec(4000), big.NewFloat(y).SetPrec(4000))
	} else {
		exact.Add(big.NewFloat(x).SetPrec(4000), big.NewFloat(y).SetPrec(4000))
	}
	return f.round(exact), false
}

func whole(op reduce.Op, a, b int64) int64 {
	switch op { //nolint:exhaustive // Max comes below, Mean nowhere
	case reduce.Sum:
		return a + b
	case reduce.Prod:
		return a * b
	case reduce.Min:
		return min(a, b)
	}
	return max(a, b)
}

// special are bits of numbers where rounding, signs or NaN go wrong.
func special(rng *rand.Rand, d tensor.DType) uint64 {
	bits := 8 * d.Size()
	if d == tensor.I32 || d == tensor.I64 {
		return []uint64{0, 1, ^uint64(0), 1 << (bits - 1), 1<<(bits-1) - 1, rng.Uint64()}[rng.IntN(6)]
	}
	f := formatOf(d)
	sign := rng.Uint64N(2) << (bits - 1)
	exps := []uint64{0, 1, uint64(f.bias()), uint64(f.bias()) + 1, 1<<f.exp - 2, 1<<f.exp - 1}
	fracs := []uint64{0, 1, 1<<(f.frac-1) - 1, 1 << (f.frac - 1), 1<<f.frac - 1, rng.Uint64N(1 << f.frac)}
	return sign | exps[rng.IntN(len(exps))]<<f.frac | fracs[rng.IntN(len(fracs))]
}

func get(b []byte) uint64 {
	var w [8]byte
	copy(w[:], b)
	return binary.LittleEndian.Uint64(w[:])
}

func put(b []byte, v uint64) {
	var w [8]byte
	binary.LittleEndian.PutUint64(w[:], v)
	copy(b, w[:])
}

// fill draws elements: close exponents, special numbers, and any bits.
func fill(rng *rand.Rand, d tensor.DType, b []byte) {
	size := d.Size()
	for i := 0; i < len(b); i += size {
		v := rng.Uint64()
		switch rng.IntN(3) {
		case 0:
			v = special(rng, d)
		case 1:
			if f := formatOf(d); f.exp > 0 {
				v = v&(1<<f.frac-1) | uint64(f.bias()+rng.IntN(5)-2)<<f.frac | v>>63<<(f.exp+f.frac)
			}
		}
		put(b[i:i+size], v)
	}
}

// at returns n bytes that begin skip behind an aligned address, with a guard behind.
func at(skip, n int) (mem, guard []byte) {
	all := tensor.New(tensor.I64, (skip+n)/8+8).Bytes()
	for i := range all {
		all[i] = 0xa5
	}
	return all[skip : skip+n : skip+n], all[skip+n:]
}

// Every kernel against exact arithmetic rounded once, to the bit, for lengths around
// the sizes of blocks, at any alignment, in place and not; and no byte beside is
// written.
func TestKernels(t *testing.T) {
	for _, d := range dtypes {
		for _, op := range ops {
			k, err := reduce.For(op, d, 2)
			if err != nil {
				t.Fatal(err)
			}
			rng := rand.New(rand.NewPCG(1, uint64(d)<<8|uint64(op)))
			for elems := range 100 {
				if elems > 70 {
					elems = 70 + rng.IntN(100)
				}
				check(t, rng, k, op, d, elems)
			}
			if t.Failed() {
				return
			}
		}
	}
}

func check(t *testing.T, rng *rand.Rand, k *reduce.Kernel, op reduce.Op, d tensor.DType, elems int) {
	t.Helper()
	n := elems * d.Size()
	skip := func() int { return rng.IntN(2) * rng.IntN(33) }
	a, _ := at(skip(), n)
	b, _ := at(skip(), n)
	fill(rng, d, a)
	fill(rng, d, b)
	wants, free := make([]byte, n), make([]bool, elems)
	for i := range elems {
		lo, hi := i*d.Size(), (i+1)*d.Size()
		var want uint64
		want, free[i] = obvious(op, d, get(a[lo:hi]), get(b[lo:hi]))
		put(wants[lo:hi], want)
	}
	same := func(form string, got, guard []byte) {
		t.Helper()
		for i := range elems {
			lo, hi := i*d.Size(), (i+1)*d.Size()
			g := get(got[lo:hi])
			if free[i] && formatOf(d).nan(g) || bytes.Equal(got[lo:hi], wants[lo:hi]) {
				continue
			}
			t.Fatalf("%v of %v, %s, element %d of %d: %x and %x give %x, want %x", op, d, form, i, elems,
				get(a[lo:hi]), get(b[lo:hi]), g, get(wants[lo:hi]))
		}
		for _, x := range guard {
			if x != 0xa5 {
				t.Fatalf("%v of %v, %s, %d elements: wrote beyond", op, d, form, elems)
			}
		}
	}
	dst, guard := at(skip(), n)
	k.Combine(dst, a, b)
	same("to a third place", dst, guard)
	copy(dst, a)
	k.Combine(dst, dst, b)
	same("in place of the left", dst, guard)
	copy(dst, b)
	k.Combine(dst, a, dst)
	same("in place of the right", dst, guard)
}

// A mean is the sum times 1/n, in float32 for all types but float64, and rounded.
func TestScale(t *testing.T) {
	for _, d := range []tensor.DType{tensor.F32, tensor.F64, tensor.BF16, tensor.F16} {
		f := formatOf(d)
		rng := rand.New(rand.NewPCG(2, uint64(d)))
		for elems := range 80 {
			operands := 1 + rng.IntN(9)
			k, err := reduce.For(reduce.Mean, d, operands)
			if err != nil {
				t.Fatal(err)
			}
			factor := 1 / float64(operands)
			if d != tensor.F64 {
				factor = float64(float32(factor))
			}
			x, guard := at(rng.IntN(33), elems*d.Size())
			fill(rng, d, x)
			before := bytes.Clone(x)
			k.Scale(x)
			for i := range elems {
				lo, hi := i*d.Size(), (i+1)*d.Size()
				bits, got := get(before[lo:hi]), get(x[lo:hi])
				if f.nan(bits) {
					if !f.nan(got) {
						t.Fatalf("%v: NaN is lost", d)
					}
					continue
				}
				v := f.value(bits)
				want := math.Float64bits(v * factor)
				if d != tensor.F64 {
					want = f.round(big.NewFloat(float64(float32(v * factor))))
				}
				if got != want {
					t.Fatalf("%v: %x/%d is %x, want %x", d, bits, operands, got, want)
				}
			}
			if guard[0] != 0xa5 {
				t.Fatal("wrote beyond")
			}
		}
	}
	k, err := reduce.For(reduce.Sum, tensor.F32, 3)
	if err != nil {
		t.Fatal(err)
	}
	x := tensor.From([]float32{3}, 1)
	if k.Scale(x.Bytes()); x.F32()[0] != 3 {
		t.Error("a sum was scaled")
	}
}

func TestForRefuses(t *testing.T) {
	for _, c := range []struct {
		op reduce.Op
		d  tensor.DType
		n  int
	}{{reduce.Mean, tensor.I32, 2}, {reduce.Mean, tensor.I64, 2}, {reduce.Sum, tensor.Invalid, 2}, {reduce.Op(9), tensor.F32, 2}, {reduce.Mean, tensor.F32, 0}} {
		if _, err := reduce.For(c.op, c.d, c.n); err == nil {
			t.Errorf("%v of %v over %d was taken", c.op, c.d, c.n)
		}
	}
}

func ExampleKernel_Combine() {
	k, err := reduce.For(reduce.Max, tensor.F64, 2)
	if err != nil {
		fmt.Println(err)
		return
	}
	mine, theirs := tensor.From([]float64{1, 5, math.NaN()}, 3), tensor.From([]float64{4, 2, 0}, 3)
	k.Combine(mine.Bytes(), mine.Bytes(), theirs.Bytes())
	fmt.Println(mine.F64())
	// Output: [4 5 NaN]
}

func BenchmarkCombine(b *testing.B) {
	for _, d := range dtypes {
		for _, op := range ops {
			const n = 16 << 10
			k, err := reduce.For(op, d, 2)
			if err != nil {
				b.Fatal(err)
			}
			x, y := make([]byte, n), make([]byte, n)
			b.Run(fmt.Sprintf("%v %v", op, d), func(b *testing.B) {
				b.SetBytes(n)
				for b.Loop() {
					k.Combine(x, x, y)
				}
			})
		}
	}
}
