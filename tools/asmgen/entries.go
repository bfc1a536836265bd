package main

import (
	"fmt"
	"math"

	"github.com/mmcloughlin/avo/attr"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// Numbers of text are at most so many digits: what is read at once.
const digits = 8

// Where the parts of the table of entries begin, in bytes.
const (
	valueMoves = 0                                  // of values with a digits before the point and k in all: at 8a+k
	indexMoves = valueMoves + 8*(8*digits+digits+1) // of 8 digits to none
	powersAt   = indexMoves + 8*(digits+1)          // of ten
)

// entries writes what reads the entries of libsvm text.
//
// The bytes that are no digits end the parts of an entry: they are marked first, in
// a pass of its own, and then taken three entries at a time, so that an entry waits
// for the one before it only to take three marks away. That brings the digits of many
// entries into place; what makes numbers of them, four entries at a time, is join.
func entries(g *generator) {
	marks(g)
	g.Function("entriesAVX")
	g.Attributes(attr.NOSPLIT)
	g.Pragma("noescape")
	g.SignatureExpr("func(text *byte, marks *uint64, at, end int, words *uint64, powers *float64, room int) (next, n int)")
	g.Doc("entriesAVX reads entries of the common form from text, of which at is the space before the first and marks are those of markAVX. " +
		"It stops at anything else, behind the last entry of a line, where fewer than three fit room, and behind end, from where on it reads as far as reach. " +
		"The digits of a value and those of an index go into two words, the power of ten that divides the value into powers. " +
		"It returns the byte behind the last entry, and how many they are.")
	e := newEntryWriter(g)
	g.Label("block")
	g.CMPQ(e.filled, e.limit)
	g.JGT(LabelRef(label("odd", 0)))
	g.CMPQ(e.text, e.param("end"))
	g.JHI(LabelRef(label("odd", 0)))
	e.take()
	for i := range blockEntries {
		e.entry(i)
	}
	g.ADDQ(Imm(8*blockEntries), e.filled)
	g.Label("again")
	g.ADDQ(e.start, e.text)
	g.XORL(e.start.As32(), e.start.As32())
	g.JMP(LabelRef("block"))
	for i := range blockEntries {
		e.rare(i)
	}
	// An entry that does not look like one may be too long for the marks that were left:
	// it is tried once more, as the first of a block.
	for i := 1; i < blockEntries; i++ {
		g.Label(label("odd", i))
		g.ADDQ(Imm(8*uint64(i)), e.filled)
		g.JMP(LabelRef("again"))
	}
	g.Label(label("odd", 0))
	e.results()
	join(g)
}

// blockEntries is how many entries are taken from the marks of one word.
const blockEntries = 3

// entryWriter writes the reading of entries. All positions are counted from text.
type entryWriter struct {
	*generator
	text, start       reg.GPVirtual // start: of the entry, behind the space
	words, powers     reg.GPVirtual
	filled, limit     reg.GPVirtual // entries before the block, and at most, times 8
	marks, table      reg.GPVirtual
	colon, point, end reg.GPVirtual // of the entry; point becomes the digits behind it
	whole, all, temp  reg.GPVirtual // digits before the point and in all, less 1
	index             reg.VecVirtual
}

func newEntryWriter(g *generator) *entryWriter {
	e := &entryWriter{generator: g}
	for _, r := range []*reg.GPVirtual{
		&e.start, &e.filled, &e.marks, &e.table, &e.colon, &e.point, &e.end, &e.whole, &e.all, &e.temp,
	} {
		*r = g.GP64()
	}
	load := func(name string) reg.GPVirtual {
		r := g.GP64()
		g.Load(g.Param(name), r)
		return r
	}
	e.text, e.words, e.powers, e.limit, e.index = load("text"), load("words"), load("powers"), load("room"), g.XMM()
	g.LEAQ(Mem{Base: e.limit, Disp: -blockEntries}, e.limit)
	g.SHLQ(Imm(3), e.limit)
	g.XORL(e.filled.As32(), e.filled.As32())
	// There are no more registers: the argument is an address from here on.
	g.ADDQ(e.text, e.param("end"))
	g.ADDQ(e.param("at"), e.text)
	g.INCQ(e.text)
	g.XORL(e.start.As32(), e.start.As32())
	g.LEAQ(entryTable(g), e.table)
	return e
}

// entryTable has the moves that bring digits to the end of 8 bytes, and the powers of
// ten.
func entryTable(g *generator) Mem {
	var words []Constant
	move := func(n int, from func(i int) int) {
		word := uint64(0)
		for j := range digits {
			b := 0x80 // makes 0
			if i := j - (digits - n); i >= 0 {
				b = from(i)
			}
			word |= uint64(b) << (8 * j)
		}
		words = append(words, U64(word))
	}
	for at := range 8*digits + digits + 1 {
		// Digits before the point are at most all: of 8a+k with k from a to 8.
		whole := at / 8
		all := at - 8*whole
		if all == 0 && whole > 0 {
			whole, all = whole-1, 8
		}
		move(all, func(i int) int {
			if i < whole {
				return i
			}
			return i + 1
		})
	}
	for n := digits; n >= 0; n-- {
		move(n, func(i int) int { return i })
	}
	for k := range digits + 1 {
		words = append(words, U64(math.Float64bits(math.Pow10(k))))
	}
	return g.words("entries", 8, append(words, U64(0))...)
}

func (e *entryWriter) param(name string) Mem {
	p, err := e.Param(name).Resolve()
	if err != nil {
		panic(err)
	}
	return p.Addr
}

// at is the byte of the text at a position and some more.
func (e *entryWriter) at(position reg.Register, more int) Mem {
	return Mem{Base: e.text, Index: position, Scale: 1, Disp: more}
}

// take takes the marks of the next bytes, 57 of them at least.
func (e *entryWriter) take() {
	shift := e.temp
	e.MOVQ(e.text, shift)
	e.SUBQ(e.param("text"), shift)
	e.MOVQ(shift, e.marks)
	e.ANDL(Imm(7), shift.As32())
	e.SHRQ(Imm(3), e.marks)
	e.ADDQ(e.param("marks"), e.marks)
	e.SHRXQ(shift, Mem{Base: e.marks}, e.marks)
}

// next moves a position to the next mark.
func (e *entryWriter) next(position reg.GPVirtual) {
	e.TZCNTQ(e.marks, position)
	e.BLSRQ(e.marks, e.marks)
}

// label is a label of entry i.
func label(name string, i int) string { return fmt.Sprintf("%s%d", name, i) }

// entry reads entry i of a block.
func (e *entryWriter) entry(i int) {
	ref := func(name string) LabelRef { return LabelRef(label(name, i)) }
	e.next(e.colon)
	e.next(e.point)
	e.CMPB(e.at(e.colon, 0), Imm(':'))
	e.JNE(ref("odd"))
	length := e.temp // of the index, negative
	e.MOVQ(e.start, length)
	e.SUBQ(e.colon, length)
	e.CMPQ(length, I32(-digits))
	e.JCS(ref("odd"))
	e.VMOVQ(e.at(e.start, 0), e.index)
	e.VPSHUFB(Mem{Base: e.table, Index: length, Scale: 8, Disp: indexMoves + 8*digits}, e.index, e.index)
	e.LEAQ(Mem{Base: e.point, Disp: -2}, e.whole)
	e.SUBQ(e.colon, e.whole)
	e.CMPB(e.at(e.point, 0), Imm('.'))
	e.JNE(ref("integer"))
	e.next(e.end)
	e.NOTQ(e.point)
	e.ADDQ(e.end, e.point)
	e.LEAQ(Mem{Base: e.whole, Index: e.point, Scale: 1}, e.all)
	e.Label(label("value", i))
	e.CMPQ(e.all, Imm(digits-1))
	e.JHI(ref("long"))
	e.Label(label("whole", i))
	e.CMPB(e.at(e.end, 0), Imm(' '))
	e.JNE(ref("last"))
	e.store(i)
}

// store stores the digits of entry i, and goes behind it.
func (e *entryWriter) store(i int) {
	v := e.XMM()
	e.VMOVDQU(e.at(e.colon, 1), v)
	e.LEAQ(Mem{Base: e.all, Index: e.whole, Scale: 8}, e.all)
	e.VPSHUFB(Mem{Base: e.table, Index: e.all, Scale: 8, Disp: valueMoves + 8*(digits+1)}, v, v)
	e.VPUNPCKLQDQ(e.index, v, v)
	e.VMOVDQU(v, Mem{Base: e.words, Index: e.filled, Scale: 2, Disp: 16 * i})
	e.MOVQ(Mem{Base: e.table, Index: e.point, Scale: 8, Disp: powersAt}, e.temp)
	e.MOVQ(e.temp, Mem{Base: e.powers, Index: e.filled, Scale: 1, Disp: 8 * i})
	e.LEAQ(Mem{Base: e.end, Disp: 1}, e.start)
}

// rare writes what is out of the way of entry i.
func (e *entryWriter) rare(i int) {
	// A value without a point ends where that would be.
	e.Label(label("integer", i))
	e.MOVQ(e.point, e.end)
	e.XORL(e.point.As32(), e.point.As32())
	e.MOVQ(e.whole, e.all)
	e.JMP(LabelRef(label("value", i)))
	// Of nine digits the first may be a 0 before the point: it is left out.
	e.Label(label("long", i))
	e.CMPQ(e.all, Imm(digits))
	e.JNE(LabelRef(label("odd", i)))
	e.CMPQ(e.point, Imm(digits))
	e.JNE(LabelRef(label("odd", i)))
	e.CMPB(e.at(e.colon, 1), Imm('0'))
	e.JNE(LabelRef(label("odd", i)))
	e.INCQ(e.colon)
	e.DECQ(e.all)
	e.MOVQ(I32(-1), e.whole)
	e.JMP(LabelRef(label("whole", i)))
	// Behind the last entry of a line, which ends with a control character, is no other.
	e.Label(label("last", i))
	e.JHI(LabelRef(label("odd", i)))
	e.store(i)
	e.ADDQ(Imm(8*uint64(i+1)), e.filled)
	e.JMP(LabelRef(label("odd", 0)))
}

// results returns.
func (e *entryWriter) results() {
	next := e.GP64()
	e.LEAQ(e.at(e.start, -1), next)
	e.SUBQ(e.param("text"), next)
	e.Store(next, e.ReturnIndex(0))
	e.SHRQ(Imm(3), e.filled)
	e.Store(e.filled, e.ReturnIndex(1))
	e.VZEROUPPER()
	e.RET()
}

// marks writes what marks the bytes that are no digits.
func marks(g *generator) {
	g.Function("markAVX")
	g.Attributes(attr.NOSPLIT)
	g.Pragma("noescape")
	g.SignatureExpr("func(text *byte, n int, marks *uint64)")
	g.Doc("markAVX sets the bits of bytes that are no digits, of n bytes, a positive multiple of 64.")
	text, n, out := g.Load(g.Param("text"), g.GP64()), g.Load(g.Param("n"), g.GP64()), g.Load(g.Param("marks"), g.GP64())
	shift, most := g.YMM(), g.YMM()
	g.VMOVDQU(g.words("digits", 4, eightTimes(0x50505050)...), shift)
	g.VMOVDQU(g.words("most", 4, eightTimes(0x89898989)...), most)
	g.Label("block")
	for i := range 2 {
		v, half := g.YMM(), g.GP32()
		g.VPADDB(Mem{Base: text, Disp: 32 * i}, shift, v) // digits become -128 to -119
		g.VPCMPGTB(most, v, v)
		g.VPMOVMSKB(v, half)
		g.MOVL(half, Mem{Base: out, Disp: 4 * i})
	}
	g.ADDQ(Imm(64), text)
	g.ADDQ(Imm(8), out)
	g.SUBQ(Imm(64), n)
	g.JG(LabelRef("block"))
	g.VZEROUPPER()
	g.RET()
}

func eightTimes(word uint32) []Constant {
	k := U32(word)
	return []Constant{k, k, k, k, k, k, k, k}
}
