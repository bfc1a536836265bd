package main

import (
	"github.com/mmcloughlin/avo/attr"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// The columns of Criteo rows, and where the parts of what categories are made ids with
// begin, in bytes: a key and the id of an absent value each, the mask of ids, or what
// hashes are divided by, and 2^64 divided by that, and the upper half of it. Of eight keys
// the third and the fourth stand behind the sixth.
const (
	criteoNums = 13
	criteoCats = 26
	missingAt  = 8 * criteoCats
	maskAt     = missingAt + 4*(criteoCats+2)
	divisorAt  = maskAt + 32
	inverseAt  = divisorAt + 32
	upperAt    = inverseAt + 32
	smallInts  = 1 << 15 // how many integers have a logarithm in the table
)

// criteo writes what reads the rows of Criteo text.
//
// Tabs are marked 64 bytes at a time, and fields taken four at a time, each in 64 bits,
// whatever they hold: nothing jumps but where a row ends. How many characters of a field
// are good is added up over the row. It cannot be more than there are in the field, so
// that the sum is the length of the row without its tabs only if every field is good.
func criteo(g *generator) {
	g.Function("rowsAVX")
	g.Attributes(attr.NOSPLIT)
	g.Pragma("noescape")
	g.SignatureExpr("func(text *byte, at, end int, labels, nums *float32, ids *int32, room int, fields *uint64, logs *float32) (next, n int)")
	g.Doc("rowsAVX reads rows of the common form from text, of which at, 6 or more, is the beginning of one. " +
		"It stops at anything else, behind room rows, at least 1, and behind end, from where on it reads as far as rowReach. " +
		"It stops behind a row with an integer whose logarithm is not in logs, below 0 there: of that, nums has the integer, with the highest bit set.")
	r := newRowWriter(g)
	g.Label("row")
	g.CMPQ(r.row, r.end)
	g.JHI(LabelRef("done"))
	r.label()
	r.integers()
	r.categories()
	r.finish()
	g.Label("done")
	r.results()
	// Of a line end of two characters the first is skipped.
	g.Label("return")
	g.CMPW(Mem{Base: r.at}, U16('\r'|'\n'<<8))
	g.JNE(LabelRef("done"))
	g.INCQ(r.at)
	g.JMP(LabelRef("ended"))
	g.Label("large")
	r.large()
	g.DECQ(r.left)
	g.JMP(LabelRef("done"))
	for _, write := range r.aside {
		write()
	}
}

// rowWriter writes the reading of rows.
type rowWriter struct {
	*generator
	row, end, at      reg.GPVirtual // addresses: of the row, of the last that may be read, of a field
	labels, nums, ids reg.GPVirtual // where the row's go
	left, fields      reg.GPVirtual
	logs              reg.GPVirtual
	marks, tab        reg.GPVirtual // of tabs from at on; the first of them
	zero, tabs, begin vec           // begin: of a character behind all control characters of line ends
	halves            [3]vec        // of vectors of words
	signs             vec           // bits of bytes that are minus signs
	bad               vec           // more than 15 where a character is wrong
	other             vec           // how many of the words of integers are no part of them
	absent            vec           // -1 for every category that is not there
	ints              Mem           // see whole
	aside             []func()      // write what is out of the way
	missed            reg.GPVirtual // below 0 if a logarithm is not there
}

func newRowWriter(g *generator) *rowWriter {
	r := &rowWriter{generator: g}
	load := func(name string) reg.GPVirtual {
		p := g.GP64()
		g.Load(g.Param(name), p)
		return p
	}
	r.row, r.end = load("at"), load("end")
	text := load("text")
	g.ADDQ(text, r.row)
	g.ADDQ(text, r.end)
	r.labels, r.nums, r.ids = load("labels"), load("nums"), load("ids")
	r.left, r.fields, r.logs = load("room"), load("fields"), load("logs")
	r.at, r.marks, r.tab = g.GP64(), g.GP64(), g.GP64()
	for _, v := range []*vec{&r.zero, &r.tabs, &r.begin, &r.signs, &r.bad, &r.other, &r.absent, &r.halves[0], &r.halves[1], &r.halves[2]} {
		*v = g.YMM()
	}
	g.VMOVDQU(g.bits(0x09090909), r.tabs)
	g.VMOVDQU(g.each("begin", ('\r'+1)<<56), r.begin)
	r.ints, r.missed = g.AllocLocal(128), g.GP32()
	return r
}

// each is a vector of a word four times, in memory.
func (g *generator) each(name string, word uint64) Mem {
	k := U64(word)
	return g.words(name, 8, k, k, k, k)
}

// eachHalf is a vector of 16 bytes twice, in memory.
func (g *generator) eachHalf(name string, bytes [16]byte) Mem {
	var words []Constant
	for i := range 4 {
		w := uint64(0)
		for j, b := range bytes[i%2*8:][:8] {
			w |= uint64(b) << (8 * j)
		}
		words = append(words, U64(w))
	}
	return g.words(name, 8, words...)
}

// label reads the label and the tab behind it.
func (r *rowWriter) label() {
	label, one := r.GP32(), r.GP32()
	r.MOVWLZX(Mem{Base: r.row}, label)
	r.MOVL(label, one)
	r.ANDL(Imm(1), one)
	r.XORL(one, label)
	r.CMPL(label, U32('0'|'\t'<<8))
	r.JNE(LabelRef("done"))
	r.NEGL(one)
	r.ANDL(U32(0x3f800000), one) // 1, or 0
	r.MOVL(one, Mem{Base: r.labels})
	r.LEAQ(Mem{Base: r.row, Disp: 2}, r.at)
}

// mark marks the tabs of the 64 bytes from at on.
func (r *rowWriter) mark() {
	high := r.GP64()
	for i, to := range []reg.GPVirtual{r.marks, high} {
		v := r.YMM()
		r.VPCMPEQB(Mem{Base: r.at, Disp: 32 * i}, r.tabs, v)
		r.VPMOVMSKB(v, to.As32())
	}
	r.SHLQ(Imm(32), high)
	r.ORQ(high, r.marks)
}

// next finds the next tab. If it is the last that is wanted of the marks, it must be
// there: so are those before it then.
func (r *rowWriter) next(last bool) {
	r.TZCNTQ(r.marks, r.tab)
	if last {
		r.JCS(LabelRef("done"))
		return
	}
	r.BLSRQ(r.marks, r.marks)
}

// behind is the word that begins more bytes behind the tab.
func (r *rowWriter) behind(more int) Mem {
	return Mem{Base: r.at, Index: r.tab, Scale: 1, Disp: more}
}

// pair loads a word as the first or the second of a half of a vector.
func (r *rowWriter) pair(half vec, second bool, m Mem) {
	if second {
		r.VMOVHPS(m, half.AsX(), half.AsX())
		return
	}
	r.VMOVQ(m, half.AsX())
}

// join makes one vector of two halves.
func (r *rowWriter) join(low, high vec) vec {
	v := r.YMM()
	r.VINSERTI128(Imm(1), high.AsX(), low, v)
	return v
}

// packed is which half of a vector a word is put in: packing puts the first halves of
// two vectors before their second ones. The last two share one.
var packed = [8]int{0, 0, 1, 1, 2, 2, 2, 2} //nolint:gochecknoglobals // a constant

// integers reads the integers, of at most eight characters.
func (r *rowWriter) integers() {
	r.VPXOR(r.zero, r.zero, r.zero)
	r.VPXOR(r.signs, r.signs, r.signs)
	r.VPXOR(r.other, r.other, r.other)
	var even vec
	for f := range criteoNums {
		if f%7 == 0 {
			r.mark()
		}
		last := f == 6 || f == criteoNums-1
		r.next(last)
		r.pair(r.halves[packed[f%8]], f%2 == 1, r.behind(-8))
		if last {
			r.LEAQ(r.behind(1), r.at)
		}
		switch f {
		case 5:
			even = r.number(r.join(r.halves[0], r.halves[2]))
		case 7:
			r.whole(0, even, r.number(r.join(r.halves[1], r.halves[2])))
		}
	}
	even = r.number(r.join(r.halves[0], r.halves[2]))
	r.whole(8, even, r.number(r.halves[1]))
	r.logarithms()
	// A sign alone is wrong.
	r.VPAND(r.each("alone", 1), r.signs, r.bad)
	r.VPSLLQ(Imm(7), r.bad, r.bad)
	r.VPSUBB(r.other, r.zero, r.other)
	r.VPSADBW(r.zero, r.other, r.other)
}

// number reads integers that end where their words end: each becomes two numbers of
// four digits, the lower one first.
func (r *rowWriter) number(words vec) vec {
	v, other, first, minus := r.YMM(), r.YMM(), r.YMM(), r.YMM()
	r.VPSHUFB(r.eachHalf("backward", [16]byte{7, 6, 5, 4, 3, 2, 1, 0, 15, 14, 13, 12, 11, 10, 9, 8}), words, v)
	r.VPADDB(r.bits(0x50505050), v, other) // digits become -128 to -119
	r.VPCMPGTB(r.bits(0x89898989), other, other)
	r.VPSUBQ(other, r.zero, first)
	r.VPCMPEQB(r.bits(0x2d2d2d2d), v, minus)
	r.VPAND(other, minus, minus)
	r.VPAND(first, minus, minus) // the lowest bit of the first character that is no digit
	r.VPOR(first, other, other)  // that one and all before it
	r.VPANDN(v, other, v)
	r.VPAND(r.bits(0x0f0f0f0f), v, v)
	r.VPADDB(minus, other, other) // a sign is part of its number
	r.VPADDB(other, r.other, r.other)
	r.VPOR(minus, r.signs, r.signs)
	r.VPMADDUBSW(r.bits(0x0a010a01), v, v)
	r.VPMADDWD(r.bits(100<<16|1), v, v)
	r.VPCMPEQQ(r.zero, minus, minus)
	r.VPAND(minus, v, v) // below 0 is 0
	return v
}

// whole joins integers from field f on, eight of them or what there are, and leaves
// them in ints, and in the 64 bytes behind it where their logarithms are.
func (r *rowWriter) whole(f int, a, b vec) {
	v := r.YMM()
	r.VPACKUSDW(b, a, v)
	r.VPMADDWD(r.bits(10_000<<16|1), v, v)
	r.VMOVDQU(v, r.ints.Offset(4*f))
	r.VPMINUD(r.bits(smallInts), v, v)
	r.VMOVDQU(v, r.ints.Offset(64+4*f))
}

// logarithms stores those of the integers.
func (r *rowWriter) logarithms() {
	r.XORL(r.missed, r.missed)
	for f := range criteoNums {
		v := r.GP64()
		r.MOVL(r.ints.Offset(64+4*f), v.As32())
		r.MOVL(Mem{Base: r.logs, Index: v, Scale: 4}, v.As32())
		r.MOVL(v.As32(), Mem{Base: r.nums, Disp: 4 * f})
		r.ORL(v.As32(), r.missed)
	}
}

// large stores integers without a logarithm as they are, with the highest bit set.
func (r *rowWriter) large() {
	for f := range criteoNums {
		v := r.GP32()
		r.MOVL(Mem{Base: r.nums, Disp: 4 * f}, v)
		r.TESTL(v, v)
		r.JNS(LabelRef(label("small", f)))
		r.ORL(r.ints.Offset(4*f), v)
		r.MOVL(v, Mem{Base: r.nums, Disp: 4 * f})
		r.Label(label("small", f))
	}
}

// categories reads the categories, of no character or eight.
func (r *rowWriter) categories() {
	r.VPXOR(r.absent, r.absent, r.absent)
	var even, odd category
	for f := range criteoCats {
		m := Mem{Base: r.at}
		last := f%7 == 0 || f == criteoCats-1
		if f > 0 {
			r.next(last)
			m = r.behind(1)
		}
		r.pair(r.halves[packed[f%8]], f%2 == 1, m)
		if f > 0 && last {
			r.LEAQ(m, r.at)
		}
		if f%7 == 0 {
			r.mark()
		}
		switch f % 8 {
		case 5:
			even = r.hash(f-5, r.join(r.halves[0], r.halves[2]))
		case 7:
			odd = r.hash(f-3, r.join(r.halves[1], r.halves[2]))
			r.VSHUFPS(Imm(0x88), odd.absent, even.absent, even.absent)
			r.reduce(f/8, even.hash, odd.hash)
			r.VPBLENDVB(even.absent, Mem{Base: r.fields, Disp: missingAt + 4*(f-7)}, even.hash, even.hash)
			r.VMOVDQU(even.hash, Mem{Base: r.ids, Disp: 4 * (f - 7)})
		}
	}
	r.fold(r.bad, func(a ...Op) { r.VPOR(a[0], a[1], a[2]) })
	r.VPSLLQ(Imm(3), r.absent, r.absent)
	r.VPSUBQ(r.absent, r.other, r.other)
	r.fold(r.other, r.VPADDQ)
	even = r.hash(criteoCats-2, r.halves[0].AsX())
	r.VSHUFPS(Imm(0x88), even.absent, even.absent, even.absent)
	r.reduce(criteoCats/8, even.hash, even.hash)
	r.VPBLENDVB(even.absent, Mem{Base: r.fields, Disp: missingAt + 4*(criteoCats-2)}, even.hash, even.hash)
	r.VMOVQ(even.hash, Mem{Base: r.ids, Disp: 4 * (criteoCats - 2)})
}

// fold adds the upper half of a vector to the lower.
func (r *rowWriter) fold(v vec, add func(...Op)) {
	high := r.XMM()
	r.VEXTRACTI128(Imm(1), v, high)
	add(high, v.AsX(), v.AsX())
}

// category is four hashes, or two, and which of them are of nothing.
type category struct{ hash, absent vec }

// hash reads as many categories as v is wide, of which f is where their keys are.
func (r *rowWriter) hash(f int, v reg.Register) category {
	wide := v.Size() == 32
	vector := func() vec {
		if wide {
			return r.YMM()
		}
		return r.XMM()
	}
	of := func(v vec) reg.Register {
		if wide {
			return v
		}
		return v.AsX()
	}
	absent, digit, x := vector(), vector(), vector()
	// What begins with a control character is not there.
	r.VPSLLQ(Imm(56), v, absent)
	r.VPCMPGTQ(absent, of(r.begin), absent)
	if wide {
		r.VPADDQ(absent, r.absent, r.absent)
	} else {
		r.VPSLLQ(Imm(3), absent, x)
		r.VPSUBQ(x, r.other.AsX(), r.other.AsX())
	}
	// Digits become 0 to 9, and letters 10 to 15; all else is above that both ways.
	r.VPADDB(r.bits(0xc6c6c6c6), v, digit)
	r.VPSUBUSB(r.bits(0x06060606), digit, digit)
	r.VPSUBB(r.bits(0xf0f0f0f0), digit, digit)
	r.VPAND(r.bits(0xdfdfdfdf), v, x)
	r.VPSUBB(r.bits(0x41414141), x, x)
	r.VPADDUSB(r.bits(0x0a0a0a0a), x, x)
	r.VPMINUB(digit, x, x)
	r.VPANDN(x, absent, digit)
	r.VPOR(digit, of(r.bad), of(r.bad))
	r.VPMADDUBSW(r.bits(0x01100110), x, x)
	r.VPSHUFB(r.eachHalf("bytes", [16]byte{6, 4, 2, 0, 128, 128, 128, 128, 14, 12, 10, 8, 128, 128, 128, 128}), x, x)
	r.VPXOR(Mem{Base: r.fields, Disp: 8 * f}, x, x)
	r.mix(x, vector)
	return category{x, absent}
}

// reduce makes ids of hashes: a becomes those of a and b, in 32 bits each.
func (r *rowWriter) reduce(i int, a, b vec) {
	r.CMPL(Mem{Base: r.fields, Disp: divisorAt}, Imm(0))
	r.JNE(LabelRef(label("divide", i)))
	r.VSHUFPS(Imm(0x88), b, a, a)
	r.VPAND(Mem{Base: r.fields, Disp: maskAt}, a, a)
	r.Label(label("reduced", i))
	r.aside = append(r.aside, func() {
		r.Label(label("divide", i))
		q := r.quotient(a)
		other := q
		if a != b {
			other = r.quotient(b)
		}
		r.VSHUFPS(Imm(0x88), other, q, q)
		r.VSHUFPS(Imm(0x88), b, a, a)
		// The quotient is right or 1 too small, so what remains is below twice the divisor.
		divisor := Mem{Base: r.fields, Disp: divisorAt}
		r.VPMULLD(divisor, q, q)
		r.VPSUBD(q, a, a)
		r.VPSUBD(divisor, a, q)
		r.VPMINUD(q, a, a)
		r.JMP(LabelRef(label("reduced", i)))
	})
}

// quotient multiplies hashes by the inverse of what they are divided by, and returns the
// upper half of that, of which the lower 32 bits count.
func (r *rowWriter) quotient(x vec) vec {
	vector := r.YMM
	if x.Size() == 16 {
		vector = r.XMM
	}
	q, low, middle, t := vector(), vector(), vector(), vector()
	inverse, upper := Mem{Base: r.fields, Disp: inverseAt}, Mem{Base: r.fields, Disp: upperAt}
	r.VPSRLQ(Imm(32), x, q)
	r.VPMULUDQ(inverse, x, low)
	r.VPSRLQ(Imm(32), low, low)
	r.VPMULUDQ(upper, x, t)
	r.VPADDQ(t, low, low)
	r.VPMULUDQ(inverse, q, middle)
	r.VPMULUDQ(upper, q, q)
	r.VPAND(r.each("lower", 1<<32-1), low, t)
	r.VPADDQ(t, middle, middle)
	r.VPSRLQ(Imm(32), middle, middle)
	r.VPSRLQ(Imm(32), low, low)
	r.VPADDQ(middle, q, q)
	r.VPADDQ(low, q, q)
	return q
}

// mix hashes as package mix does.
func (r *rowWriter) mix(x vec, vector func() vec) {
	t, cross := vector(), vector()
	fold := func(n uint64) {
		r.VPSRLQ(Imm(n), x, t)
		r.VPXOR(t, x, x)
	}
	multiply := func(name string, k uint64) {
		low, high := r.each(name+"low", k), r.each(name+"high", k>>32)
		r.VPSRLQ(Imm(32), x, t)
		r.VPMULUDQ(low, t, t)
		r.VPMULUDQ(high, x, cross)
		r.VPMULUDQ(low, x, x)
		r.VPADDQ(cross, t, t)
		r.VPSLLQ(Imm(32), t, t)
		r.VPADDQ(t, x, x)
	}
	r.VPADDQ(r.each("golden", 0x9e3779b97f4a7c15), x, x)
	fold(30)
	multiply("first", 0xbf58476d1ce4e5b9)
	fold(27)
	multiply("second", 0x94d049bb133111eb)
	fold(31)
}

// finish reads the line end and takes the row if all of it was good.
func (r *rowWriter) finish() {
	c, sum := r.GP64(), r.GP64()
	r.MOVBLZX(Mem{Base: r.at}, c.As32())
	r.CMPL(c.As32(), Imm('\r'+1))
	r.SBBQ(c, c)                                               // -1 if the last category is not there
	r.LEAQ(Mem{Base: r.at, Index: c, Scale: 8, Disp: 8}, r.at) // the line end
	// The characters of the row: label, tabs, integers, categories.
	high := r.XMM()
	r.VPSHUFD(Imm(0xee), r.other.AsX(), high)
	r.VPADDQ(high, r.other.AsX(), high)
	r.VMOVQ(high, sum)
	r.ADDQ(r.at, sum)
	r.SUBQ(r.row, sum)
	r.CMPQ(sum, U32(1+criteoNums+criteoCats+16*8+criteoCats*8))
	r.JNE(LabelRef("done"))
	r.VPTEST(r.bits(0xf0f0f0f0), r.bad.AsX())
	r.JNZ(LabelRef("done"))
	r.CMPB(Mem{Base: r.at}, Imm('\n'))
	r.JNE(LabelRef("return"))
	r.Label("ended")
	r.LEAQ(Mem{Base: r.at, Disp: 1}, r.row)
	r.TESTL(r.missed, r.missed)
	r.JS(LabelRef("large"))
	r.ADDQ(Imm(4), r.labels)
	r.ADDQ(Imm(4*criteoNums), r.nums)
	r.ADDQ(Imm(4*criteoCats), r.ids)
	r.DECQ(r.left)
	r.JNZ(LabelRef("row"))
}

// results returns.
func (r *rowWriter) results() {
	address := r.GP64()
	r.Load(r.Param("text"), address)
	r.SUBQ(address, r.row)
	r.Store(r.row, r.ReturnIndex(0))
	n := r.GP64()
	r.Load(r.Param("room"), n)
	r.SUBQ(r.left, n)
	r.Store(n, r.ReturnIndex(1))
	r.VZEROUPPER()
	r.RET()
}
