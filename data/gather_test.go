package data

import (
	"bytes"
	"encoding/json"
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/gangline/gangline/data/cache"
	"github.com/gangline/gangline/data/feature"
	"github.com/gangline/gangline/data/format"
	"github.com/gangline/gangline/data/rejects"
	"github.com/gangline/gangline/data/split"
)

// criteoFile writes n generated rows as Criteo lines.
func criteoFile(t testing.TB, n int) string {
	t.Helper()
	return tempFile(t, criteoText(t, mustOpen(t, Spec{Format: "generated", Buckets: 100, Rows: n, Seed: 1}), 0, n))
}

// sameRows reads two sources in the same order and demands the same rows: a few from
// anywhere, and then all, shuffled as by windows.
func sameRows(t *testing.T, want, got Source) {
	t.Helper()
	if want.Rows() != got.Rows() || !slices.Equal(want.Columns(), got.Columns()) {
		t.Fatalf("%d rows of %v, want %d of %v", got.Rows(), got.Columns(), want.Rows(), want.Columns())
	}
	r := rand.New(rand.NewPCG(1, 2))
	at := r.Perm(want.Rows())[:min(want.Rows(), 30)]
	for lo := 0; lo < want.Rows(); lo += 500 {
		some := rowRange(lo, min(lo+500, want.Rows()))
		r.Shuffle(len(some), func(i, j int) { some[i], some[j] = some[j], some[i] })
		at = append(at, some...)
	}
	var a, b Batch
	for n := 30; len(at) > 0; n = 500 {
		n = min(n, len(at))
		if err := errors.Join(want.Read(at[:n], &a), got.Read(at[:n], &b)); err != nil {
			t.Fatal(err)
		}
		equal := func(x, y Column) bool {
			return slices.Equal(x.Values, y.Values) && slices.Equal(x.Offsets, y.Offsets) && slices.Equal(x.IDs, y.IDs)
		}
		if !slices.EqualFunc(a.Columns, b.Columns, equal) {
			t.Fatalf("rows differ:\n%s", cmp.Diff(a, b, cmpopts.EquateEmpty()))
		}
		at = at[n:]
	}
}

// TestBoundedByMemory: a file of 20 MB under a limit of 3 MB is converted once, read in
// the order of training within the limit, and gives the rows that a source in memory
// gives.
func TestBoundedByMemory(t *testing.T) {
	const limit = 3 << 20
	path := criteoFile(t, 80_000)
	info, err := os.Stat(path)
	if err != nil || info.Size() < 20e6 {
		t.Fatalf("the file has %d bytes, %v", info.Size(), err)
	}
	spec := Spec{Format: "criteo", Path: path, Buckets: 1000}
	whole := mustOpen(t, spec)
	spec.Memory, spec.CacheDir = limit, t.TempDir()
	src := mustOpen(t, spec).(*cached)
	o := Shuffled(src, 7, 256)
	if o.Block == 0 || o.Window < 1 || o.Window*o.Block >= o.Rows/2 {
		t.Fatalf("the order is %+v", o)
	}
	f := mustFeeder(t, src, o)
	out := outputs(clickInputs(f.inputs[0].DType))
	seen := make([]bool, o.Rows)
	touched := map[int]bool{}
	for step := range int64(o.StepsPerEpoch()) {
		if err := f.Feed(step, out); err != nil {
			t.Fatal(err)
		}
		clear(touched)
		for _, row := range f.Rows() {
			if seen[row] {
				t.Fatalf("row %d comes twice", row)
			}
			seen[row] = true
			touched[row/o.Block] = true
		}
		if len(touched) > 2*o.Window {
			t.Fatalf("step %d touches %d blocks, a window has %d", step, len(touched), o.Window)
		}
	}
	if i := slices.Index(seen, false); i >= 0 {
		t.Fatalf("row %d never came", i)
	}
	peak, reads := src.pool.Stats()
	if peak > limit {
		t.Errorf("%d bytes were held, the limit is %d", peak, limit)
	}
	if blocks := len(src.file.Blocks); reads > 2*blocks {
		t.Errorf("%d reads for an epoch of %d blocks", reads, blocks)
	}
	sameRows(t, whole, src)
}

func mustFeeder(t *testing.T, src Source, o Order) *Feeder {
	t.Helper()
	f, err := NewFeeder(src, o, 0, 1, clickInputs(1))
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// TestCacheReuse: a cache file is used again as long as nothing changed, made anew when
// something did or when it is damaged, and is memory where there is room for it.
func TestCacheReuse(t *testing.T) {
	path := criteoFile(t, 5000)
	spec := Spec{Format: "criteo", Path: path, Buckets: 1000}
	whole := mustOpen(t, spec)
	spec.Memory, spec.CacheDir = 100<<10, t.TempDir()
	files := func() (names []string, newest int64) {
		err := filepath.WalkDir(spec.CacheDir, func(p string, d os.DirEntry, err error) error {
			if err == nil && !d.IsDir() {
				info, e := d.Info()
				names, newest = append(names, p), max(newest, info.ModTime().UnixNano())
				return e
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		return names, newest
	}
	sameRows(t, whole, mustOpen(t, spec))
	first, at := files()
	if len(first) != 1 {
		t.Fatalf("the cache holds %v", first)
	}
	sameRows(t, whole, mustOpen(t, spec))
	if _, again := files(); again != at {
		t.Error("the cache file was made a second time")
	}
	if m, ok := mustOpen(t, Spec{Format: "cache", Path: first[0]}).(*memory); !ok {
		t.Errorf("a cache file that fits into memory is %T", m)
	}
	if err := os.Truncate(first[0], 5000); err != nil {
		t.Fatal(err)
	}
	sameRows(t, whole, mustOpen(t, spec))
	other := spec
	other.Buckets = 999
	mustOpen(t, other)
	if names, _ := files(); len(names) != 2 {
		t.Errorf("another spec shares the cache file: %v", names)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, text[:bytes.LastIndexByte(text[:len(text)-1], '\n')+1], 0o600); err != nil {
		t.Fatal(err)
	}
	if src := mustOpen(t, spec); src.Rows() != 4999 {
		t.Errorf("of a changed file %d rows were read", src.Rows())
	}
}

// TestCacheTogether: processes that want the same cache file at once all get it.
func TestCacheTogether(t *testing.T) {
	spec := Spec{Format: "criteo", Path: criteoFile(t, 3000), Buckets: 1000}
	whole := mustOpen(t, spec)
	spec.Memory, spec.CacheDir = 50<<10, t.TempDir()
	var wait sync.WaitGroup
	sources := make([]Source, 4)
	for i := range sources {
		wait.Go(func() {
			src, err := Open(t.Context(), spec)
			if err != nil {
				t.Error(err)
				return
			}
			sources[i] = src
		})
	}
	wait.Wait()
	for _, src := range sources {
		if src == nil {
			t.Fatal("a source is absent")
		}
		sameRows(t, whole, src)
		if err := src.Close(); err != nil {
			t.Error(err)
		}
	}
}

// TestConvert: every format survives, and bad rows are remembered.
func TestConvert(t *testing.T) {
	images := tempFile(t, idxBytesOf([]uint32{3, 2}, 0, 51, 255, 1, 2, 3))
	for _, spec := range []Spec{
		{Format: "libsvm", Path: tempFile(t, []byte("1 1:1 3:2\nx\n-1 2:1\n1\n")), MaxBadRows: 1},
		{Format: "libsvm", Path: tempFile(t, []byte("1 1:1 3:1\n-1 2:1\n")), Features: 9},
		{Format: "criteo", Path: criteoFile(t, 300), Buckets: 77},
		{Format: "generated", Rows: 100, Buckets: 50, Seed: 3},
		{Format: "idx", Path: images, Labels: tempFile(t, idxBytesOf([]uint32{3}, 2, 0, 1))},
		{Format: "text", Path: tempFile(t, []byte("to be or not to be")), Context: 4},
	} {
		out := filepath.Join(t.TempDir(), "rows.gcache")
		h, err := Convert(t.Context(), spec, out)
		if err != nil {
			t.Fatalf("%s: %v", spec.Format, err)
		}
		want, got := mustOpen(t, spec), mustOpen(t, Spec{Format: "cache", Path: out})
		sameRows(t, want, got)
		if h.Rows != want.Rows() || got.(Reporter).BadRows() != want.(Reporter).BadRows() {
			t.Errorf("%s: %d rows, %d bad", spec.Format, h.Rows, got.(Reporter).BadRows())
		}
		columns, err := Columns(t.Context(), Spec{Format: "cache", Path: out})
		if err != nil || !slices.Equal(columns, want.Columns()) {
			t.Errorf("%s: columns %v, %v", spec.Format, columns, err)
		}
	}
	out := filepath.Join(t.TempDir(), "rows.gcache")
	if _, err := Convert(t.Context(), Spec{Format: "libsvm", Path: tempFile(t, []byte("x\n"))}, out); err == nil {
		t.Error("a malformed file was converted")
	}
	if left, err := os.ReadDir(filepath.Dir(out)); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
	if _, err := Open(t.Context(), Spec{Format: "cache", Path: images}); !errors.Is(err, cache.ErrFile) {
		t.Errorf("images as a cache: %v", err)
	}
}

// labels reads all labels of a source.
func labels(t *testing.T, src Source) []float32 {
	t.Helper()
	var b Batch
	if err := src.Read(rowRange(0, src.Rows()), &b); err != nil {
		t.Fatal(err)
	}
	return b.Columns[0].Values
}

// TestSplitRows: the parts of files of lines are those of the rule, over several files,
// in memory and cached.
func TestSplitRows(t *testing.T) {
	dir := t.TempDir()
	for i, name := range []string{"day-1.svm", "day-2.svm", "day-3.svm"} {
		var text strings.Builder
		for j := range 1000 {
			text.WriteString(strings.Repeat(" ", 0) + itoa(i*1000+j) + " 1:1\n")
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text.String()), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	spec := Spec{Format: "libsvm", Path: filepath.Join(dir, "day-?.svm")}
	for _, rule := range []split.Rule{
		{By: split.ByFraction, Validation: []string{"0.3"}, Test: []string{"0.2"}},
		{By: split.ByTail, Validation: []string{"0.25"}, Test: []string{"0.25"}},
		{By: split.ByFile, Validation: []string{"day-2.svm"}, Test: []string{"day-3*"}},
	} {
		var all []float32
		for _, part := range []string{split.Train, split.Validation, split.Test} {
			r := rule
			r.Part = part
			spec.Split, spec.Memory = &r, 0
			src := mustOpen(t, spec)
			got := labels(t, src)
			if !slices.IsSorted(got) {
				t.Errorf("%s %s: rows out of order", rule.By, part)
			}
			all = append(all, got...)
			spec.Memory, spec.CacheDir = 5000, t.TempDir()
			sameRows(t, src, mustOpen(t, spec))
			if rule.By == split.ByTail && part == split.Test && (len(got) != 750 || got[0] != 2250) {
				t.Errorf("the tail is %d rows from %v", len(got), got[0])
			}
			if rule.By == split.ByFile && part == split.Validation && (len(got) != 1000 || got[0] != 1000) {
				t.Errorf("day 2 is %d rows from %v", len(got), got[0])
			}
		}
		slices.Sort(all)
		if len(all) != 3000 || len(slices.Compact(all)) != 3000 {
			t.Errorf("%s: the parts have %d rows together", rule.By, len(all))
		}
	}
	spec.Split = &split.Rule{By: split.ByColumn, Column: "day", Test: []string{"1"}}
	if _, err := Open(t.Context(), spec); err == nil || !strings.Contains(err.Error(), `no column "day"`) {
		t.Errorf("libsvm by column: %v", err)
	}
	if _, err := Open(t.Context(), Spec{Format: "generated", Rows: 3, Buckets: 3, Intake: Intake{Split: spec.Split}}); err == nil {
		t.Error("generated rows were split")
	}
}

func itoa(i int) string { text, _ := json.Marshal(i); return string(text) }

// TestNegativeRows: rows with label 0 are sampled and weigh what makes up for it; test
// rows get the column of weights without a sample.
func TestNegativeRows(t *testing.T) {
	spec := Spec{Format: "criteo", Path: criteoFile(t, 4000), Buckets: 100}
	before := labels(t, mustOpen(t, spec))
	spec.Negatives = split.Negatives{Keep: .25}
	src := mustOpen(t, spec)
	var b Batch
	if err := src.Read(rowRange(0, src.Rows()), &b); err != nil {
		t.Fatal(err)
	}
	if got := src.Columns()[3]; got != (ColumnSpec{Name: WeightColumn, Kind: DenseColumn, Dim: 1}) {
		t.Fatalf("the last column is %v", got)
	}
	columns, err := Columns(t.Context(), spec)
	if err != nil || !slices.Equal(columns, src.Columns()) {
		t.Errorf("Columns says %v, %v", columns, err)
	}
	positive, negative := 0, 0
	for i, y := range b.Columns[0].Values {
		if w := b.Columns[3].Values[i]; y == 1 && w != 1 || y == 0 && w != 4 {
			t.Fatalf("a row with label %v weighs %v", y, w)
		}
		if y == 1 {
			positive++
		} else {
			negative++
		}
	}
	ones := 0
	for _, y := range before {
		ones += int(y)
	}
	if positive != ones || negative < 600 || negative > 900 {
		t.Errorf("%d of %d positive rows, %d of %d negative ones", positive, ones, negative, len(before)-ones)
	}
	spec.Negatives, spec.Weighted = split.Negatives{}, true
	src = mustOpen(t, spec)
	if err := src.Read([]int{0, 1}, &b); err != nil || src.Rows() != 4000 || b.Columns[3].Values[0] != 1 {
		t.Errorf("%d rows, %v", src.Rows(), err)
	}
}

// TestRejects: malformed rows are written down with their text, up to a share, and the
// file is there when the share is too large, too.
func TestRejects(t *testing.T) {
	path := filepath.Join(t.TempDir(), "rejects.jsonl")
	spec := Spec{Format: "libsvm", Path: tempFile(t, []byte("1 1:1\nbad 1:1\n1 2:1\n1 3:x\n1 4:1\n"))}
	spec.MaxBadShare, spec.Rejects = .4, path
	src := mustOpen(t, spec)
	if src.Rows() != 3 || src.(Reporter).BadRows() != 2 {
		t.Errorf("%d rows, %d bad", src.Rows(), src.(Reporter).BadRows())
	}
	want := []rejects.Row{
		{File: spec.Path, Line: 2, Column: "label", Reason: `label "bad" is not a finite number`, Text: "bad 1:1"},
		{File: spec.Path, Line: 4, Column: "entry 1", Reason: `value "x" of index 3 is not a finite number`, Text: "1 3:x"},
	}
	read := func() (all []rejects.Row) {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for line := range bytes.Lines(text) {
			var r rejects.Row
			if err := json.Unmarshal(line, &r); err != nil {
				t.Fatal(err)
			}
			all = append(all, r)
		}
		return all
	}
	if diff := cmp.Diff(want, read()); diff != "" {
		t.Error(diff)
	}
	spec.MaxBadShare = .39
	if _, err := Open(t.Context(), spec); err == nil || !strings.Contains(err.Error(), "2 of 5 rows are malformed, more than the share of 0.39") {
		t.Errorf("two of five bad rows: %v", err)
	}
	spec.MaxBadShare = 0
	if _, err := Open(t.Context(), spec); err == nil || len(read()) != 1 {
		t.Errorf("none allowed: %v, %d in the file", err, len(read()))
	}
	spec.MaxBadShare, spec.Path = .99999, tempFile(t, []byte("1 1:1\n"+strings.Repeat("x\n", rejects.Max+5)))
	mustOpen(t, spec)
	if n := len(read()); n != rejects.Max {
		t.Errorf("%d rejects, the limit is %d", n, rejects.Max)
	}
	spec.Rejects = filepath.Join(t.TempDir(), "absent", "rejects")
	if _, err := Open(t.Context(), spec); err == nil || !strings.Contains(err.Error(), "rejects") {
		t.Errorf("rejects into nowhere: %v", err)
	}
	spec.Rejects = t.TempDir()
	if _, err := Open(t.Context(), spec); err == nil || !strings.Contains(err.Error(), spec.Rejects+" is not a regular file") {
		t.Errorf("rejects in place of a directory: %v", err)
	}
}

// TestIdxClasses: a label that the model has no class for is named.
func TestIdxClasses(t *testing.T) {
	spec := Spec{
		Format: "idx", Classes: 3, Path: tempFile(t, idxBytesOf([]uint32{2, 1}, 1, 2)),
		Labels: tempFile(t, idxBytesOf([]uint32{2}, 2, 3)),
	}
	if _, err := Open(t.Context(), spec); err == nil || !strings.Contains(err.Error(), `:2: column "label": label 3 is beyond the 3 classes`) {
		t.Error(err)
	}
}

// TestLimitCountsKeptRows: a limit counts the rows that are kept, alike in files of
// lines and in tables, however rows are split and sampled; and what features learn from
// reaches as far as those rows do.
func TestLimitCountsKeptRows(t *testing.T) {
	const total, limit = 2000, 300
	dir := t.TempDir()
	var svm, csv strings.Builder
	csv.WriteString("y,name\n")
	for i := range total {
		y := itoa(i * i % 5 % 2) // 0 in three rows of five
		svm.WriteString(y + " " + itoa(i+1) + ":1\n")
		csv.WriteString(y + ",r" + itoa(i) + "\n")
	}
	for name, text := range map[string]string{"a.svm": svm.String(), "a.csv": csv.String()} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	pipeline := feature.Spec{Task: feature.Binary, Label: feature.Label{Column: "y"}, Features: []feature.Feature{{Kind: feature.Category, Column: "name"}}}
	tail := &split.Rule{By: split.ByTail, Test: []string{"0.5"}, Part: split.Test}
	for name, intake := range map[string]Intake{
		"all":      {},
		"fraction": {Split: &split.Rule{By: split.ByFraction, Test: []string{"0.4"}}},
		"tail":     {Split: tail},
		"sample":   {Negatives: split.Negatives{Keep: .1}},
		"both":     {Split: tail, Negatives: split.Negatives{Keep: .5, Seed: 3}},
	} {
		lines := Spec{Format: "libsvm", Path: filepath.Join(dir, "a.svm"), Limit: limit, Features: total, Intake: intake}
		columns := Spec{Format: "csv", Path: filepath.Join(dir, "a.csv"), Limit: limit, Table: format.Spec{Header: true}, Intake: intake}
		var err error
		if columns.Fitted, err = Fit(t.Context(), columns, pipeline); err != nil {
			t.Fatal(err)
		}
		a, b := mustOpen(t, lines), mustOpen(t, columns)
		if a.Rows() != limit || b.Rows() != limit {
			t.Errorf("%s: %d rows of lines, %d of the table, want %d", name, a.Rows(), b.Rows(), limit)
		}
		if name != "both" && !slices.Equal(labels(t, a), labels(t, b)) { // a sample goes by another number there
			t.Errorf("%s: other rows of lines than of the table", name)
		}
		var batch Batch
		if err := b.Read(rowRange(0, limit), &batch); err != nil {
			t.Fatal(err)
		}
		if slices.Contains(batch.Columns[1].IDs, 1) {
			t.Errorf("%s: a row that is kept has a value that nothing was learned of", name)
		}
		lines.Memory, lines.CacheDir = 5000, t.TempDir()
		sameRows(t, a, mustOpen(t, lines))
	}
	lines := Spec{Format: "libsvm", Path: filepath.Join(dir, "a.svm"), Limit: 1, Features: total, Intake: Intake{Split: tail}}
	var b Batch
	if err := mustOpen(t, lines).Read([]int{0}, &b); err != nil || b.Columns[1].IDs[0] != total/2 {
		t.Errorf("the tail begins with row %v: %v", b.Columns[1].IDs, err)
	}
}
