package data

import (
	"bytes"
	"encoding/binary"
	"io"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/gangline/gangline/data/parse"
)

// checkSource demands what every source promises, of whatever was read.
func checkSource(t *testing.T, m *memory) {
	t.Helper()
	var b Batch
	if err := m.Read(rowRange(0, m.Rows()), &b); err != nil {
		t.Fatal(err)
	}
	for i, spec := range m.Columns() {
		c := b.Columns[i]
		if spec.Kind == DenseColumn {
			if len(c.Values) != m.Rows()*spec.Dim {
				t.Fatalf("column %s has %d values in %d rows of %d", spec.Name, len(c.Values), m.Rows(), spec.Dim)
			}
			continue
		}
		if len(c.Offsets) != m.Rows()+1 || int(c.Offsets[m.Rows()]) != len(c.IDs) || len(c.IDs) != len(c.Values) {
			t.Fatalf("column %s: %d offsets to %v, %d ids, %d weights", spec.Name, len(c.Offsets), c.Offsets[m.Rows()], len(c.IDs), len(c.Values))
		}
		for _, id := range c.IDs {
			if id < 0 || id >= int64(spec.Dim) {
				t.Fatalf("id %d of column %s is not in [0,%d)", id, spec.Name, spec.Dim)
			}
		}
	}
}

// collectLines reads lines as Open does, but for where they come from.
func collectLines(in io.Reader, spec *Spec) error {
	r := lineReader(spec, "f", in)
	return newCollector(spec, r, nil, nil).read(r)
}

// idxBytesOf builds an idx file.
func idxBytesOf(sizes []uint32, elements ...byte) []byte {
	b := []byte{0, 0, 8, byte(len(sizes))}
	for _, s := range sizes {
		b = binary.BigEndian.AppendUint32(b, s)
	}
	return append(b, elements...)
}

func FuzzIdx(f *testing.F) {
	f.Add(idxBytesOf([]uint32{2, 1, 2}, 1, 2, 3, 4), 0)
	f.Add(idxBytesOf([]uint32{1 << 31, 1 << 15, 1 << 15}, 1, 2), 0)
	f.Add(idxBytesOf([]uint32{1<<32 - 1, 0, 1<<32 - 1}), 3)
	f.Add([]byte{0, 0, 8}, 0)
	f.Fuzz(func(t *testing.T, content []byte, limit int) {
		file, err := parse.ReadIdx("f", bytes.NewReader(content), limit&0xff)
		if err != nil {
			return
		}
		labels := parse.Idx{Count: file.Count, Dim: 1, Rows: file.Rows, Bytes: make([]uint8, min(file.Rows, 1<<20))}
		if file.Rows > 1<<20 { // rows of no bytes
			return
		}
		if m, err := joinIdx(&Spec{}, file, labels); err == nil {
			checkSource(t, m)
		}
	})
}

// TestIdx: good files, and what is wrong with the others.
func TestIdx(t *testing.T) {
	images := idxBytesOf([]uint32{2, 1, 3}, 0, 255, 51, 102, 1, 2)
	labels := idxBytesOf([]uint32{2}, 7, 3)
	src := mustOpen(t, Spec{Format: "idx", Path: tempFile(t, gzipped(t, images)), Labels: tempFile(t, labels)})
	var b Batch
	if err := src.Read([]int{1, 0}, &b); err != nil {
		t.Fatal(err)
	}
	want := Batch{Rows: 2, Columns: []Column{
		{Values: []float32{3, 7}}, {Values: []float32{.4, 1. / 255, 2. / 255, 0, 1, .2}},
	}}
	if diff := cmp.Diff(want, b); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	tests := []struct {
		want           string
		images, labels []byte
	}{
		{":2: the file is cut off: 2 records of 3 bytes promised, 5 bytes found", images[:len(images)-1], labels},
		{":2: the file is cut off", images, labels[:len(labels)-1]},
		{"byte beyond the 2 records", append(bytes.Clone(images), 0), labels},
		{"magic number 00000d01", images, []byte{0, 0, 13, 1, 0, 0, 0, 0}},
		{"magic number 50", []byte("P5 what is this"), labels},
		{"has 2 records but", images, idxBytesOf([]uint32{3}, 1, 2, 3)},
		{"is no file of labels", images, images},
		{"ends within the 4 bytes", []byte{0, 0}, labels},
		{"ends within the sizes of its 3 dims", images[:9], labels},
		{"holds nothing", idxBytesOf([]uint32{0, 3}), idxBytesOf([]uint32{0})},
		{"larger than the limit", idxBytesOf([]uint32{1, 1 << 20, 1 << 20}), labels},
	}
	for _, test := range tests {
		_, err := Open(t.Context(), Spec{Format: "idx", Path: tempFile(t, test.images), Labels: tempFile(t, test.labels)})
		if err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("got %v, want %q", err, test.want)
		}
	}
}

// TestBoundedMemory: a header that promises much and a line without an end cost
// what is there, not what they claim.
func TestBoundedMemory(t *testing.T) {
	allocated := func(f func()) uint64 {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		f()
		runtime.ReadMemStats(&after)
		return after.TotalAlloc - before.TotalAlloc
	}
	if n := allocated(func() {
		if _, err := parse.ReadIdx("f", bytes.NewReader(idxBytesOf([]uint32{1 << 31, 1 << 15, 1 << 15}, 1)), 0); err == nil {
			t.Error("a file without its records was read")
		}
	}); n > 2<<20 {
		t.Errorf("a header alone took %d bytes", n)
	}
	if n := allocated(func() {
		endless := io.LimitReader(zeros{}, 1<<40)
		if err := collectLines(endless, &Spec{Format: "libsvm"}); err == nil || !strings.Contains(err.Error(), "longer than") {
			t.Errorf("an endless line: %v", err)
		}
	}); n > 8*parse.MaxLine {
		t.Errorf("an endless line took %d bytes", n)
	}
	if err := collectLines(stuck{}, &Spec{Format: "libsvm"}); err == nil {
		t.Error("a reader that never delivers was read")
	}
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { clear(p); return len(p), nil }

type stuck struct{}

func (stuck) Read([]byte) (int, error) { return 0, nil }
