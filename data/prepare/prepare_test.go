package prepare

import (
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/gangline/gangline/data/feature"
	"github.com/gangline/gangline/data/format"
	"github.com/gangline/gangline/data/rows"
	"github.com/gangline/gangline/data/split"
	"github.com/gangline/gangline/data/table"
)

// fakeTable reads rows of a label, a weight, a number, a text and a list of
// entries from memory. Row i is malformed where broken says so.
type fakeTable struct {
	rows   int
	at     int
	broken func(i int) bool
}

func (f *fakeTable) Fields() []table.Field {
	return []table.Field{
		{Name: "y", Kind: table.Number},
		{Name: "w", Kind: table.Number},
		{Name: "x", Kind: table.Number},
		{Name: "c", Kind: table.Text},
		{Name: "e", Kind: table.Entries},
	}
}

func (f *fakeTable) Close() error { return nil }

func (f *fakeTable) Read(b *table.Block, n int) error {
	*b = table.Block{File: "fake", First: f.at + 1, Columns: make([]table.Column, 5)}
	b.Columns[4].Offsets = []int{0}
	for ; b.Rows < n; b.Rows++ {
		i := f.at
		if i == f.rows {
			return io.EOF
		}
		f.at++
		if f.broken != nil && f.broken(i) {
			return &table.RowError{File: "fake", Line: i + 1, Reason: "broken"}
		}
		y := float64(i % 2)
		if i%10 == 7 {
			y = 5 // outside the domain
		}
		for j, v := range []float64{y, float64(i%3 + 1), float64(i)} {
			b.Columns[j].Numbers = append(b.Columns[j].Numbers, v)
		}
		c := &b.Columns[3]
		c.Bytes = fmt.Appendf(c.Bytes, "c%d", i%4)
		c.Ends = append(c.Ends, len(c.Bytes))
		e := &b.Columns[4]
		for j := range i % 3 {
			e.Integers, e.Numbers = append(e.Integers, int64(j)), append(e.Numbers, float64(i))
		}
		e.Offsets = append(e.Offsets, len(e.Integers))
	}
	return nil
}

// opens opens a fakeTable.
func opens(rows int, broken func(i int) bool) opener {
	return func() (table.Reader, error) { return &fakeTable{rows: rows, broken: broken}, nil }
}

// ignore passes over malformed rows.
func ignore(*table.RowError) error { return nil }

var fakePipeline = feature.Spec{
	Label: feature.Label{Column: "y"}, Task: feature.Binary, Weight: "w",
	Features: []feature.Feature{
		{Kind: feature.Number, Column: "x", Normalize: "minmax"}, {Kind: feature.Category, Column: "c"}, {Kind: feature.Category, Column: "e"},
	},
}

// readAll reads all rows of a table, n at a time.
func readAll(t *testing.T, r *Reader, n int) (b *rows.Block, bad []string) {
	t.Helper()
	b = &rows.Block{}
	b.Reset(r.Columns())
	for {
		err := r.Read(b, n)
		row, isRow := errors.AsType[*table.RowError](err)
		switch {
		case errors.Is(err, io.EOF):
			if err := r.Close(); err != nil {
				t.Fatal(err)
			}
			return b, bad
		case isRow:
			bad = append(bad, row.Error())
		case err != nil:
			t.Fatal(err)
		}
	}
}

// A table becomes the rows that its pipeline makes, without those that the reader or
// the features refuse, which are named; however many are read at a time.
func TestReader(t *testing.T) {
	const n = 1000
	broken := func(i int) bool { return i%100 == 50 }
	good := func(i int) bool { return !broken(i) && i%10 != 7 }
	o := Table{Group: "c"}
	fitted, err := o.fit(fakePipeline, ignore, opens(n, broken))
	if err != nil {
		t.Fatal(err)
	}
	if fitted.Rows != 890 {
		t.Errorf("fitted to %d rows, want 890", fitted.Rows)
	}
	want := []rows.ColumnSpec{
		{Name: "label", Kind: rows.DenseColumn, Dim: 1},
		{Name: "num", Kind: rows.DenseColumn, Dim: 1},
		{Name: "cat", Kind: rows.RaggedColumn, Dim: 6 + 4},
		{Name: "weight", Kind: rows.DenseColumn, Dim: 1},
		{Name: "group", Kind: rows.RaggedColumn, Dim: math.MaxInt32, PerRow: 1},
	}
	if diff := cmp.Diff(want, Columns(fitted, "c")); diff != "" {
		t.Errorf("columns before reading (-want +got):\n%s", diff)
	}
	for _, each := range []int{1, 7, 256, 5000} {
		r, err := o.read(fitted, opens(n, broken))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, r.Columns()); diff != "" {
			t.Errorf("columns (-want +got):\n%s", diff)
		}
		b, bad := readAll(t, r, each)
		if b.Rows != 890 || len(bad) != 110 || r.Lines() != n {
			t.Fatalf("%d rows, %d bad of %d; want 890, 110 of %d", b.Rows, len(bad), r.Lines(), n)
		}
		if bad[0] != `fake:8: column "y": label 5 is not -1, 0 or 1; set label.positive to say which values are 1` || bad[5] != "fake:51: broken" {
			t.Errorf("bad rows: %s, %s", bad[0], bad[5])
		}
		row := 0
		for i := range n {
			if !good(i) {
				continue
			}
			cat := &b.Columns[2]
			lo, hi := cat.Offsets[row], cat.Offsets[row+1]
			got := fmt.Sprint(b.Columns[0].Values[row], b.Columns[1].Values[row], cat.IDs[lo:hi], cat.Values[lo:hi], b.Columns[3].Values[row], b.Columns[4].IDs[row])
			ids, weights := []int32{int32(2 + i%4)}, []float32{1}
			for j := range i % 3 {
				ids, weights = append(ids, int32(6+2+j)), append(weights, float32(i))
			}
			if want := fmt.Sprint(i%2, float32(i)/999, ids, weights, i%3+1, i%4); got != want {
				t.Fatalf("row %d is %s, want %s", i, got, want)
			}
			row++
		}
	}
}

// What is learned is learned of the first rows where there is a limit, and whoever is
// told of malformed rows may end it.
func TestFitLimits(t *testing.T) {
	o := Table{Limit: 300}
	fitted, err := o.fit(fakePipeline, ignore, opens(1000, nil))
	if err != nil {
		t.Fatal(err)
	}
	if m := fitted.Features[0].Moments[0]; fitted.Rows != 300 || m.Max != 332 {
		t.Errorf("fitted to %d rows of x up to %v; want 300, 332", fitted.Rows, m.Max)
	}
	all := func(int) bool { return true }
	told := 0
	stop := errors.New("too many")
	_, err = o.fit(fakePipeline, func(*table.RowError) error {
		if told++; told == 4 {
			return stop
		}
		return nil
	}, opens(10, all))
	if !errors.Is(err, stop) {
		t.Errorf("got %v", err)
	}
	if _, err = o.fit(fakePipeline, ignore, opens(10, all)); err == nil || !strings.Contains(err.Error(), "no rows to learn from") {
		t.Errorf("got %v", err)
	}
}

// A split of a table is one of its rows: nothing is learned of those that are not
// meant, and by whatever they are told apart, the parts are all rows once.
func TestSplit(t *testing.T) {
	p := fakePipeline
	p.Features = []feature.Feature{{Kind: feature.Number, Column: "x"}}
	for _, rule := range []split.Rule{
		{By: split.ByFraction, Test: []string{"0.3"}},
		{By: split.ByTail, Test: []string{"0.2"}},
		{By: split.ByColumn, Column: "c", Test: []string{"c2", "c3"}},
		{By: split.ByTime, Column: "x", Test: []string{"600"}},
	} {
		seen := map[float32]string{}
		for _, part := range []string{split.Train, split.Test} {
			rule.Part = part
			o := Table{Split: &rule}
			fitted, err := o.fit(p, ignore, opens(1000, nil))
			if err != nil {
				t.Fatal(err)
			}
			r, err := o.read(fitted, opens(1000, nil))
			if err != nil {
				t.Fatal(err)
			}
			b, _ := readAll(t, r, 100)
			most := float32(0)
			for _, x := range b.Columns[1].Values {
				if other, twice := seen[x]; twice {
					t.Errorf("by %s: row %v is in parts %s and %s", rule.By, x, other, part)
				}
				seen[x] = part
				most = max(most, x)
			}
			if m := fitted.Features[0].Moments[0]; int(m.Count) != b.Rows || m.Max != float64(most) {
				t.Errorf("by %s: part %s has %d rows up to %v, learned of %d up to %v", rule.By, part, b.Rows, most, m.Count, m.Max)
			}
		}
		if len(seen) != 900 {
			t.Errorf("by %s: %d rows are in a part, want 900", rule.By, len(seen))
		}
		if by := rule.By; by == split.ByTail && (seen[798] != split.Train || seen[800] != split.Test) || by == split.ByTime && (seen[599] != split.Train || seen[600] != split.Test) {
			t.Errorf("by %s: rows around the boundary are in parts %s and %s", by, seen[798], seen[800])
		}
	}
	for column, want := range map[string]string{"e": `the column "e" is entries: want one value a row`, "z": `no column "z" to split by`} {
		o := Table{Split: &split.Rule{By: split.ByColumn, Column: column, Test: []string{"1"}}}
		if _, err := o.fit(fakePipeline, ignore, opens(10, nil)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q in it", err, want)
		}
	}
}

// Of files, columns that no feature reads may hold anything, what is text in the rows
// fitted to is text though it looks like numbers, and rows to predict may lack label
// and weight.
func TestFiles(t *testing.T) {
	write := func(text string) format.Spec {
		path := filepath.Join(t.TempDir(), "rows.csv")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return format.Spec{Format: "csv", Paths: []string{path}, Header: true}
	}
	p := fakePipeline
	p.Features = p.Features[:2]
	var junk strings.Builder
	junk.WriteString("y,w,x,c,other\n")
	for i := range 3000 {
		fmt.Fprintf(&junk, "%d,1,%d,c%d,%d\n", i%2, i, i%3, i)
	}
	junk.WriteString("1,1,5,7,no number after all\n")
	none := func(e *table.RowError) error { return e }
	fitted, err := Fit(t.Context(), Table{Format: write(junk.String())}, p, none)
	if err != nil {
		t.Fatal(err)
	}
	if got := fitted.Features[1].Values; fitted.Rows != 3001 || len(got) != 4 {
		t.Errorf("fitted to %d rows, the values %q", fitted.Rows, got)
	}
	r, err := Open(t.Context(), Table{Format: write("c,x\n7,3000\n8,0\n"), Unlabelled: true}, fitted)
	if err != nil {
		t.Fatal(err)
	}
	b, bad := readAll(t, r, 100)
	if len(bad) > 0 || b.Rows != 2 || len(b.Columns) != 4 || b.Columns[3].Values[1] != 1 || b.Columns[2].IDs[0] != 2 || b.Columns[2].IDs[1] != 1 || b.Columns[0].Values[1] != 0 {
		t.Errorf("rows without label: %+v, bad %v", b, bad)
	}
	if _, err := Open(t.Context(), Table{Format: write("c,x\n7,3000\n")}, fitted); err == nil || !strings.Contains(err.Error(), `label.column: the file has no column "y"`) {
		t.Errorf("got %v", err)
	}
	r, err = Open(t.Context(), Table{Format: write("c,x,y,w\n7,3000,1,2\n"), Unlabelled: true}, fitted)
	if err != nil {
		t.Fatal(err)
	}
	if b, _ := readAll(t, r, 100); b.Columns[0].Values[0] != 1 || b.Columns[3].Values[0] != 2 {
		t.Errorf("rows that have a label: %+v", b)
	}
}
