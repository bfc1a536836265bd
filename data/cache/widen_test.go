package cache

import (
	"encoding/binary"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// Ids of every width come back as they were written, however many there are, and one
// beyond the largest that may be is noticed wherever it stands.
func TestWiden(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 20_000 {
		width, n := 1+r.IntN(4), r.IntN(20)
		limit := int64(1) << (8 * width)
		most := min(r.Int64N(limit), math.MaxInt32)
		want, raw := make([]int32, n), []byte(nil)
		for i := range want {
			want[i] = int32(r.Int64N(most + 1))
			raw = appendInt(raw, want[i], width)
		}
		got := make([]int32, n)
		if !widen(got, raw, width, most) || !slices.Equal(got, want) {
			t.Fatalf("%d ids of %d bytes to %d: %v, want %v", n, width, most, got, want)
		}
		if n == 0 || most+1 == limit {
			continue
		}
		at, v := r.IntN(n), most+1+r.Int64N(limit-most-1)
		for j := range width {
			raw[at*width+j] = byte(v >> (8 * j))
		}
		if widen(got, raw, width, most) {
			t.Fatalf("id %d, of %d bytes, is %d, and at most %d", at, width, v, most)
		}
	}
}

// Floats are the same however they are read, whatever their bits are.
func TestFloats(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for n := range 9 {
		var want []uint32
		raw := make([]byte, 1, 64) // so that the numbers are not aligned
		for range n {
			want = append(want, r.Uint32())
			raw = binary.LittleEndian.AppendUint32(raw, want[len(want)-1])
		}
		for name, read := range map[string]func([]float32, []byte){"floats": floats, "swapped": swapped} {
			got := make([]float32, n)
			read(got, raw[1:])
			for i, w := range want {
				if math.Float32bits(got[i]) != w {
					t.Errorf("%s: %x, want %x", name, math.Float32bits(got[i]), w)
				}
			}
		}
	}
}
