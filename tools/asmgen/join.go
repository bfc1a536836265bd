package main

import (
	"github.com/mmcloughlin/avo/attr"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// joinLanes is how many entries become numbers at once.
const joinLanes = 4

// join writes what makes numbers of the digits that entriesAVX put into place.
func join(g *generator) {
	g.Function("joinAVX")
	g.Attributes(attr.NOSPLIT)
	g.Pragma("noescape")
	g.SignatureExpr("func(words *uint64, powers *float64, n int, ids *int32, values *float32, base uint32, last int32) (largest uint32, gaps int32)")
	g.Doc("joinAVX makes ids and values of the digits of n entries, at least one, which entriesAVX brought into place: an id is the index less base. " +
		"It reads and writes up to a multiple of four entries. It returns the largest id, one below 0 being larger than all, and gaps, 0 if each id is above the one before it, the first above last.")
	j := newJoinWriter(g)
	g.Label("four")
	v := j.numbers()
	ids := g.XMM()
	g.VEXTRACTI128(Imm(1), v, ids)
	g.VPSUBD(j.base, ids, ids)
	g.VMOVDQU(ids, Mem{Base: j.ids, Index: j.at, Scale: 1})
	j.look(ids)
	// With up to 8 digits behind the point no quotient that is not half way between two
	// float32s is rounded to a float64 that is: rounding twice is rounding once.
	g.VCVTDQ2PD(v.AsX(), v)
	g.VDIVPD(Mem{Base: j.powers, Index: j.at, Scale: 2}, v, v)
	g.VCVTPD2PSY(v, v.AsX())
	g.VMOVUPS(v.AsX(), Mem{Base: j.values, Index: j.at, Scale: 1})
	g.ADDQ(Imm(4*joinLanes), j.at)
	g.SUBQ(Imm(joinLanes), j.n)
	g.JG(LabelRef("four"))
	j.results()
}

// joinWriter writes the making of numbers.
type joinWriter struct {
	*generator
	words, powers, n, ids, values    reg.GPVirtual
	at                               reg.GPVirtual  // bytes of ids before this turn
	zeros, tens, hundreds, big, sort reg.VecVirtual // of 256 bits, as v of numbers
	base, before                     reg.VecVirtual // before: the ids before these
	left, lanes, four                reg.VecVirtual // how many entries are left
	largest, gaps                    reg.VecVirtual
}

func newJoinWriter(g *generator) *joinWriter {
	j := &joinWriter{generator: g, at: g.GP64(), largest: g.XMM(), gaps: g.XMM()}
	load := func(name string) reg.GPVirtual {
		r := g.GP64()
		g.Load(g.Param(name), r)
		return r
	}
	j.words, j.powers, j.n, j.ids, j.values = load("words"), load("powers"), load("n"), load("ids"), load("values")
	g.XORL(j.at.As32(), j.at.As32())
	g.VPXOR(j.largest, j.largest, j.largest)
	g.VPXOR(j.gaps, j.gaps, j.gaps)
	same := func(name string, word uint32) reg.VecVirtual {
		v := g.YMM()
		g.VMOVDQU(g.words(name, 4, eightTimes(word)...), v)
		return v
	}
	// What is taken from digits, and the weights of digits, of pairs and of fours.
	j.zeros, j.tens, j.hundreds, j.big = same("zeros", 0x30303030), same("tens", 0x010a010a), same("hundreds", 100|1<<16), same("big", 10_000|1<<16)
	j.sort = g.YMM()
	g.VMOVDQU(g.words("sort", 4, U32(0), U32(4), U32(2), U32(6), U32(1), U32(5), U32(3), U32(7)), j.sort)
	j.lanes, j.four = g.XMM(), g.XMM()
	g.VMOVDQU(g.words("lanes", 4, U32(0), U32(1), U32(2), U32(3)), j.lanes)
	g.VMOVDQU(g.words("four", 4, U32(joinLanes), U32(joinLanes), U32(joinLanes), U32(joinLanes)), j.four)
	spread := func(from reg.Register) reg.VecVirtual {
		v := g.XMM()
		g.VMOVD(from, v)
		g.VPBROADCASTD(v, v)
		return v
	}
	j.left = spread(j.n.As32())
	j.base, j.before = spread(g.Load(g.Param("base"), g.GP32())), spread(g.Load(g.Param("last"), g.GP32()))
	return j
}

// numbers makes numbers of the digits of four entries: the four of the values, then
// those of the indexes.
func (j *joinWriter) numbers() reg.VecVirtual {
	v, w := j.YMM(), j.YMM()
	for i, x := range []reg.VecVirtual{v, w} {
		j.VMOVDQU(Mem{Base: j.words, Index: j.at, Scale: 4, Disp: 32 * i}, x)
		j.VPSUBUSB(j.zeros, x, x) // what is no digit stays 0
		j.VPMADDUBSW(j.tens, x, x)
		j.VPMADDWD(j.hundreds, x, x)
	}
	j.VPACKUSDW(w, v, v)
	j.VPMADDWD(j.big, v, v)
	j.VPERMD(v, j.sort, v)
	return v
}

// look notes what is to be known of ids.
func (j *joinWriter) look(ids reg.VecVirtual) {
	there, some, above := j.XMM(), j.XMM(), j.XMM()
	j.VPCMPGTD(j.lanes, j.left, there)
	j.VPSUBD(j.four, j.left, j.left)
	j.VPAND(there, ids, some)
	j.VPMAXUD(some, j.largest, j.largest)
	j.VPALIGNR(Imm(12), j.before, ids, above) // the id before each
	j.VPCMPGTD(above, ids, above)
	j.VPANDN(there, above, above)
	j.VPOR(above, j.gaps, j.gaps)
	j.VMOVDQA(ids, j.before)
}

// results returns.
func (j *joinWriter) results() {
	half, result := j.XMM(), j.GP32()
	for _, order := range []uint64{0b01_00_11_10, 0b00_00_00_01} {
		j.VPSHUFD(Imm(order), j.largest, half)
		j.VPMAXUD(half, j.largest, j.largest)
	}
	j.VMOVD(j.largest, result)
	j.Store(result, j.ReturnIndex(0))
	j.VMOVMSKPS(j.gaps, result)
	j.Store(result, j.ReturnIndex(1))
	j.VZEROUPPER()
	j.RET()
}
