package format

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/gangline/gangline/data/table"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// realData returns the path of a file of real data, or skips the test.
func realData(t testing.TB, name string) string {
	t.Helper()
	dir, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(filepath.Dir(dir), "shared", "data", filepath.FromSlash(name))
	if _, err := os.Stat(path); err != nil {
		t.Skipf("real data are absent: %v", err)
	}
	return path
}

// tempFile writes a file with a name that tells nothing about its format.
func tempFile(t testing.TB, content []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "rows")
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// source is a text file in memory, read in small pieces.
func source(content []byte) *lines {
	l := newLines("f", bytes.NewReader(content), io.NopCloser(nil))
	l.chunk = 16
	return l
}

// cell prints one value, so that tests compare tables as text.
func cell(f table.Field, c *table.Column, row int) string {
	if c.Missing != nil && c.Missing[row] {
		return "-"
	}
	num := func(v float64) string { return strconv.FormatFloat(v, 'g', -1, 64) }
	text := func(i int) string {
		lo := 0
		if i > 0 {
			lo = c.Ends[i-1]
		}
		return string(c.Bytes[lo:c.Ends[i]])
	}
	var list []string
	switch f.Kind {
	case table.Number:
		return num(c.Numbers[row])
	case table.Integer:
		return strconv.FormatInt(c.Integers[row], 10)
	case table.Text:
		return text(row)
	case table.Numbers:
		for _, v := range c.Numbers[c.Offsets[row]:c.Offsets[row+1]] {
			list = append(list, num(v))
		}
	case table.Texts:
		for i := c.Offsets[row]; i < c.Offsets[row+1]; i++ {
			list = append(list, text(i))
		}
	case table.Entries:
		for i := c.Offsets[row]; i < c.Offsets[row+1]; i++ {
			v := "1"
			if c.Numbers != nil {
				v = num(c.Numbers[i])
			}
			list = append(list, strconv.FormatUint(uint64(c.Integers[i]), 10)+":"+v)
		}
	}
	return "[" + strings.Join(list, " ") + "]"
}

// checkBlock demands what table.Block promises.
func checkBlock(t testing.TB, fields []table.Field, b *table.Block) {
	t.Helper()
	if err := b.Check(fields); err != nil {
		t.Fatal(err)
	}
}

// shown is a table as text: rows of cells, and what was wrong with the others.
type shown struct {
	Fields string
	Rows   []string
	Errors []string
}

// show reads everything, n rows at once.
func show(t testing.TB, r table.Reader, n int) (s shown, err error) {
	t.Helper()
	for _, f := range r.Fields() {
		s.Fields += fmt.Sprintf("%s %s,", f.Name, describe(f))
	}
	s.Fields = strings.TrimSuffix(s.Fields, ",")
	var b table.Block
	for {
		err := r.Read(&b, n)
		checkBlock(t, r.Fields(), &b)
		for row := range b.Rows {
			var cells []string
			for i, f := range r.Fields() {
				cells = append(cells, cell(f, &b.Columns[i], row))
			}
			s.Rows = append(s.Rows, strings.Join(cells, "|"))
		}
		bad, isRow := errors.AsType[*table.RowError](err)
		switch {
		case errors.Is(err, io.EOF):
			return s, nil
		case isRow:
			s.Errors = append(s.Errors, bad.Error())
		case err != nil:
			return s, err
		}
	}
}

// counts reads a whole file and counts rows and missing cells.
func counts(t testing.TB, spec Spec) (fields []table.Field, rows, missing int) {
	t.Helper()
	r, err := Open(t.Context(), spec)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	var b table.Block
	for {
		err := r.Read(&b, 777)
		checkBlock(t, r.Fields(), &b)
		rows += b.Rows
		for _, c := range b.Columns {
			for _, m := range c.Missing {
				if m {
					missing++
				}
			}
		}
		if errors.Is(err, io.EOF) {
			return r.Fields(), rows, missing
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}
