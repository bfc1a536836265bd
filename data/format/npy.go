package format

import (
	"archive/zip"
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"

	"github.com/gangline/gangline/data/file"
	"github.com/gangline/gangline/data/table"
)

// npyRows reads the rows of NumPy arrays: one of a .npy file, or those of a .npz
// file side by side. Integers and booleans of one dim are integers, floats of one
// dim numbers, arrays of two dims numbers of the width of a row.
type npyRows struct {
	location string
	fields   []table.Field
	arrays   []*npyArray
	closers  []io.Closer
	nan      bool // NaN is a missing value
	rows     int  // of every array
	at       int  // rows read
	err      error
}

// npyRowMax is the largest row of an array, in bytes.
const npyRowMax = 64 << 20

// openNpy implements opener.
func openNpy(ctx context.Context, spec *Spec, location string, like []table.Field) (table.Reader, error) {
	f, err := file.Open(ctx, location)
	if err != nil {
		return nil, err
	}
	r, err := newNpy(f, spec, location, like)
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return r, nil
}

// newNpy reads an array that is the column "x".
func newNpy(f io.ReadCloser, spec *Spec, location string, like []table.Field) (table.Reader, error) {
	a, err := newNpyArray("x", f)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", location, err)
	}
	r := &npyRows{location: location, closers: []io.Closer{f}, nan: slices.Contains(spec.Missing, "NaN")}
	if err := r.add(a); err != nil {
		return nil, err
	}
	return project(r, spec, location, like)
}

// openNpz implements opener. The arrays are unpacked as they are read, side by
// side, and their checksums compared at the end.
func openNpz(ctx context.Context, spec *Spec, location string, like []table.Field) (table.Reader, error) {
	f, err := file.OpenRandom(ctx, location)
	if err != nil {
		return nil, err
	}
	r, err := newNpz(f, spec, location, like)
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return r, nil
}

func newNpz(f file.Random, spec *Spec, location string, like []table.Field) (table.Reader, error) {
	archive, err := zip.NewReader(f, f.Size())
	if err != nil {
		return nil, fmt.Errorf("%s: no npz file, which is a zip archive of arrays, or one that was cut off: %w", location, err)
	}
	var has []table.Field
	members := map[string]*zip.File{}
	for _, m := range archive.File {
		name := strings.TrimSuffix(m.Name, ".npy")
		if name == m.Name {
			return nil, fmt.Errorf("%s: %q in the archive is no array: its name does not end in .npy", location, m.Name)
		}
		members[name] = m
		has = append(has, table.Field{Name: name})
	}
	if len(has) == 0 {
		return nil, fmt.Errorf("%s: the archive holds no array", location)
	}
	fields, _, err := selected(spec, location, has, nil)
	if err != nil {
		return nil, err
	}
	r := &npyRows{location: location, nan: slices.Contains(spec.Missing, "NaN")}
	for _, field := range fields {
		member, err := members[field.Name].Open()
		if err != nil {
			return nil, errors.Join(fmt.Errorf("%s: array %q: %w", location, field.Name, err), r.Close())
		}
		r.closers = append(r.closers, member)
		a, err := newNpyArray(field.Name, member)
		if err != nil {
			return nil, errors.Join(fmt.Errorf("%s: array %q: %w", location, field.Name, err), r.Close())
		}
		if err := r.add(a); err != nil {
			return nil, errors.Join(err, r.Close())
		}
	}
	r.closers = append(r.closers, f)
	err = agree(spec, location, r.fields)
	if err == nil && like != nil {
		err = sameFields(location, r.fields, like)
	}
	if err != nil {
		r.closers = r.closers[:len(r.closers)-1]
		return nil, errors.Join(err, r.Close())
	}
	return r, nil
}

// add adds an array as a column.
func (r *npyRows) add(a *npyArray) error {
	if len(r.arrays) > 0 && a.rows != r.rows {
		return fmt.Errorf("%s: array %q has %d rows, array %q has %d: they are no columns of one table; select some",
			r.location, a.name, a.rows, r.arrays[0].name, r.rows)
	}
	r.rows = a.rows
	r.arrays = append(r.arrays, a)
	r.fields = append(r.fields, a.field())
	return nil
}

// Fields implements table.Reader.
func (r *npyRows) Fields() []table.Field { return r.fields }

// Close implements table.Reader.
func (r *npyRows) Close() error {
	var all error
	for _, c := range r.closers {
		all = errors.Join(all, c.Close())
	}
	return all
}

// Read implements table.Reader.
func (r *npyRows) Read(b *table.Block, n int) error {
	b.Reset(r.fields, r.location)
	defer b.Finish(r.fields)
	b.First = r.at + 1
	for bytes := 0; r.err == nil && b.Rows < n && (bytes < npyRowMax || b.Rows == 0); {
		if r.at == r.rows {
			r.err = r.end()
			break
		}
		for _, a := range r.arrays {
			if _, err := io.ReadFull(a.in, a.row); err != nil {
				b.Cut(r.fields, b.Rows)
				r.err = r.broken(a, err)
				return r.err
			}
			bytes += len(a.row)
		}
		r.at++
		if err := r.append(b); err != nil {
			b.Cut(r.fields, b.Rows)
			return err
		}
		b.Rows++
	}
	return r.err
}

// append adds the row that was read.
func (r *npyRows) append(b *table.Block) error {
	for i, a := range r.arrays {
		c := &b.Columns[i]
		if reason := a.append(c, b.Rows, r.nan); reason != "" {
			return &table.RowError{File: r.location, Line: r.at, Column: a.name, Reason: reason}
		}
	}
	return nil
}

// broken says what it means that a row could not be read.
func (r *npyRows) broken(a *npyArray, err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return fmt.Errorf("%s: array %q has %d rows of %d bytes, but the data end in row %d: the file was cut off", r.location, a.name, r.rows, len(a.row), r.at+1)
	}
	return fmt.Errorf("%s: array %q, row %d: %w", r.location, a.name, r.at+1, err)
}

// end demands that nothing follows the arrays, which also compares checksums.
func (r *npyRows) end() error {
	for _, a := range r.arrays {
		switch _, err := a.in.ReadByte(); {
		case err == nil:
			return fmt.Errorf("%s: bytes follow the %d rows of array %q: the file is damaged, or holds a second array", r.location, r.rows, a.name)
		case !errors.Is(err, io.EOF):
			return fmt.Errorf("%s: array %q, after the last row: %w", r.location, a.name, err)
		}
	}
	return io.EOF
}

// append adds the row in a.row to a column.
func (a *npyArray) append(c *table.Column, rows int, nan bool) (reason string) {
	if a.two {
		start := len(c.Numbers)
		c.Numbers = a.numbers(c.Numbers)
		for i, v := range c.Numbers[start:] {
			if math.IsNaN(v) || math.IsInf(v, 0) {
				return fmt.Sprintf("element %d is %v, want finite numbers", i+1, v)
			}
			if a.dtype[1] != 'f' && math.Abs(v) >= 1<<53 {
				return fmt.Sprintf("element %d is about %.0f: whole numbers from 2^53 on are kept only in arrays of one dim", i+1, v)
			}
		}
		c.EndList(len(c.Numbers))
		return ""
	}
	if a.dtype[1] != 'f' {
		v := a.bits(a.row)
		if a.dtype[1] == 'u' && v > math.MaxInt64 {
			return fmt.Sprintf("%d is beyond 2^63-1, the largest whole number that is kept", v)
		}
		c.Integers = append(c.Integers, int64(v))
		return ""
	}
	v := a.float(a.row)
	switch {
	case math.IsNaN(v) && nan:
		c.AddMissing(table.Number, rows)
		return ""
	case math.IsNaN(v) || math.IsInf(v, 0):
		return fmt.Sprintf("%v is not a finite number", v)
	}
	c.Numbers = append(c.Numbers, v)
	c.AddPresent()
	return ""
}

// numbers appends the elements of a row.
func (a *npyArray) numbers(to []float64) []float64 {
	for row := a.row; len(row) > 0; row = row[a.size:] {
		switch element := row[:a.size]; a.dtype[1] {
		case 'f':
			to = append(to, a.float(element))
		case 'u', 'b':
			to = append(to, float64(a.bits(element)))
		default:
			to = append(to, float64(int64(a.bits(element))))
		}
	}
	return to
}

// float reads an element that is a float.
func (a *npyArray) float(element []byte) float64 {
	if a.size == 4 {
		return float64(math.Float32frombits(uint32(a.raw(element))))
	}
	return math.Float64frombits(a.raw(element))
}

// bits reads an element that is an integer, with its sign.
func (a *npyArray) bits(element []byte) uint64 {
	u := a.raw(element)
	if a.dtype[1] == 'i' {
		shift := 64 - 8*a.size
		return uint64(int64(u<<shift) >> shift)
	}
	return u
}

// raw reads the bytes of an element.
func (a *npyArray) raw(element []byte) (u uint64) {
	if a.dtype[0] == '>' {
		for _, c := range element {
			u = u<<8 | uint64(c)
		}
		return u
	}
	for i, c := range element {
		u |= uint64(c) << (8 * i)
	}
	return u
}

// newNpyArray reads the header of an array.
func newNpyArray(name string, r io.Reader) (*npyArray, error) {
	a := &npyArray{name: name, in: bufio.NewReaderSize(r, readBytes)}
	if err := a.header(); err != nil {
		return nil, err
	}
	return a, nil
}
