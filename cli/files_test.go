package cli

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gangline/gangline/job"
)

// A job may name its rows by a pattern or a URL; a pattern that no file matches is
// found before anything is started, and the error says what is there instead.
func TestPatternOfFiles(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"part-1.svm": "1 1:1\n0 2:1\n", "part-2.svm": "1 1:1\n",
		"job.yaml": "model: {kind: logistic}\noptimizer: {kind: sgd, lr: 1}\ndata: {train: {format: libsvm, path: \"part-?.svm\"}}\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for path, rows := range map[string]string{"part-?.svm": "3 rows", "part-1.svm": "2 rows", "file://" + filepath.ToSlash(dir) + "/part-*": "3 rows"} {
		var out, errs bytes.Buffer
		status := run(t.Context(), job.Extensions{}, []string{"data", "head", filepath.Join(dir, "job.yaml"), "--set", "data.train.path=" + path}, &out, &errs)
		if status != exitDone || !strings.HasPrefix(strings.TrimSpace(out.String()), rows) {
			t.Errorf("%s: status %d: %s\n%s", path, status, errs.String(), out.String())
		}
	}
	var errs bytes.Buffer
	status := run(t.Context(), job.Extensions{}, []string{"data", "head", filepath.Join(dir, "job.yaml"), "--set", "data.train.path=parts-*.svm"}, io.Discard, &errs)
	if says := errs.String(); status != exitRequest || !strings.Contains(says, "data.train.path") || !strings.Contains(says, "part-1.svm") || !strings.Contains(says, "--data-dir") {
		t.Errorf("status %d: %s", status, says)
	}
}
