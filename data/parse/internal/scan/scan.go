// Package scan reads numbers of text as assembly for amd64 with AVX2 and BMI1.
//
// Its functions take what is of the common form and stop at all else, which package
// parse then reads. What they take they read as that does, to the bit.
package scan

//go:generate sh -c "cd ../../../../tools && go run ./asmgen -out ../data/parse/internal/scan"

import "golang.org/x/sys/cpu"

// Here reports whether this machine can run the assembly. Without it nothing else of
// this package may be called.
func Here() bool { return haveAssembly && cpu.X86.HasAVX2 && cpu.X86.HasBMI1 && cpu.X86.HasBMI2 }

const (
	// window is how many bytes are marked at once: they and their marks stay in the
	// fastest cache.
	window = 8 << 10
	// reach is how many bytes from the beginning of an entry on may be looked at.
	reach = 128
)

// Entries reads entries of libsvm text.
type Entries struct {
	// Base is the smallest index, whose id is 0.
	Base uint64
	// Beyond is the first id that is too large.
	Beyond uint64

	from, to int // the part of the text that is marked
	marks    [window/64 + 1]uint64
}

// Begin says that the next Read is of a text that may be another.
func (e *Entries) Begin() { e.from, e.to = 0, 0 }

// Read reads entries, " index:value", from text[at:] on, where a space is, as long as
// they are of the common form: an index of up to 8 digits, a value of up to 8 digits
// (and a 0 before the point) with a point or without, behind it a space or a control
// character. It puts ids and values into those, and stops when either is full. next
// is where it stopped, behind the n entries that it read; ascending is false if one
// of their ids is not above the one before it, or the first not above last. It leaves
// the last entries of the text alone.
func (e *Entries) Read(text []byte, at int, ids []int32, values []float32, last int64) (next, n int, ascending bool) {
	room := min(len(ids), len(values))
	if room == 0 {
		return at, 0, true
	}
	if at < e.from || at+reach > e.to {
		e.from, e.to = at, at+min(window, len(text)-at)&^63
		if at+reach > e.to {
			return at, 0, true
		}
		markAVX(&text[at], e.to-at, &e.marks[0])
	}
	next, n, gaps := entriesAVX(&text[e.from], &e.marks[0], at-e.from, e.to-e.from-reach, &ids[0], &values[0], room, e.Base, e.Beyond, last)
	return e.from + next, n, gaps < 0
}
