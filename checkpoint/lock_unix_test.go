//go:build unix

package checkpoint_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/gangline/gangline/checkpoint"
)

// A directory is one run's at a time, and nothing of that stays in it.
func TestLock(t *testing.T) {
	root := filepath.Join(t.TempDir(), "a", "b")
	release, err := checkpoint.Lock(root)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := checkpoint.Lock(root); !errors.Is(err, checkpoint.ErrInUse) {
		t.Errorf("a second run got %v", err)
	}
	if err := release(); err != nil {
		t.Fatal(err)
	}
	again, err := checkpoint.Lock(root)
	if err != nil {
		t.Fatalf("after the first has gone: %v", err)
	}
	if err := again(); err != nil {
		t.Fatal(err)
	}
	if left, err := os.ReadDir(root); err != nil || len(left) != 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}
