package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gangline/gangline/job"
)

// Rows of a job and of a file become cache files that a job trains on.
func TestConvert(t *testing.T) {
	dir := t.TempDir()
	svm := filepath.Join(dir, "rows.svm")
	text := strings.Repeat("+1 1:1 3:0.5\n-1 2:1\nbroken\n", 40)
	if err := os.WriteFile(svm, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "job.yaml")
	if err := os.WriteFile(file, []byte(`
model: {kind: logistic}
batch: 16
optimizer: {kind: sgd, lr: 0.1}
data:
  train: {format: libsvm, path: rows.svm, max_bad_rows: 0.5, split: {by: tail, test: 0.25}}
`), 0o600); err != nil {
		t.Fatal(err)
	}
	out := filepath.Join(dir, "out.gcache")
	for _, c := range []struct {
		args   []string
		status int
		want   string
	}{
		{[]string{file, out}, 0, "out.gcache: 60 rows in 1 block, 40 malformed ones skipped, "},
		{[]string{file, out, "--eval"}, 0, ": 20 rows in 1 block, 40 malformed"},
		{[]string{file, out, "--set", "data.train.max_bad_rows=0.1"}, 1, "40 of 120 rows are malformed"},
		{[]string{"--format", "libsvm", "--path", svm, out}, 1, "rows.svm:3: column \"label\""},
		{[]string{"--format", "libsmv", "--path", svm, out}, 2, `did you mean "libsvm"`},
		{[]string{"--format", "libsvm", "--path", svm, svm}, 2, "is a file of --path"},
		{[]string{"--format", "libsvm", "--path", svm, "--eval", out}, 2, "are of jobs"},
		{[]string{file, svm}, 2, "is a file of data.train.path"},
		{[]string{file}, 2, "want a job and the file to write"},
		{[]string{file, filepath.Join(dir, "absent", "out")}, 2, "there is no directory"},
		{[]string{file, file}, 2, "is the job file"},
	} {
		var stdout, stderr strings.Builder
		status := run(t.Context(), job.Extensions{}, append([]string{"data", "convert"}, c.args...), &stdout, &stderr)
		if got := stdout.String() + stderr.String(); status != c.status || !strings.Contains(got, c.want) {
			t.Errorf("convert %v: status %d, want %d: %s", c.args, status, c.status, got)
		}
	}
	var stdout, stderr strings.Builder
	head := []string{"data", "head", file, "--set", "data.train.format=cache", "--set", "data.train.path=" + out, "--set", "data.train.split.by=", "--set", "data.train.max_bad_rows=0"}
	if status := run(t.Context(), job.Extensions{}, head, &stdout, &stderr); status != 0 || !strings.Contains(stdout.String(), "20 rows, 40 malformed ones skipped") {
		t.Errorf("status %d: %s%s", status, &stdout, &stderr)
	}
}
