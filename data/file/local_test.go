package file

import (
	"bytes"
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// noise makes a file of bytes that no packing makes smaller, and packs it.
func noise(t *testing.T, packing string) (path string) {
	t.Helper()
	content := make([]byte, 4*readBytes)
	rng := rand.NewChaCha8([32]byte{1})
	if _, err := rng.Read(content); err != nil {
		t.Fatal(err)
	}
	path = filepath.Join(t.TempDir(), "noise")
	if err := os.WriteFile(path, pack(t, packing, content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// The context of Open bounds the reading, and its cause is the error.
func TestContextEndsReading(t *testing.T) {
	for _, packing := range []string{"", "gzip", "zstd"} {
		ctx, cancel := context.WithCancelCause(t.Context())
		r, err := Open(ctx, noise(t, packing))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.CopyN(io.Discard, r, 100); err != nil {
			t.Fatal(err)
		}
		cause := errors.New("enough")
		cancel(cause)
		if _, err := io.Copy(io.Discard, r); !errors.Is(err, cause) || strings.Contains(err.Error(), "damaged") {
			t.Errorf("%q: got %v", packing, err)
		}
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	}
}

// A file that becomes shorter under its reader is an error: it is not taken for one
// that ends there.
func TestFileThatShrinks(t *testing.T) {
	for _, packing := range []string{"", "gzip", "zstd"} {
		path := noise(t, packing)
		r, err := Open(t.Context(), path)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.Truncate(path, 2*readBytes); err != nil {
			t.Fatal(err)
		}
		if _, err := io.Copy(io.Discard, r); !errors.Is(err, errChanged) {
			t.Errorf("%q: got %v", packing, err)
		}
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	}
	path := noise(t, "")
	f, err := OpenRandom(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.ReadAt(make([]byte, 10), f.Size()); !errors.Is(err, io.EOF) || errors.Is(err, errChanged) {
		t.Errorf("at the end of a file: got %v", err)
	}
	if n, err := f.ReadAt(bytes.Repeat([]byte{1}, 10), f.Size()-3); n != 3 || !errors.Is(err, io.EOF) {
		t.Errorf("over the end of a file: got %d, %v", n, err)
	}
	if err := f.Close(); err != nil {
		t.Error(err)
	}
}
