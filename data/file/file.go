// Package file opens the files of a data set wherever they are: local paths,
// globs, lists, and object stores. Compression is undone in place.
//
// A location is a path, or a URL: file:///path, s3://bucket/key, gs://bucket/key,
// azblob://container/key. Keys stand in URLs as they are, without percent
// escapes; what follows a '?' are parameters of the driver. A program that reads
// from object stores imports data/file/cloud, which links their clients; any
// other bucket, as one in memory, is put into the context by [WithBucket].
//
// Every request to a store has a deadline, is repeated a bounded number of
// times if the failure may pass, and asks for one block: memory is bounded
// whatever the size of the object.
package file

import (
	"context"
	"fmt"
	"io"
)

// Info is what distinguishes one state of a file from another without reading
// it: for fingerprints of caches.
type Info struct {
	// Size is the number of bytes as stored, before compression is undone.
	Size int64
	// Version changes when the content does: the time of the last change of a
	// local file, the ETag of an object.
	Version string
}

// Random is a file that is read at any place, from several goroutines.
type Random interface {
	io.ReaderAt
	io.Closer
	// Size is the number of bytes.
	Size() int64
}

// store is where files are: the local disk or a bucket. Names are paths or keys.
type store interface {
	// stat describes a file; a missing one is ErrMissing.
	stat(ctx context.Context, name string) (Info, error)
	// open opens a file; a missing one is ErrMissing.
	open(ctx context.Context, name string) (Random, error)
	// match lists the files that a glob names, in order.
	match(ctx context.Context, pattern string) ([]string, error)
	// beside lists some files that stand where name would.
	beside(ctx context.Context, name string) ([]string, error)
	// location is the opposite of locate.
	location(name string) string
	io.Closer
}

// Open opens the file at a location and undoes gzip, bzip2 or zstd, whichever
// its first bytes show; the name does not matter. An archive that ends early,
// that is damaged or that other bytes follow is an error of Read, which names
// the location and says how far it came. The context bounds all later reading.
func Open(ctx context.Context, location string) (io.ReadCloser, error) {
	f, err := OpenRandom(ctx, location)
	if err != nil {
		return nil, err
	}
	return unpack(location, f)
}

// OpenRandom opens the file at a location for reading at any place. Nothing is
// undone: the formats that are read so have their compression inside.
func OpenRandom(ctx context.Context, location string) (Random, error) {
	s, name, err := locate(ctx, location)
	if err != nil {
		return nil, err
	}
	f, err := s.open(ctx, name)
	if err != nil {
		return nil, explain(ctx, s, name, err)
	}
	return owned{f, s}, nil
}

// Stat describes the file at a location.
func Stat(ctx context.Context, location string) (Info, error) {
	s, name, err := locate(ctx, location)
	if err != nil {
		return Info{}, err
	}
	info, err := s.stat(ctx, name)
	if err != nil {
		return Info{}, explain(ctx, s, name, err)
	}
	if err := s.Close(); err != nil {
		return Info{}, fmt.Errorf("%s: %w", location, err)
	}
	return info, nil
}

// owned is a file that closes the store it is from.
type owned struct {
	Random
	store io.Closer
}

func (o owned) Close() error {
	err := o.Random.Close()
	if e := o.store.Close(); err == nil {
		err = e
	}
	return err
}
