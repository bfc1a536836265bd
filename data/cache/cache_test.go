package cache

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/gangline/gangline/data/rows"
	"github.com/gangline/gangline/data/table"
)

// allSpecs has a column of every kind.
func allSpecs() []rows.ColumnSpec {
	return []rows.ColumnSpec{
		{Name: "label", Kind: rows.DenseColumn, Dim: 1},
		{Name: "num", Kind: rows.DenseColumn, Dim: 3},
		{Name: "pixels", Kind: rows.DenseColumn, Dim: 2},
		{Name: "cat", Kind: rows.RaggedColumn, Dim: 1 << 20, PerRow: 2},
		{Name: "x", Kind: rows.RaggedColumn, Dim: rows.MaxID},
	}
}

// makeBlock draws a block of n rows whose ids stay below 2^width.
func makeBlock(r *rand.Rand, n, width int) *rows.Block {
	id := func(dim int) int32 { return int32(r.IntN(min(dim, 1<<width))) }
	b := &rows.Block{Rows: n, Columns: make([]rows.Packed, 5)}
	c := b.Columns
	c[2].Table = new([256]float32)
	for i := range c[2].Table {
		c[2].Table[i] = r.Float32()
	}
	c[4].Offsets = []int32{0}
	for range n {
		c[0].Values = append(c[0].Values, float32(r.IntN(2)))
		c[1].Values = append(c[1].Values, r.Float32(), -r.Float32(), 0)
		c[2].Bytes = append(c[2].Bytes, byte(r.Uint32()), byte(r.Uint32()))
		c[3].IDs = append(c[3].IDs, id(1<<20), id(1<<20))
		for range r.IntN(4) {
			c[4].IDs = append(c[4].IDs, id(rows.MaxID))
			c[4].Values = append(c[4].Values, r.Float32())
		}
		c[4].Offsets = append(c[4].Offsets, int32(len(c[4].IDs)))
	}
	if n%2 == 0 {
		c[4].Values = nil
	}
	return b
}

// writeFile writes blocks of 8 rows, the last shorter.
func writeFile(t testing.TB, blocks ...*rows.Block) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "rows.gcache")
	w, err := Create(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, b := range blocks {
		if err := w.Add(allSpecs(), b); err != nil {
			t.Fatal(err)
		}
	}
	h := Header{Columns: allSpecs(), Shift: 3, Source: "made", BadRows: 1, Samples: []table.RowError{{File: "f", Line: 3, Reason: "r"}}}
	if err := w.Commit(h); err != nil {
		t.Fatal(err)
	}
	return path
}

// What was written is read, block by block in any order.
func TestRoundTrip(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		r := rand.New(rand.NewPCG(rapid.Uint64().Draw(rt, "seed"), 0))
		var blocks []*rows.Block
		for range rapid.IntRange(0, 3).Draw(rt, "whole") {
			blocks = append(blocks, makeBlock(r, 8, rapid.IntRange(0, 30).Draw(rt, "width")))
		}
		blocks = append(blocks, makeBlock(r, rapid.IntRange(1, 8).Draw(rt, "rest"), 9))
		f, err := Open(writeFile(t, blocks...))
		if err != nil {
			rt.Fatal(err)
		}
		defer f.Close()
		if f.Rows != 8*(len(blocks)-1)+blocks[len(blocks)-1].Rows || f.BadRows != 1 || f.Samples[0].Line != 3 || f.Source != "made" {
			rt.Fatalf("%+v", f.Header)
		}
		var buf []byte
		memory := int64(0)
		for _, i := range r.Perm(len(blocks)) {
			got, err := f.Block(i, &buf)
			if err != nil {
				rt.Fatal(err)
			}
			if diff := cmp.Diff(blocks[i], got, cmpopts.EquateEmpty()); diff != "" {
				rt.Fatal(diff)
			}
			memory += got.Bytes()
		}
		if memory != f.Memory {
			rt.Fatalf("the blocks take %d bytes, the header says %d", memory, f.Memory)
		}
	})
}

// Ids take the fewest bytes that hold the largest.
func TestNarrow(t *testing.T) {
	specs := []rows.ColumnSpec{{Name: "x", Kind: rows.RaggedColumn, Dim: rows.MaxID, PerRow: 1}}
	for id, want := range map[int32]int{0: 1, 255: 1, 256: 2, 65535: 2, 65536: 3, 1<<24 - 1: 3, 1 << 24: 4, rows.MaxID - 1: 4} {
		raw := encode(nil, &rows.Block{Rows: 1, Columns: []rows.Packed{{IDs: []int32{id}}}}, specs)
		if got := len(raw) - columnBytes; got != want {
			t.Errorf("id %d takes %d bytes, want %d", id, got, want)
		}
		var b rows.Block
		if err := decode(raw, specs, 1, &b); err != nil || b.Columns[0].IDs[0] != id {
			t.Errorf("id %d: %v", id, err)
		}
	}
}

// Every byte counts: whichever is changed or missing, it is noticed, and by an error
// that names the file.
func TestDamage(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	path := writeFile(t, makeBlock(r, 8, 20), makeBlock(r, 3, 20))
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	check := func(what string, content []byte) {
		t.Helper()
		if err := os.WriteFile(path, content, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := readFile(path); !errors.Is(err, ErrFile) || !strings.Contains(err.Error(), path) {
			t.Fatalf("%s: %v", what, err)
		}
	}
	for i := range whole {
		damaged := bytes.Clone(whole)
		damaged[i] ^= 1 << (i % 8)
		if i >= len(whole)-len(endMagic)-4 && i < len(whole)-len(endMagic) {
			continue // the four bytes that mean nothing
		}
		check("a changed byte", damaged)
	}
	for n := 0; n < len(whole); n += 7 {
		check("a cut file", whole[:n])
	}
	check("another kind of file", bytes.Repeat([]byte("1 2:3\n"), 100))
	check("more behind the end", append(bytes.Clone(whole), 0))
	other := bytes.Replace(whole, []byte(`"version":1`), []byte(`"version":2`), 1)
	at := bytes.Index(other, []byte(`{"version"`))
	binary.LittleEndian.PutUint32(other[len(other)-16:], checksum(other[at:len(other)-footBytes]))
	check("another version", other)
	if err := readFile(path); !strings.Contains(err.Error(), "version 2, this program reads 1") {
		t.Error(err)
	}
}

// readFile reads all of a file.
func readFile(path string) error {
	f, err := Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	var buf []byte
	for i := range f.Blocks {
		if _, err := f.Block(i, &buf); err != nil {
			return err
		}
	}
	return nil
}

// A file appears whole or not at all, and nothing stays behind.
func TestAtomic(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "rows")
	names := func() string {
		var all []string
		entries, err := os.ReadDir(dir)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range entries {
			all = append(all, e.Name())
		}
		return strings.Join(all, " ")
	}
	for _, end := range []func(w *Writer) error{
		(*Writer).Abort,
		func(w *Writer) error { return w.Commit(Header{Columns: allSpecs(), Shift: 40}) },
	} {
		w, err := Create(path)
		if err != nil {
			t.Fatal(err)
		}
		if err := w.Add(allSpecs(), makeBlock(rand.New(rand.NewPCG(1, 1)), 8, 5)); err != nil {
			t.Fatal(err)
		}
		if _, err := os.Stat(path); err == nil {
			t.Error("an unfinished file has its name")
		}
		_ = end(w)
		if got := names(); got != "" {
			t.Errorf("left behind: %s", got)
		}
	}
	if _, err := Create(filepath.Join(dir, "absent", "rows")); err == nil {
		t.Error("a file was made in a directory that is not there")
	}
}

// A pool holds no more than it may, reads a block that several want once, and keeps
// what was used last.
func TestPool(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	var blocks []*rows.Block
	for range 20 {
		blocks = append(blocks, makeBlock(r, 8, 20))
	}
	f, err := Open(writeFile(t, blocks...))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	each := f.Memory / 20
	p := NewPool(f, 6*each)
	var wait sync.WaitGroup
	for range 4 { // users
		wait.Go(func() {
			for i := range 200 {
				at := i * 7 % 20
				b, err := p.Get(at)
				if err != nil || !cmp.Equal(b, blocks[at], cmpopts.EquateEmpty()) {
					t.Errorf("block %d: %v", at, err)
				}
				p.Put(at)
			}
		})
	}
	wait.Wait()
	if peak, _ := p.Stats(); peak > 7*each+4*each { // one block each is in use
		t.Errorf("the pool held %d bytes, may hold %d", peak, 11*each)
	}
	p = NewPool(f, 6*each)
	for i := range 100 {
		for _, b := range []int{0, 1, 2 + i%2} {
			if _, err := p.Get(b); err != nil {
				t.Fatal(err)
			}
			p.Put(b)
		}
	}
	if _, reads := p.Stats(); reads != 4 {
		t.Errorf("four blocks that fit were read %d times", reads)
	}
	if err := os.Truncate(f.Path(), 100); err != nil {
		t.Fatal(err)
	}
	for range 2 { // an error is not kept for a block
		if _, err := p.Get(19); !errors.Is(err, ErrFile) {
			t.Errorf("a file cut while open: %v", err)
		}
	}
}

// FuzzDecode: any bytes are a block or an error; what is a block is encoded to the
// same block.
func FuzzDecode(f *testing.F) {
	r := rand.New(rand.NewPCG(5, 6))
	for _, n := range []int{1, 2, 5} {
		f.Add(encode(nil, makeBlock(r, n, 4*n), allSpecs()), n)
	}
	f.Fuzz(func(t *testing.T, raw []byte, n int) {
		if n < 1 || n > 1<<20 {
			return
		}
		b := new(rows.Block)
		err := decode(raw, allSpecs(), n, b)
		if err != nil {
			if !errors.Is(err, ErrFile) {
				t.Fatal(err)
			}
			return
		}
		if b.Bytes() > 8*int64(len(raw)) {
			t.Fatalf("%d bytes became %d", len(raw), b.Bytes())
		}
		first := encode(nil, b, allSpecs())
		again := makeBlock(rand.New(rand.NewPCG(1, 1)), 7, 9) // of which nothing may be left
		if err := decode(first, allSpecs(), n, again); err != nil || !bytes.Equal(first, encode(nil, again, allSpecs())) {
			t.Fatalf("written again, it differs: %v", err)
		}
	})
}

// FuzzOpen: any file is a cache or an error.
func FuzzOpen(f *testing.F) {
	content, err := os.ReadFile(writeFile(f, makeBlock(rand.New(rand.NewPCG(7, 8)), 3, 9)))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(content)
	f.Add(content[:len(content)-3])
	f.Fuzz(func(t *testing.T, content []byte) {
		path := filepath.Join(t.TempDir(), "f")
		if err := os.WriteFile(path, content, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := readFile(path); err != nil && !errors.Is(err, ErrFile) {
			t.Fatal(err)
		}
	})
}

// BenchmarkLoad reads blocks of Criteo's shape, 1 MB each: MB/s of the file.
func BenchmarkLoad(b *testing.B) {
	specs := []rows.ColumnSpec{
		{Name: "label", Kind: rows.DenseColumn, Dim: 1},
		{Name: "num", Kind: rows.DenseColumn, Dim: 13},
		{Name: "cat", Kind: rows.RaggedColumn, Dim: 1 << 20, PerRow: 26},
	}
	r := rand.New(rand.NewPCG(1, 1))
	block := &rows.Block{Rows: 8192, Columns: make([]rows.Packed, 3)}
	for range block.Rows {
		block.Columns[0].Values = append(block.Columns[0].Values, float32(r.IntN(2)))
		for range 13 {
			block.Columns[1].Values = append(block.Columns[1].Values, r.Float32())
		}
		for range 26 {
			block.Columns[2].IDs = append(block.Columns[2].IDs, int32(r.IntN(1<<20)))
		}
	}
	path := filepath.Join(b.TempDir(), "rows")
	w, err := Create(path)
	if err != nil {
		b.Fatal(err)
	}
	for range 64 {
		if err := w.Add(specs, block); err != nil {
			b.Fatal(err)
		}
	}
	if err := w.Commit(Header{Columns: specs, Shift: 13}); err != nil {
		b.Fatal(err)
	}
	info, err := os.Stat(path)
	if err != nil {
		b.Fatal(err)
	}
	b.SetBytes(info.Size())
	for b.Loop() {
		if err := readFile(path); err != nil {
			b.Fatal(err)
		}
	}
}
