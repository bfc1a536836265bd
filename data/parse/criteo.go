package parse

import (
	"bytes"
	"fmt"
	"io"
	"math"
	"math/bits"
	"slices"

	"github.com/gangline/gangline/data/parse/internal/scan"
	"github.com/gangline/gangline/data/rows"
	"github.com/gangline/gangline/internal/mix"
	"github.com/gangline/gangline/internal/number"
)

// The shape of Criteo rows: label, integers, categories, parted by tabs.
const (
	CriteoNums    = 13
	CriteoCats    = 26
	criteoColumns = 1 + CriteoNums + CriteoCats
)

// CriteoSpecs describes the columns of Criteo rows: label, num, cat.
func CriteoSpecs(buckets int) []rows.ColumnSpec {
	return []rows.ColumnSpec{
		{Name: "label", Kind: rows.DenseColumn, Dim: 1},
		{Name: "num", Kind: rows.DenseColumn, Dim: CriteoNums},
		{Name: "cat", Kind: rows.RaggedColumn, Dim: buckets, PerRow: CriteoCats},
	}
}

// CategoryID returns the id of a category: the value (a hexadecimal number in
// the file) of a field (0 to 25), hashed into [0, buckets). Equal values of
// different fields are different categories. The id depends on nothing else, so
// it is the same in every file and on every rank.
func CategoryID(field int, value uint64, buckets int) int64 {
	return int64(mix.Mix(mix.Mix(uint64(field)+1)^value) % uint64(buckets))
}

// MissingID returns the id of an absent value of a field: a category of its own.
func MissingID(field, buckets int) int64 {
	return int64(mix.Mix(^mix.Mix(uint64(field)+1)) % uint64(buckets))
}

// Numeric is what becomes of an integer feature: log(1+max(v,0)).
func Numeric(v int64) float32 { return float32(math.Log1p(float64(max(v, 0)))) }

// criteo reads the tab separated lines of the Criteo click logs: a label 0 or 1,
// 13 integers of which each may be absent, 26 categories as hexadecimal numbers of
// which each may be absent.
type criteo struct {
	buckets uint64
	mask    uint64     // buckets-1 if that is a power of two, else 0
	logs    []float32  // of the smallest integers, nearly all that occur; 0 or -0: not known yet
	quick   *scan.Rows // nil: no assembly
	keys    [CriteoCats]uint64
	missing [CriteoCats]int32
	columns []rows.ColumnSpec
}

// Criteo reads Criteo lines. file is the name that errors give.
func Criteo(file string, in io.Reader, buckets int) *Reader {
	p := &criteo{buckets: uint64(buckets), columns: CriteoSpecs(buckets)}
	if bits.OnesCount64(p.buckets) == 1 {
		p.mask = p.buckets - 1
	}
	for f := range p.keys {
		p.keys[f] = mix.Mix(uint64(f) + 1)
		p.missing[f] = int32(MissingID(f, buckets))
	}
	if scan.Here() && p.buckets <= 1<<31 {
		p.quick = scan.NewRows(&p.keys, &p.missing, uint32(p.buckets))
		p.logs = p.quick.Logs[:scan.SmallInts]
	} else {
		p.logs = make([]float32, scan.SmallInts)
	}
	return newReader(file, in, p)
}

func (p *criteo) specs() []rows.ColumnSpec { return p.columns }

// id is CategoryID with the field's half done before.
func (p *criteo) id(field int, value uint64) int32 {
	h := mix.Mix(p.keys[field] ^ value)
	if p.mask != 0 {
		return int32(h & p.mask)
	}
	return int32(h % p.buckets)
}

// numeric is Numeric with small integers from a table, which fills as they come.
func (p *criteo) numeric(v uint64) float32 {
	if v >= uint64(len(p.logs)) {
		return Numeric(int64(v))
	}
	if p.logs[v] == 0 {
		p.logs[v] = Numeric(int64(v))
	}
	return p.logs[v]
}

// scan implements parser.
func (p *criteo) scan(b *rows.Block, text []byte, at, end, n int) (next, appended int) {
	first := b.Rows
	labels := slices.Grow(b.Columns[0].Values, n)[:first+n]
	nums := slices.Grow(b.Columns[1].Values, n*CriteoNums)[:(first+n)*CriteoNums]
	cats := slices.Grow(b.Columns[2].IDs, n*CriteoCats)[:(first+n)*CriteoCats]
	row := first
	for row < first+n && at < end {
		if p.quick != nil { // which stops at rows that are not of the commonest form
			next, k := p.quick.Read(text[:end], at, labels[row:], nums[row*CriteoNums:], cats[row*CriteoCats:])
			if k > 0 {
				at, row = next, row+k
				p.large((*[CriteoNums]float32)(nums[(row-1)*CriteoNums:]))
				continue
			}
		}
		label := text[at] - '0'
		if label > 1 || text[at+1] != '\t' {
			break
		}
		i, ok := p.scanInts(text, at+2, (*[CriteoNums]float32)(nums[row*CriteoNums:]))
		if !ok {
			break
		}
		if i, ok = p.scanCats(text, i, (*[CriteoCats]int32)(cats[row*CriteoCats:])); !ok {
			break
		}
		labels[row] = float32(label)
		at = i
		row++
	}
	b.Columns[0].Values = labels[:row]
	b.Columns[1].Values = nums[:row*CriteoNums]
	b.Columns[2].IDs = cats[:row*CriteoCats]
	b.Rows = row
	return at, row - first
}

// large completes the integers of a row that the assembly has no logarithms for.
func (p *criteo) large(nums *[CriteoNums]float32) {
	for f, v := range nums {
		if b := math.Float32bits(v); b>>31 != 0 {
			nums[f] = p.numeric(uint64(b &^ (1 << 31)))
		}
	}
}

// scanInts reads 13 integers, each with the tab behind it.
func (p *criteo) scanInts(text []byte, i int, nums *[CriteoNums]float32) (next int, ok bool) {
	for f := range nums {
		w := number.Word(text, i)
		n := number.First(number.NonDigits(w))
		if n == 0 {
			if i, ok = p.scanOther(text, i, &nums[f]); !ok {
				return 0, false
			}
			continue
		}
		v := number.Leading(w, n)
		if i += n; text[i] != '\t' {
			return 0, false // a longer one, or no integer
		}
		i++
		nums[f] = p.numeric(v)
	}
	return i, true
}

// scanOther reads what stands for an integer and begins with no digit: nothing, or a
// number below 0, of which numeric makes 0.
func (p *criteo) scanOther(text []byte, i int, num *float32) (next int, ok bool) {
	*num = 0
	if text[i] == '-' {
		_, n := number.Digits(text, i+1)
		if i += 1 + n; n == 0 || n > 15 {
			return 0, false
		}
	}
	return i + 1, text[i] == '\t'
}

// scanCats reads 26 categories, the first 25 with the tab behind them, the last with
// the line end.
func (p *criteo) scanCats(text []byte, i int, cats *[CriteoCats]int32) (next int, ok bool) {
	for f := range cats {
		c := text[i]
		cats[f] = p.missing[f]
		if c > '\r' {
			w := number.Word(text, i)
			if number.NonHex(w) != 0 {
				return 0, false
			}
			i += 8
			c = text[i]
			cats[f] = p.id(f, number.HexWord(w))
		}
		if i++; c != '\t' && f < CriteoCats-1 {
			return 0, false
		}
	}
	if text[i-1] == '\r' {
		i++
	}
	return i, text[i-1] == '\n'
}

// line implements parser.
func (p *criteo) line(b *rows.Block, line []byte) (skip bool, f *fault) {
	if len(line) == 0 {
		return true, nil
	}
	if f := p.row(b, line); f != nil {
		b.Truncate(p.columns, b.Rows)
		return false, f
	}
	b.Rows++
	return false, nil
}

// row appends a row. If it returns a fault the caller cuts off what was appended.
func (p *criteo) row(b *rows.Block, line []byte) *fault {
	if n := bytes.Count(line, []byte{'\t'}) + 1; n != criteoColumns {
		return &fault{"", fmt.Sprintf("the row has %d columns parted by tabs, want %d (label, %d integers, %d categories)",
			n, criteoColumns, CriteoNums, CriteoCats)}
	}
	token, line := cutTab(line)
	if len(token) != 1 || token[0]|1 != '1' {
		return &fault{"label", fmt.Sprintf("label %s is not 0 or 1", quote(token))}
	}
	b.Columns[0].Values = append(b.Columns[0].Values, float32(token[0]-'0'))
	for i := range CriteoNums {
		token, line = cutTab(line)
		v, ok := number.Int(token)
		if !ok && len(token) > 0 {
			return &fault{fmt.Sprintf("integer %d", i+1), quote(token) + " is not a whole number of up to 18 digits"}
		}
		b.Columns[1].Values = append(b.Columns[1].Values, p.numeric(uint64(max(v, 0))))
	}
	for f := range CriteoCats {
		token, line = cutTab(line)
		id := p.missing[f]
		if len(token) > 0 {
			v, ok := number.Hex(token)
			if !ok {
				return &fault{fmt.Sprintf("category %d", f+1), quote(token) + " is not a hexadecimal number of up to 16 digits"}
			}
			id = p.id(f, v)
		}
		b.Columns[2].IDs = append(b.Columns[2].IDs, id)
	}
	return nil
}

// cutTab returns what stands before the first tab and after it.
func cutTab(s []byte) (token, rest []byte) {
	token, rest, _ = bytes.Cut(s, []byte{'\t'})
	return token, rest
}
