package cache

import (
	"bufio"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/gangline/gangline/data/rows"
)

// Writer writes a file block by block. It is used by one goroutine.
type Writer struct {
	path   string
	f      *os.File
	held   io.Closer // says that we live
	w      *bufio.Writer
	at     int64
	blocks []Entry
	buf    []byte
	memory int64
	rows   int
	most   int // bytes of the header
	err    error
}

// Create begins a file. It stands beside path under another name until Commit. What
// writers of the same path that were killed have left there is removed.
func Create(path string) (*Writer, error) {
	dir, prefix := filepath.Dir(path), "."+filepath.Base(path)+"."
	files, err := os.ReadDir(dir)
	if err != nil {
		return nil, fmt.Errorf("data: cache: %w", err)
	}
	for _, other := range files {
		if number, ok := strings.CutPrefix(other.Name(), prefix); ok && strings.Trim(number, "0123456789") == "" {
			removeDead(filepath.Join(dir, other.Name()))
		}
	}
	f, held, err := begin(dir, prefix+"*")
	if err != nil {
		return nil, fmt.Errorf("data: cache: %w", err)
	}
	w := &Writer{path: path, f: f, held: held, w: bufio.NewWriterSize(f, 1<<20), most: headerMax}
	w.write([]byte(magic))
	return w, nil
}

// begin makes a file of a new name and holds it.
func begin(dir, pattern string) (*os.File, io.Closer, error) {
	for {
		f, err := os.CreateTemp(dir, pattern)
		if err != nil {
			return nil, nil, err
		}
		held, err := hold(f.Name())
		if err == nil {
			if _, err = os.Stat(f.Name()); err == nil {
				return f, held, nil
			}
			err = errors.Join(err, held.Close())
		}
		err = errors.Join(err, f.Close())
		if !errors.Is(err, fs.ErrNotExist) { // else another took it for one of the dead
			return nil, nil, errors.Join(err, os.Remove(f.Name()))
		}
	}
}

// write writes and remembers the first error.
func (w *Writer) write(b []byte) {
	if w.err == nil {
		_, w.err = w.w.Write(b)
	}
	w.at += int64(len(b))
}

// Add appends a block. All but the last have the same number of rows.
func (w *Writer) Add(specs []rows.ColumnSpec, b *rows.Block) error {
	w.buf = encode(w.buf[:0], b, specs)
	if len(w.buf) > BlockMax && w.err == nil {
		w.err = fmt.Errorf("a block of %d rows takes %d bytes, the limit is %d", b.Rows, len(w.buf), BlockMax)
	}
	w.blocks = append(w.blocks, Entry{w.at, int64(len(w.buf)), checksum(w.buf)})
	w.memory += b.Bytes()
	w.rows += b.Rows
	w.write(w.buf)
	if w.err != nil {
		return fmt.Errorf("data: cache %s: %w", w.path, w.err)
	}
	return nil
}

// Commit ends the file with a header, of which Writer fills in Version, Rows, Memory
// and Blocks, and puts it in its place. After an error nothing is left.
func (w *Writer) Commit(h Header) (err error) {
	h.Version, h.Rows, h.Memory, h.Blocks = Version, w.rows, w.memory, w.blocks
	if err := h.check(w.at); err != nil {
		return errors.Join(fmt.Errorf("data: cache %s: %w", w.path, err), w.Abort())
	}
	text, err := json.Marshal(h)
	if err != nil {
		return errors.Join(fmt.Errorf("data: cache %s: %w", w.path, err), w.Abort())
	}
	if len(text) > w.most {
		err := fmt.Errorf("data: cache %s: its header takes %d bytes, the limit is %d: hash large vocabularies (buckets)", w.path, len(text), w.most)
		return errors.Join(err, w.Abort())
	}
	w.write(text)
	foot := binary.LittleEndian.AppendUint64(nil, uint64(len(text)))
	foot = binary.LittleEndian.AppendUint32(foot, checksum(text))
	foot = binary.LittleEndian.AppendUint32(foot, 0)
	w.write(append(foot, endMagic...))
	if w.err == nil {
		w.err = w.w.Flush()
	}
	if w.err == nil {
		w.err = w.f.Sync()
	}
	if w.err == nil {
		w.err = w.f.Chmod(0o644)
	}
	if w.err != nil {
		return errors.Join(fmt.Errorf("data: cache %s: %w", w.path, w.err), w.Abort())
	}
	if err := w.f.Close(); err != nil {
		return errors.Join(fmt.Errorf("data: cache %s: %w", w.path, err), os.Remove(w.f.Name()), w.held.Close())
	}
	if err := os.Rename(w.f.Name(), w.path); err != nil {
		return errors.Join(fmt.Errorf("data: cache: %w", err), os.Remove(w.f.Name()), w.held.Close())
	}
	return w.held.Close()
}

// Abort gives the file up and leaves nothing.
func (w *Writer) Abort() error {
	return errors.Join(w.f.Close(), os.Remove(w.f.Name()), w.held.Close())
}
