package data

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/gangline/gangline/checkpoint"
	"github.com/gangline/gangline/data/cache"
	"github.com/gangline/gangline/data/file"
)

// How long a process waits for another that makes the same cache file, and how often
// it looks.
const (
	makingMax  = 30 * time.Minute
	makingLook = 100 * time.Millisecond
)

// place is where the rows of a spec are cached: a directory of its own, whose name is
// a fingerprint of what they come from.
type place struct {
	dir    string // "": path is the file, and nobody else makes it
	path   string
	source string // the fingerprint
	limit  int64
	unlock func() error // of the directory, while a file is made
}

// newPlace works out where the rows of a spec are cached. It looks at the files but
// reads none.
func newPlace(ctx context.Context, spec *Spec) (*place, error) {
	source, err := fingerprint(ctx, spec)
	if err != nil {
		return nil, err
	}
	if spec.into != "" {
		return &place{path: spec.into, source: source}, nil
	}
	dir := spec.CacheDir
	if dir == "" {
		if dir, err = os.UserCacheDir(); err != nil {
			dir = os.TempDir()
		}
		dir = filepath.Join(dir, "gangline")
	}
	dir = filepath.Join(dir, source)
	return &place{dir: dir, path: filepath.Join(dir, "rows.gcache"), source: source, limit: spec.memory()}, nil
}

// fingerprint tells rows apart by all that makes them: the version of the format, the
// spec, and location, size and version of every file.
func fingerprint(ctx context.Context, spec *Spec) (string, error) {
	type state struct {
		Location string
		file.Info
	}
	of := struct {
		Version  int
		Block    int // bytes: ranks must cut rows into the same blocks
		Spec     Spec
		Features string
		Files    []state
	}{Version: cache.Version, Block: spec.blockBytes(), Spec: *spec}
	of.Spec.Memory, of.Spec.CacheDir, of.Spec.Rejects = 0, "", ""
	of.Spec.Fitted = nil
	if spec.Fitted != nil {
		var err error
		if of.Features, err = spec.Fitted.Digest(); err != nil {
			return "", err
		}
	}
	names, err := locations(ctx, spec)
	if err != nil {
		return "", err
	}
	for _, name := range names {
		info, err := file.Stat(ctx, name)
		if err != nil {
			return "", fmt.Errorf("data: %s: %w", spec.Format, err)
		}
		if at, err := filepath.Abs(name); err == nil && !file.IsURL(name) {
			name = at
		}
		of.Files = append(of.Files, state{name, info})
	}
	text, err := json.Marshal(of)
	if err != nil {
		return "", fmt.Errorf("data: fingerprint: %w", err)
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:16]), nil
}

// open opens the cache file. There is none, or none of use: nil.
func (p *place) open() (Source, error) {
	if p.dir == "" {
		return nil, nil
	}
	src, err := openCached(p.path, p.limit, p.source)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, cache.ErrFile) {
		return nil, nil
	}
	return src, err
}

// openNow opens the cache file that must be there, and lets others make it.
func (p *place) openNow() (Source, error) {
	src, err := openCached(p.path, p.limit, p.source)
	if err = errors.Join(err, p.release()); err != nil {
		return nil, err
	}
	return src, nil
}

// errMade says that another process made the cache file meanwhile.
var errMade = errors.New("another process made the cache file")

// create begins the cache file. If another process is making it, create waits for that
// and returns errMade; one that takes too long is not waited for.
func (p *place) create(ctx context.Context) (*cache.Writer, error) {
	if p.dir == "" {
		return cache.Create(p.path)
	}
	deadline := time.Now().Add(makingMax)
	for p.unlock == nil {
		unlock, err := checkpoint.Lock(p.dir)
		switch {
		case err == nil:
			p.unlock = unlock
		case !errors.Is(err, checkpoint.ErrInUse):
			return nil, fmt.Errorf("data: cannot make a cache file; say where with data.cache_dir: %w", err)
		case time.Now().After(deadline):
			p.unlock = func() error { return nil }
		default:
			if err := pause(ctx, makingLook); err != nil {
				return nil, fmt.Errorf("data: waiting for the process that makes %s: %w", p.path, err)
			}
		}
	}
	if src, err := p.open(); src != nil || err != nil {
		if err == nil {
			err = errors.Join(errMade, src.Close())
		}
		return nil, err
	}
	return cache.Create(p.path)
}

// pause waits so long, or until the context ends, which is an error.
func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// release lets others make the file.
func (p *place) release() error {
	if p == nil || p.unlock == nil {
		return nil
	}
	unlock := p.unlock
	p.unlock = nil
	return unlock()
}
