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
	// batch is how many entries are brought into place before they become numbers, a
	// multiple of four.
	batch = 128
)

// Entries reads entries of libsvm text.
type Entries struct {
	// Base is the smallest index, whose id is 0.
	Base uint64
	// Beyond is the first id that is too large.
	Beyond uint64

	from, to int // the part of the text that is marked
	marks    [window/64 + 1]uint64
	words    [2 * batch]uint64 // digits of a value and an index an entry
	powers   [batch]float64
}

// Begin says that the next Read is of a text that may be another.
func (e *Entries) Begin() { e.from, e.to = 0, 0 }

// Read reads entries, " index:value", from text[at:] on, where a space is, as long as
// they are of the common form: an index of up to 8 digits, a value of up to 8 digits
// (and a 0 before the point) with a point or without, behind it a space or a control
// character. It puts ids and values into those, and stops where fewer than four fit
// either, whose elements behind those that it read are undefined then. next is where it
// stopped, behind the n entries that it read; ascending is false if one of their ids is
// not above the one before it, or the first not above last. It leaves the last entries
// of the text alone. If ok is false one of the next entries is no id, as it is below
// Base or too large, and the rest means nothing.
func (e *Entries) Read(text []byte, at int, ids []int32, values []float32, last int64) (next, n int, ascending, ok bool) {
	room := min(len(ids), len(values))
	ascending = true
	for room-n >= 4 && e.mark(text, at) {
		most := min(batch, (room-n)&^3)
		next, got := entriesAVX(&text[e.from], &e.marks[0], at-e.from, e.to-e.from-reach, &e.words[0], &e.powers[0], most)
		if got == 0 {
			break
		}
		largest, gaps := joinAVX(&e.words[0], &e.powers[0], got, &ids[n], &values[n], uint32(e.Base), int32(last))
		if uint64(largest) >= e.Beyond {
			return at, n, ascending, false
		}
		at, n, ascending = e.from+next, n+got, ascending && gaps == 0
		last = int64(ids[n-1])
		if got < most-2 && at+reach < e.to || text[at] != ' ' {
			break
		}
	}
	return at, n, ascending, true
}

// mark sees to it that the text is marked from at on, as far as one entry may reach.
func (e *Entries) mark(text []byte, at int) bool {
	if at < e.from || at+reach >= e.to {
		e.from, e.to = at, at+min(window, len(text)-at)&^63
		if at+reach > e.to {
			return false
		}
		markAVX(&text[at], e.to-at, &e.marks[0])
	}
	return true
}
