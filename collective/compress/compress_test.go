package compress_test

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/gangline/gangline/collective/compress"
)

// codecs are all codecs, with settings that make several blocks of short vectors.
func codecs(t testing.TB) []compress.Codec {
	t.Helper()
	int8s, err := compress.NewInt8(48)
	if err != nil {
		t.Fatal(err)
	}
	one, err := compress.NewOneBit(64)
	if err != nil {
		t.Fatal(err)
	}
	tenth, err := compress.NewTopK(.1)
	if err != nil {
		t.Fatal(err)
	}
	return []compress.Codec{compress.F16{}, compress.BF16{}, int8s, one, tenth}
}

// normal draws a vector.
func normal(r *rand.Rand, n int) []float32 {
	v := make([]float32, n)
	for i := range v {
		v[i] = float32(r.NormFloat64())
	}
	return v
}

func source(seed uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, 7)) }

// drawVector draws vectors of normal numbers, with zeros, equal and special values among them.
func drawVector(t *rapid.T) []float32 {
	v := normal(source(rapid.Uint64().Draw(t, "seed")), rapid.IntRange(0, 400).Draw(t, "n"))
	special := []float32{0, float32(math.Copysign(0, -1)), 1, -1, 1e-45, -1e-45, 1e-38, 3e38, -3e38, math.MaxFloat32, -math.MaxFloat32, 65504, 65519, 6e-8}
	for range rapid.IntRange(0, 30).Draw(t, "specials") {
		if len(v) > 0 {
			v[rapid.IntRange(0, len(v)-1).Draw(t, "at")] = rapid.SampledFrom(special).Draw(t, "value")
		}
	}
	return v
}

// obvious decodes what a codec makes of v by the definition of the codec, in the plainest
// way. near is how far the result may be off, relative to an element.
func obvious(c compress.Codec, v []float32) (want []float32, near float64) {
	want = make([]float32, len(v))
	switch c := c.(type) {
	case compress.F16:
		for i, x := range v {
			want[i] = nearest(x, 11, -24, 65504)
		}
	case compress.BF16:
		for i, x := range v {
			want[i] = nearest(x, 8, -133, 0x1.fep127)
		}
	case compress.Int8:
		for lo := 0; lo < len(v); lo += c.Block {
			b := v[lo:min(lo+c.Block, len(v))]
			largest := 0.0
			for _, x := range b {
				largest = max(largest, math.Abs(float64(x)))
			}
			scale := largest / 127
			if scale < 0x1p-126 {
				continue
			}
			for i, x := range b {
				want[lo+i] = float32(math.RoundToEven(float64(x)/scale) * scale)
			}
		}
		return want, 1e-6
	case compress.OneBit:
		for lo := 0; lo < len(v); lo += c.Block {
			hi := min(lo+c.Block, len(v))
			var sum [2]float64
			var n [2]float64
			side := func(x float32) int { return map[bool]int{false: 0, true: 1}[math.Signbit(float64(x))] }
			for _, x := range v[lo:hi] {
				sum[side(x)] += float64(x)
				n[side(x)]++
			}
			for i, x := range v[lo:hi] {
				want[lo+i] = float32(sum[side(x)] / n[side(x)])
			}
		}
		return want, 1e-5
	case *compress.TopK:
		order := make([]int, len(v))
		for i := range order {
			order[i] = i
		}
		slices.SortStableFunc(order, func(i, j int) int {
			a, b := math.Abs(float64(v[i])), math.Abs(float64(v[j]))
			switch {
			case a > b:
				return -1
			case a < b:
				return 1
			}
			return 0
		})
		for _, i := range order[:int(math.Ceil(.1*float64(len(v))))] {
			want[i] = v[i]
		}
	}
	return want, 0
}

// nearest rounds to a format with so many digits, a least step of 2^low and a largest
// number, ties to even.
func nearest(x float32, digits, low int, largest float64) float32 {
	_, exp := math.Frexp(float64(x))
	step := math.Ldexp(1, max(exp-digits, low))
	y := math.RoundToEven(float64(x)/step) * step
	if math.Abs(y) > largest {
		y = math.Inf(int(math.Copysign(1, y)))
	}
	return float32(y)
}

// Every codec gives what its definition says, in the bytes of its formula; the rest is what
// is missing; decoding to a sum adds the same.
func TestCodecsAgainstTheObvious(t *testing.T) {
	for _, c := range codecs(t) {
		rapid.Check(t, func(rt *rapid.T) {
			v := drawVector(rt)
			want, near := obvious(c, v)
			got := roundTrip(rt, c, v)
			for i := range v {
				d := math.Abs(float64(got[i]) - float64(want[i]))
				halfway := false
				if i8, ok := c.(compress.Int8); ok { // rounded the other way from near the middle
					b := v[i/i8.Block*i8.Block : min((i/i8.Block+1)*i8.Block, len(v))]
					scale := 0.0
					for _, x := range b {
						scale = max(scale, math.Abs(float64(x))/127)
					}
					halfway = math.Abs(float64(got[i])-float64(v[i])) <= scale*(.5+1e-4)
				}
				if got[i] != want[i] && d > near*math.Abs(float64(want[i])) && !halfway {
					rt.Fatalf("%v: element %d of %v: %v is decoded as %v, want %v", c, i, len(v), v[i], got[i], want[i])
				}
			}
		})
	}
}

// roundTrip encodes and decodes v, and checks what must hold of any codec.
func roundTrip(t rapid.TB, c compress.Codec, v []float32) []float32 {
	t.Helper()
	n := c.Bytes(len(v))
	enc, again := make([]byte, n), make([]byte, n+3)
	rest := slices.Clone(v)
	for i := range again {
		again[i] = 0xa5 // what the memory held must not matter
	}
	if a, b := c.Encode(enc, v), c.EncodeRest(again, rest); a != n || b != n || string(enc) != string(again[:n]) {
		t.Fatalf("%v of %d elements: %d and %d bytes, formula %d; the same: %v", c, len(v), a, b, n, string(enc) == string(again[:n]))
	}
	if string(again[n:]) != "\xa5\xa5\xa5" {
		t.Fatalf("%v wrote beyond its bytes", c)
	}
	got, sum := make([]float32, len(v)), make([]float32, len(v))
	for i := range got {
		got[i], sum[i] = 99, float32(i%5)
	}
	if err := errors.Join(c.Decode(got, enc), c.DecodeAdd(sum, enc)); err != nil {
		t.Fatal(err)
	}
	for i := range got {
		if want := float32(i%5) + got[i]; sum[i] != want && finite(want) {
			t.Fatalf("%v: element %d is %v added to %v, not %v", c, i, sum[i], i%5, want)
		}
		if want := v[i] - got[i]; rest[i] != want && finite(got[i]) {
			t.Fatalf("%v: the rest of element %d, %v decoded as %v, is %v", c, i, v[i], got[i], rest[i])
		}
	}
	return got
}

func finite(x float32) bool { return !math.IsNaN(float64(x)) && !math.IsInf(float64(x), 0) }

// All numbers of binary16 and bfloat16 come back as they are; between two neighbours, all
// that is nearer to one becomes it, and the middle the even one.
func TestHalvesExhaustively(t *testing.T) {
	for _, f := range []struct {
		codec    compress.Codec
		infinity uint16
	}{{compress.F16{}, 0x7c00}, {compress.BF16{}, 0x7f80}} {
		encode := func(x float32) uint16 {
			var b [10]byte // four at once and one alone
			f.codec.Encode(b[:], []float32{x, x, x, x, x})
			for i := 2; i < len(b); i += 2 {
				if b[i] != b[0] || b[i+1] != b[1] {
					t.Fatalf("%v: %v five times is %x", f.codec, x, b)
				}
			}
			return binary.LittleEndian.Uint16(b[:])
		}
		decode := func(h uint16) float32 {
			var x [1]float32
			if err := f.codec.Decode(x[:], binary.LittleEndian.AppendUint16(nil, h)); err != nil {
				t.Fatal(err)
			}
			return x[0]
		}
		for _, nan := range []uint32{0x7f800001, 0xff800001, 0x7fffffff, 0xffffffff} {
			if x := decode(encode(math.Float32frombits(nan))); x == x || math.Signbit(float64(x)) != (nan>>31 == 1) {
				t.Fatalf("%v: NaN %#x is %v", f.codec, nan, x)
			}
		}
		for h := range 1 << 16 {
			x, h := decode(uint16(h)), uint16(h)
			up := h & 0x7fff
			if up > f.infinity {
				if back := encode(x); x == x || back&0x7fff <= f.infinity || back>>15 != h>>15 {
					t.Fatalf("%v: NaN %#x is %v and then %#x", f.codec, h, x, back)
				}
				continue
			}
			if encode(x) != h {
				t.Fatalf("%v: %#x is %v, which is %#x", f.codec, h, x, encode(x))
			}
			if up >= f.infinity {
				continue
			}
			next := float64(decode(h + 1))
			if math.IsInf(next, 0) {
				next = math.Copysign(2*math.Abs(float64(x))-math.Abs(float64(decode(h-1))), float64(x))
			}
			middle := float32((float64(x) + next) / 2)
			below, above := math.Nextafter32(middle, 0), math.Nextafter32(middle, float32(math.Copysign(math.Inf(1), next)))
			if encode(below) != h || encode(above) != h+1 || encode(middle) != h+h&1 {
				t.Fatalf("%v: around the middle of %v and %v: %#x %#x %#x after %#x", f.codec, x, next, encode(below), encode(middle), encode(above), h)
			}
		}
	}
}

// Formulas of the package comment, in numbers.
func TestBytes(t *testing.T) {
	i8, _ := compress.NewInt8(256)
	one, _ := compress.NewOneBit(512)
	top, _ := compress.NewTopK(.01)
	for _, c := range []struct {
		codec   compress.Codec
		n, want int
	}{
		{compress.F16{}, 7, 14},
		{compress.BF16{}, 7, 14},
		{i8, 256, 260},
		{i8, 257, 265},
		{one, 512, 72},
		{one, 513, 81},
		{top, 0, 0},
		{top, 1, 4 + 0 + 1},
		{top, 1 << 20, 4*10486 + (10486*6+7)/8 + (10486+(1<<20-1)/64+7)/8},
	} {
		if got := c.codec.Bytes(c.n); got != c.want {
			t.Errorf("%v of %d elements: %d bytes, want %d", c.codec, c.n, got, c.want)
		}
	}
	for n := 64 << 10 / 4; n < 1<<22; n = n*3/2 + 1 {
		if got := one.Bytes(n); got*25 > 4*n {
			t.Errorf("%v of %d bytes: %d, more than 1/25", one, 4*n, got)
		}
	}
}

// What is not finite is never hidden, wherever it stands, and however much of it there is.
func TestNotFiniteIsSeen(t *testing.T) {
	nan, inf := float32(math.NaN()), float32(math.Inf(1))
	for _, c := range codecs(t) {
		for n := 1; n < 150; n += 7 {
			for at := range n {
				for _, bad := range [][]float32{{nan}, {inf}, {-inf}, {math.Float32frombits(0xff800001)}, {math.Float32frombits(0x7fffffff)}, {inf, -inf, nan, nan}} {
					v := normal(source(uint64(n)), n)
					for i, x := range bad {
						v[(at+i*5)%n] = x
					}
					enc, got := make([]byte, c.Bytes(n)), make([]float32, n)
					c.Encode(enc, v)
					if err := c.Decode(got, enc); err != nil {
						t.Fatal(err)
					}
					if compress.Finite(got) {
						t.Fatalf("%v of %d elements hides %v at %d", c, n, bad, at)
					}
					sum := normal(source(3), n)
					if err := c.DecodeAdd(sum, enc); err != nil || compress.Finite(sum) {
						t.Fatalf("%v of %d elements hides %v at %d when added: %v", c, n, bad, at, err)
					}
				}
			}
		}
	}
}

// Vectors of the largest float32 stay finite, but for the halves, which say that they round
// up to infinity.
func TestLargestStayFinite(t *testing.T) {
	for _, c := range codecs(t) {
		v := make([]float32, 200)
		for i := range v {
			v[i] = float32(math.Copysign(math.MaxFloat32, float64(i%3)-1))
		}
		got := roundTrip(t, c, v)
		switch c.(type) {
		case compress.F16, compress.BF16:
			if compress.Finite(got) {
				t.Errorf("%v hides that it cannot say %v", c, v[0])
			}
		default:
			if !compress.Finite(got) {
				t.Errorf("%v says that %v is not finite", c, v[0])
			}
		}
	}
}

func TestFinite(t *testing.T) {
	for n := range 20 {
		v := make([]float32, n)
		for i := range v {
			v[i] = math.MaxFloat32 * float32(1-2*(i%2))
		}
		if !compress.Finite(v) {
			t.Errorf("%d finite elements are not", n)
		}
		for i := range v {
			for _, x := range []float32{float32(math.NaN()), float32(math.Inf(1)), float32(math.Inf(-1)), math.Float32frombits(0xffffffff)} {
				w := slices.Clone(v)
				w[i] = x
				if compress.Finite(w) {
					t.Errorf("%v at %d of %d is finite", x, i, n)
				}
			}
		}
	}
}

// Bytes that no encoder makes are refused.
func TestBadBytes(t *testing.T) {
	all := codecs(t)
	i8, one, top := all[2], all[3], all[4]
	word := func(x float32) []byte { return binary.LittleEndian.AppendUint32(nil, math.Float32bits(x)) }
	cat := func(b ...[]byte) []byte { return slices.Concat(b...) }
	inf := float32(math.Inf(1))
	for name, c := range map[string]struct {
		codec compress.Codec
		n     int
		bytes []byte
	}{
		"short":                {compress.F16{}, 2, make([]byte, 3)},
		"long":                 {compress.BF16{}, 2, make([]byte, 5)},
		"scale infinite":       {i8, 1, cat(word(inf), []byte{1})},
		"scale negative":       {i8, 1, cat(word(-1), []byte{1})},
		"scale too large":      {i8, 1, cat(word(math.MaxFloat32/126), []byte{1})},
		"other NaN":            {i8, 1, cat(word(math.Float32frombits(0x7fc00001)), []byte{1})},
		"-128":                 {i8, 9, cat(word(1), make([]byte, 8), []byte{0x80})},
		"-128 among eight":     {i8, 9, cat(word(1), []byte{1, 2, 0x80, 4, 5, 6, 7, 8, 9})},
		"mean infinite":        {one, 1, cat(word(inf), word(0), []byte{0})},
		"mean of negatives":    {one, 1, cat(word(1), word(1), []byte{0})},
		"mean minus infinite":  {one, 1, cat(word(1), word(-inf), []byte{0})},
		"the other NaN":        {one, 1, cat(word(1), word(math.Float32frombits(0x7fc00000)), []byte{0})},
		"mean of positives":    {one, 1, cat(word(-1), word(-1), []byte{0})},
		"one NaN":              {one, 1, cat(word(math.Float32frombits(0x7fc00000)), word(0), []byte{0})},
		"bit beyond the last":  {one, 3, cat(word(1), word(-1), []byte{8})},
		"no place":             {top, 3, cat(word(1), []byte{0, 0})},
		"too many places":      {top, 3, cat(word(1), []byte{0, 7})},
		"one place more":       {top, 3, cat(word(1), []byte{0, 5})},
		"place beyond":         {top, 3, cat(word(1), []byte{1, 2})},
		"lower bits left":      {top, 3, cat(word(1), []byte{2, 1})},
		"places not ascending": {top, 20, cat(word(1), word(1), []byte{1}, []byte{3})},
	} {
		if want := c.codec.Bytes(c.n); want != len(c.bytes) && name != "short" && name != "long" {
			t.Fatalf("%s: %d bytes, the case has %d", name, want, len(c.bytes))
		}
		v := make([]float32, c.n)
		if err := c.codec.Decode(v, c.bytes); !errors.Is(err, compress.ErrBytes) {
			t.Errorf("%s: decode: %v", name, err)
		}
		if err := c.codec.DecodeAdd(v, c.bytes); !errors.Is(err, compress.ErrBytes) {
			t.Errorf("%s: decode and add: %v", name, err)
		}
	}
}

func TestSettingsAreRefused(t *testing.T) {
	_, e1 := compress.NewInt8(0)
	_, e2 := compress.NewOneBit(100)
	_, e3 := compress.NewOneBit(0)
	_, e4 := compress.NewTopK(0)
	_, e5 := compress.NewTopK(1.5)
	_, e6 := compress.NewTopK(math.NaN())
	for i, err := range []error{e1, e2, e3, e4, e5, e6} {
		if err == nil {
			t.Errorf("setting %d is taken", i+1)
		}
	}
}

// Any bytes are an error or a vector: no panic, no memory beyond the vector's, and what
// decodes also adds.
func FuzzDecode(f *testing.F) {
	all := codecs(f)
	for i, c := range all {
		for _, n := range []int{0, 1, 7, 64, 100} {
			b := make([]byte, c.Bytes(n))
			c.Encode(b, normal(source(uint64(n)), n))
			f.Add(uint8(i), uint16(n), b)
		}
	}
	f.Fuzz(func(t *testing.T, which uint8, n uint16, b []byte) {
		c := all[int(which)%len(all)]
		v, sum := make([]float32, n), make([]float32, n)
		before := testing.AllocsPerRun(1, func() {})
		err := c.Decode(v, b)
		if err2 := c.DecodeAdd(sum, b); (err == nil) != (err2 == nil) {
			t.Fatalf("%v: decode: %v, add: %v", c, err, err2)
		}
		if err != nil && !errors.Is(err, compress.ErrBytes) {
			t.Fatal(err)
		}
		if err != nil {
			return
		}
		for i := range v {
			if v[i] != sum[i] && (v[i] == v[i] || sum[i] == sum[i]) {
				t.Fatalf("%v: element %d is %v, added to 0 %v", c, i, v[i], sum[i])
			}
		}
		if a := testing.AllocsPerRun(1, func() { _ = c.Decode(v, b) }); a > before {
			t.Fatalf("%v: %v allocations", c, a)
		}
	})
}

func ExampleCodec() {
	c, err := compress.NewOneBit(64)
	if err != nil {
		fmt.Println(err)
		return
	}
	v := []float32{3, -1, 1, -3, 2}
	b := make([]byte, c.Bytes(len(v)))
	c.EncodeRest(b, v)
	out := make([]float32, len(v))
	fmt.Println(len(b), "bytes:", c.Decode(out, b), out, "and left", v)
	// Output: 9 bytes: <nil> [2 -2 2 -2 2] and left [1 1 -1 -1 0]
}
