package draft_test

import (
	"archive/zip"
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/parquet-go/parquet-go"

	"github.com/gangline/gangline/data/format"
	"github.com/gangline/gangline/draft"
	"github.com/gangline/gangline/job"
)

// repeated is a text of n lines that a function makes.
func repeated(n int, line func(i int) string) string {
	var b strings.Builder
	for i := range n {
		b.WriteString(line(i) + "\n")
	}
	return b.String()
}

// npy is a NumPy array of float64.
func npy(shape string, values ...float64) string {
	head := "{'descr': '<f8', 'fortran_order': False, 'shape': (" + shape + "), }"
	head += strings.Repeat(" ", 64-(10+len(head)+1)%64) + "\n"
	b := bytes.NewBufferString("\x93NUMPY\x01\x00")
	_ = binary.Write(b, binary.LittleEndian, uint16(len(head)))
	b.WriteString(head)
	for _, v := range values {
		_ = binary.Write(b, binary.LittleEndian, math.Float64bits(v))
	}
	return b.String()
}

// zipped is an archive of one file or more.
func zipped(t *testing.T, files ...[2]string) string {
	t.Helper()
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	for _, f := range files {
		w, err := z.Create(f[0])
		if err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write([]byte(f[1])); err != nil {
			t.Fatal(err)
		}
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func gzipped(t *testing.T, text string) string {
	t.Helper()
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	if _, err := z.Write([]byte(text)); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func parquetFile(t *testing.T) string {
	t.Helper()
	type row struct {
		A     float64 `parquet:"a"`
		City  string  `parquet:"city"`
		Click int64   `parquet:"click"`
	}
	rows := make([]row, 50)
	for i := range rows {
		rows[i] = row{float64(i), "abc"[i%3 : i%3+1], int64(i % 2)}
	}
	var b bytes.Buffer
	if err := parquet.Write(&b, rows); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// example is a file, what its job must say, and what is noted.
type example struct {
	files map[string]string // the first in order of names is shown
	show  string
	want  []string
}

// cases has every format that is drafted.
func cases(t *testing.T) map[string]example {
	t.Helper()
	clicks := func(i int) string {
		return fmt.Sprintf("%d\t%s%s", i%2, strings.Repeat("5\t", 13), strings.TrimSuffix(strings.Repeat("68fd1e64\t", 26), "\t"))
	}
	images := "\x00\x00\x08\x03\x00\x00\x00\x04\x00\x00\x00\x02\x00\x00\x00\x02" + strings.Repeat("\x05", 16)
	labels := "\x00\x00\x08\x01\x00\x00\x00\x04\x00\x01\x02\x01"
	return map[string]example{
		"libsvm":         {map[string]string{"a": repeated(9, func(i int) string { return fmt.Sprintf("%d 1:1 3:2", 2*(i%2)-1) }), "a.t": "1 1:1\n"}, "a", []string{"kind: logistic", "eval: {format: libsvm, path: a.t}"}},
		"libsvm classes": {map[string]string{"a": repeated(9, func(i int) string { return fmt.Sprintf("%d 0:1 3:2", i%3+1) })}, "a", []string{"kind: softmax, classes: 3", "label_base: 1", "zero_based: true", "# eval:"}},
		"libsvm values":  {map[string]string{"a": repeated(9, func(i int) string { return fmt.Sprintf("%d.5 1:1", i) })}, "a", []string{"kind: linear"}},
		"criteo":         {map[string]string{"day.train.gz": gzipped(t, repeated(9, clicks)), "day.test.gz": gzipped(t, repeated(9, clicks))}, "day.train.gz", []string{"kind: ctr", "buckets:", "path: day.test.gz"}},
		"idx":            {map[string]string{"train-images-idx3-ubyte": images, "train-labels-idx1-ubyte": labels, "t10k-images-idx3-ubyte": images, "t10k-labels-idx1-ubyte": labels}, "train-images-idx3-ubyte", []string{"classes: 3", "labels: train-labels", "path: t10k-images"}},
		"text":           {map[string]string{"play.txt": strings.Repeat("Speak, speak; the ring sums what ranks send.\nAll of it:\n", 90)}, "play.txt", []string{"kind: gpt", "from: 0.9"}},
		"csv":            {map[string]string{"c.csv": "age,city,income\n" + repeated(30, func(i int) string { return fmt.Sprintf("%d,c%d,%d", i, i%3, i%2) })}, "c.csv", []string{"kind: logistic", "label: {column: income}", "header: true"}},
		"csv of classes": {map[string]string{"c.csv": repeated(30, func(i int) string { return fmt.Sprintf("%d.5,%d,kind %d", i, i%3, i%4) })}, "c.csv", []string{"kind: softmax, classes: 4", "label: {column: c3}"}},
		"csv of marks": {map[string]string{
			"d-train.csv": repeated(30, func(i int) string { return fmt.Sprintf("%d.5; %d; %s", i, i%3, []string{"no", "no", "yes"}[i%3]) }),
			"d-test.csv":  repeated(30, func(i int) string { return fmt.Sprintf("%d.5; %d; %s", i, i%3, []string{"no.", "no.", "yes."}[i%3]) }),
		}, "d-train.csv", []string{"positive: ['yes']", "suffix: {c3: '.'}", "delimiter: ';'"}},
		"vw":      {map[string]string{"a.vw": repeated(9, func(i int) string { return fmt.Sprintf("%d |f 3:1 a:0.5", 2*(i%2)-1) })}, "a.vw", []string{"kind: logistic", "weight: weight", "ignore: [tag]"}},
		"libffm":  {map[string]string{"a.ffm": repeated(9, func(i int) string { return fmt.Sprintf("%d 0:%d:0.5 1:7:1", i%2, i) })}, "a.ffm", []string{"kind: logistic", "ignore: [field]"}},
		"npz":     {map[string]string{"a.npz": zipped(t, [2]string{"x.npy", npy("4, 2", 1, 2, 3, 4, 5, 6, 7, 8)}, [2]string{"y.npy", npy("4,", 0, 1, 1, 0)})}, "a.npz", []string{"kind: logistic", "label: {column: 'y'}"}},
		"parquet": {map[string]string{"a.parquet": parquetFile(t)}, "a.parquet", []string{"kind: logistic", "label: {column: click}"}},
	}
}

// Every format gets a job that can be read, says what it should, and names the
// format that the file has.
func TestFor(t *testing.T) {
	for name, c := range cases(t) {
		t.Run(name, func(t *testing.T) {
			if name == "parquet" && !slices.Contains(format.Formats(), name) {
				t.Skip("there is no reader")
			}
			dir := t.TempDir()
			for file, text := range c.files {
				if err := os.WriteFile(filepath.Join(dir, file), []byte(text), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			d, err := draft.For(t.Context(), filepath.Join(dir, c.show), filepath.Join(dir, "job.yaml"))
			if err != nil {
				t.Fatal(err)
			}
			j, err := job.Parse("job.yaml", d.Text, nil)
			if err != nil {
				t.Fatal(err)
			}
			if want, _, _ := strings.Cut(name, " "); j.Data.Train.Format != want || j.Data.Train.Path.First() != c.show || !strings.Contains(string(d.Text), "seems to be "+want) {
				t.Errorf("the job reads %s as %s", j.Data.Train.Path, j.Data.Train.Format)
			}
			for _, want := range c.want {
				if !strings.Contains(string(d.Text), want) {
					t.Errorf("%q is not in\n%s", want, d.Text)
				}
			}
		})
	}
}

// A job names data below it from where it is, and other data as they were named: from
// the root, or from here.
func TestForPaths(t *testing.T) {
	root := t.TempDir()
	t.Chdir(root)
	for _, dir := range []string{"data", "jobs"} {
		if err := os.Mkdir(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	text := repeated(9, func(i int) string { return fmt.Sprintf("%d %d:1", i%2, i+1) })
	if err := os.WriteFile(filepath.Join("data", "a.svm"), []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	from, there := filepath.Join("data", "a.svm"), filepath.Join(root, "data", "a.svm")
	for _, c := range []struct{ path, job, want string }{
		{there, filepath.Join("jobs", "job.yaml"), filepath.ToSlash(there)},
		{from, filepath.Join("jobs", "job.yaml"), "../data/a.svm"},
		{there, "job.yaml", "data/a.svm"},
		{there, filepath.Join(root, "data", "job.yaml"), "a.svm"},
	} {
		d, err := draft.For(t.Context(), c.path, c.job)
		if err != nil {
			t.Fatal(err)
		}
		j, err := job.Parse("job.yaml", d.Text, nil)
		if err != nil {
			t.Fatal(err)
		}
		if got := j.Data.Train.Path.First(); got != c.want {
			t.Errorf("%s for %s is %s, want %s", c.path, c.job, got, c.want)
		}
	}
}

// What no job can be made of is an error that says why.
func TestForRefusals(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"images-idx3": "\x00\x00\x08\x03\x00\x00\x00\x01\x00\x00\x00\x02\x00\x00\x00\x01\x05\x05", "x.npy": npy("2, 2", 1, 2, 3, 4), "labels-idx1": "\x00\x00\x08\x01\x00\x00\x00\x01\x05", "zeros": "ab\x00\x00", "empty": "",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Rename(filepath.Join(dir, "images-idx3"), filepath.Join(dir, "lonely-images-idx3")); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		"lonely-images-idx3": "no file of labels is beside it", "labels-idx1": "name the file of the images", "zeros": "cannot tell its format", "empty": "is empty", "nothing": "nothing",
		"x.npy": "put it into an .npz with an array of labels",
	} {
		if _, err := draft.For(t.Context(), filepath.Join(dir, name), filepath.Join(dir, "job.yaml")); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
