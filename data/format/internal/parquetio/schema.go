package parquetio

import (
	"errors"
	"fmt"
	"math"
	"math/big"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/deprecated"
	"github.com/parquet-go/parquet-go/format"

	"github.com/gangline/gangline/data/table"
)

// form is what the values of a column are.
type form int

const (
	formNone form = iota
	formBool
	formInteger  // 32 or 64 bits with sign; dates, times and timestamps too
	formUnsigned // 32 or 64 bits without
	formInt96    // a timestamp: nanoseconds of a Julian day
	formFloat    // 32 or 64 bits
	formDecimal  // an integer, or bytes of one, times a power of ten
	formText     // UTF-8
	formBytes    // text that nobody promised to be UTF-8
	formUUID
)

// leaf is a column of a file, as its schema has it.
type leaf struct {
	name     string
	element  *format.SchemaElement
	form     form
	scale    float64 // of decimals: the power of ten to divide by
	maxDef   int     // definition level of a value
	list     bool
	listDef  int    // definition level of an element that may be null
	unusable string // why it cannot be read
}

// field describes the column.
func (l *leaf) field() table.Field {
	kind := table.Text
	switch l.form { //nolint:exhaustive // the others are text
	case formBool, formInteger, formUnsigned, formInt96:
		kind = table.Integer
	case formFloat, formDecimal:
		kind = table.Number
	}
	if l.list {
		kind = table.Numbers
		if l.form >= formText {
			kind = table.Texts
		}
	}
	return table.Field{Name: l.name, Kind: kind}
}

// declare changes the kind of a column to one that is declared: integers are
// numbers too, and lists of integers may be ids.
func (l *leaf) declare(f *table.Field, kind table.Kind) error {
	whole := l.form >= formBool && l.form <= formInt96
	if kind != f.Kind && (!whole || kind != table.Number || l.list) && (!whole || kind != table.Entries || !l.list) {
		return fmt.Errorf("column %q is declared as %s, the file has %s", l.name, kind, f.Kind)
	}
	f.Kind = kind
	return nil
}

// schemaDepthMax bounds the nesting of a schema.
const schemaDepthMax = 64

// leavesOf lists the columns of a schema, which is a tree written down depth
// first.
func leavesOf(schema []format.SchemaElement) ([]leaf, error) {
	w := schemaWalk{rest: schema}
	if err := w.node(nil, leaf{}, 0, 0); err != nil {
		return nil, err
	}
	if len(w.rest) > 0 {
		return nil, errors.New("the schema has elements that belong to none")
	}
	return w.leaves, nil
}

type schemaWalk struct {
	rest   []format.SchemaElement
	leaves []leaf
	depth  int
}

// node reads an element and those below it. path is that of its parent, above
// what it inherits: levels, and whether it is in a list. lists counts the lists
// around it; skip is the number of names that are no part of the path because
// they only give a list its form.
func (w *schemaWalk) node(path []string, above leaf, lists, skip int) error {
	if len(w.rest) == 0 || w.depth > schemaDepthMax {
		return errors.New("the schema is cut off, or nested too deeply")
	}
	e := &w.rest[0]
	w.rest = w.rest[1:]
	if w.depth > 0 {
		if skip > 0 {
			skip--
		} else {
			path = append(slices.Clip(path), e.Name)
		}
		switch e.RepetitionType.V { //nolint:exhaustive // a required element adds nothing
		case format.Optional:
			above.maxDef++
		case format.Repeated:
			above.maxDef++
			above.list, above.listDef = true, above.maxDef
			lists++
		}
	}
	if e.Type.Valid {
		above.name, above.element = strings.Join(path, "."), e
		above.setForm(lists)
		w.leaves = append(w.leaves, above)
		return nil
	}
	if isList(e) {
		skip = 2
	}
	w.depth++
	for range max(e.NumChildren.V, 0) {
		if err := w.node(path, above, lists, skip); err != nil {
			return err
		}
	}
	w.depth--
	return nil
}

// isList reports whether a group is a list.
func isList(e *format.SchemaElement) bool {
	_, ok := e.LogicalType.Value.(*format.ListType)
	return ok || e.ConvertedType.Valid && e.ConvertedType.V == deprecated.List
}

// setForm decides what the values are.
func (l *leaf) setForm(lists int) {
	e := l.element
	l.scale = 1
	switch e.Type.V {
	case format.Boolean:
		l.form = formBool
	case format.Int32, format.Int64:
		l.form = formInteger
		if signless(e) {
			l.form = formUnsigned
		}
	case format.Int96:
		l.form = formInt96
	case format.Float, format.Double:
		l.form = formFloat
	case format.ByteArray, format.FixedLenByteArray:
		l.setBytes()
	}
	if scale, ok := decimalScale(e); ok && l.form != formFloat && l.form != formBool && l.form != formInt96 {
		l.form, l.scale = formDecimal, math.Pow10(int(scale))
		if scale < 0 || scale > 300 {
			l.unusable = fmt.Sprintf("decimals with a scale of %d are not read", scale)
		}
	}
	if l.form == formNone {
		l.unusable = fmt.Sprintf("values of type %s (%s) are not read", e.Type.V, e.LogicalType.String())
	}
	if lists > 1 {
		l.unusable = "lists within lists are not read"
	}
}

// setBytes decides what byte arrays are.
func (l *leaf) setBytes() {
	l.form = formBytes
	switch l.element.LogicalType.Value.(type) {
	case *format.StringType, *format.EnumType, *format.JsonType:
		l.form = formText
	case *format.UUIDType:
		l.form = formUUID
	case nil, *format.DecimalType:
		c := l.element.ConvertedType
		if c.Valid && (c.V == deprecated.UTF8 || c.V == deprecated.Enum || c.V == deprecated.Json) {
			l.form = formText
		}
		if c.Valid && c.V == deprecated.Interval {
			l.form = formNone
		}
	default:
		l.form = formNone
	}
}

// signless reports whether integers have no sign.
func signless(e *format.SchemaElement) bool {
	if t, ok := e.LogicalType.Value.(*format.IntType); ok {
		return !t.IsSigned
	}
	return e.ConvertedType.Valid && e.ConvertedType.V >= deprecated.Uint8 && e.ConvertedType.V <= deprecated.Uint64
}

// decimalScale returns the number of digits after the point of a decimal.
func decimalScale(e *format.SchemaElement) (int32, bool) {
	if t, ok := e.LogicalType.Value.(*format.DecimalType); ok {
		return t.Scale, true
	}
	return e.Scale.V, e.ConvertedType.Valid && e.ConvertedType.V == deprecated.Decimal
}

// integer returns a value of a whole form.
func (l *leaf) integer(v parquet.Value) (i int64, reason string) {
	switch l.form { //nolint:exhaustive // the others are no whole numbers
	case formBool:
		if v.Boolean() {
			return 1, ""
		}
		return 0, ""
	case formUnsigned:
		if v.Kind() == parquet.Int32 {
			return int64(v.Uint32()), ""
		}
		if u := v.Uint64(); u > math.MaxInt64 {
			return 0, fmt.Sprintf("%d is beyond 2^63-1, the largest whole number that is kept", u)
		}
		return int64(v.Uint64()), ""
	case formInt96:
		return microseconds(v.Int96())
	}
	if v.Kind() == parquet.Int32 {
		return int64(v.Int32()), ""
	}
	return v.Int64(), ""
}

// microseconds turns a timestamp of 96 bits, as Impala and Spark write them,
// into microseconds since 1970: those of 64 bits hold 292,000 years. Spark lets
// the day overflow near the end of them; the same overflow here undoes it.
func microseconds(t deprecated.Int96) (int64, string) {
	const julian1970, dayMicros = 2440588, 86_400_000_000
	nanos := int64(t[0]) | int64(t[1])<<32
	if nanos < -1000*dayMicros || nanos > 1000*dayMicros {
		return 0, fmt.Sprintf("%d nanoseconds of a day are no timestamp", nanos)
	}
	return (int64(int32(t[2]))-julian1970)*dayMicros + nanos/1000, ""
}

// number returns a value of a form that is a number.
func (l *leaf) number(v parquet.Value) (x float64, reason string) {
	switch {
	case l.form == formFloat && v.Kind() == parquet.Float:
		return float64(v.Float()), ""
	case l.form == formFloat:
		return v.Double(), ""
	case l.form == formDecimal:
		return l.decimal(v), ""
	}
	i, reason := l.integer(v)
	if reason == "" && (i >= 1<<53 || i <= -1<<53) {
		reason = fmt.Sprintf("%d is beyond 2^53, a number would lose digits: declare the column as %s", i, l.exact())
	}
	return float64(i), reason
}

// exact is the kind that keeps large whole numbers.
func (l *leaf) exact() table.Kind {
	if l.list {
		return table.Entries
	}
	return table.Integer
}

// decimal returns the float64 nearest to a decimal.
func (l *leaf) decimal(v parquet.Value) float64 {
	switch v.Kind() { //nolint:exhaustive // decimals are of no other type
	case parquet.Int32:
		return float64(v.Int32()) / l.scale
	case parquet.Int64:
		return float64(v.Int64()) / l.scale
	}
	b := v.ByteArray() // two's complement, the highest byte first
	i := new(big.Int).SetBytes(b)
	if len(b) > 0 && b[0] >= 0x80 {
		i.Sub(i, new(big.Int).Lsh(big.NewInt(1), uint(8*len(b))))
	}
	x, _ := new(big.Float).SetInt(i).Float64()
	return x / l.scale
}

// appendText appends a value of a form that is text.
func (l *leaf) appendText(to []byte, v parquet.Value) (text []byte, reason string) {
	b := v.ByteArray()
	switch {
	case l.form == formUUID && len(b) == 16:
		return fmt.Appendf(to, "%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:]), ""
	case l.form == formText && !utf8.Valid(b):
		return to, "text " + table.Quote(b) + " is not UTF-8, as the schema says it is"
	}
	return append(to, b...), ""
}
