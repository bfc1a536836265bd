package checkpoint

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
)

// File is a file of a checkpoint that holds no arrays.
type File struct {
	Name   string `json:"name"`
	Bytes  int64  `json:"bytes"`
	SHA256 string `json:"sha256"`
}

// ErrNoFile says that a checkpoint has no file of a name.
var ErrNoFile = errors.New("the checkpoint has no such file")

// WriteFile writes a file into dir (of Begin), synced to disk, and returns what
// the manifest needs of it.
func WriteFile(dir, name string, text []byte) (File, error) {
	s, err := writeSynced(filepath.Join(dir, name), func(w io.Writer) error {
		_, err := w.Write(text)
		return err
	})
	if err != nil {
		return File{}, fmt.Errorf("checkpoint: cannot write %s: %w", name, err)
	}
	return File{Name: name, Bytes: s.bytes, SHA256: s.hex}, nil
}

// File returns the text of a file after checking its length and checksum.
// Without one of that name the error is ErrNoFile.
func (c *Checkpoint) File(name string) ([]byte, error) {
	i := slices.IndexFunc(c.Manifest.Files, func(f File) bool { return f.Name == name })
	if i < 0 {
		return nil, fmt.Errorf("checkpoint %s: %w: %s", c.Dir, ErrNoFile, name)
	}
	return c.readFile(c.Manifest.Files[i])
}

// readFile reads what a manifest lists.
func (c *Checkpoint) readFile(f File) ([]byte, error) {
	if filepath.Base(f.Name) != f.Name {
		return nil, fmt.Errorf("checkpoint: %s: %w: file %q leaves the directory", c.Dir, ErrCorrupt, f.Name)
	}
	path := filepath.Join(c.Dir, f.Name)
	info, err := os.Stat(path)
	if err != nil {
		return nil, fmt.Errorf("checkpoint: %w: missing file: %w", ErrCorrupt, err)
	}
	return checked(path, info.Size(), f.Bytes, f.SHA256)
}
