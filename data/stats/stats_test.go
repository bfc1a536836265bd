package stats

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/gangline/gangline/data"
	"github.com/gangline/gangline/data/table"
	"github.com/gangline/gangline/internal/mix"
)

// The estimate of different values is within four standard errors at every size.
func TestDistinct(t *testing.T) {
	var d distinct
	n := 0
	for _, size := range []int{1, 10, 1000, 20_000, 50_000, 300_000, 2_000_000} {
		for ; n < size; n++ {
			h := mix.Mix(uint64(n))
			d.add(h)
			d.add(h)
		}
		if e := d.estimate(); math.Abs(e-float64(size)) > 4*.0082*float64(size)+.5 {
			t.Errorf("%d values are estimated as %.0f", size, e)
		}
	}
	if (&distinct{}).estimate() != 0 {
		t.Error("no values are some")
	}
}

// Counts are exact up to the limit; beyond it no count is too large, or more than
// its error too small, and a value that is more frequent than that is there.
func TestCounts(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c, exact, n := counts{limit: 8}, map[uint64]int64{}, 0
		for _, v := range rapid.SliceOf(rapid.OneOf(rapid.Uint64Range(0, 4), rapid.Uint64Range(0, 200))).Draw(t, "values") {
			c.add(v, func() string { return fmt.Sprint(v) })
			exact[v]++
			n++
		}
		got := map[string]Value{}
		for _, v := range c.top(1000) {
			got[v.Text] = v
		}
		if c.lost*9 > int64(n) {
			t.Fatalf("counts may be %d too small, of %d values", c.lost, n)
		}
		for v, want := range exact {
			is := got[fmt.Sprint(v)]
			if is.Count > want || is.Count < want-c.lost {
				t.Fatalf("value %d stands there %d times, counted %d ± %d", v, want, is.Count, c.lost)
			}
		}
		if n, ok := c.distinct(); len(exact) <= 8 && (!ok || n != int64(len(exact))) {
			t.Fatalf("%d different values, counted %d, exact: %v", len(exact), n, ok)
		}
	})
}

// Moments agree with two passes, also far from zero.
func TestMoments(t *testing.T) {
	for _, far := range []float64{0, 1e9} {
		var m moments
		xs := []float64{1, 1, 2, 3, 5, 8, 13, -4}
		mean := 0.0
		for i := range xs {
			xs[i] += far
			m.add(xs[i])
			mean += xs[i] / 8
		}
		var m2, m3 float64
		for _, x := range xs {
			m2 += (x - mean) * (x - mean) / 8
			m3 += (x - mean) * (x - mean) * (x - mean) / 8
		}
		want := &Numbers{Min: far - 4, Max: far + 13, Mean: mean, Std: math.Sqrt(m2), Skewness: m3 / math.Pow(m2, 1.5)}
		if d := cmp.Diff(want, m.result(), cmpopts.EquateApprox(1e-6, 1e-9)); d != "" {
			t.Errorf("around %g: %s", far, d)
		}
	}
}

// reader is a table.Reader of blocks.
type reader struct {
	fields []table.Field
	blocks []table.Block
	errs   []error // what comes with each
}

func (r *reader) Fields() []table.Field { return r.fields }
func (r *reader) Close() error          { return nil }

func (r *reader) Read(b *table.Block, _ int) error {
	if len(r.blocks) == 0 {
		return io.EOF
	}
	*b = r.blocks[0]
	err := r.errs[0]
	r.blocks, r.errs = r.blocks[1:], r.errs[1:]
	return err
}

// A small table, worked out by hand: kinds, missing values, lists, a bad row, and
// rows that are equal in all columns.
func TestOfTable(t *testing.T) {
	bad := &table.RowError{File: "x.csv", Line: 4, Column: "n", Reason: "is no number"}
	r := &reader{
		fields: []table.Field{{Name: "n", Kind: table.Number}, {Name: "s", Kind: table.Text}, {Name: "l", Kind: table.Entries}},
		blocks: []table.Block{
			{Rows: 3, Columns: []table.Column{
				{Numbers: []float64{1, math.NaN(), 1}, Missing: []bool{false, true, false}},
				{Bytes: []byte("abbab"), Ends: []int{2, 3, 5}},
				{Integers: []int64{7, 8, 7, 8}, Offsets: []int{0, 2, 2, 4}},
			}},
			{Rows: 1, Columns: []table.Column{
				{Numbers: []float64{5}},
				{Bytes: []byte("b"), Ends: []int{1}},
				{Integers: []int64{}, Offsets: []int{0, 0}},
			}},
		},
		errs: []error{bad, nil},
	}
	got, err := OfTable(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	want := &Table{
		Rows: 4, Duplicates: 1, DuplicatesExact: true, BadRows: 1, BadSamples: []string{`x.csv:4: column "n": is no number`},
		Columns: []Column{
			{
				Name: "n", Kind: "number", Missing: 1, Values: 3, Distinct: 2, Exact: true, Top: []Value{{Text: "1", Count: 2}, {Text: "5", Count: 1}}, Share: 2. / 3,
				Numbers: &Numbers{Min: 1, Mean: 7. / 3, Max: 5, Std: math.Sqrt(32. / 9), Skewness: math.Sqrt2 / 2},
			},
			{Name: "s", Kind: "text", Values: 4, Distinct: 2, Exact: true, Top: []Value{{Text: `"ab"`, Count: 2}, {Text: `"b"`, Count: 2}}, Share: .5},
			{
				Name: "l", Kind: "entries", Values: 4, Distinct: 2, Exact: true, Top: []Value{{Text: "7", Count: 2}, {Text: "8", Count: 2}}, Share: .5,
				PerRow: &Numbers{Min: 0, Mean: 1, Max: 2, Std: 1},
			},
		},
	}
	if d := cmp.Diff(want, got, cmpopts.EquateApprox(0, 1e-12)); d != "" {
		t.Error(d)
	}
	r.blocks, r.errs = []table.Block{{Rows: 0, Columns: make([]table.Column, 3)}}, []error{errors.New("cut off")}
	if _, err := OfTable(t.Context(), r); err == nil || err.Error() != "cut off" {
		t.Error(err)
	}
}

// The features of a source: dense ones by number, entries with their values.
func TestOfSource(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.svm")
	if err := os.WriteFile(path, []byte("1 1:1 3:0.5\n-1 2:2\n1 1:1 3:0.5\n-1\nx\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	src, err := data.Open(t.Context(), data.Spec{Format: "libsvm", Path: path, Features: 3, MaxBadRows: 1})
	if err != nil {
		t.Fatal(err)
	}
	got, err := OfSource(t.Context(), src)
	if err != nil {
		t.Fatal(err)
	}
	if got.Rows != 4 || got.Duplicates != 1 || got.BadRows != 1 || len(got.BadSamples) != 1 || !strings.Contains(got.BadSamples[0], "a.svm:5") {
		t.Errorf("%+v", got)
	}
	names := map[string]Column{}
	for _, c := range got.Columns {
		names[c.Name] = c
	}
	if c := names["label"]; c.Distinct != 2 || c.Numbers.Mean != 0 {
		t.Errorf("%+v", c)
	}
	if c := names["x"]; c.Distinct != 3 || c.Values != 5 || c.Top[0] != (Value{Text: "0", Count: 2}) || c.PerRow.Max != 2 {
		t.Errorf("%+v", c)
	}
	if c := names["x values"]; c.Numbers == nil || c.Numbers.Mean != 1 || c.Numbers.Max != 2 {
		t.Errorf("%+v", c)
	}
	generated, err := data.Open(t.Context(), data.Spec{Format: "generated", Rows: 10_000, Buckets: 1 << 16})
	if err != nil {
		t.Fatal(err)
	}
	g, err := OfSource(t.Context(), generated)
	if err != nil {
		t.Fatal(err)
	}
	if len(g.Columns) != 1+13+26 || g.Columns[1].Name != "num.0" || g.Columns[14].Name != "cat.0" || g.Rows != 10_000 {
		t.Errorf("%d columns of %d rows", len(g.Columns), g.Rows)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := OfSource(ctx, generated); !errors.Is(err, context.Canceled) {
		t.Errorf("after the end: %v", err)
	}
}

// Beyond the exact limit, duplicates are an estimate that says so.
func TestManyRows(t *testing.T) {
	var r rows
	const n = rowsMax + rowsMax/2
	for i := range n {
		r.add(mix.Mix(uint64(i)))
		if i%2 == 0 {
			r.add(mix.Mix(uint64(i)))
		}
	}
	if d, exact := r.duplicates(); exact || math.Abs(float64(d)-n/2) > .05*n {
		t.Errorf("%d duplicates (exact: %v), want about %d", d, exact, n/2)
	}
	if r.seen != nil {
		t.Error("the exact set is still held")
	}
	if !slices.IsSorted([]int{each(4000), each(10), each(1)}) {
		t.Error("fewer columns have less room")
	}
}

// Moments that are beyond float64 are null in JSON, which has no other word.
func TestMomentsBeyond(t *testing.T) {
	var c column
	c.numeric = true
	for _, v := range []float64{1e300, -1e300, 2} {
		c.number(v)
	}
	text, err := json.Marshal(c.result())
	if want := `"min":-1e+300,"mean":`; err != nil || !strings.Contains(string(text), want) || !strings.Contains(string(text), `"std":null`) {
		t.Errorf("got %s, %v", text, err)
	}
}

// A missing value is equal to another one and to no number.
func TestMissingIsNoNumber(t *testing.T) {
	r := &reader{
		fields: []table.Field{{Name: "n", Kind: table.Integer}},
		blocks: []table.Block{{Rows: 5, Columns: []table.Column{{Integers: []int64{-1, 0, 0, -1, 0}, Missing: []bool{false, true, false, false, true}}}}},
		errs:   []error{nil},
	}
	got, err := OfTable(t.Context(), r)
	if err != nil || got.Duplicates != 2 || got.Columns[0].Distinct != 2 || got.Columns[0].Missing != 2 {
		t.Errorf("got %+v, %v", got, err)
	}
}
