package scan

import (
	"bytes"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/gangline/gangline/internal/number"
)

// entry is an entry as package strconv reads it.
type entry struct {
	id    int32
	value float32
	end   int
}

// read reads the entry that begins with the space at i, carefully.
func read(text []byte, i int, x *Entries) (e entry, ok bool) {
	end := i + 1
	for end < len(text) && text[end] > ' ' {
		end++
	}
	index, value, _ := bytes.Cut(text[i+1:end], []byte{':'})
	id, err := strconv.ParseUint(string(index), 10, 64)
	v, fine := number.Float(value)
	id -= x.Base
	return entry{int32(id), v, end}, text[i] == ' ' && err == nil && fine && id < x.Beyond && end < len(text)
}

// check holds what Entries takes against careful reading, and returns how much it is.
func check(t testing.TB, text []byte, at, room int, x *Entries, last int64) (next, n int) {
	t.Helper()
	const guard = 12345
	ids, values := make([]int32, room+1), make([]float32, room+1)
	ids[room], values[room] = guard, guard
	next, n, ascending, fine := x.Read(text, at, ids[:room], values[:room], last)
	if ids[room] != guard || values[room] != guard || n > room {
		t.Fatalf("%q from %d: %d entries, room for %d", text, at, n, room)
	}
	i, up := at, true
	for k := range n {
		e, ok := read(text, i, x)
		if !ok || e.id != ids[k] || math.Float32bits(e.value) != math.Float32bits(values[k]) {
			t.Fatalf("%q: at %d %d:%v, want %v, %v", text, i, ids[k], values[k], e, ok)
		}
		i, up, last = e.end, up && int64(e.id) > last, int64(e.id)
	}
	if !fine {
		for range batch {
			e, ok := read(text, i, x)
			if !ok {
				if e.end > len(text) || uint32(e.id) < uint32(x.Beyond) {
					t.Fatalf("%q: refused at %d, which is id %d of %d", text, i, e.id, x.Beyond)
				}
				return i, n
			}
			i = e.end
		}
		t.Fatalf("%q from %d: refused", text, at)
	}
	if i != next || up != ascending {
		t.Fatalf("%q from %d: to %d, %v, want %d, %v", text, at, next, ascending, i, up)
	}
	return next, n
}

// plain is a number of up to 8 digits, most of the time.
func plain(r *rand.Rand) string {
	whole, behind := r.IntN(9), r.IntN(9)
	if whole+behind > 8 || whole+behind == 0 {
		whole, behind = 1, r.IntN(9)
	}
	s := strings.Map(func(rune) rune { return '0' + r.Int32N(10) }, strings.Repeat("x", whole+behind))
	switch {
	case whole+behind == 9:
		return "0." + s[1:]
	case behind == 0 && r.IntN(2) == 0:
		return s
	}
	return s[:whole] + "." + s[whole:]
}

// line is entries of the common form.
func line(r *rand.Rand, entries int) []byte {
	var b bytes.Buffer
	id := 0
	for range entries {
		id += 1 + r.IntN(1<<r.IntN(20))
		if r.IntN(50) == 0 {
			id = r.IntN(1e8)
		}
		fmt.Fprintf(&b, " %0*d:%s", r.IntN(3), id%1e8, plain(r))
	}
	return b.Bytes()
}

func skipElsewhere(t *testing.T) {
	if !Here() {
		t.Skip("this machine has no assembly")
	}
}

// Entries of the common form are taken, up to the end of the line.
func TestEntriesTakes(t *testing.T) {
	skipElsewhere(t)
	r := rand.New(rand.NewPCG(1, 2))
	for range 5000 {
		want := r.IntN(20)
		text := line(r, want)
		end := len(text)
		text = append(append(text, "\r\n\t"[r.IntN(3)]), make([]byte, 2*reach)...)
		taken, next := 0, 0
		for x, n := (&Entries{Beyond: 1e8}), 1; n > 0 && next < end; taken += n {
			next, n = check(t, text, next, 23, x, -1)
		}
		if taken != want || next != end {
			t.Fatalf("%q: %d entries to %d, want %d to %d", text[:end], taken, next, want, end)
		}
	}
}

// Lines of more entries than are brought into place at once, and of more text than is
// marked at once, are taken whole.
func TestEntriesLong(t *testing.T) {
	skipElsewhere(t)
	r := rand.New(rand.NewPCG(11, 12))
	for range 200 {
		want := r.IntN(3000)
		text := append(append(line(r, want), '\n'), make([]byte, 2*reach)...)
		if _, n := check(t, text, 0, want+6, &Entries{Beyond: 1e8}, -1); n != want {
			t.Fatalf("%d entries of %d", n, want)
		}
	}
}

// An id that is too large, or below the smallest, is refused wherever it stands.
func TestEntriesRefuses(t *testing.T) {
	skipElsewhere(t)
	r := rand.New(rand.NewPCG(13, 14))
	for range 2000 {
		n := 1 + r.IntN(300)
		odd, text := r.IntN(n), []byte(nil)
		for i := range n {
			id := 1 + r.IntN(1000)
			if i == odd {
				id = 1001 * r.IntN(2)
			}
			text = fmt.Appendf(text, " %d:%s", id, plain(r))
		}
		text = append(append(text, '\n'), make([]byte, 2*reach)...)
		x := &Entries{Base: 1, Beyond: 1000}
		ids, values := make([]int32, n+4), make([]float32, n+4)
		if _, _, _, ok := x.Read(text, 0, ids, values, -1); ok {
			t.Fatalf("entry %d of %d was not refused", odd, n)
		}
		check(t, text, 0, n+4, x, -1)
	}
}

// Whatever stands there, what Entries takes is what careful reading reads.
func TestEntriesMutated(t *testing.T) {
	skipElsewhere(t)
	r := rand.New(rand.NewPCG(3, 4))
	const odd = "0123456789 .:-+e\t\n\r\x00/;\xb0\xff"
	for range 20_000 {
		text := append(line(r, 1+r.IntN(12)), "\n 1:2 345:6.78 9:.1 1:1 2:1 3:1 4:1 5:1 6:1 7:1 8:1 9:1 10:1 11:1 12:1 13:1 14:1 15:1 16:1 17:1 18:1"...)
		for range r.IntN(4) {
			text[r.IntN(len(text))] = odd[r.IntN(len(odd))]
		}
		at := 0
		if r.IntN(4) == 0 {
			at = r.IntN(len(text))
		}
		text[at] = ' ' // where Read may begin
		text = text[:max(at+1, len(text)-r.IntN(90))]
		x := &Entries{Base: uint64(r.IntN(2)), Beyond: uint64(1) << r.IntN(28)}
		check(t, slices.Clip(text), at, r.IntN(14), x, int64(r.IntN(3)-1))
	}
}

// Values of up to 8 digits are rounded once, though they pass through float64.
func TestEntriesRounds(t *testing.T) {
	skipElsewhere(t)
	r := rand.New(rand.NewPCG(5, 6))
	for range 20_000 {
		f := math.Float32frombits(0x2f800000 + r.Uint32N(0x1d000000))
		half := (float64(f) + float64(math.Nextafter32(f, 0))) / 2
		s := strconv.FormatFloat(half, 'f', 8, 64)
		if len(s) > 9 && s[0] != '0' {
			s = s[:9]
		}
		text := append([]byte(" 7:"+s+"\n"), make([]byte, 2*reach)...)
		if _, n := check(t, text, 0, 4, &Entries{Base: 1, Beyond: 10}, -1); n != 1 {
			t.Fatalf("%q was not taken", s)
		}
	}
}
