package stats_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/gangline/gangline/data"
	"github.com/gangline/gangline/data/stats"
)

// TestHead compares the whole text.
func TestHead(t *testing.T) {
	text := "1 2:0.5 20:3\n-1\nbad\n1" + strings.Repeat(" 1:1", 1)
	path := filepath.Join(t.TempDir(), "rows")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	src := opened(t, data.Spec{Format: "libsvm", Path: path, MaxBadRows: 1})
	var got strings.Builder
	if err := stats.Head(&got, src, 2); err != nil {
		t.Fatal(err)
	}
	want := strings.ReplaceAll(`3 rows, 1 malformed ones skipped
  PATH:3: column "label": label "bad" is not a finite number

column  kind    dim  entries a row
label   dense   1    -
x       ragged  20   any

row 0
  label  1
  x      1:0.5 19:3

row 1
  label  -1
  x      (none)
`, "PATH", path)
	if diff := cmp.Diff(want, got.String()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	got.Reset()
	if err := stats.Head(&got, opened(t, data.Spec{Format: "generated", Buckets: 500, Rows: 3, Seed: 1}), 100); err != nil || strings.Count(got.String(), "... 10 more") != 3 {
		t.Errorf("%v\n%s", err, &got)
	}
}

func opened(t *testing.T, spec data.Spec) data.Source {
	t.Helper()
	src, err := data.Open(t.Context(), spec)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := src.Close(); err != nil {
			t.Error(err)
		}
	})
	return src
}
