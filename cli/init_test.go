package cli

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gangline/gangline/data/stats"
)

// lines is a text of n lines.
func lines(n int, line func(i int) string) string {
	var b strings.Builder
	for i := range n {
		b.WriteString(line(i) + "\n")
	}
	return b.String()
}

// What init writes for files of text passes plan check, and trains. (Package draft
// tests what is in the jobs, and the binary formats.)
func TestInit(t *testing.T) {
	clicks := func(i int) string {
		return fmt.Sprintf("%d\t%s%s", i%2, strings.Repeat("5\t", 13), strings.TrimSuffix(strings.Repeat("68fd1e64\t", 26), "\t"))
	}
	images := "\x00\x00\x08\x03\x00\x00\x00\x04\x00\x00\x00\x02\x00\x00\x00\x02" + strings.Repeat("\x05", 16)
	for name, text := range map[string]string{
		"a.svm":         lines(20, func(i int) string { return fmt.Sprintf("%d %d:1 3:2", i%3+1, i%2+1) }),
		"clicks":        lines(20, clicks),
		"t-images-idx3": images,
		"play":          strings.Repeat("Speak, speak; the ring sums what ranks send.\nAll of it:\n", 90),
		"table.csv":     "age,city,income\n" + lines(30, func(i int) string { return fmt.Sprintf("%d,c%d,%d", i, i%3, i%2) }),
		"a.vw":          lines(20, func(i int) string { return fmt.Sprintf("%d |f 3:1 a:0.5", 2*(i%2)-1) }),
		"a.ffm":         lines(20, func(i int) string { return fmt.Sprintf("%d 0:%d:0.5 1:7:1", i%2, i) }),
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			file, out := filepath.Join(dir, name), filepath.Join(dir, "job.yaml")
			for path, text := range map[string]string{file: text, filepath.Join(dir, "t-labels-idx1"): "\x00\x00\x08\x01\x00\x00\x00\x04\x00\x01\x02\x01"} {
				if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			if said := must(t, "init", file, "--out", out); !strings.Contains(said, "wrote "+out) {
				t.Errorf("it says %q", said)
			}
			if said := must(t, "plan", "check", out); strings.Count(said, "holds") != 2 {
				t.Errorf("plan check says %q", said)
			}
			trained(t, "train", out, "--set", "steps=2")
		})
	}
}

// A file that is there is not written over, unless that is asked for.
func TestInitKeepsFiles(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	if err := os.WriteFile("a.svm", []byte("1 1:1\n-1 2:1\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	must(t, "init", "a.svm") // writes a.yaml
	if err := os.WriteFile("a.yaml", []byte("mine"), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, errs, status := invoke(t, "init", "a.svm"); status != exitRequest || !strings.Contains(errs, "set --force") {
		t.Errorf("status %d: %s", status, errs)
	}
	if text, err := os.ReadFile("a.yaml"); err != nil || string(text) != "mine" {
		t.Errorf("%q, %v", text, err)
	}
	must(t, "init", "a.svm", "--force")
	if text, err := os.ReadFile("a.yaml"); err != nil || !strings.Contains(string(text), "kind: logistic") {
		t.Errorf("%q, %v", text, err)
	}
	for want, args := range map[string][]string{"is the data file": {"a.svm", "--out", "a.svm", "--force"}, "no-such": {"no-such"}, "accepts 1 arg": {}} {
		if _, errs, status := invoke(t, append([]string{"init"}, args...)...); status != exitRequest || !strings.Contains(errs, want) {
			t.Errorf("%v: status %d: %s", args, status, errs)
		}
	}
}

// A job and a file say the same of the same rows; what is malformed in a file is
// counted.
func TestDataStats(t *testing.T) {
	dir := t.TempDir()
	file, jobFile := filepath.Join(dir, "a.svm"), filepath.Join(dir, "job.yaml")
	if err := os.WriteFile(file, []byte("1 1:1 3:0.5\n1 1:1 3:0.5\n0 2:1\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	must(t, "init", file, "--out", jobFile)
	of := func(args ...string) (s stats.Table) {
		if err := json.Unmarshal([]byte(must(t, append([]string{"data", "stats", "--json"}, args...)...)), &s); err != nil {
			t.Fatal(err)
		}
		return s
	}
	a, b := of(file), of(jobFile)
	if a.Rows != 3 || a.Duplicates != 1 || fmt.Sprint(a.Columns[1].Top) != fmt.Sprint(b.Columns[1].Top) || b.Rows != 3 || b.Duplicates != 1 {
		t.Errorf("the file: %+v, the job: %+v", a, b)
	}
	if err := os.WriteFile(file, []byte("1 1:1 3:0.5\n1 1:x\n0 2:1\n0 2:1\n0 2:1\n1 1:1\n1 1:1\n1 1:1\n1 1:1\n1 1:1\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if said := must(t, "data", "stats", file); !strings.Contains(said, "9 rows, 6 equal to an earlier one, and 1 malformed ones") || !strings.Contains(said, "a.svm:2") {
		t.Errorf("%s", said)
	}
	table := filepath.Join(dir, "t.csv")
	if err := os.WriteFile(table, []byte("age,city\n1,x\n2,\n3,y\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if s := of(table); s.Rows != 3 || s.Columns[0].Numbers == nil || s.Columns[0].Numbers.Mean != 2 || s.Columns[1].Missing != 1 || s.Columns[1].Distinct != 2 {
		t.Errorf("%+v", s)
	}
	tableJob := filepath.Join(dir, "t.yaml")
	if err := os.WriteFile(tableJob, []byte("model: {kind: linear}\noptimizer: {kind: sgd, lr: 0.1}\ndata: {label: {column: age}, train: {format: csv, path: t.csv, header: true}}\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if a, b := of(table), of(tableJob); fmt.Sprint(a.Columns[1]) != fmt.Sprint(b.Columns[1]) || b.Columns[1].Name != "city" {
		t.Errorf("the file: %+v, the job: %+v", a, b)
	}
	if _, errs, status := invoke(t, "data", "stats", table, "--eval"); status != exitRequest || !strings.Contains(errs, "is a data file") {
		t.Errorf("status %d: %s", status, errs)
	}
}
