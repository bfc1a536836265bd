package cli

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gangline/gangline/job"
)

// writeRows makes two files of rows and a job that reads one of them.
func writeRows(t *testing.T) (dir, jobFile string) {
	t.Helper()
	dir = t.TempDir()
	for name, text := range map[string]string{
		"part-1.svm": "+1 1:1 3:0.5\n-1 2:1\n", "part-2.svm": "+1 2:1\n", "job.yaml": `
model: {kind: logistic}
optimizer: {kind: sgd, lr: 0.1}
data:
  train: {format: libsvm, path: part-1.svm}
`,
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir, filepath.Join(dir, "job.yaml")
}

// Paths of a job are files, patterns of files, and URLs; what names nothing is found
// before anything starts.
func TestPathsOfJobs(t *testing.T) {
	dir, file := writeRows(t)
	for path, want := range map[string]string{
		"part-1.svm":                  "2 rows",
		"part-*.svm":                  "3 rows",
		"part-[2].svm":                "1 rows",
		"file://" + dir + "/part-*":   "3 rows",
		filepath.Join(dir, "part-?*"): "3 rows",
		"[part-2.svm, part-1.svm]":    "3 rows",
		"[part-2.svm]":                "1 rows",
		"[part-2.svm, part-*.svm]":    "part-2.svm is named twice",
		"[part-2.svm, part-3.svm]":    "part-3.svm: there is no such file",
		"prat-*.svm":                  "job: data.train.path: " + dir + "/prat-*.svm: no file matches; near to it are part-1.svm",
		"prat-1.svm":                  "prat-1.svm: there is no such file; near to it are part-1.svm, part-2.svm, job.yaml; check --data-dir (now " + dir + ")",
		"s4://bucket/x":               `data.train.path: s4://bucket/x: this program knows no object store s4://: did you mean "s3"?`,
		"../" + filepath.Base(dir):    "it is a directory, want a file",
	} {
		var stdout, stderr strings.Builder
		status := run(t.Context(), job.Extensions{}, []string{"data", "head", file, "--set", "data.train.path=" + path}, &stdout, &stderr)
		wantStatus := exitRequest
		if strings.HasSuffix(want, " rows") {
			wantStatus = exitDone
		}
		if got := stdout.String() + stderr.String(); status != wantStatus || !strings.Contains(got, want) {
			t.Errorf("%q: status %d: %s", path, status, got)
		}
	}
}

// No command writes over what it reads: the rows would be lost.
func TestInputsAreSpared(t *testing.T) {
	dir, file := writeRows(t)
	part := filepath.Join(dir, "part-2.svm")
	glob := []string{"--set", "data.train.path=part-*.svm"}
	for want, args := range map[string][]string{
		"--out " + part + " is a file of data.train.path":        {"predict", file, "--checkpoint", "none", "--out", part, "--format", "csv"},
		"--out " + part + " is a file of --path":                 {"predict", file, "--checkpoint", "none", "--out", part, "--format", "csv", "--path", filepath.Join(dir, "part-*"), "--set", "data.train.path=part-1.svm"},
		"OUT " + part + " is a file of data.train.path":          {"data", "convert", file, part},
		"--report " + part + " is a file of data.train.path":     {"train", file, "--report", part},
		"--trace " + part + " is a file of data.train.path":      {"train", file, "--trace", part},
		"data.rejects " + part + " is a file of data.train.path": {"data", "head", file, "--set", "data.rejects=" + part},
		"--report " + file + " is the job file":                  {"eval", file, "--checkpoint", "none", "--report", file},
	} {
		var stdout, stderr strings.Builder
		if status := run(t.Context(), job.Extensions{}, append(args[:2:2], append(glob, args[2:]...)...), &stdout, &stderr); status != exitRequest || !strings.Contains(stderr.String(), want) {
			t.Errorf("%v: status %d: %s%s, want %s", args, status, &stdout, &stderr, want)
		}
	}
	if text, err := os.ReadFile(part); err != nil || string(text) != "+1 2:1\n" {
		t.Errorf("the rows are now %q, %v", text, err)
	}
}

// An interrupt ends every command that reads rows, and leaves no file.
func TestInterruptWhileReading(t *testing.T) {
	dir, file := writeRows(t)
	interrupted, cancel := context.WithCancelCause(t.Context())
	cancel(errors.New("interrupt signal received"))
	out := filepath.Join(dir, "out.gcache")
	for _, args := range [][]string{
		{"data", "head", file},
		{"data", "stats", file},
		{"data", "convert", file, out},
		{"data", "convert", "--format", "libsvm", "--path", filepath.Join(dir, "part-1.svm"), out},
		{"plan", "check", file},
	} {
		var stdout, stderr strings.Builder
		if status := run(interrupted, job.Extensions{}, args, &stdout, &stderr); status != exitFailed || !strings.Contains(stderr.String(), "interrupt signal received") {
			t.Errorf("%v: status %d: %s%s", args, status, &stdout, &stderr)
		}
	}
	if left, err := filepath.Glob(filepath.Join(dir, "*gcache*")); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}
