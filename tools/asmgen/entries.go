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
	valueMoves = 0 // of values with a digits before the point and k in all: at 8a+k
	indexMoves = valueMoves + 8*(8*digits+digits+1)
	powersAt   = indexMoves + 8*(digits+1) // of ten
)

// entries writes what reads the entries of libsvm text.
//
// The bytes that are no digits end the parts of an entry: they are marked first, in
// a pass of its own, and then taken three entries at a time, so that an entry waits
// for the one before it only to take three marks away.
func entries(g *generator) {
	marks(g)
	g.Function("entriesAVX")
	g.Attributes(attr.NOSPLIT)
	g.Pragma("noescape")
	g.SignatureExpr("func(text *byte, marks *uint64, at, end int, ids *int32, values *float32, room int, base, beyond uint64, last int64) (next, n int, gaps int64)")
	g.Doc("entriesAVX reads entries of the common form from text, of which at is the space before the first and marks are those of markAVX. " +
		"It stops at anything else, behind room entries, and behind end, from where on it reads as far as reach. The indexes less base are ids, which must be below beyond. " +
		"It returns the byte behind the last entry, how many they are, and gaps, below 0 if each id is above the one before it, the first above last.")
	e := newEntryWriter(g)
	g.CMPQ(e.id, e.limit)
	g.JAE(LabelRef("done"))
	g.Label("block")
	end := g.Load(g.Param("text"), g.GP64())
	g.ADDQ(e.param("end"), end)
	g.CMPQ(e.text, end)
	g.JHI(LabelRef("done"))
	e.take()
	for i := range 3 {
		e.entry(i)
	}
	g.ADDQ(e.start, e.text)
	g.XORL(e.start.As32(), e.start.As32())
	g.JMP(LabelRef("block"))
	for i := range 3 {
		e.rare(i)
	}
	g.Label("done")
	e.results()
}

// entryWriter writes the reading of entries. All positions are counted from text.
type entryWriter struct {
	*generator
	text, start                reg.GPVirtual // start: of the entry, behind the space
	id, limit                  reg.GPVirtual // where the next id goes, behind the last
	last, gaps, marks, table   reg.GPVirtual
	colon, point, end          reg.GPVirtual // of the entry; point becomes the digits behind it
	whole, all, temp           reg.GPVirtual // digits before the point and in all
	index                      reg.VecVirtual
	zeros, tens, hundreds, big reg.VecVirtual
}

func newEntryWriter(g *generator) *entryWriter {
	e := &entryWriter{generator: g}
	for _, r := range []*reg.GPVirtual{
		&e.start, &e.marks, &e.table, &e.colon, &e.point, &e.end, &e.whole, &e.all, &e.temp,
	} {
		*r = g.GP64()
	}
	load := func(name string) reg.GPVirtual {
		r := g.GP64()
		g.Load(g.Param(name), r)
		return r
	}
	e.text, e.id, e.limit, e.last, e.index = load("text"), load("ids"), load("room"), load("last"), g.XMM()
	e.gaps = g.GP64()
	g.MOVQ(I32(-1), e.gaps)
	g.ADDQ(e.param("at"), e.text)
	g.INCQ(e.text)
	g.XORL(e.start.As32(), e.start.As32())
	g.LEAQ(Mem{Base: e.id, Index: e.limit, Scale: 4}, e.limit)
	// There are no more registers: the argument counts from ids from here on.
	g.MOVQ(e.param("values"), e.temp)
	g.SUBQ(e.id, e.temp)
	g.MOVQ(e.temp, e.param("values"))
	g.LEAQ(entryTable(g), e.table)
	e.zeros, e.tens, e.hundreds, e.big = g.joiners()
	return e
}

// joiners returns what eight digits each are joined to numbers with: what is taken
// from them, and the weights of digits, of pairs and of fours.
func (g *generator) joiners() (zeros, tens, hundreds, big reg.VecVirtual) {
	of := func(name string, word uint32) reg.VecVirtual {
		v := g.XMM()
		k := U32(word)
		g.VMOVDQU(g.words(name, 4, k, k, k, k), v)
		return v
	}
	return of("zeros", 0x30303030), of("tens", 0x010a010a), of("hundreds", 100|1<<16), of("big", 10_000|1<<16)
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
	for n := range digits + 1 {
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
	e.JNE(LabelRef("done"))
	e.MOVQ(e.colon, e.all)
	e.SUBQ(e.start, e.all)
	e.upTo8(e.all, LabelRef("done"))
	e.VMOVQ(e.at(e.start, 0), e.index)
	e.VPSHUFB(Mem{Base: e.table, Index: e.all, Scale: 8, Disp: indexMoves}, e.index, e.index)
	e.LEAQ(Mem{Base: e.point, Disp: -1}, e.whole)
	e.SUBQ(e.colon, e.whole)
	e.CMPB(e.at(e.point, 0), Imm('.'))
	e.JNE(ref("integer"))
	e.next(e.end)
	e.NOTQ(e.point)
	e.ADDQ(e.end, e.point)
	e.LEAQ(Mem{Base: e.whole, Index: e.point, Scale: 1}, e.all)
	e.Label(label("value", i))
	e.upTo8(e.all, ref("long"))
	e.Label(label("join", i))
	e.CMPB(e.at(e.end, 0), Imm(' '))
	e.JHI(LabelRef("done"))
	e.JNE(ref("last"))
	e.Label(label("store", i))
	e.join()
	e.CMPQ(e.id, e.limit)
	e.JAE(LabelRef("done"))
}

// upTo8 jumps unless a number is 1 to 8.
func (e *entryWriter) upTo8(n reg.GPVirtual, otherwise LabelRef) {
	e.LEAQ(Mem{Base: n, Disp: -1}, e.temp)
	e.CMPQ(e.temp, Imm(digits-1))
	e.JHI(otherwise)
}

// join makes numbers of the digits and stores them.
func (e *entryWriter) join() {
	v := e.XMM()
	e.VMOVDQU(e.at(e.colon, 1), v)
	e.LEAQ(Mem{Base: e.all, Index: e.whole, Scale: 8}, e.all)
	e.VPSHUFB(Mem{Base: e.table, Index: e.all, Scale: 8, Disp: valueMoves}, v, v)
	e.VPUNPCKLQDQ(e.index, v, v)
	e.VPSUBUSB(e.zeros, v, v) // what is no digit stays 0
	e.VPMADDUBSW(e.tens, v, v)
	e.VPMADDWD(e.hundreds, v, v)
	e.VPACKUSDW(v, v, v)
	e.VPMADDWD(e.big, v, v)
	id := e.temp
	e.VMOVQ(v, id)
	e.SHRQ(Imm(32), id)
	e.SUBQ(e.param("base"), id)
	e.CMPQ(id, e.param("beyond"))
	e.JAE(LabelRef("done"))
	e.SUBQ(id, e.last)
	e.ANDQ(e.last, e.gaps)
	e.MOVQ(id, e.last)
	e.MOVL(id.As32(), Mem{Base: e.id})
	// With up to 8 digits behind the point no quotient that is not half way between two
	// float32s is rounded to a float64 that is: rounding twice is rounding once.
	e.VCVTDQ2PD(v, v)
	e.VDIVSD(Mem{Base: e.table, Index: e.point, Scale: 8, Disp: powersAt}, v, v)
	e.VCVTSD2SS(v, v, v)
	e.MOVQ(e.param("values"), e.temp)
	e.VMOVSS(v, Mem{Base: e.id, Index: e.temp, Scale: 1})
	e.ADDQ(Imm(4), e.id)
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
	e.CMPQ(e.all, Imm(digits+1))
	e.JNE(LabelRef("done"))
	e.CMPQ(e.point, Imm(digits))
	e.JNE(LabelRef("done"))
	e.CMPB(e.at(e.colon, 1), Imm('0'))
	e.JNE(LabelRef("done"))
	e.INCQ(e.colon)
	e.DECQ(e.all)
	e.XORL(e.whole.As32(), e.whole.As32())
	e.JMP(LabelRef(label("join", i)))
	// Behind the last entry of a line is no other.
	e.Label(label("last", i))
	e.LEAQ(Mem{Base: e.id, Disp: 4}, e.limit)
	e.JMP(LabelRef(label("store", i)))
}

// results returns.
func (e *entryWriter) results() {
	next := e.GP64()
	e.LEAQ(e.at(e.start, -1), next)
	e.SUBQ(e.param("text"), next)
	e.Store(next, e.ReturnIndex(0))
	e.SUBQ(e.param("ids"), e.id)
	e.SHRQ(Imm(2), e.id)
	e.Store(e.id, e.ReturnIndex(1))
	e.Store(e.gaps, e.ReturnIndex(2))
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
