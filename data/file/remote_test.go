package file

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"gocloud.dev/blob"
	"gocloud.dev/blob/driver"
	"gocloud.dev/gcerrors"
	"pgregory.net/rapid"
)

// fake is a bucket with one object "k" that fails as it is told.
type fake struct {
	driver.Bucket
	content  []byte
	modified time.Time
	requests []string
	// fault is called before each request with its number, from 0.
	fault func(ctx context.Context, request int) error
}

var (
	errWeather = errors.New("bad weather")
	errNo      = errors.New("not you")
)

func (f *fake) ErrorCode(err error) gcerrors.ErrorCode {
	switch {
	case errors.Is(err, ErrMissing):
		return gcerrors.NotFound
	case errors.Is(err, errNo):
		return gcerrors.PermissionDenied
	}
	return gcerrors.Unknown
}

func (f *fake) ErrorAs(error, any) bool { return false }

func (f *fake) Close() error { return nil }

func (f *fake) request(ctx context.Context, key, what string) error {
	n := len(f.requests)
	f.requests = append(f.requests, what)
	if key != "k" {
		return ErrMissing
	}
	if f.fault == nil {
		return nil
	}
	return f.fault(ctx, n)
}

func (f *fake) Attributes(ctx context.Context, key string) (*driver.Attributes, error) {
	return &driver.Attributes{Size: int64(len(f.content)), ModTime: f.modified, ETag: "e1"}, f.request(ctx, key, "stat")
}

func (f *fake) ListPaged(context.Context, *driver.ListOptions) (*driver.ListPage, error) {
	return &driver.ListPage{Objects: []*driver.ListObject{{Key: "k"}}}, nil
}

func (f *fake) NewRangeReader(ctx context.Context, key string, offset, length int64, _ *driver.ReaderOptions) (driver.Reader, error) {
	if err := f.request(ctx, key, fmt.Sprintf("%d+%d", offset, length)); err != nil {
		return nil, err
	}
	return &fakeReader{bytes.NewReader(f.content[offset : offset+length]), f}, nil
}

type fakeReader struct {
	io.Reader
	f *fake
}

func (*fakeReader) As(any) bool  { return false }
func (*fakeReader) Close() error { return nil }
func (r *fakeReader) Attributes() *driver.ReaderAttributes {
	return &driver.ReaderAttributes{ContentType: "x/y", ModTime: r.f.modified, Size: int64(len(r.f.content))}
}

// open returns the fake's object, read in blocks of 4 bytes.
func (f *fake) open(ctx context.Context) (Random, error) {
	f.modified = time.Unix(1000, 0)
	r := remote{bucket: blob.NewBucket(f), url: "mem://b", limits: usualLimits()}
	r.limits.block, r.limits.blocks = 4, 2
	return r.open(ctx, "k")
}

// Failures that pass are tried again, five times at most, with longer and longer
// pauses; those that do not pass are not; a request that hangs meets its
// deadline.
func TestRemoteRetries(t *testing.T) {
	hang := func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }
	tests := map[string]struct {
		fault    func(ctx context.Context, request int) error
		requests int
		seconds  float64
		err      string
	}{
		"passes": {fault: func(_ context.Context, n int) error {
			if n == 1 || n == 2 {
				return errWeather
			}
			return nil
		}, requests: 6, seconds: .2 + .4},
		"stays": {fault: func(_ context.Context, n int) error {
			if n >= 2 {
				return errWeather
			}
			return nil
		}, requests: 7, seconds: .2 + .4 + .8 + 1.6, err: "reading at byte 4 failed 5 times; the last: "},
		"denied": {fault: func(_ context.Context, n int) error {
			if n == 2 {
				return errNo
			}
			return nil
		}, requests: 3, err: "check the credentials"},
		"hangs once": {fault: func(ctx context.Context, n int) error {
			if n == 2 {
				return hang(ctx)
			}
			return nil
		}, requests: 5, seconds: 60.2},
		"hangs": {fault: func(ctx context.Context, _ int) error { return hang(ctx) }, requests: 5, seconds: 303, err: "no answer within 1m0s"},
	}
	for name, test := range tests {
		synctest.Test(t, func(t *testing.T) {
			f := &fake{content: []byte("0123456789"), fault: test.fault}
			start := time.Now()
			var got []byte
			r, err := f.open(t.Context())
			if err == nil {
				got, err = io.ReadAll(io.NewSectionReader(r, 0, r.Size()))
			}
			if d := time.Since(start).Seconds(); d < test.seconds-.001 || d > test.seconds+.001 || len(f.requests) != test.requests {
				t.Errorf("%s: %d requests in %gs, want %d in %gs: %q", name, len(f.requests), d, test.requests, test.seconds, f.requests)
			}
			switch {
			case test.err == "" && (err != nil || string(got) != "0123456789"):
				t.Errorf("%s: got %q, %v", name, got, err)
			case test.err != "" && (err == nil || !strings.Contains(err.Error(), test.err)):
				t.Errorf("%s: got %v, want %q", name, err, test.err)
			}
		})
	}
}

// The caller's context ends a pause at once.
func TestRemoteCancelled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		f := &fake{fault: func(context.Context, int) error { return errWeather }}
		start := time.Now()
		if _, err := f.open(ctx); !errors.Is(err, context.DeadlineExceeded) || time.Since(start) != time.Second {
			t.Errorf("got %v after %v", err, time.Since(start))
		}
	})
}

// An object that is replaced under its reader is an error, not a mixture.
func TestRemoteChanged(t *testing.T) {
	f := &fake{content: []byte("0123456789")}
	r, err := f.open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	p := make([]byte, 4)
	if _, err := r.ReadAt(p, 0); err != nil {
		t.Fatal(err)
	}
	f.modified = f.modified.Add(time.Minute)
	if _, err := r.ReadAt(p, 4); !errors.Is(err, errChanged) {
		t.Errorf("got %v", err)
	}
}

// ReadAt is that of bytes.Reader, and holds no more than its blocks.
func TestRemoteReadAt(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		content := rapid.SliceOfN(rapid.Byte(), 0, 40).Draw(rt, "content")
		f := &fake{content: content}
		r, err := f.open(t.Context())
		if err != nil {
			rt.Fatal(err)
		}
		want := bytes.NewReader(content)
		for range 10 {
			offset := rapid.Int64Range(0, 45).Draw(rt, "offset")
			p := make([]byte, rapid.IntRange(1, 20).Draw(rt, "n"))
			q := bytes.Clone(p)
			n, err := r.ReadAt(p, offset)
			m, wantErr := want.ReadAt(q, offset)
			if n != m || !errors.Is(err, wantErr) || !bytes.Equal(p, q) {
				rt.Fatalf("%d bytes at %d: got %d, %v; want %d, %v", len(p), offset, n, err, m, wantErr)
			}
			if o, ok := r.(*object); !ok || len(o.blocks) > 2 || len(o.order) != len(o.blocks) {
				rt.Fatalf("more than 2 blocks are kept: %+v", r)
			}
		}
	})
}

// A missing object is an error that names what is there.
func TestRemoteMissing(t *testing.T) {
	ctx := WithBucket(t.Context(), "mem://b", blob.NewBucket(&fake{}))
	_, err := Open(ctx, "mem://b/j?x=1")
	if err == nil || err.Error() != "mem://b/j?x=1: there is no such file; near to it is k" {
		t.Errorf("got %v", err)
	}
}
