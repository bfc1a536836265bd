package checkpoint

import (
	"bufio"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/gangline/gangline/tensor"
)

// tempPrefix begins the name of a checkpoint in the making.
const tempPrefix = ".tmp-"

// Begin makes the directory in which the shards of a step's checkpoint are
// written, and returns its path. One rank calls it, gives the path to whoever
// writes a shard, and publishes. Leftovers of the same step are removed.
func Begin(root string, step int64) (string, error) {
	dir := filepath.Join(root, tempPrefix+dirName(step))
	if err := os.RemoveAll(dir); err != nil {
		return "", fmt.Errorf("checkpoint: remove leftovers: %w", err)
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", fmt.Errorf("checkpoint: cannot begin: %w", err)
	}
	return dir, nil
}

// Probe says whether checkpoints can be written below root, so that this is known
// before the work and not after it. It makes a file there, or in the nearest
// directory above that exists, and removes it.
func Probe(root string) error {
	dir := filepath.Clean(root)
	for up := filepath.Dir(dir); dir != up; dir, up = up, filepath.Dir(up) {
		if _, err := os.Stat(dir); !errors.Is(err, os.ErrNotExist) {
			break
		}
	}
	f, err := os.CreateTemp(dir, tempPrefix+"probe-*")
	if err == nil {
		err = errors.Join(f.Close(), os.Remove(f.Name()))
	}
	if err != nil {
		return fmt.Errorf("checkpoint: cannot write below %s: %w", root, err)
	}
	return nil
}

// WriteShard writes pieces as dir/name.safetensors, synced to disk, and
// returns what the manifest needs of it. The file of a failed write is removed.
func WriteShard(dir, name string, pieces []Piece) (Shard, error) {
	shard, tensors, err := layOut(name, pieces)
	if err != nil {
		return Shard{}, err
	}
	sum, err := writeSynced(filepath.Join(dir, shard.File), func(w io.Writer) error {
		return WriteSafetensors(w, tensors, map[string]string{"format": "gangline"})
	})
	if err != nil {
		return Shard{}, fmt.Errorf("checkpoint: cannot write shard: %w", err)
	}
	shard.Bytes, shard.SHA256 = sum.bytes, sum.hex
	return shard, nil
}

// layOut names the tensors of a shard and lists its entries.
func layOut(name string, pieces []Piece) (Shard, map[string]*tensor.Tensor, error) {
	tensors := make(map[string]*tensor.Tensor, len(pieces))
	shard := Shard{File: name + ".safetensors", Pieces: make([]Entry, 0, len(pieces))}
	for _, p := range pieces {
		e := Entry{Name: p.Name, Shape: append([]int{}, p.Shape...), Lo: p.Lo, Hi: p.Hi}
		switch {
		case p.Keys != nil:
			e.Tensor, e.Keys = p.Name+".rows", p.Name+".keys"
			tensors[e.Keys] = tensor.From(p.Keys, len(p.Keys))
		case p.Lo == 0 && p.Hi == p.Shape.Elems():
			e.Tensor = p.Name
		default:
			e.Tensor = fmt.Sprintf("%s[%d:%d]", p.Name, p.Lo, p.Hi)
		}
		if tensors[e.Tensor] != nil {
			return Shard{}, nil, fmt.Errorf("checkpoint: shard %s holds %q twice", name, e.Tensor)
		}
		tensors[e.Tensor] = p.Data
		shard.Pieces = append(shard.Pieces, e)
	}
	return shard, tensors, nil
}

// Publish writes the manifest into dir (of Begin) and gives the directory its
// final name, which it returns. After Publish the checkpoint exists; before,
// it does not.
func Publish(dir string, m Manifest) (string, error) {
	m.Format = FormatVersion
	text, err := json.MarshalIndent(m, "", "  ")
	if err != nil {
		return "", fmt.Errorf("checkpoint: manifest: %w", err)
	}
	if _, err := writeSynced(filepath.Join(dir, ManifestName), func(w io.Writer) error {
		_, err := w.Write(append(text, '\n'))
		return err
	}); err != nil {
		return "", fmt.Errorf("checkpoint: cannot write manifest: %w", err)
	}
	if err := syncDir(dir); err != nil {
		return "", err
	}
	root := filepath.Dir(dir)
	final := filepath.Join(root, strings.TrimPrefix(filepath.Base(dir), tempPrefix))
	if final == dir {
		return "", fmt.Errorf("checkpoint: %s was not made by Begin", dir)
	}
	// Only a run that fell back behind a damaged checkpoint writes a step again:
	// what is removed here is the damaged one.
	if err := os.RemoveAll(final); err != nil {
		return "", fmt.Errorf("checkpoint: replace %s: %w", final, err)
	}
	if err := os.Rename(dir, final); err != nil {
		return "", fmt.Errorf("checkpoint: publish: %w", err)
	}
	return final, syncDir(root)
}

// Abandon removes what Begin made, after a failure.
func Abandon(dir string) error {
	if !strings.HasPrefix(filepath.Base(dir), tempPrefix) {
		return fmt.Errorf("checkpoint: %s was not made by Begin", dir)
	}
	return os.RemoveAll(dir)
}

// Prune keeps the newest keep checkpoints below root of those of step and before,
// and removes older ones, and every directory in the making that a dead run left
// behind. keep < 1 is 1. A later one than that of a run's own step is damaged: the
// run fell back behind it. It does not count, and is replaced when its step comes.
func Prune(root string, step int64, keep int) error {
	dirs, err := List(root)
	if err != nil {
		return err
	}
	kept := 0
	for _, d := range dirs {
		at, _ := parseDirName(filepath.Base(d)) // List has parsed it before
		if at > step {
			continue
		}
		if kept++; kept > max(keep, 1) {
			err = errors.Join(err, os.RemoveAll(d))
		}
	}
	return errors.Join(err, removeTemps(root))
}

// BestDir is the directory below a root in which the best checkpoint is kept apart.
// It is a root of its own, of which Prune and List of the other know nothing.
func BestDir(root string) string { return filepath.Join(root, "best") }

// KeepBest makes a checkpoint below root the best one, in place of the one that
// was, and returns where it is. Its files are linked, or copied where links are not
// possible, so that it stays when the other is pruned. Whenever this is interrupted,
// the old best one is there, or the new one, or both, of which the newer counts.
func KeepBest(root, dir string) (string, error) {
	step, ok := parseDirName(filepath.Base(dir))
	if !ok {
		return "", fmt.Errorf("checkpoint: %s is not a checkpoint", dir)
	}
	best := BestDir(root)
	temp, err := Begin(best, step)
	if err != nil {
		return "", err
	}
	final := filepath.Join(best, dirName(step))
	err = linkFiles(dir, temp)
	if err == nil {
		err = errors.Join(os.RemoveAll(final), syncDir(temp))
	}
	if err == nil {
		err = os.Rename(temp, final)
	}
	if err != nil {
		return "", errors.Join(fmt.Errorf("checkpoint: keep the best: %w", err), os.RemoveAll(temp))
	}
	// Later ones are of a run that fell back behind them: it will judge anew.
	return final, errors.Join(syncDir(best), removeOthers(best, final))
}

// linkFiles makes the files of one directory those of another, too.
func linkFiles(from, to string) error {
	entries, err := os.ReadDir(from)
	if err != nil {
		return err
	}
	for _, e := range entries {
		src, dst := filepath.Join(from, e.Name()), filepath.Join(to, e.Name())
		if os.Link(src, dst) == nil {
			continue
		}
		in, err := os.Open(src)
		if err != nil {
			return err
		}
		_, err = writeSynced(dst, func(w io.Writer) error {
			_, err := io.Copy(w, in)
			return err
		})
		if err := errors.Join(err, in.Close()); err != nil {
			return err
		}
	}
	return nil
}

// removeOthers removes all checkpoints below root but one.
func removeOthers(root, one string) error {
	dirs, err := List(root)
	for _, d := range dirs {
		if d != one {
			err = errors.Join(err, os.RemoveAll(d))
		}
	}
	return errors.Join(err, removeTemps(root))
}

// removeTemps removes what was in the making.
func removeTemps(root string) error {
	temps, err := filepath.Glob(filepath.Join(root, tempPrefix+"*"))
	if err != nil {
		return fmt.Errorf("checkpoint: %w", err)
	}
	for _, t := range temps {
		err = errors.Join(err, os.RemoveAll(t))
	}
	return err
}

// sum is what writeSynced knows of a file.
type sum struct {
	bytes int64
	hex   string
}

// writeSynced writes a new file and syncs it, hashing what passes. On failure
// the file is removed.
func writeSynced(path string, write func(io.Writer) error) (s sum, err error) {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o644)
	if err != nil {
		return sum{}, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(fmt.Errorf("%s: %w", path, err), os.Remove(path))
		}
	}()
	h := sha256.New()
	buf := bufio.NewWriterSize(f, 1<<20)
	count := &counter{w: io.MultiWriter(buf, h)}
	err = write(count)
	if err == nil {
		err = buf.Flush()
	}
	if err == nil {
		err = f.Sync()
	}
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	return sum{bytes: count.n, hex: hex.EncodeToString(h.Sum(nil))}, err
}

// counter counts the bytes that pass.
type counter struct {
	w io.Writer
	n int64
}

// Write implements io.Writer.
func (c *counter) Write(p []byte) (int, error) {
	n, err := c.w.Write(p)
	c.n += int64(n)
	return n, err
}

// syncDir makes a rename in dir durable. Systems that cannot sync a directory
// say so with an error that is ignored: there the rename is as durable as it gets.
func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return fmt.Errorf("checkpoint: %w", err)
	}
	_ = d.Sync()
	return d.Close()
}
