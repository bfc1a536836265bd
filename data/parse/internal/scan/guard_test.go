//go:build linux && amd64

package scan

import (
	"math/rand/v2"
	"os"
	"syscall"
	"testing"
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
