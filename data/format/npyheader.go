package format

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/gangline/gangline/data/table"
)

// npyArray is an array in the file format of NumPy ("NPY format", versions 1.0
// to 3.0, NEP 1).
type npyArray struct {
	name  string
	in    *bufio.Reader
	dtype string // byte order, kind and size, as "<f4"
	size  int    // bytes of an element
	two   bool   // two dims
	rows  int
	width int    // elements of a row
	row   []byte // one row
}

// npyHeaderMax is the longest header, in bytes.
const npyHeaderMax = 64 << 10

// field describes the column that an array is.
func (a *npyArray) field() table.Field {
	switch {
	case a.two:
		return table.Field{Name: a.name, Kind: table.Numbers, Width: a.width}
	case a.dtype[1] == 'f':
		return table.Field{Name: a.name, Kind: table.Number}
	}
	return table.Field{Name: a.name, Kind: table.Integer}
}

// header reads what stands before the data: magic number, version, length, and a
// dictionary as Python writes it, with descr, fortran_order and shape.
func (a *npyArray) header() error {
	var start [8]byte
	if _, err := io.ReadFull(a.in, start[:]); err != nil {
		return npyCut(err)
	}
	if string(start[:6]) != "\x93NUMPY" {
		return fmt.Errorf("no npy file: it begins with %q", start[:6])
	}
	lengthBytes := 2
	switch start[6] {
	case 1:
	case 2, 3:
		lengthBytes = 4
	default:
		return fmt.Errorf("version %d.%d of the npy format is not known, want 1 to 3", start[6], start[7])
	}
	var length [4]byte
	if _, err := io.ReadFull(a.in, length[:lengthBytes]); err != nil {
		return npyCut(err)
	}
	n := binary.LittleEndian.Uint32(length[:])
	if n > npyHeaderMax {
		return fmt.Errorf("the header has %d bytes, the limit is %d", n, npyHeaderMax)
	}
	text := make([]byte, n)
	if _, err := io.ReadFull(a.in, text); err != nil {
		return npyCut(err)
	}
	return a.describe(string(text))
}

func npyCut(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return errors.New("the file ends within its header")
	}
	return err
}

// describe applies the dictionary of a header.
func (a *npyArray) describe(text string) error {
	descr, fortran, shape, err := npyDictionary(text)
	if err != nil {
		return fmt.Errorf("the header %s is malformed: %w", table.Quote([]byte(text)), err)
	}
	if err := a.setType(descr); err != nil {
		return err
	}
	switch {
	case len(shape) == 0:
		return errors.New("the array is a single number, want one or two dims")
	case len(shape) > 2:
		return fmt.Errorf("the array has %d dims, want one or two: reshape it to (rows, %s)", len(shape), "-1")
	}
	a.rows, a.width = shape[0], 1
	if len(shape) == 2 {
		a.two, a.width = true, shape[1]
		if fortran && a.rows > 1 && a.width > 1 {
			return errors.New("the array is in Fortran order, its rows are scattered over the file: save numpy.ascontiguousarray of it")
		}
	}
	if a.width > npyRowMax/a.size {
		return fmt.Errorf("a row has %d elements of %d bytes, the limit is %d bytes", a.width, a.size, npyRowMax)
	}
	if a.width == 0 {
		return errors.New("the rows of the array have no elements")
	}
	a.row = make([]byte, a.width*a.size)
	return nil
}

// setType accepts a type of elements.
func (a *npyArray) setType(descr string) error {
	const known = "f4, f8, i1, i2, i4, i8, u1, u2, u4, u8 and bool"
	if len(descr) != 3 || !strings.Contains("<>|=", descr[:1]) || !strings.Contains(" f4 f8 i1 i2 i4 i8 u1 u2 u4 u8 b1 ", " "+descr[1:]+" ") {
		hint := ""
		if strings.HasPrefix(strings.TrimLeft(descr, "<>|="), "O") {
			hint = ": objects are pickled, which is not safe to read"
		}
		return fmt.Errorf("the elements are of type %q%s; %s are read", descr, hint, known)
	}
	a.dtype, a.size = descr, int(descr[2]-'0')
	return nil
}

// npyDictionary reads {'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }.
func npyDictionary(text string) (descr string, fortran bool, shape []int, err error) {
	p := python{text: text}
	p.expect("{")
	seen := map[string]bool{}
	for p.err == nil && !p.accept("}") {
		key := p.word()
		p.expect(":")
		if seen[key] {
			p.fail("key %q stands twice", key)
		}
		seen[key] = true
		switch key {
		case "descr":
			if p.accept("[") {
				return "", false, nil, errors.New("the elements are records: save each field as an array of its own")
			}
			descr = p.word()
		case "fortran_order":
			fortran = p.boolean()
		case "shape":
			shape = p.tuple()
		default:
			p.fail("key %q is not known", key)
		}
		if !p.accept(",") {
			p.expect("}")
			break
		}
	}
	if p.err == nil && strings.TrimSpace(p.text) != "" {
		p.fail("%s follows the dictionary", table.Quote([]byte(p.text)))
	}
	if p.err == nil && len(seen) != 3 {
		p.fail("want descr, fortran_order and shape")
	}
	return descr, fortran, shape, p.err
}

// python reads the few literals of a header. The first error stays.
type python struct {
	text string
	err  error
}

func (p *python) fail(format string, args ...any) {
	if p.err == nil {
		p.err = fmt.Errorf(format, args...)
	}
}

func (p *python) accept(s string) bool {
	p.text = strings.TrimLeft(p.text, " \n\t")
	rest, ok := strings.CutPrefix(p.text, s)
	if ok {
		p.text = rest
	}
	return ok
}

func (p *python) expect(s string) {
	if !p.accept(s) {
		p.fail("want %s before %s", s, table.Quote([]byte(p.text)))
	}
}

// word reads a text in quotes, without escapes.
func (p *python) word() string {
	mark := "'"
	if p.accept(`"`) {
		mark = `"`
	} else {
		p.expect("'")
	}
	word, rest, ok := strings.Cut(p.text, mark)
	if !ok {
		p.fail("a quote is not closed")
	}
	p.text = rest
	return word
}

func (p *python) boolean() bool {
	if p.accept("True") {
		return true
	}
	p.expect("False")
	return false
}

// tuple reads whole numbers in parentheses.
func (p *python) tuple() []int {
	var list []int
	p.expect("(")
	for p.err == nil && !p.accept(")") {
		i := 0
		for i < len(p.text) && p.text[i]-'0' <= 9 {
			i++
		}
		v, err := strconv.Atoi(p.text[:i])
		if err != nil {
			p.fail("want a size before %s", table.Quote([]byte(p.text)))
		}
		list, p.text = append(list, v), strings.TrimPrefix(p.text[i:], "L")
		if !p.accept(",") {
			p.expect(")")
			break
		}
	}
	return list
}
