package data

import (
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/gangline/gangline/data/feature"
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
			return &RowError{File: "fake", Line: i + 1, Reason: "broken"}
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
func opens(rows int, broken func(i int) bool) func() (table.Reader, error) {
	return func() (table.Reader, error) { return &fakeTable{rows: rows, broken: broken}, nil }
}

var fakePipeline = feature.Spec{
	Label: feature.Label{Column: "y"}, Task: feature.Binary, Weight: "w",
	Features: []feature.Feature{
		{Kind: feature.Number, Column: "x", Normalize: "minmax"}, {Kind: feature.Category, Column: "c"}, {Kind: feature.Category, Column: "e"},
	},
}

// A table becomes the rows that its pipeline makes, without those that the reader
// or the features refuse, which are counted together.
func TestPrepared(t *testing.T) {
	const n = 1000
	broken := func(i int) bool { return i%100 == 50 }
	good := func(i int) bool { return !broken(i) && i%10 != 7 }
	fitted, err := fitTables(&Spec{MaxBadRows: n}, fakePipeline, opens(n, broken))
	if err != nil {
		t.Fatal(err)
	}
	if fitted.Rows != 890 {
		t.Errorf("fitted to %d rows, want 890", fitted.Rows)
	}
	spec := Spec{Format: "csv", Path: tempFile(t, nil), MaxBadRows: 110, Fitted: fitted, Group: "c"}
	src, err := gatherTables(&spec, opens(n, broken))
	if err != nil {
		t.Fatal(err)
	}
	bad := src.(Reporter)
	want := []ColumnSpec{
		{Name: "label", Kind: DenseColumn, Dim: 1},
		{Name: "num", Kind: DenseColumn, Dim: 1},
		{Name: "cat", Kind: RaggedColumn, Dim: 6 + 4},
		{Name: "weight", Kind: DenseColumn, Dim: 1},
		{Name: "group", Kind: RaggedColumn, Dim: math.MaxInt32, PerRow: 1},
	}
	columns, err := Columns(spec)
	if diff := cmp.Diff(want, columns); diff != "" || err != nil {
		t.Errorf("columns before reading (-want +got):\n%s%v", diff, err)
	}
	if diff := cmp.Diff(want, src.Columns()); diff != "" {
		t.Errorf("columns (-want +got):\n%s", diff)
	}
	if src.Rows() != 890 || bad.BadRows() != 110 {
		t.Fatalf("%d rows, %d bad; want 890, 110", src.Rows(), bad.BadRows())
	}
	if got := fmt.Sprint(bad.BadSamples()[0].Error()); got != `fake:8: column "y": label 5 is not -1, 0 or 1; set label.positive to say which values are 1` {
		t.Errorf("the first bad row: %s", got)
	}
	at := make([]int, src.Rows())
	for i := range at {
		at[i] = i
	}
	var b Batch
	if err := src.Read(at, &b); err != nil {
		t.Fatal(err)
	}
	row := 0
	for i := range n {
		if !good(i) {
			continue
		}
		cat := &b.Columns[2]
		lo, hi := cat.Offsets[row], cat.Offsets[row+1]
		got := fmt.Sprint(b.Columns[0].Values[row], b.Columns[1].Values[row], cat.IDs[lo:hi], cat.Values[lo:hi], b.Columns[3].Values[row], b.Columns[4].IDs[row])
		ids, weights := []int64{int64(2 + i%4)}, []float32{1}
		for j := range i % 3 {
			ids, weights = append(ids, int64(6+2+j)), append(weights, float32(i))
		}
		if want := fmt.Sprint(i%2, float32(i)/999, ids, weights, i%3+1, i%4); got != want {
			t.Fatalf("row %d is %s, want %s", i, got, want)
		}
		row++
	}
}

// What is learned is learned of the rows that are trained on, no others, and too
// many malformed ones are an error.
func TestFitLimits(t *testing.T) {
	fitted, err := fitTables(&Spec{Limit: 300}, fakePipeline, opens(1000, nil))
	if err != nil {
		t.Fatal(err)
	}
	spec := Spec{Format: "csv", Path: tempFile(t, nil), Fitted: fitted, Limit: 300, MaxBadRows: 100}
	src, err := gatherTables(&spec, opens(1000, nil))
	if err != nil {
		t.Fatal(err)
	}
	if fitted.Rows != 300 || src.Rows() != 300 || fitted.Features[0].Moments[0].Max != 332 {
		t.Errorf("fitted to %d rows of x up to %v, read %d; want 300, 332, 300", fitted.Rows, fitted.Features[0].Moments[0].Max, src.Rows())
	}
	spec.MaxBadRows = 20
	if _, err = gatherTables(&spec, opens(1000, nil)); err == nil || !strings.Contains(err.Error(), "more than 20 bad rows") {
		t.Errorf("got %v", err)
	}
	all := func(int) bool { return true }
	if _, err = fitTables(&Spec{MaxBadRows: 3}, fakePipeline, opens(10, all)); err == nil || !strings.Contains(err.Error(), "more than 3 bad rows; the last: fake:4: broken") {
		t.Errorf("got %v", err)
	}
	if _, err = fitTables(&Spec{MaxBadRows: 10}, fakePipeline, opens(10, all)); err == nil || !strings.Contains(err.Error(), "no rows to learn from") {
		t.Errorf("got %v", err)
	}
	if _, err := Open(Spec{Format: "csv", Path: "x"}); err == nil || !strings.Contains(err.Error(), "needs Fitted") {
		t.Errorf("got %v", err)
	}
}

// A split of a table is one of its rows: nothing is learned of those that are not
// meant, and by whatever they are told apart, the parts are all rows once.
func TestSplitOfTable(t *testing.T) {
	for _, rule := range []split.Rule{
		{By: split.ByFraction, Test: []string{"0.3"}},
		{By: split.ByTail, Test: []string{"0.2"}},
		{By: split.ByColumn, Column: "c", Test: []string{"c2", "c3"}},
		{By: split.ByTime, Column: "x", Test: []string{"600"}},
	} {
		seen := map[float32]string{}
		for _, part := range []string{split.Train, split.Test} {
			rule.Part = part
			spec := Spec{Format: "csv", Path: tempFile(t, nil), MaxBadRows: 1000, Intake: Intake{Split: &rule}}
			p := fakePipeline
			p.Features = []feature.Feature{{Kind: feature.Number, Column: "x"}}
			fitted, err := fitTables(&spec, p, opens(1000, nil))
			if err != nil {
				t.Fatal(err)
			}
			spec.Fitted = fitted
			src, err := gatherTables(&spec, opens(1000, nil))
			if err != nil {
				t.Fatal(err)
			}
			at := make([]int, src.Rows())
			for i := range at {
				at[i] = i
			}
			var b Batch
			if err := src.Read(at, &b); err != nil {
				t.Fatal(err)
			}
			most := float32(0)
			for _, x := range b.Columns[1].Values {
				if other, twice := seen[x]; twice {
					t.Errorf("by %s: row %v is in parts %s and %s", rule.By, x, other, part)
				}
				seen[x] = part
				most = max(most, x)
			}
			if m := fitted.Features[0].Moments[0]; int(m.Count) != src.Rows() || m.Max != float64(most) {
				t.Errorf("by %s: part %s has %d rows up to %v, learned of %d up to %v", rule.By, part, src.Rows(), most, m.Count, m.Max)
			}
		}
		if len(seen) != 900 {
			t.Errorf("by %s: %d rows are in a part, want 900", rule.By, len(seen))
		}
		if by := rule.By; by == split.ByTail && (seen[798] != split.Train || seen[800] != split.Test) || by == split.ByTime && (seen[599] != split.Train || seen[600] != split.Test) {
			t.Errorf("by %s: rows around the boundary are in parts %s and %s", by, seen[798], seen[800])
		}
	}
	spec := Spec{Format: "csv", Intake: Intake{Split: &split.Rule{By: split.ByColumn, Column: "e", Test: []string{"1"}}}}
	if _, err := fitTables(&spec, fakePipeline, opens(10, nil)); err == nil || !strings.Contains(err.Error(), `the column "e" is entries: want one value a row`) {
		t.Errorf("got %v", err)
	}
	spec.Split.Column = "z"
	if _, err := fitTables(&spec, fakePipeline, opens(10, nil)); err == nil || !strings.Contains(err.Error(), `no column "z" to split by`) {
		t.Errorf("got %v", err)
	}
}

// Rows of libsvm are scaled to a norm of 1 where the spec says so.
func TestUnitNorm(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x")
	if err := os.WriteFile(path, []byte("1 1:3 5:4\n0\n1 2:1 3:1 4:1 5:1\n0 7:-2\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	src, err := Open(Spec{Format: "libsvm", Path: path, UnitNorm: true})
	if err != nil {
		t.Fatal(err)
	}
	var b Batch
	if err := src.Read([]int{0, 1, 2, 3}, &b); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]float32{.6, .8, .5, .5, .5, .5, -1}, b.Columns[1].Values); diff != "" {
		t.Errorf("values (-want +got):\n%s", diff)
	}
}
