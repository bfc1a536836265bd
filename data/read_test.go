package data

import (
	"bytes"
	"errors"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/gangline/gangline/data/generate"
	"github.com/gangline/gangline/data/parse"
)

// TestRealFiles reads every file of the formats there are and checks what awk and
// Python count in them: rows, columns, number of values and sum of labels.
func TestRealFiles(t *testing.T) {
	binary := func(file string, features int) Spec {
		return Spec{Format: "libsvm", Path: "libsvm/" + file, LabelMap: "binary", Features: features}
	}
	classes := func(file string) Spec { return Spec{Format: "libsvm", Path: "libsvm/" + file, LabelBase: 1} }
	mnist := func(part string) Spec {
		return Spec{Format: "idx", Path: "mnist/" + part + "-images-idx3-ubyte.gz", Labels: "mnist/" + part + "-labels-idx1-ubyte.gz"}
	}
	tests := []struct {
		spec      Spec
		rows, dim int
		values    int // of x, stored entries
		classes   int
		positive  float64 // sum of labels
	}{
		{spec: binary("a1a", 123), rows: 1605, dim: 123, values: 22249, classes: 2, positive: 395},
		{spec: binary("a9a", 0), rows: 32561, dim: 123, values: 451592, classes: 2, positive: 7841},
		{spec: binary("a9a.t", 123), rows: 16281, dim: 123, values: 225731, classes: 2, positive: 3846},
		{spec: binary("a9a.t", 0), rows: 16281, dim: 122, values: 225731, classes: 2, positive: 3846},
		{spec: binary("agaricus.txt.train", 0), rows: 6513, dim: 126, values: 143286, classes: 2, positive: 3140},
		{spec: binary("agaricus.txt.test", 126), rows: 1611, dim: 126, values: 35442, classes: 2, positive: 776},
		{spec: classes("dna.scale"), rows: 2000, dim: 180, values: 91233, classes: 3, positive: 485 + 2*1051},
		{spec: classes("dna.scale.t"), rows: 1186, dim: 180, classes: 3, values: 53669, positive: 1486},
		{spec: binary("heart_scale", 0), rows: 270, dim: 13, values: 3378, classes: 2, positive: 120},
		{spec: classes("news20.bz2"), rows: 15935, dim: 62061, values: 1272569, classes: 20, positive: 151607},
		{spec: mnist("train"), rows: 60000, dim: 784, values: 60000 * 784, classes: 10, positive: 267236},
		{spec: mnist("t10k"), rows: 10000, dim: 784, values: 10000 * 784, classes: 10, positive: 44434},
	}
	for _, test := range tests {
		t.Run(filepath.Base(test.spec.Path)+"/"+strconv.Itoa(test.spec.Features), func(t *testing.T) {
			spec := test.spec
			spec.Path = realData(t, spec.Path)
			if spec.Labels != "" {
				spec.Labels = realData(t, spec.Labels)
			}
			m := mustOpen(t, spec).(*memory)
			values, dim := 0, m.specs[1].Dim
			for _, b := range m.blocks {
				values += len(b.Columns[1].IDs) + len(b.Columns[1].Bytes)
			}
			if got := m.Rows(); got != test.rows || dim != test.dim || values != test.values {
				t.Errorf("%d rows of dim %d with %d values, want %d, %d, %d", got, dim, values, test.rows, test.dim, test.values)
			}
			var b Batch
			if err := m.Read(rowRange(0, m.Rows()), &b); err != nil {
				t.Fatal(err)
			}
			sum, seen := 0.0, make(map[float32]bool)
			for _, v := range b.Columns[0].Values {
				sum += float64(v)
				seen[v] = true
			}
			for c := range test.classes {
				if !seen[float32(c)] {
					t.Errorf("no label is %d", c)
				}
			}
			if len(seen) != test.classes || (test.positive != 0 && sum != test.positive) {
				t.Errorf("labels %v with sum %v, want %d classes and %v", seen, sum, test.classes, test.positive)
			}
		})
	}
}

// TestRealValues looks at single values of real files.
func TestRealValues(t *testing.T) {
	var b Batch
	heart := mustOpen(t, Spec{Format: "libsvm", Path: realData(t, "libsvm/heart_scale")})
	if err := heart.Read([]int{1, 0}, &b); err != nil {
		t.Fatal(err)
	}
	x := b.Columns[1]
	if b.Columns[0].Values[0] != -1 || x.IDs[0] != 0 || x.Values[0] != 0.583333 || x.Values[12] != 0.708333 {
		t.Errorf("heart_scale rows 1 and 0 read as %+v", b)
	}
	mnist := mustOpen(t, Spec{
		Format: "idx", Path: realData(t, "mnist/t10k-images-idx3-ubyte.gz"),
		Labels: realData(t, "mnist/t10k-labels-idx1-ubyte.gz"), Limit: 7,
	})
	if err := mnist.Read([]int{0, 6}, &b); err != nil {
		t.Fatal(err)
	}
	least, most := float32(1), float32(0)
	for _, v := range b.Columns[1].Values {
		least, most = min(least, v), max(most, v)
	}
	if mnist.Rows() != 7 || !cmp.Equal(b.Columns[0].Values, []float32{7, 4}) || least != 0 || most != 1 {
		t.Errorf("mnist: %d rows, labels %v, pixels %v to %v", mnist.Rows(), b.Columns[0].Values, least, most)
	}
	a9a := mustOpen(t, Spec{Format: "libsvm", Path: realData(t, "libsvm/a9a")}).(*memory)
	if a9a.blocks[0].Columns[1].Values != nil {
		t.Error("a9a has only ones, yet keeps weights")
	}
}

// TestLibsvmRows: what good files mean.
func TestLibsvmRows(t *testing.T) {
	tests := []struct {
		name, text string
		spec       Spec
		labels     []float32
		offsets    []int64
		ids        []int64
		weights    []float32
		dim        int
	}{
		{
			name:   "comments, blank lines, any order, tabs, CRLF, no last newline",
			text:   "# head\n\n+1 3:1 1:-2.5e0 # tail\r\n   \n-1\n.5\t2:1",
			labels: []float32{1, -1, .5}, offsets: []int64{0, 2, 2, 3},
			ids: []int64{2, 0, 1}, weights: []float32{1, -2.5, 1}, dim: 3,
		},
		{
			name: "zero based, declared", text: "1 0:1 6:2\n", spec: Spec{ZeroBased: true, Features: 7},
			labels: []float32{1}, offsets: []int64{0, 2}, ids: []int64{0, 6}, weights: []float32{1, 2}, dim: 7,
		},
		{
			name: "binary", text: "-1 1:1\n+1 1:1\n0 1:1\n1.0 1:1\n", spec: Spec{LabelMap: "binary"},
			labels: []float32{0, 1, 0, 1}, offsets: []int64{0, 1, 2, 3, 4}, ids: []int64{0, 0, 0, 0},
			weights: []float32{1, 1, 1, 1}, dim: 1,
		},
		{
			name: "classes from 1", text: "3 2:1\n1 1:1\n", spec: Spec{LabelBase: 1},
			labels: []float32{2, 0}, offsets: []int64{0, 1, 2}, ids: []int64{1, 0}, weights: []float32{1, 1}, dim: 2,
		},
		{
			name: "limit stops before bad rows", text: "1 1:1\n1 bad\n", spec: Spec{Limit: 1},
			labels: []float32{1}, offsets: []int64{0, 1}, ids: []int64{0}, weights: []float32{1}, dim: 1,
		},
		{
			name: "bad rows leave nothing", text: "1 1:1\n5 2:7 3:8 9:x\n2 2:3\n", spec: Spec{MaxBadRows: 1},
			labels: []float32{1, 2}, offsets: []int64{0, 1, 2}, ids: []int64{0, 1}, weights: []float32{1, 3}, dim: 2,
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			want := Batch{Rows: len(test.labels), Columns: []Column{
				{Values: test.labels}, {Values: test.weights, Offsets: test.offsets, IDs: test.ids},
			}}
			for _, content := range [][]byte{[]byte(test.text), gzipped(t, []byte(test.text))} {
				spec := test.spec
				spec.Format, spec.Path = "libsvm", tempFile(t, content)
				src := mustOpen(t, spec)
				var got Batch
				if err := src.Read(rowRange(0, src.Rows()), &got); err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(want, got); diff != "" {
					t.Errorf("read (-want +got):\n%s", diff)
				}
				if dim := src.Columns()[1].Dim; dim != test.dim {
					t.Errorf("dim %d, want %d", dim, test.dim)
				}
			}
		})
	}
}

func criteoLine(label string, ints, cats string) string {
	return label + "\t" + ints + strings.Repeat("\t", parse.CriteoNums-1-strings.Count(ints, "\t")) +
		"\t" + cats + strings.Repeat("\t", parse.CriteoCats-1-strings.Count(cats, "\t"))
}

// TestCriteoRow: what one row means.
func TestCriteoRow(t *testing.T) {
	text := criteoLine("1", "2\t-1\t\t5000", "05db9164\t\tFF") + "\r\n" + criteoLine("0", "", "")
	const buckets = 1000
	src := mustOpen(t, Spec{Format: "criteo", Path: tempFile(t, []byte(text)), Buckets: buckets})
	var b Batch
	if err := src.Read([]int{0, 1}, &b); err != nil {
		t.Fatal(err)
	}
	nums := make([]float32, 2*parse.CriteoNums)
	nums[0], nums[3] = float32(math.Log(3)), float32(math.Log(5001))
	ids := make([]int64, 2*parse.CriteoCats)
	for f := range parse.CriteoCats {
		ids[f], ids[parse.CriteoCats+f] = parse.MissingID(f, buckets), parse.MissingID(f, buckets)
	}
	ids[0], ids[2] = parse.CategoryID(0, 0x05db9164, buckets), parse.CategoryID(2, 255, buckets)
	if diff := cmp.Diff([]float32{1, 0}, b.Columns[0].Values); diff != "" {
		t.Errorf("labels:\n%s", diff)
	}
	if diff := cmp.Diff(nums, b.Columns[1].Values); diff != "" {
		t.Errorf("numbers:\n%s", diff)
	}
	if diff := cmp.Diff(ids, b.Columns[2].IDs); diff != "" {
		t.Errorf("ids:\n%s", diff)
	}
	if parse.CategoryID(0, 7, 1<<30) == parse.CategoryID(1, 7, 1<<30) {
		t.Error("equal values of two fields are one category")
	}
}

// TestMalformedRows: each is an error with file, line and reason, is skipped and
// reported where that is allowed, and one too many is an error again.
func TestMalformedRows(t *testing.T) {
	good := map[string]string{"libsvm": "1 1:1", "criteo": criteoLine("1", "1", "a")}
	tests := []struct {
		format, line, reason string
		spec                 Spec
	}{
		{"libsvm", "1 0:1", "index 0 is below 1", Spec{}},
		{"libsvm", "1 -1:1", "index -1 is below 0", Spec{ZeroBased: true}},
		{"libsvm", "1 4:1", "index 4 is beyond the 3 features", Spec{Features: 3}},
		{"libsvm", "1 3:1", "index 3 is beyond the 3 features", Spec{Features: 3, ZeroBased: true}},
		{"libsvm", "1 3000000000:1", "beyond the limit", Spec{}},
		{"libsvm", "1 99999999999999999999:1", "not a whole number", Spec{}},
		{"libsvm", "1 1:2 1:2", "index 1 stands twice", Spec{}},
		{"libsvm", "1 2:2 1:2 2:1", "index 2 stands twice", Spec{}},
		{"libsvm", "1 5", "no colon", Spec{}},
		{"libsvm", "1 :5", `index "" is not`, Spec{}},
		{"libsvm", "1 a:5", `index "a" is not`, Spec{}},
		{"libsvm", "1 1:", `value "" of index 1`, Spec{}},
		{"libsvm", "1 1:2:3", `value "2:3"`, Spec{}},
		{"libsvm", "1 1:nan", "not a finite number", Spec{}},
		{"libsvm", "1 1:-Inf", "not a finite number", Spec{}},
		{"libsvm", "1 1:1e39", "not a finite number", Spec{}},
		{"libsvm", "1 1:0x10", "not a finite number", Spec{}},
		{"libsvm", "x 1:1", `label "x"`, Spec{}},
		{"libsvm", "2 1:1", `label "2" is not -1, 0 or 1`, Spec{LabelMap: "binary"}},
		{"libsvm", "0 1:1", `label "0" is not a class`, Spec{LabelBase: 1}},
		{"libsvm", "1.5 1:1", `label "1.5" is not a class`, Spec{LabelBase: 1}},
		{"libsvm", "1.5 1:1", `label "1.5" is not a class`, Spec{Classes: 3}},
		{"libsvm", "3 1:1", `label "3" is beyond the 3 classes from 0; if the file counts classes from 1, say so with label_base: 1`, Spec{Classes: 3}},
		{"libsvm", "4 1:1", `label "4" is beyond the 3 classes from 1`, Spec{LabelBase: 1, Classes: 3}},
		{"libsvm", "2 1:1", `label "2" is not -1, 0 or 1; if the classes are 1 and 2, say so with label_base: 1`, Spec{LabelMap: "binary"}},
		{"libsvm", "1 qid:3 1:1", "index \"qid\"", Spec{}},
		{"libsvm", strings.Repeat("z", 500), `"zzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzz"...`, Spec{}},
		{"criteo", "1\t2\t3", "has 3 columns", Spec{}},
		{"criteo", criteoLine("1", "", "") + "\t", "has 41 columns", Spec{}},
		{"criteo", criteoLine("2", "", ""), `label "2" is not 0 or 1`, Spec{}},
		{"criteo", criteoLine("", "", ""), `label "" is not 0 or 1`, Spec{}},
		{"criteo", criteoLine("1", "1\t2.5", ""), `column "integer 2": "2.5"`, Spec{}},
		{"criteo", criteoLine("1", "", "a\tb\txyz"), `column "category 3": "xyz"`, Spec{}},
		{"criteo", criteoLine("1", "", "00000000000000001"), `column "category 1": `, Spec{}},
		{"libsvm", "1 1:1 3:x 4:1", `column "entry 2": value "x"`, Spec{}},
		{"libsvm", "1 5:1 3:x 4:1 5:1", `column "entry 2": value "x"`, Spec{}},
		{"libsvm", "1 5:1 3:1 4:1 5:1", `column "entry 4": index 5 stands twice`, Spec{}},
		{"libsvm", "1 99999999:1", `column "entry 1": index 99999999 is beyond the 10 features`, Spec{Features: 10}},
		{"libsvm", "x", `column "label": label "x"`, Spec{}},
	}
	for _, test := range tests {
		t.Run(test.format+"/"+test.reason, func(t *testing.T) {
			ok := good[test.format]
			spec := test.spec
			spec.Format = test.format
			if spec.Format == "criteo" {
				spec.Buckets = 100
			}
			spec.Path = tempFile(t, []byte(ok+"\n"+test.line+"\n"+ok+"\n"+test.line+"\n"))
			_, err := Open(t.Context(), spec)
			var row *RowError
			if !errors.As(err, &row) {
				t.Fatalf("error %v is no RowError", err)
			}
			if row.File != spec.Path || row.Line != 2 || !strings.Contains(row.Error(), test.reason) {
				t.Errorf("got %v, want line 2 and %q", row, test.reason)
			}
			spec.MaxBadRows = 1
			if _, err := Open(t.Context(), spec); !errors.As(err, &row) || row.Line != 4 || !strings.Contains(err.Error(), "more than 1 bad rows") {
				t.Errorf("with one bad row allowed: %v", err)
			}
			spec.MaxBadRows = 2
			src := mustOpen(t, spec)
			report := src.(Reporter)
			if src.Rows() != 2 || report.BadRows() != 2 || len(report.BadSamples()) != 2 || report.BadSamples()[1].Line != 4 {
				t.Errorf("%d rows, %d bad: %v", src.Rows(), report.BadRows(), report.BadSamples())
			}
		})
	}
}

// TestOpenErrors: files that are no data at all.
func TestOpenErrors(t *testing.T) {
	missing := filepath.Join(t.TempDir(), "absent")
	cut := gzipped(t, []byte(strings.Repeat("1 1:1 2:3.25 7:8\n", 1000)))
	tests := []struct {
		name, want string
		spec       Spec
	}{
		{"missing", "absent: there is no such file", Spec{Format: "libsvm", Path: missing}},
		{"directory", "is a directory", Spec{Format: "libsvm", Path: t.TempDir()}},
		{"empty", "holds no rows", Spec{Format: "libsvm", Path: tempFile(t, nil)}},
		{"no features", "declare the number of features", Spec{Format: "libsvm", Path: tempFile(t, []byte("1\n1\n"))}},
		{"cut gzip", "the gzip data ends early", Spec{Format: "libsvm", Path: tempFile(t, cut[:len(cut)-20])}},
		{"damaged gzip", "gzip", Spec{Format: "libsvm", Path: tempFile(t, append([]byte{0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 3}, "nonsense, long enough"...))}},
		{"missing images", "there is no such file", Spec{Format: "idx", Path: missing, Labels: missing}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			src, err := Open(t.Context(), test.spec)
			if err == nil || !strings.Contains(err.Error(), test.want) || strings.Contains(err.Error(), "\n") {
				t.Errorf("got %v, %v, want one line with %q", src, err, test.want)
			}
		})
	}
}

// TestValidate: wrong specs name the field and the nearest spelling.
func TestValidate(t *testing.T) {
	tests := []struct {
		want []string
		spec Spec
	}{
		{[]string{`unknown format "libsmv": did you mean "libsvm"?`, "generated"}, Spec{Format: "libsmv"}},
		{[]string{`unknown format "orcfile": there are libsvm`}, Spec{Format: "orcfile"}},
		{[]string{"format libsvm needs Path"}, Spec{Format: "libsvm"}},
		{[]string{"format idx needs Labels"}, Spec{Format: "idx", Path: "x"}},
		{[]string{"format criteo needs Buckets", "Features has no meaning for format criteo"}, Spec{Format: "criteo", Path: "x", Features: 3}},
		{[]string{"needs Rows", "Path has no meaning"}, Spec{Format: "generated", Path: "x", Buckets: 3}},
		{[]string{"Limit must not be negative"}, Spec{Format: "libsvm", Path: "x", Limit: -1}},
		{[]string{`did you mean "binary"?`}, Spec{Format: "libsvm", Path: "x", LabelMap: "binari"}},
		{[]string{"exclude each other"}, Spec{Format: "libsvm", Path: "x", LabelMap: "binary", LabelBase: 1}},
		{[]string{"LabelMap and Classes exclude each other"}, Spec{Format: "libsvm", Path: "x", LabelMap: "binary", Classes: 2}},
		{[]string{"limited to 2147483647"}, Spec{Format: "libsvm", Path: "x", Features: 1 << 31}},
	}
	for _, test := range tests {
		_, err := Open(t.Context(), test.spec)
		for _, want := range test.want {
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%+v: got %v, want %q", test.spec, err, want)
			}
		}
	}
}

// TestColumns: what Columns says without reading is what Open delivers.
func TestColumns(t *testing.T) {
	one := tempFile(t, []byte("1 2:1\n"))
	for _, spec := range []Spec{
		{Format: "libsvm", Path: one},
		{Format: "libsvm", Path: one, Features: 9},
		{Format: "criteo", Path: tempFile(t, []byte(criteoLine("1", "", ""))), Buckets: 7},
		{Format: "generated", Rows: 3, Buckets: 7},
		{Format: "idx", Path: tempFile(t, idxBytesOf([]uint32{1, 2}, 1, 2)), Labels: tempFile(t, idxBytesOf([]uint32{1}, 1))},
	} {
		got, err := Columns(t.Context(), spec)
		if diff := cmp.Diff(mustOpen(t, spec).Columns(), got); diff != "" || err != nil {
			t.Errorf("%+v: %v\n%s", spec, err, diff)
		}
	}
	if _, err := Columns(t.Context(), Spec{Format: "criteo"}); err == nil {
		t.Error("an incomplete spec has columns")
	}
}

func mustOpen(t testing.TB, spec Spec) Source {
	t.Helper()
	src, err := Open(t.Context(), spec)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { src.Close() })
	return src
}

func rowRange(lo, hi int) []int {
	rows := make([]int, hi-lo)
	for i := range rows {
		rows[i] = lo + i
	}
	return rows
}

// TestCriteoRoundTrip: generated rows written as Criteo text and read again are
// the same batches, plain and compressed.
func TestCriteoRoundTrip(t *testing.T) {
	spec := Spec{Format: "generated", Buckets: 1 << 16, Rows: 500, First: 1000, Seed: 5}
	src := mustOpen(t, spec)
	var want, got Batch
	if err := src.Read(rowRange(100, 400), &want); err != nil {
		t.Fatal(err)
	}
	text := criteoText(t, src, 100, 300)
	for _, content := range [][]byte{text, gzipped(t, text)} {
		read := mustOpen(t, Spec{Format: "criteo", Path: tempFile(t, content), Buckets: 1 << 16})
		if err := read.Read(rowRange(0, 300), &got); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatalf("written and read rows differ:\n%s", diff)
		}
		if diff := cmp.Diff(src.Columns(), read.Columns()); diff != "" {
			t.Errorf("columns differ:\n%s", diff)
		}
	}
	for _, feature := range []string{"\t\t", "\t-1\t"} {
		if !strings.Contains(string(text), feature) {
			t.Errorf("no row has %q: the round trip proves too little", feature)
		}
	}
}

// criteoText is rows of a generated source as Criteo lines.
func criteoText(t testing.TB, src Source, first, n int) []byte {
	t.Helper()
	var text bytes.Buffer
	if err := generate.WriteCriteo(&text, src.(*generate.Source), first, n); err != nil {
		t.Fatal(err)
	}
	return text.Bytes()
}

// TestEveryRealFile: no data file is without a test that counts what its reader makes of
// it.
func TestEveryRealFile(t *testing.T) {
	var tests strings.Builder
	for _, pattern := range []string{"read_test.go", "text_test.go", "bpe/*_test.go", "format/*_test.go"} {
		names, err := filepath.Glob(pattern)
		if err != nil || len(names) == 0 {
			t.Fatalf("%s: %v", pattern, err)
		}
		for _, name := range names {
			text, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			tests.Write(text)
		}
	}
	files := 0
	for _, dir := range []string{"libsvm", "mnist", "text", "tabular", "ctr", "parquet", "traces/alibaba"} {
		entries, err := os.ReadDir(realData(t, dir))
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range entries {
			name := strings.TrimSuffix(e.Name(), ".parquet")
			if strings.HasPrefix(name, "train-") || strings.HasPrefix(name, "t10k-") { // made of parts in TestRealFiles
				name = name[strings.Index(name, "-"):]
			}
			if slices.Contains([]string{"LICENSE.txt", "SOURCE.md", "adult.names"}, name) {
				continue
			}
			files++
			if !strings.Contains(tests.String(), name+`"`) && !strings.Contains(tests.String(), name+`.parquet"`) {
				t.Errorf("%s/%s is in no test of a reader", dir, e.Name())
			}
		}
	}
	if files < 35 {
		t.Errorf("%d files", files)
	}
}
