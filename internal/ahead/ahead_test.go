package ahead

import (
	"bytes"
	"errors"
	"io"
	"math/rand/v2"
	"testing"
	"testing/iotest"

	"go.uber.org/goleak"
	"pgregory.net/rapid"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// What comes out is what goes in, whatever the sizes.
func TestSame(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := rapid.SliceOfN(rapid.Byte(), 0, 300).Draw(t, "content")
		in := io.Reader(bytes.NewReader(want))
		if rapid.Bool().Draw(t, "slow") {
			in = iotest.OneByteReader(in)
		}
		if rapid.Bool().Draw(t, "early end") {
			in = iotest.DataErrReader(in)
		}
		r := New(io.NopCloser(in), rapid.IntRange(1, 50).Draw(t, "bytes"), rapid.IntRange(1, 3).Draw(t, "pieces"))
		got, err := io.ReadAll(iotest.OneByteReader(r))
		if err != nil || !bytes.Equal(got, want) {
			t.Fatalf("%d bytes became %d, %v", len(want), len(got), err)
		}
		if n, err := r.Read(make([]byte, 1)); n != 0 || !errors.Is(err, io.EOF) {
			t.Fatalf("after the end: %d, %v", n, err)
		}
		if err := r.Close(); err != nil {
			t.Fatal(err)
		}
	})
}

// An error comes after the bytes before it, and stays.
func TestError(t *testing.T) {
	for _, broken := range []error{errors.New("broken"), io.ErrUnexpectedEOF} {
		in := io.MultiReader(bytes.NewReader(make([]byte, 100)), iotest.ErrReader(broken))
		r := New(io.NopCloser(in), 64, 2)
		got, err := io.ReadAll(r)
		if len(got) != 100 || !errors.Is(err, broken) {
			t.Errorf("%d bytes, %v", len(got), err)
		}
		if _, err := r.Read(make([]byte, 1)); !errors.Is(err, broken) {
			t.Errorf("then %v", err)
		}
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	}
}

// closer notes that it was closed, and that nobody read after that.
type closer struct {
	io.Reader
	t      *testing.T
	closed bool
}

func (c *closer) Read(p []byte) (int, error) {
	if c.closed {
		c.t.Error("read after Close")
	}
	return c.Reader.Read(p)
}

func (c *closer) Close() error {
	c.closed = true
	return errors.New("said on closing")
}

// Close in the middle of an endless stream ends the goroutine first.
func TestCloseEarly(t *testing.T) {
	for range 20 {
		in := &closer{Reader: iotest.DataErrReader(endless{}), t: t}
		r := New(in, 128, 2)
		if _, err := io.CopyN(io.Discard, r, rand.Int64N(1000)); err != nil {
			t.Fatal(err)
		}
		if err := r.Close(); err == nil || !in.closed {
			t.Error("the stream was not closed, or its error lost")
		}
	}
}

type endless struct{}

func (endless) Read(p []byte) (int, error) { return len(p), nil }
