//go:build linux && amd64

package scan

import (
	"math/rand/v2"
	"os"
	"syscall"
	"testing"
	"unsafe"
)

// guarded is memory of one page behind which there is none.
func guarded(t *testing.T) []byte {
	size := os.Getpagesize()
	m, err := syscall.Mmap(-1, 0, 2*size, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_ANON|syscall.MAP_PRIVATE)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := syscall.Munmap(m); err != nil {
			t.Error(err)
		}
	})
	if err := syscall.Mprotect(m[size:], syscall.PROT_NONE); err != nil {
		t.Fatal(err)
	}
	return m[:size:size]
}

// behind is room for n elements of 4 bytes behind which there is no memory.
func behind[T int32 | float32](page []byte, n int) []T {
	if n == 0 {
		return nil
	}
	return unsafe.Slice((*T)(unsafe.Pointer(&page[len(page)-4*n])), n)
}

// Nothing is written behind the room there is, though four entries are written at once.
func TestEntriesRoom(t *testing.T) {
	skipElsewhere(t)
	r := rand.New(rand.NewPCG(9, 10))
	first, second := guarded(t), guarded(t)
	for range 5000 {
		want := 1 + r.IntN(40)
		text := append(append(line(r, want), '\n'), make([]byte, 2*reach)...)
		room := r.IntN(want + 8)
		ids, values := behind[int32](first, room), behind[float32](second, r.IntN(8)+room)
		_, n, _, ok := (&Entries{Beyond: 1e8}).Read(text, 0, ids, values, -1)
		if least := min(want, room-5); !ok || n < least || n > min(want, room) {
			t.Fatalf("%d of %d entries, room for %d", n, want, room)
		}
	}
}

// Nothing behind the text is looked at.
func TestEntriesGuarded(t *testing.T) {
	skipElsewhere(t)
	page, r := guarded(t), rand.New(rand.NewPCG(7, 8))
	for range 5000 {
		text := line(r, 1+r.IntN(30))
		at := len(page) - len(text)
		copy(page[at:], text)
		check(t, page[at:], 0, 40, &Entries{Base: 0, Beyond: 1e8}, -1)
	}
}

// Nothing behind the text is looked at, however far the fields of a row reach.
func TestRowsGuarded(t *testing.T) {
	skipElsewhere(t)
	page, r, h := guarded(t), rand.New(rand.NewPCG(9, 10)), newHasher(1<<20)
	for range 1000 {
		var text []byte
		for range 3 {
			text = criteoRow(text, r, "\n")
		}
		at := len(page) - len(text)
		copy(page[at:], text)
		for _, i := range []int{0, rowBefore - 1, rowBefore, len(text) - rowReach - 1, len(text) - rowReach, len(text) - rowReach + 1, len(text) - 1} {
			h.check(t, page[at:], max(0, i), 3)
		}
	}
	// Tabs are marked 64 bytes at a time: the last that is wanted stands at the end.
	row := page[len(page)-rowReach:]
	for i := range row {
		row[i] = '0'
		if k := (i - 2) & 63; i >= 2 && (k < 3 || k > 59) {
			row[i] = '\t'
		}
	}
	row[1] = '\t'
	if _, n := h.check(t, page, len(page)-rowReach, 3); n != 0 {
		t.Errorf("%q was taken", row)
	}
}
