package checkpoint_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gangline/gangline/checkpoint"
)

// A file comes back as it was written, and a damaged or absent one is named and
// makes the checkpoint unusable.
func TestFiles(t *testing.T) {
	root := t.TempDir()
	dir, err := checkpoint.Begin(root, 3)
	if err != nil {
		t.Fatal(err)
	}
	f, err := checkpoint.WriteFile(dir, "features.json", []byte("{}"))
	if err != nil {
		t.Fatal(err)
	}
	final, err := checkpoint.Publish(dir, checkpoint.Manifest{Step: 3, Files: []checkpoint.File{f}})
	if err != nil {
		t.Fatal(err)
	}
	c, err := checkpoint.Open(final)
	if err != nil {
		t.Fatal(err)
	}
	if text, err := c.File("features.json"); err != nil || string(text) != "{}" {
		t.Errorf("got %q, %v", text, err)
	}
	if _, err := c.File("other.json"); !errors.Is(err, checkpoint.ErrNoFile) {
		t.Errorf("got %v", err)
	}
	if err := c.Verify(); err != nil {
		t.Error(err)
	}
	path := filepath.Join(final, "features.json")
	for text, want := range map[string]string{"[]": "checksum differs", "{} ": "3 bytes, the manifest says 2", "": "missing file"} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if text == "" {
			if err := os.Remove(path); err != nil {
				t.Fatal(err)
			}
		}
		_, err := c.File("features.json")
		if !errors.Is(err, checkpoint.ErrCorrupt) || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q in it", err, want)
		}
		if err := c.Verify(); !errors.Is(err, checkpoint.ErrCorrupt) {
			t.Errorf("a checkpoint with it is whole: %v", err)
		}
	}
	c.Manifest.Files[0].Name = "../x"
	if _, err := c.File("../x"); !errors.Is(err, checkpoint.ErrCorrupt) {
		t.Errorf("got %v", err)
	}
}
