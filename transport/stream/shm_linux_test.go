package stream

import (
	"context"
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/gangline/gangline/transport"
)

// A pair of shared memory streams in this process, and the page between them.
func openPair(t *testing.T) (low, high *shm, groups []transport.Streams) {
	t.Helper()
	if !canShare() {
		t.Skip("no shared memory here")
	}
	groups = openAll(t, 2, func(rank int) Config {
		c := testConfig(rank, 2, Shm)
		c.Ring = MinRing
		return c
	})
	return groups[0].To(1).(*shm), groups[1].To(0).(*shm), groups
}

// A counter that cannot be is an error that stays, whatever the call, and not an access
// outside of the ring.
func TestCorruptCounters(t *testing.T) {
	for _, bad := range []uint64{1 << 63, ^uint64(0), MinRing + 101, 99, 0} {
		t.Run("head", func(t *testing.T) {
			low, high, groups := openPair(t)
			defer closeAll(t, groups)
			write(t, low, 100)
			if b, err := high.Peek(); err != nil || len(b) != 100 {
				t.Fatalf("%d bytes, %v", len(b), err)
			}
			high.Release(100) // so that what is written next may lie anywhere
			low.out.head.Store(bad)
			if err := groups[1].Park(t.Context(), high, nil); err != nil {
				t.Fatal(err)
			}
			_, err := high.Read(make([]byte, 10*MinRing))
			wantCorrupt(t, err)
			_, err = high.Peek()
			wantCorrupt(t, err)
			high.Release(1)
			_, err = high.Write([]byte{1})
			wantCorrupt(t, err)
		})
		t.Run("tail", func(t *testing.T) {
			low, high, groups := openPair(t)
			defer closeAll(t, groups)
			write(t, low, MinRing)
			if _, err := high.Read(make([]byte, 100)); err != nil {
				t.Fatal(err)
			}
			write(t, low, 100) // it knows now that 100 were read
			high.in.tail.Store(bad)
			if bad == 99 || bad == 0 { // behind what it knows
				_, err := low.Write([]byte{1})
				wantCorrupt(t, err)
				return
			}
			if room := low.Room(); len(room) != 0 {
				t.Errorf("room for %d bytes", len(room))
			}
			wantCorrupt(t, low.Commit(0))
			_, err := low.Write([]byte{1})
			wantCorrupt(t, err)
		})
	}
}

// What comes after a rank has looked, and before it says that it sleeps, rings no bell: a
// last look finds it.
func TestLastLook(t *testing.T) {
	low, high, groups := openPair(t)
	defer closeAll(t, groups)
	for _, s := range groups {
		s.(*Group).slice = time.Hour
	}
	ctx := patient(t)
	write(t, low, MinRing) // high has not said that it sleeps
	if !groups[1].(*Group).doze(ctx, high, nil) {
		t.Error("slept while there were bytes")
	}
	if n, err := high.Read(make([]byte, MinRing)); n != MinRing || err != nil {
		t.Fatalf("%d bytes, %v", n, err)
	}
	if !groups[0].(*Group).doze(ctx, nil, low) {
		t.Error("slept while there was room")
	}
	if ctx.Err() != nil {
		t.Error(context.Cause(ctx))
	}
}

// What has arrived once cannot be taken back.
func TestCorruptHeadGoesBack(t *testing.T) {
	low, high, groups := openPair(t)
	defer closeAll(t, groups)
	write(t, low, 100)
	if b, err := high.Peek(); err != nil || len(b) != 100 {
		t.Fatalf("%d bytes, %v", len(b), err)
	}
	low.out.head.Store(50)
	_, err := high.Peek()
	wantCorrupt(t, err)
}

func write(t *testing.T, s *shm, n int) {
	t.Helper()
	if k, err := s.Write(make([]byte, n)); err != nil || k != n {
		t.Fatalf("wrote %d of %d bytes: %v", k, n, err)
	}
}

func wantCorrupt(t *testing.T, err error) {
	t.Helper()
	if !errors.Is(err, transport.ErrCorrupt) {
		t.Errorf("got %v, want %v", err, transport.ErrCorrupt)
	}
}

// Whatever the peer writes into the shared page: calls return what lies inside of
// the ring, or an error.
func FuzzCounters(f *testing.F) {
	f.Add(uint64(0), uint64(0), 10)
	f.Add(uint64(100), ^uint64(0), 4096)
	f.Add(uint64(4096), uint64(4096), 0)
	f.Add(uint64(1)<<63, uint64(1)<<63, 5000)
	f.Fuzz(func(t *testing.T, head, tail uint64, n int) {
		const ring = 4096
		mem := make([]byte, mappedSize(ring))
		out, in := sendingEnd(mem, ring, 0), receivingEnd(mem, ring, 1)
		if n = n & 0xffff; n <= len(out.room()) {
			out.commit(n)
		}
		out.tail.Store(tail)
		in.head.Store(head)
		if err := out.refresh(); err == nil {
			if tail > out.at || out.at-tail > ring {
				t.Errorf("tail %d of %d written was taken", tail, out.at)
			}
		} else if !errors.Is(err, transport.ErrCorrupt) {
			t.Error(err)
		}
		if err := in.refresh(); err == nil && head > ring {
			t.Errorf("head %d of an empty ring was taken", head)
		}
		if len(out.room()) > ring || len(in.view()) > ring {
			t.Errorf("views of %d and %d bytes", len(out.room()), len(in.view()))
		}
	})
}

// A file that is not sealed, or not of the size that was said, is refused: it could
// be cut later, and an access beyond its end ends the process.
func TestAttachRefuses(t *testing.T) {
	unsealed, err := unix.MemfdCreate("test", unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
	if err != nil {
		t.Skip(err)
	}
	if err := unix.Ftruncate(unsealed, int64(mappedSize(MinRing))); err != nil {
		t.Fatal(err)
	}
	if _, err := attach(unsealed, MinRing); !errors.Is(err, transport.ErrCorrupt) {
		t.Errorf("unsealed: %v", err)
	}
	for _, ring := range []uint64{MinRing / 2, 2 * MinRing, 3 * MinRing, 0, 1 << 63, 2 * MaxRing} {
		fd, err := anonymous(mappedSize(MinRing))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := attach(fd, ring); !errors.Is(err, transport.ErrCorrupt) {
			t.Errorf("ring of %d bytes: %v", ring, err)
		}
	}
}

// Close leaves no descriptor and no mapping, whether the peer has closed or died.
func TestNothingIsLeft(t *testing.T) {
	for _, path := range []Path{Shm, Unix, TCP} {
		for _, abort := range []bool{false, true} {
			leave(t, path, abort) // what the runtime opens for itself is open now
			fds, maps := left(t)
			for range 3 {
				leave(t, path, abort)
			}
			if f, m := left(t); f != fds || m != maps {
				t.Errorf("%v, abort %v: %d descriptors and %d mappings became %d and %d", path, abort, fds, maps, f, m)
			}
		}
	}
}

func leave(t *testing.T, path Path, abort bool) {
	t.Helper()
	s := openAll(t, 3, func(rank int) Config { return testConfig(rank, 3, path) })
	if err := writeFull(t.Context(), s[0], 1, make([]byte, 1000)); err != nil {
		t.Fatal(err)
	}
	if abort {
		s[2].(*Group).Abort()
	}
	closeAll(t, s)
}

// left counts this process's descriptors and shared mappings.
func left(t *testing.T) (fds, maps int) {
	t.Helper()
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile("/proc/self/maps")
	if err != nil {
		t.Fatal(err)
	}
	return len(entries), strings.Count(string(text), "memfd:gangline")
}
