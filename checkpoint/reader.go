package checkpoint

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/gangline/gangline/tensor"
)

// maxManifestBytes bounds the manifest a reader takes.
const maxManifestBytes = 64 << 20

// Checkpoint is an opened directory, or shards in memory (Dir is empty).
type Checkpoint struct {
	Dir      string
	Manifest Manifest

	memory map[string][]byte
}

// Open reads the manifest of a checkpoint directory.
func Open(dir string) (*Checkpoint, error) {
	path := filepath.Join(dir, ManifestName)
	info, err := os.Stat(path)
	if err != nil {
		return nil, fmt.Errorf("checkpoint: %s is not a checkpoint: %w", dir, err)
	}
	if info.Size() > maxManifestBytes {
		return nil, fmt.Errorf("checkpoint: %s: %w: manifest of %d bytes", dir, ErrCorrupt, info.Size())
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("checkpoint: %w", err)
	}
	c := &Checkpoint{Dir: dir}
	if err := json.Unmarshal(text, &c.Manifest); err != nil {
		return nil, fmt.Errorf("checkpoint: %s: %w: manifest: %w", dir, ErrCorrupt, err)
	}
	if c.Manifest.Format != FormatVersion {
		return nil, fmt.Errorf("checkpoint: %s has format %d, this program reads %d", dir, c.Manifest.Format, FormatVersion)
	}
	return c, nil
}

// Latest opens the newest checkpoint below root whose every byte is right.
// Damaged ones are passed over and returned as reasons. With none left, the
// Checkpoint is nil.
func Latest(root string) (c *Checkpoint, passedOver []error, err error) {
	dirs, err := List(root)
	if err != nil {
		return nil, nil, err
	}
	for _, dir := range dirs {
		c, err := Open(dir)
		if err == nil {
			err = c.Verify()
		}
		if err == nil {
			return c, passedOver, nil
		}
		passedOver = append(passedOver, err)
	}
	return nil, passedOver, nil
}

// Verify reads every shard and file and compares length and checksum.
func (c *Checkpoint) Verify() error {
	for _, s := range c.Manifest.Shards {
		if _, err := c.read(s); err != nil {
			return err
		}
	}
	for _, f := range c.Manifest.Files {
		if _, err := c.readFile(f); err != nil {
			return err
		}
	}
	return nil
}

// read returns a shard's bytes after checking them.
func (c *Checkpoint) read(s Shard) ([]byte, error) {
	if filepath.Base(s.File) != s.File {
		return nil, fmt.Errorf("checkpoint: %s: %w: shard file %q leaves the directory", c.Dir, ErrCorrupt, s.File)
	}
	if c.Dir == "" {
		return c.memory[s.File], nil
	}
	path := filepath.Join(c.Dir, s.File)
	info, err := os.Stat(path)
	if err != nil {
		return nil, fmt.Errorf("checkpoint: %w: missing shard: %w", ErrCorrupt, err)
	}
	return checked(path, info.Size(), s.Bytes, s.SHA256)
}

// checked reads a file that must have a length and a checksum.
func checked(path string, size, want int64, sum string) ([]byte, error) {
	if size != want {
		return nil, fmt.Errorf("checkpoint: %s: %w: %d bytes, the manifest says %d", path, ErrCorrupt, size, want)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("checkpoint: %w", err)
	}
	if got := sha256.Sum256(text); hex.EncodeToString(got[:]) != sum {
		return nil, fmt.Errorf("checkpoint: %s: %w: checksum differs from the manifest's", path, ErrCorrupt)
	}
	return text, nil
}

// Pieces hands out every piece of every shard for which want says yes, in the
// order of the manifest, reading a shard at a time.
func (c *Checkpoint) Pieces(want func(name string) bool, take func(Piece) error) error {
	for _, s := range c.Manifest.Shards {
		text, err := c.read(s)
		if err != nil {
			return err
		}
		tensors, _, err := ReadSafetensors(bytes.NewReader(text), int64(len(text)))
		if err != nil {
			return fmt.Errorf("checkpoint: %s: %w", filepath.Join(c.Dir, s.File), err)
		}
		for _, e := range s.Pieces {
			if !want(e.Name) {
				continue
			}
			p, err := e.piece(tensors)
			if err == nil {
				err = take(p)
			}
			if err != nil {
				return fmt.Errorf("checkpoint: %s: %q: %w", filepath.Join(c.Dir, s.File), e.Name, err)
			}
		}
	}
	return nil
}

// piece puts an entry and its tensors together.
func (e Entry) piece(tensors map[string]*tensor.Tensor) (Piece, error) {
	p := Piece{Name: e.Name, Shape: e.Shape, Lo: e.Lo, Hi: e.Hi, Data: tensors[e.Tensor]}
	if p.Data == nil {
		return p, fmt.Errorf("%w: no tensor %q in the shard", ErrCorrupt, e.Tensor)
	}
	if e.Keys == "" {
		if p.Data.Elems() != e.Hi-e.Lo {
			return p, fmt.Errorf("%w: %d elements for the range [%d, %d)", ErrCorrupt, p.Data.Elems(), e.Lo, e.Hi)
		}
		return p, nil
	}
	keys := tensors[e.Keys]
	if keys == nil || keys.DType() != tensor.I64 {
		return p, fmt.Errorf("%w: no row numbers %q in the shard", ErrCorrupt, e.Keys)
	}
	if p.Keys = keys.I64(); p.Keys == nil {
		p.Keys = []int64{} // nil would make it a dense piece
	}
	if len(p.Data.Shape()) != 2 || p.Data.Shape()[0] != len(p.Keys) {
		return p, fmt.Errorf("%w: %d row numbers for rows %v", ErrCorrupt, len(p.Keys), p.Data.Shape())
	}
	return p, nil
}

// Assemble fills dst, the whole of the named array in row-major order, from
// the pieces: AssembleAll for one.
func (c *Checkpoint) Assemble(name string, dst *tensor.Tensor) error {
	return c.AssembleAll(map[string]*tensor.Tensor{name: dst})
}

// AssembleAll fills whole arrays from the pieces, reading each shard once. Rows
// of a table that no piece names keep what the tensor holds. An array that the
// checkpoint lacks, or a dense one of which it lacks elements, is an error.
func (c *Checkpoint) AssembleAll(dst map[string]*tensor.Tensor) error {
	covered := make(map[string]int, len(dst))
	want := func(name string) bool { return dst[name] != nil }
	err := c.Pieces(want, func(p Piece) error {
		t := dst[p.Name]
		if !p.Shape.Equal(t.Shape()) || p.Data.DType() != t.DType() {
			return fmt.Errorf("the checkpoint has %v %v, this run %v %v", p.Data.DType(), p.Shape, t.DType(), t.Shape())
		}
		if p.Keys != nil {
			covered[p.Name] = t.Elems()
			return scatter(t, p)
		}
		if p.Lo < 0 || p.Hi > t.Elems() {
			return fmt.Errorf("%w: range [%d, %d) of %d elements", ErrCorrupt, p.Lo, p.Hi, t.Elems())
		}
		size := t.DType().Size()
		covered[p.Name] += copy(t.Bytes()[p.Lo*size:p.Hi*size], p.Data.Bytes()) / size
		return nil
	})
	if err != nil {
		return err
	}
	for name, t := range dst {
		if covered[name] != t.Elems() {
			return fmt.Errorf("checkpoint: %s: %q: pieces cover %d of %d elements", c.Dir, name, covered[name], t.Elems())
		}
	}
	return nil
}

// scatter copies the rows of a piece to their places.
func scatter(dst *tensor.Tensor, p Piece) error {
	rows := dst.Shape()[0]
	width := len(dst.Bytes()) / max(rows, 1)
	for i, k := range p.Keys {
		if k < 0 || k >= int64(rows) {
			return fmt.Errorf("%w: row %d of a table of %d", ErrCorrupt, k, rows)
		}
		copy(dst.Bytes()[int(k)*width:int(k+1)*width], p.Data.Bytes()[i*width:(i+1)*width])
	}
	return nil
}

// Names returns the arrays that the checkpoint has pieces of.
func (c *Checkpoint) Names() []string {
	var names []string
	seen := map[string]bool{}
	for _, s := range c.Manifest.Shards {
		for _, e := range s.Pieces {
			if !seen[e.Name] {
				seen[e.Name] = true
				names = append(names, e.Name)
			}
		}
	}
	return names
}

// Resolve finds what a user named: a checkpoint directory itself, or a root
// whose newest whole checkpoint is meant. The reasons tell what was passed over.
func Resolve(path string) (c *Checkpoint, passedOver []error, err error) {
	if _, err := os.Stat(filepath.Join(path, ManifestName)); err == nil {
		c, err := Open(path)
		if err == nil {
			err = c.Verify()
		}
		return c, nil, err
	}
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		return nil, nil, fmt.Errorf("checkpoint: there is no %s", path)
	}
	c, passedOver, err = Latest(path)
	if err == nil && c == nil {
		err = errors.Join(append([]error{fmt.Errorf("checkpoint: no usable checkpoint in %s", path)}, passedOver...)...)
	}
	return c, passedOver, err
}
