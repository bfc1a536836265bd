package scan

import (
	"bytes"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/gangline/gangline/internal/mix"
	"github.com/gangline/gangline/internal/number"
)

// row is a row as it is read carefully. Of nums without a logarithm it has what Rows
// leaves there.
type row struct {
	label float32
	nums  [Nums]float32
	ids   [Cats]int32
	end   int
	large bool
}

// hasher is what test rows are read with.
type hasher struct {
	*Rows
	keys    [Cats]uint64
	missing [Cats]int32
	buckets uint64
}

// newHasher knows the logarithms of a few integers, which are not those, to see that
// they are looked up.
func newHasher(buckets uint64) *hasher {
	h := &hasher{buckets: buckets}
	for f := range h.keys {
		h.keys[f], h.missing[f] = mix.Mix(uint64(f)), int32(f)+1000
	}
	h.Rows = NewRows(&h.keys, &h.missing, uint32(buckets))
	for v := range 200 {
		h.Logs[v] = float32(v) + .5
	}
	return h
}

// num is what stands for an integer.
func (h *hasher) num(v int64) (num float32, large bool) {
	v = max(v, 0)
	if v < SmallInts && !math.Signbit(float64(h.Logs[v])) {
		return h.Logs[v], false
	}
	return math.Float32frombits(uint32(v) | 1<<31), true
}

// read reads the row that begins at i, carefully.
func (h *hasher) read(text []byte, i int) (r row, ok bool) {
	n := bytes.IndexByte(text[i:], '\n')
	if n < 0 {
		return r, false
	}
	r.end = i + n + 1
	tokens := bytes.Split(bytes.TrimSuffix(text[i:i+n], []byte{'\r'}), []byte{'\t'})
	if len(tokens) != 1+Nums+Cats || len(tokens[0]) != 1 || tokens[0][0]|1 != '1' {
		return r, false
	}
	r.label = float32(tokens[0][0] - '0')
	for f := range Nums {
		token := tokens[1+f]
		v, ok := number.Int(token)
		if !ok && len(token) > 0 || len(token) > 8 || bytes.ContainsRune(token, '+') {
			return r, false
		}
		var large bool
		r.nums[f], large = h.num(v)
		r.large = r.large || large
	}
	for f := range Cats {
		token := tokens[1+Nums+f]
		r.ids[f] = h.missing[f]
		if len(token) > 0 {
			v, ok := number.Hex(token)
			if !ok || len(token) != 8 {
				return r, false
			}
			r.ids[f] = int32(mix.Mix(h.keys[f]^v) % h.buckets)
		}
	}
	return r, true
}

// check holds what Rows takes against careful reading, and returns how much it is.
func (h *hasher) check(t testing.TB, text []byte, at, room int) (next, n int) {
	t.Helper()
	const guard = 12345
	labels, nums, ids := make([]float32, room+1), make([]float32, Nums*(room+1)), make([]int32, Cats*(room+1))
	labels[room], nums[Nums*room], ids[Cats*room] = guard, guard, guard
	next, n = h.Read(text, at, labels[:room], nums[:Nums*room], ids[:Cats*room])
	if labels[room] != guard || nums[Nums*room] != guard || ids[Cats*room] != guard || n > room {
		t.Fatalf("%q from %d: %d rows, room for %d", text, at, n, room)
	}
	i := at
	for k := range n {
		r, ok := h.read(text, i)
		if !ok || r.label != labels[k] || r.ids != [Cats]int32(ids[Cats*k:]) {
			t.Fatalf("%q at %d: %v %v, want %v, %v", text, i, labels[k], ids[Cats*k:Cats*(k+1)], r, ok)
		}
		for f, want := range r.nums {
			if got := nums[Nums*k+f]; math.Float32bits(got) != math.Float32bits(want) {
				t.Fatalf("%q at %d: integer %d is %x, want %x", text, i, f, math.Float32bits(got), math.Float32bits(want))
			}
		}
		if r.large && k != n-1 {
			t.Fatalf("%q: went on behind a row that is to be completed", text)
		}
		i = r.end
	}
	if i != next {
		t.Fatalf("%q from %d: to %d, want %d", text, at, next, i)
	}
	return next, n
}

// criteoRow appends a row of the common form.
func criteoRow(b []byte, r *rand.Rand, end string) []byte {
	b = append(b, '0'+byte(r.IntN(2)))
	for range Nums {
		b = append(b, '\t')
		switch r.IntN(8) {
		case 0:
		case 1:
			b = fmt.Appendf(b, "-%0*d", r.IntN(8), r.IntN(1000))
		case 2:
			b = fmt.Appendf(b, "%0*d", r.IntN(9), r.IntN(1e8)%100)
		case 3:
			b = fmt.Appendf(b, "%d", r.IntN(1<<r.IntN(27))%1e8)
		default:
			b = fmt.Appendf(b, "%d", r.IntN(200))
		}
	}
	for range Cats {
		b = append(b, '\t')
		if r.IntN(5) > 0 {
			hex := fmt.Sprintf("%08x", r.Uint32())
			if r.IntN(9) == 0 {
				hex = strings.ToUpper(hex)
			}
			b = append(b, hex...)
		}
	}
	return append(b, end...)
}

// moduli are numbers of ids of all sizes.
func moduli() []uint64 {
	return []uint64{1, 2, 1 << 20, 1 << 31, 97, 1_000_003, 3, 1<<31 - 1, 1<<31 - 2}
}

// Rows of the common form are taken, all of them.
func TestRowsTakes(t *testing.T) {
	skipElsewhere(t)
	r := rand.New(rand.NewPCG(1, 2))
	for _, buckets := range moduli() {
		h := newHasher(buckets)
		for range 200 {
			want := 1 + r.IntN(6)
			text := []byte("before\n")
			begin := len(text)
			for range want {
				text = criteoRow(text, r, []string{"\n", "\r\n"}[r.IntN(2)])
			}
			end := len(text)
			text = append(text, make([]byte, rowReach)...)
			taken, next := 0, begin
			for n := 1; n > 0 && next < end; taken += n {
				next, n = h.check(t, text, next, 1+r.IntN(8))
			}
			if taken != want || next != end {
				t.Fatalf("%q: %d rows to %d, want %d to %d", text[:end], taken, next, want, end)
			}
		}
	}
}

// Whatever stands there, what Rows takes is what careful reading reads.
func TestRowsMutated(t *testing.T) {
	skipElsewhere(t)
	r, h := rand.New(rand.NewPCG(3, 4)), newHasher(1<<20)
	const odd = "0123456789abcdefABCDEFgG`@/:-+ .\t\t\t\n\r\x00\x01\x0e\x80\x8d\xb0\xff"
	for range 20_000 {
		text := []byte("before\n")
		at := len(text)
		for range 3 {
			text = criteoRow(text, r, "\n")
		}
		for range r.IntN(4) {
			i := at + r.IntN(300)
			switch c := odd[r.IntN(len(odd))]; r.IntN(4) {
			case 0:
				text = slices.Insert(text, i, c)
			case 1:
				text = slices.Delete(text, i, i+1+r.IntN(2))
			default:
				text[i] = c
			}
		}
		text = append(text, make([]byte, r.IntN(rowReach))...)
		h.check(t, slices.Clip(text), at, 1+r.IntN(4))
	}
}

// Each byte in place of each of a row's.
func TestRowsEachByte(t *testing.T) {
	skipElsewhere(t)
	r, h := rand.New(rand.NewPCG(5, 6)), newHasher(1<<7)
	for range 3 {
		text := criteoRow([]byte("before\n"), r, "\r\n")
		text = append(criteoRow(text, r, "\n"), make([]byte, rowReach)...)
		for i := 7; i < 300; i++ {
			was := text[i]
			for c := range 256 {
				text[i] = byte(c)
				h.check(t, text, 7, 1)
			}
			text[i] = was
		}
	}
}

// A digit 64 bytes behind the first integer is no tab, though the characters of the row
// that are good are as many as they were with one.
func TestRowsFar(t *testing.T) {
	skipElsewhere(t)
	text := "before\n1" + strings.Repeat("\t12345678", 6) + "\t12345678901234567" + strings.Repeat("\t1", 5) + strings.Repeat("\t05db9164", Cats) + "\n"
	if _, n := newHasher(1<<20).check(t, append([]byte(text), make([]byte, rowReach)...), 7, 1); n != 0 {
		t.Errorf("%q was taken", text)
	}
}

func FuzzRows(f *testing.F) {
	r := rand.New(rand.NewPCG(7, 8))
	for range 8 {
		f.Add(criteoRow(criteoRow(nil, r, "\r\n"), r, "\n"), uint64(1<<20))
	}
	f.Fuzz(func(t *testing.T, content []byte, buckets uint64) {
		skipElsewhere(t)
		if len(content) > 1<<12 {
			return
		}
		text := append(append([]byte("before\n"), content...), make([]byte, rowReach)...)
		newHasher(1<<(buckets%31)).check(t, text, 7, 5)
	})
}
