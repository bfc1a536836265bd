package file

import (
	"bytes"
	"errors"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
	"pgregory.net/rapid"
)

// bytesFile is a Random in memory.
type bytesFile struct{ *bytes.Reader }

func (bytesFile) Close() error { return nil }

// readPacked reads what a file of these bytes holds.
func readPacked(packed []byte) ([]byte, error) {
	r, err := unpack("f", bytesFile{bytes.NewReader(packed)})
	if err != nil {
		return nil, err
	}
	content, err := io.ReadAll(r)
	return content, errors.Join(err, r.Close())
}

// pack is the opposite of unpack; the standard library writes no bzip2.
func pack(t testing.TB, packing string, content []byte) []byte {
	t.Helper()
	var b bytes.Buffer
	var w io.WriteCloser
	switch packing {
	case "gzip":
		w = gzip.NewWriter(&b)
	case "zstd":
		z, err := zstd.NewWriter(&b, zstd.WithEncoderConcurrency(1), zstd.WithZeroFrames(true))
		if err != nil {
			t.Fatal(err)
		}
		w = z
	case "bzip2":
		if string(content) != "a,b\n1,2\n" {
			t.Fatal("only one text is known")
		}
		return []byte("BZh91AY&SY\xbf\x87@\x7f\x00\x00\x03Y\x00\x00\x10\x00\x040\x000\x00 \x000\xc0\x08i\xb2\x88#'\x8b\xb9\"\x9c(H_\xc3\xa0?\x80")
	default:
		return content
	}
	if _, err := w.Write(content); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// Every form is found by content; every cut and every byte that follows is an
// error that says so; two archives in a row are one.
func TestUnpack(t *testing.T) {
	content := []byte("a,b\n1,2\n")
	for _, packing := range []string{"gzip", "bzip2", "zstd"} {
		packed := pack(t, packing, content)
		if got, err := readPacked(packed); err != nil || !bytes.Equal(got, content) {
			t.Fatalf("%s: got %q, %v", packing, got, err)
		}
		if got, err := readPacked(append(bytes.Clone(packed), packed...)); err != nil || string(got) != strings.Repeat(string(content), 2) {
			t.Errorf("%s twice: got %q, %v", packing, got, err)
		}
		for cut := 10; cut < len(packed); cut++ {
			want := "f: the " + packing + " data ends early after "
			if got, err := readPacked(packed[:cut]); err == nil || !strings.HasPrefix(err.Error(), want) {
				t.Errorf("%s cut to %d of %d bytes: got %q, %v", packing, cut, len(packed), got, err)
			}
		}
		for _, tail := range []string{"garbage", "\x00\x00\x00\x00\x00\x00\x00\x00", "x,y\n"} {
			want := "f: after 8 bytes the " + packing + " data ends and something else follows"
			if got, err := readPacked(append(bytes.Clone(packed), tail...)); err == nil || !strings.HasPrefix(err.Error(), want) {
				t.Errorf("%s followed by %q: got %q, %v", packing, tail, got, err)
			}
		}
	}
	if got, err := readPacked([]byte("BZh9\x17rE8P\x90\x00\x00\x00\x00")); err != nil || len(got) != 0 {
		t.Errorf("an empty bzip2 archive: %q, %v", got, err)
	}
	for _, plain := range []string{"", "B", "BZh is a text\n", "\x1f\x8b", "a,b\n"} {
		if got, err := readPacked([]byte(plain)); err != nil || string(got) != plain {
			t.Errorf("%q became %q, %v", plain, got, err)
		}
	}
	for want, head := range map[string]string{"xz": "\xfd7zXZ\x00\x00", "lz4": "\x04\x22\x4d\x18aaaa", "compress (.Z)": "\x1f\x9d\x90a"} {
		if _, err := readPacked([]byte(head)); err == nil || !strings.Contains(err.Error(), "packed by "+want) {
			t.Errorf("%s: got %v", want, err)
		}
	}
}

// A flipped bit anywhere in the data never passes for good.
func TestUnpackDamaged(t *testing.T) {
	content := make([]byte, 80)
	for i := range content {
		content[i] = byte(rand.New(rand.NewPCG(1, uint64(i))).UintN(16))
	}
	for _, packing := range []string{"gzip", "zstd"} {
		packed := pack(t, packing, content)
		// The header of gzip holds a time and a system that nothing depends on.
		for i := 10; i < len(packed); i++ {
			for bit := range 8 {
				broken := bytes.Clone(packed)
				broken[i] ^= 1 << bit
				if got, err := readPacked(broken); err == nil && !bytes.Equal(got, content) {
					t.Fatalf("%s: bit %d of byte %d turned: %d other bytes and no error", packing, bit, i, len(got))
				}
			}
		}
	}
}

// What was packed is what is read, however many members there are.
func TestUnpackProperty(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		packing := rapid.SampledFrom([]string{"gzip", "zstd"}).Draw(rt, "packing")
		parts := rapid.SliceOfN(rapid.SliceOf(rapid.Byte()), 1, 4).Draw(rt, "parts")
		var packed, want []byte
		for _, part := range parts {
			packed = append(packed, pack(t, packing, part)...)
			want = append(want, part...)
		}
		if got, err := readPacked(packed); err != nil || !bytes.Equal(got, want) {
			rt.Fatalf("%s of %q: got %q, %v", packing, parts, got, err)
		}
	})
}

// A window beyond the limit is refused before memory is taken for it.
func TestWindow(t *testing.T) {
	// A frame header: magic, no content size, window descriptor for 1 GiB.
	_, err := readPacked([]byte("\x28\xb5\x2f\xfd\x00\xa0\x01\x00\x00"))
	if err == nil || !strings.Contains(err.Error(), "window of more than 128 MiB") {
		t.Errorf("got %v", err)
	}
}

func TestOpenUnpacks(t *testing.T) {
	path := filepath.Join(t.TempDir(), "rows.csv") // the name says nothing
	if err := os.WriteFile(path, pack(t, "gzip", []byte("x")), 0o600); err != nil {
		t.Fatal(err)
	}
	r, err := Open(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	got, err := io.ReadAll(r)
	if string(got) != "x" || errors.Join(err, r.Close()) != nil {
		t.Errorf("got %q, %v", got, err)
	}
}

func FuzzUnpack(f *testing.F) {
	for _, packing := range []string{"", "gzip", "bzip2", "zstd"} {
		f.Add(pack(f, packing, []byte("a,b\n1,2\n")))
	}
	f.Add([]byte("\x28\xb5\x2f\xfd\x00\xa0\x01\x00\x00"))
	f.Add([]byte("\x1f\x8b\x08\x1f\x00\x00\x00\x00\x00\x00"))
	f.Fuzz(func(t *testing.T, packed []byte) {
		r, err := unpack("f", bytesFile{bytes.NewReader(packed)})
		if err != nil {
			return
		}
		// What is packed may be as large as it likes; look at the start of it.
		if _, err := io.Copy(io.Discard, io.LimitReader(r, 1<<20)); err != nil && !strings.HasPrefix(err.Error(), "f: ") {
			t.Errorf("an error without its file: %v", err)
		}
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	})
}
