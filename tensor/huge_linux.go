package tensor

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// hugePage is the size of a large page of memory; hugeMin is from how many bytes
// on they are asked for.
const (
	hugePage = 2 << 20
	hugeMin  = 16 * hugePage
)

// advise asks for large pages under mem. A table read row by row at random spends
// half of its time on looking up where small pages are (two lookups each on a
// virtual machine). It is advice: a kernel without such pages ignores it.
func advise(mem []byte) {
	if len(mem) < hugeMin {
		return
	}
	skip := -uintptr(unsafe.Pointer(unsafe.SliceData(mem))) & (hugePage - 1)
	mem = mem[skip:]
	_ = unix.Madvise(mem[:len(mem)&^(hugePage-1)], unix.MADV_HUGEPAGE)
}
