//go:build !noasm

package stream

import (
	"unsafe"

	"golang.org/x/sys/cpu"
)

const (
	lineSize = 64 // of a cache, in bytes
	// leastMovsb is where starting REP MOVSB costs no more than it saves.
	leastMovsb = 1 << 10
)

// movsb copies n bytes that do not overlap, by REP MOVSB.
//
//go:noescape
func movsb(dst, src *byte, n int)

// place copies src to memory that another core has read last, and returns how many bytes;
// dst and src do not overlap. REP MOVSB overwrites whole lines and need not fetch them from
// the other core's cache first, as ordinary stores must. Between cores that share no
// cache it moves 1 MiB through a ring of 128 KiB in 54 us in place of 155. Some processors are
// slow at it unless the destination begins with a line.
func place(dst, src []byte) int {
	n := min(len(dst), len(src))
	if n < leastMovsb || !cpu.X86.HasERMS {
		return copy(dst, src)
	}
	head := int(-uintptr(unsafe.Pointer(unsafe.SliceData(dst))) % lineSize)
	copy(dst[:head], src)
	movsb(&dst[head], &src[head], n-head)
	return n
}
