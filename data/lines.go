package data

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/gangline/gangline/data/file"
	"github.com/gangline/gangline/data/parse"
	"github.com/gangline/gangline/data/rows"
	"github.com/gangline/gangline/internal/ahead"
)

// How much of a file is unpacked, or fetched, before it is asked for.
const (
	aheadBytes  = 1 << 20
	aheadPieces = 2
)

// openStream opens a file anywhere and undoes its compression, in a goroutine of its
// own where that is worth one. Close waits for it.
func openStream(ctx context.Context, location string) (io.ReadCloser, error) {
	in, err := file.Open(ctx, location)
	if err != nil {
		return nil, err
	}
	if packed(location) {
		return ahead.New(in, aheadBytes, aheadPieces), nil
	}
	return in, nil
}

// packed reports whether reading a file costs more than copying it. It goes by the
// first bytes of local files; all others come over a network.
func packed(location string) bool {
	f, err := os.Open(location)
	if err != nil {
		return true
	}
	var head [4]byte
	_, err = io.ReadFull(f, head[:])
	if closed := f.Close(); err != nil || closed != nil {
		return false
	}
	for _, magic := range []string{"\x1f\x8b", "BZh", "\x28\xb5\x2f\xfd"} {
		if strings.HasPrefix(string(head[:]), magic) {
			return true
		}
	}
	return false
}

// locations are the files of a spec, of which Path and More may be patterns.
func locations(ctx context.Context, spec *Spec) ([]string, error) {
	if spec.Path == "" { // generated rows
		return nil, nil
	}
	names, err := file.Expand(ctx, "", append([]string{spec.Path}, spec.More...))
	if err != nil {
		return nil, fmt.Errorf("data: %s: %w", spec.Format, err)
	}
	if spec.Labels != "" {
		names = append(names, spec.Labels)
	}
	return names, nil
}

// readLines reads files of lines.
func readLines(ctx context.Context, spec *Spec) (Source, error) {
	names, err := locations(ctx, spec)
	if err != nil {
		return nil, err
	}
	return gather(ctx, spec, func() (rowReader, io.Closer, error) {
		l, err := openLines(ctx, spec, names)
		if err != nil {
			return nil, nil, err
		}
		if spec.UnitNorm {
			return normed{l}, l, nil
		}
		return l, l, nil
	})
}

// lineFiles reads files of lines one after the other: a rowReader.
type lineFiles struct {
	spec  *Spec
	names []string // of files not opened yet
	open  func(location string) (io.ReadCloser, error)
	in    io.ReadCloser
	now   *parse.Reader
	specs []ColumnSpec
	lines int // of files before
}

// openLines opens the files of a spec.
func openLines(ctx context.Context, spec *Spec, names []string) (*lineFiles, error) {
	open := func(location string) (io.ReadCloser, error) { return openStream(ctx, location) }
	l := &lineFiles{spec: spec, names: names, open: open}
	return l, l.next()
}

// next goes on with the next file.
func (l *lineFiles) next() error {
	in, err := l.open(l.names[0])
	if err != nil {
		return fmt.Errorf("data: %s: %w", l.spec.Format, err)
	}
	l.in, l.now = in, lineReader(l.spec, l.names[0], in)
	l.names = l.names[1:]
	return nil
}

// Columns implements rowReader: the largest index may be in any of the files.
func (l *lineFiles) Columns() []ColumnSpec {
	specs := l.now.Columns()
	if last := len(specs) - 1; l.specs != nil {
		specs[last].Dim = max(specs[last].Dim, l.specs[last].Dim)
	}
	return specs
}

// Raw implements rowReader.
func (l *lineFiles) Raw() []byte { return l.now.Raw() }

// Lines implements rowReader.
func (l *lineFiles) Lines() int { return l.lines + l.now.Lines() }

// File is the name of the file that the rows read last are in.
func (l *lineFiles) File() string { return l.now.File() }

// Read implements rowReader.
func (l *lineFiles) Read(b *rows.Block, n int) error {
	first := b.Rows
	err := l.now.Read(b, n)
	if !errors.Is(err, io.EOF) || len(l.names) == 0 || b.Rows > first {
		if errors.Is(err, io.EOF) && len(l.names) > 0 {
			return nil // the next Read goes on with the next file
		}
		return err
	}
	l.specs, l.lines = l.Columns(), l.Lines()
	if err := l.in.Close(); err != nil {
		return fmt.Errorf("data: %s: %w", l.now.File(), err)
	}
	l.in = nil
	return l.next()
}

// Close closes the file that is open.
func (l *lineFiles) Close() error {
	if l.in == nil {
		return nil
	}
	return l.in.Close()
}

// lineReader says how the lines of a format are read.
func lineReader(spec *Spec, name string, in io.Reader) *parse.Reader {
	if spec.Format == "criteo" {
		return parse.Criteo(name, in, spec.Buckets)
	}
	return parse.Libsvm(name, in, parse.LibsvmOptions{
		Features: spec.Features, ZeroBased: spec.ZeroBased, Binary: spec.LabelMap == "binary",
		LabelBase: spec.LabelBase, Classes: spec.Classes,
	})
}
