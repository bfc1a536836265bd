package data

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// Limits of a file of rejects.
const (
	rejectsMax    = 10_000
	rejectTextMax = 4 << 10 // bytes of a row
)

// reject is one line of the file.
type reject struct {
	File   string `json:"file"`
	Line   int    `json:"line"`
	Column string `json:"column,omitempty"`
	Reason string `json:"reason"`
	Text   string `json:"text,omitempty"`
}

// rejects writes malformed rows to a file, which appears whole in the end.
type rejects struct {
	path string
	f    *os.File
	w    *bufio.Writer
	n    int
	err  error
}

// newRejects begins a file; "" is none.
func newRejects(path string) (*rejects, error) {
	if path == "" {
		return nil, nil
	}
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*")
	if err != nil {
		return nil, fmt.Errorf("data: rejects: %w", err)
	}
	return &rejects{path: path, f: f, w: bufio.NewWriter(f)}, nil
}

// add writes a row, as far as there is room.
func (r *rejects) add(e *RowError, raw []byte) {
	if r == nil || r.err != nil || r.n == rejectsMax {
		return
	}
	text := strings.ToValidUTF8(string(raw[:min(len(raw), rejectTextMax)]), "\ufffd")
	line, err := json.Marshal(reject{e.File, e.Line, e.Column, e.Reason, text})
	if err == nil {
		_, err = r.w.Write(append(line, '\n'))
	}
	r.err = err
	r.n++
}

// close puts the file in its place. Rows that ended the reading are in it too.
func (r *rejects) close() error {
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
