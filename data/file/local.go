package file

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
)

// local is the file system of this machine.
type local struct{}

// localFile is a file of it. Reading ends with a context, and with an error where the
// file became shorter: its rows would be fewer, and nobody would know.
type localFile struct {
	*os.File
	size    int64
	stopped func() error // nil, or why nothing is read any more
}

func (f localFile) Size() int64 { return f.size }

// ReadAt implements io.ReaderAt.
func (f localFile) ReadAt(p []byte, offset int64) (int, error) {
	if err := f.stopped(); err != nil {
		return 0, err
	}
	n, err := f.File.ReadAt(p, offset)
	if end := offset + int64(n); errors.Is(err, io.EOF) && end < f.size {
		return n, fmt.Errorf("%w (it had %d bytes and ends after %d now)", errChanged, f.size, end)
	}
	return n, err
}

// errStopped is wrapped by the errors of files whose context has ended.
var errStopped = errors.New("not read to its end")

func (local) Close() error { return nil }

func (local) location(name string) string { return name }

// stat implements store. Only regular files are files of data: to open a pipe
// may wait for ever, and none of the others can be read twice.
func (local) stat(_ context.Context, name string) (Info, error) {
	info, err := os.Stat(name)
	if errors.Is(err, fs.ErrNotExist) {
		return Info{}, ErrMissing
	}
	if err != nil {
		return Info{}, bare(err)
	}
	if err := regular(info, name); err != nil {
		return Info{}, err
	}
	return Info{Size: info.Size(), Version: "mtime-" + strconv.FormatInt(info.ModTime().UnixNano(), 10)}, nil
}

// regular refuses what is no regular file.
func regular(info fs.FileInfo, name string) error {
	switch mode := info.Mode(); {
	case mode.IsDir():
		return fmt.Errorf("it is a directory, want a file; for all its files write %s", filepath.Join(name, "*"))
	case mode&fs.ModeNamedPipe != 0:
		return errors.New("it is a pipe, want a file: data are read more than once, so save what comes out of it first")
	case !mode.IsRegular():
		return fmt.Errorf("it is no regular file (%s)", mode.Type())
	}
	return nil
}

// open implements store.
func (l local) open(ctx context.Context, name string) (Random, error) {
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	if _, err := l.stat(ctx, name); err != nil {
		return nil, err
	}
	f, err := os.Open(name)
	if err != nil {
		return nil, bare(err)
	}
	info, err := f.Stat()
	if err == nil {
		err = regular(info, name)
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	stopped := func() error {
		if ctx.Err() == nil {
			return nil
		}
		return fmt.Errorf("%w: %w", errStopped, context.Cause(ctx))
	}
	return localFile{f, info.Size(), stopped}, nil
}

// match implements store.
func (local) match(_ context.Context, pattern string) ([]string, error) {
	found, err := filepath.Glob(pattern)
	if err != nil {
		return nil, err
	}
	found = slices.DeleteFunc(found, func(name string) bool {
		info, err := os.Stat(name)
		return !matches(filepath.ToSlash(pattern), filepath.ToSlash(name)) || err == nil && info.IsDir()
	})
	slices.Sort(found)
	return found, nil
}

// beside implements store.
func (local) beside(_ context.Context, name string) ([]string, error) {
	f, err := os.Open(filepath.Dir(name))
	if err != nil {
		return nil, err
	}
	defer f.Close()
	entries, err := f.ReadDir(listMax)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	slices.Sort(names)
	return names, nil
}

// listMax is the number of names that are looked at for a hint.
const listMax = 1000

// bare leaves the path out of an error: the caller says it.
func bare(err error) error {
	if p, ok := errors.AsType[*fs.PathError](err); ok {
		return p.Err
	}
	return err
}
