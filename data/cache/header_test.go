package cache

import (
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A header that no reader would take is not written, and nothing is left; one byte
// less is.
func TestHeaderTooLong(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "rows.gcache")
	commit := func(most int) error {
		w, err := Create(path)
		if err != nil {
			t.Fatal(err)
		}
		if w.most != headerMax {
			t.Fatalf("a header may have %d bytes, and a reader takes %d", w.most, headerMax)
		}
		w.most = most
		if err := w.Add(allSpecs(), makeBlock(rand.New(rand.NewPCG(1, 0)), 8, 3)); err != nil {
			t.Fatal(err)
		}
		return w.Commit(Header{Columns: allSpecs(), Shift: 3, Source: strings.Repeat("v", 1000)})
	}
	if err := commit(headerMax); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	long := int(binary.LittleEndian.Uint64(text[len(text)-footBytes:]))
	if err := commit(long); err != nil {
		t.Errorf("a header of %d bytes, as many as it may have: %v", long, err)
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if err := commit(long - 1); err == nil || !strings.Contains(err.Error(), "hash large vocabularies (buckets)") || !strings.Contains(err.Error(), path) {
		t.Errorf("a header that is too long: %v", err)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("%v are left, %v", left, err)
	}
}

// What a file claims of its header is believed only as far as the limit: no memory is
// taken for more, even if the file is as long.
func TestHeaderClaimsTooMuch(t *testing.T) {
	path := filepath.Join(t.TempDir(), "rows.gcache")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	foot := binary.LittleEndian.AppendUint64(nil, headerMax+1)
	foot = append(append(foot, make([]byte, 8)...), endMagic...)
	_, head := f.WriteAt([]byte(magic), 0) // and a hole, which takes no room
	_, end := f.WriteAt(foot, int64(len(magic))+headerMax+1)
	if err := errors.Join(head, end, f.Close()); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(path); !errors.Is(err, ErrFile) || !strings.Contains(err.Error(), "its header claims 268435457 bytes") {
		t.Errorf("%v", err)
	}
}
