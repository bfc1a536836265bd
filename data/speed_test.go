package data

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"testing"

	"github.com/gangline/gangline/data/generate"
	"github.com/gangline/gangline/internal/mix"
)

// speedFile makes a file of at least 64 MB of a format, once a run.
func speedFile(b *testing.B, format string) string {
	b.Helper()
	const size = 64 << 20
	path := filepath.Join(b.TempDir(), format)
	f, err := os.Create(path)
	if err != nil {
		b.Fatal(err)
	}
	w := &counter{w: bufio.NewWriterSize(f, 1<<20)}
	g := generate.New(1, 1<<20, 0, 1<<30)
	for i := 0; w.n < size; i += 1000 {
		if format == "criteo" {
			err = generate.WriteCriteo(w, g, i, 1000)
		} else {
			err = writeLibsvm(w, uint64(i), 1000)
		}
		if err != nil {
			b.Fatal(err)
		}
	}
	if err := errors.Join(w.w.Flush(), f.Close()); err != nil {
		b.Fatal(err)
	}
	return path
}

// counter counts what is written.
type counter struct {
	w *bufio.Writer
	n int
}

func (c *counter) Write(p []byte) (int, error) {
	c.n += len(p)
	return c.w.Write(p)
}

// writeLibsvm writes rows of 20 to 80 entries with values of up to six digits, as
// those of a text collection with normalised rows are.
func writeLibsvm(w io.Writer, first uint64, n int) error {
	var line []byte
	for r := range uint64(n) {
		key := mix.At(1, first+r)
		line = strconv.AppendInt(line[:0], int64(key&1)*2-1, 10)
		id := uint64(0)
		for j := range 20 + key>>8%60 {
			h := mix.At(key, j)
			id += 1 + h%1200
			line = strconv.AppendUint(append(line, ' '), id, 10)
			line = strconv.AppendFloat(append(line, ':'), float64(h>>44)/(1<<20), 'g', 6, 64)
		}
		if _, err := w.Write(append(line, '\n')); err != nil {
			return err
		}
	}
	return nil
}

// BenchmarkText reads a file of 64 MB and more: as rows, as lines with a
// bufio.Scanner as it comes, and as bytes whose line ends are counted, as wc -l
// does. Run it with GOMAXPROCS=1 for the rate of one core; MB/cpu-s is the rate of the
// time that the process had, which a busy machine changes less.
func BenchmarkText(b *testing.B) {
	for _, spec := range []Spec{{Format: "libsvm"}, {Format: "criteo", Buckets: 1 << 20}} {
		spec.Path = speedFile(b, spec.Format)
		for _, way := range []struct {
			name string
			read func(Spec) error
		}{{"rows", readRows}, {"scan", scanLines}, {"count", countLines}} {
			b.Run(spec.Format+"/"+way.name, func(b *testing.B) {
				info, err := os.Stat(spec.Path)
				if err != nil {
					b.Fatal(err)
				}
				b.SetBytes(info.Size())
				runtime.GC()
				start := cpuTime()
				for b.Loop() {
					if err := way.read(spec); err != nil {
						b.Fatal(err)
					}
				}
				if used := cpuTime() - start; used > 0 {
					b.ReportMetric(float64(info.Size())*float64(b.N)/1e6/used.Seconds(), "MB/cpu-s")
				}
			})
		}
	}
}

func readRows(spec Spec) error {
	src, err := Open(context.Background(), spec)
	if err != nil {
		return err
	}
	return src.Close()
}

func scanLines(spec Spec) error {
	f, err := os.Open(spec.Path)
	if err != nil {
		return err
	}
	s, n := bufio.NewScanner(f), 0
	for s.Scan() {
		n += len(s.Bytes())
	}
	if n == 0 {
		return fmt.Errorf("no lines")
	}
	return errors.Join(s.Err(), f.Close())
}

func countLines(spec Spec) error {
	f, err := os.Open(spec.Path)
	if err != nil {
		return err
	}
	buf, n := make([]byte, 256<<10), 0
	for {
		k, err := f.Read(buf)
		n += bytes.Count(buf[:k], []byte{'\n'})
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return err
		}
	}
	if n == 0 {
		return fmt.Errorf("no lines")
	}
	return f.Close()
}
