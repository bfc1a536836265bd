package format

import (
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"

	"github.com/gangline/gangline/data/table"
	"github.com/gangline/gangline/internal/number"
)

// append adds a value to a column, or returns what is wrong with it. raw is the
// value with the spaces around it that stand in quotes.
func (col *csvColumn) append(c *table.Column, text, raw []byte) (reason string) {
	switch col.kind { //nolint:exhaustive // Spec.validate and infer allow no others
	case table.Number:
		v, ok := number.Double(text)
		if !ok {
			return fmt.Sprintf("%s is not a finite number%s", table.Quote(text), col.hint())
		}
		c.Numbers = append(c.Numbers, v)
	case table.Integer:
		v, ok := integer(text)
		if !ok {
			return fmt.Sprintf("%s is not a whole number of 64 bits%s", table.Quote(text), col.hint())
		}
		c.Integers = append(c.Integers, v)
	default:
		if len(col.suffix) > 0 {
			raw = text
		}
		c.Bytes = append(c.Bytes, raw...)
		c.Ends = append(c.Ends, len(c.Bytes))
	}
	return ""
}

// hint tells where an inferred kind came from.
func (col *csvColumn) hint() string {
	if !col.taken {
		return ""
	}
	return fmt.Sprintf("; the column was taken for %ss from the first rows: declare it as text, or name what stands for missing values", col.kind)
}

// integer reads a whole number within int64.
func integer(s []byte) (int64, bool) {
	if len(s) <= 18 {
		return number.Int(s)
	}
	neg := s[0] == '-'
	if neg || s[0] == '+' {
		s = s[1:]
	}
	u, ok := unsigned(s)
	switch {
	case !ok || u > math.MaxInt64+1 || u > math.MaxInt64 && !neg:
		return 0, false
	case neg:
		return -int64(u), true
	}
	return int64(u), true
}

// unsigned reads a whole number below 2^64.
func unsigned(s []byte) (u uint64, ok bool) {
	for _, c := range s {
		d := uint64(c - '0')
		if d > 9 || u > (math.MaxUint64-d)/10 {
			return 0, false
		}
		u = u*10 + d
	}
	return u, len(s) > 0
}

func isNumber(text []byte) bool {
	_, ok := number.Double(trimSpaces(text))
	return ok
}

// guess is what is known of a column whose kind is to be inferred.
type guess struct {
	values, numbers int  // rows with a value; of them numbers
	unreal          int  // of the others: NaN, infinities and what is too large
	first           bool // the first row has a value that is no number
	code            bool // some number has a leading zero: 0815 is a name
	whole           bool // all numbers are whole
	large           bool // some number is whole and beyond 2^53
	huge            bool // some number is whole and beyond 64 bits
}

// look takes the value of a row into account.
func (g *guess) look(text []byte, row int) {
	g.values++
	if g.numbers+g.unreal < g.values-2 {
		return // two are no numbers: nothing else matters
	}
	v, ok := number.Double(text)
	if !ok && unreal(text) {
		g.unreal++
		return
	}
	if !ok {
		g.first = g.first || row == 0
		return
	}
	g.numbers++
	digits := text
	if digits[0] == '-' || digits[0] == '+' {
		digits = digits[1:]
	}
	g.code = g.code || len(digits) > 1 && digits[0] == '0' && digits[1]-'0' <= 9
	for _, c := range digits {
		if c-'0' > 9 {
			g.whole = false
			return
		}
	}
	if math.Abs(v) >= 1<<53 {
		g.large = true
		_, ok := integer(text)
		g.huge = g.huge || !ok
	}
}

// unreal reports whether a text is a number that is not finite, or beyond float64.
func unreal(text []byte) bool {
	if len(text) > 32 {
		return false
	}
	v, err := strconv.ParseFloat(string(text), 64)
	return (err == nil || errors.Is(err, strconv.ErrRange)) && (math.IsNaN(v) || math.IsInf(v, 0))
}

// kind decides: numbers if all values are numbers, integers if they would lose
// digits as float64, text otherwise. NaN among numbers does not make a category of
// them: it is an error of its row. A column without a number is text.
func (g *guess) kind() table.Kind {
	switch {
	case g.numbers == 0 || g.numbers+g.unreal < g.values || g.code || g.huge:
		return table.Text
	case g.whole && g.large:
		return table.Integer
	}
	return table.Number
}

// infer decides the kinds that are open from the first rows, which stay to be
// read. Rows in error are looked at when they are read.
func (r *csvReader) infer(named bool) error {
	guesses := make([]guess, len(r.columns))
	for i := range guesses {
		guesses[i].whole = true
	}
	skip, rows := 0, 0
	for range firstRows {
		row, _, err := r.next(skip)
		if errors.Is(err, io.EOF) {
			break
		}
		if row == nil {
			return err
		}
		if skip = row.end; skip > firstBytes {
			break
		}
		if err != nil || len(row.fields) != r.want {
			continue
		}
		for i, col := range r.columns {
			if text := col.clean(row.fields[col.index]); !r.missing.has(text) {
				guesses[i].look(text, rows)
			}
		}
		rows++
	}
	header := rows > 2
	for i := range r.columns {
		col, g := &r.columns[i], &guesses[i]
		header = header && (g.first || g.values == 0)
		if col.kind == "" {
			col.kind = g.kind()
		}
	}
	if !named && header && looksNamed(guesses) {
		return fmt.Errorf("%s:1: the first line looks like names: say header: true, or declare the columns", r.location)
	}
	return nil
}

// looksNamed reports whether some column is numbers but for the first row.
func looksNamed(guesses []guess) bool {
	for _, g := range guesses {
		if g.first && g.numbers > 1 && g.numbers == g.values-1 {
			return true
		}
	}
	return false
}
