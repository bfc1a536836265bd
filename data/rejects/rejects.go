// Package rejects keeps the malformed rows of a file in another one.
package rejects

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/gangline/gangline/data/table"
)

// Limits of a file.
const (
	// Max is how many rows it has.
	Max = 10_000
	// TextMax is how many bytes of a row.
	TextMax = 4 << 10
)

// Row is one line of the file, a JSON object.
type Row struct {
	File   string `json:"file"`
	Line   int    `json:"line"`
	Column string `json:"column,omitempty"`
	Reason string `json:"reason"`
	Text   string `json:"text,omitempty"`
}

// File takes malformed rows. It appears whole at Close. A nil File takes nothing.
type File struct {
	path string
	f    *os.File
	w    *bufio.Writer
	n    int
	err  error
}

// Create begins a file; of the path "" it returns nil.
func Create(path string) (*File, error) {
	if path == "" {
		return nil, nil
	}
	// What is there is replaced: that may be a file, but no device and no directory.
	if info, err := os.Stat(path); err == nil && !info.Mode().IsRegular() {
		return nil, fmt.Errorf("data: rejects: %s is not a regular file (%s): name another", path, info.Mode())
	}
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*")
	if err != nil {
		return nil, fmt.Errorf("data: rejects: %w", err)
	}
	return &File{path: path, f: f, w: bufio.NewWriter(f)}, nil
}

// Add writes a row, as far as there is room.
func (r *File) Add(e *table.RowError, raw []byte) {
	if r == nil || r.err != nil || r.n == Max {
		return
	}
	text := strings.ToValidUTF8(string(raw[:min(len(raw), TextMax)]), "\ufffd")
	line, err := json.Marshal(Row{e.File, e.Line, e.Column, e.Reason, text})
	if err == nil {
		_, err = r.w.Write(append(line, '\n'))
	}
	r.err = err
	r.n++
}

// Close puts the file in its place. Rows that ended the reading are in it too.
func (r *File) Close() error {
	if r == nil {
		return nil
	}
	err := r.err
	if err == nil {
		err = r.w.Flush()
	}
	if err == nil {
		err = r.f.Chmod(0o644)
	}
	if err = errors.Join(err, r.f.Close()); err == nil {
		err = os.Rename(r.f.Name(), r.path)
	}
	if err != nil {
		return errors.Join(fmt.Errorf("data: rejects %s: %w", r.path, err), os.Remove(r.f.Name()))
	}
	return nil
}
