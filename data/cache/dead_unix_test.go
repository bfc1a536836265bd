//go:build unix

package cache

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
)

// What writers that were killed have left is removed by the next one; what somebody
// still writes, and what is none of ours, is not.
func TestDeadWriters(t *testing.T) {
	path := filepath.Join(t.TempDir(), "rows.gcache")
	begin := func() *Writer {
		t.Helper()
		w, err := Create(path)
		if err != nil {
			t.Fatal(err)
		}
		return w
	}
	dead, alive := begin(), begin()
	if err := errors.Join(dead.f.Close(), dead.held.Close()); err != nil { // as the end of its process does
		t.Fatal(err)
	}
	other := filepath.Join(filepath.Dir(path), ".rows.gcache.old")
	if err := os.WriteFile(other, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	last := begin()
	if _, err := os.Stat(dead.f.Name()); !os.IsNotExist(err) {
		t.Errorf("what a dead writer left is still there: %v", err)
	}
	if _, err := os.Stat(other); err != nil {
		t.Error(err)
	}
	for _, w := range []*Writer{alive, last} {
		if _, err := os.Stat(w.f.Name()); err != nil {
			t.Errorf("removed under its writer: %v", err)
		}
		if err := w.Abort(); err != nil {
			t.Error(err)
		}
	}
}
