//go:build unix

package stream

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/gangline/gangline/transport"
	"github.com/gangline/gangline/transport/sock"
)

const (
	childVariable = "GANGLINE_STREAM_CHILD"
	// pinVariable names the processor of the children, for measurements; pin the
	// parent with taskset.
	pinVariable = "GANGLINE_STREAM_PIN"
)

// withProcess opens streams with rank 1 in a process of its own, which does what.
func withProcess(tb testing.TB, path Path, what string, size int) (transport.Streams, *exec.Cmd) {
	tb.Helper()
	l, err := sock.Listen(processConfig(0))
	if err != nil {
		tb.Fatal(err)
	}
	child := exec.Command(os.Args[0], "-test.run=^TestChild$", "-test.timeout=10m")
	if cpu := os.Getenv(pinVariable); cpu != "" {
		child = exec.Command("taskset", append([]string{"-c", cpu}, child.Args...)...)
	}
	child.Env = append(os.Environ(), fmt.Sprintf("%s=%s %d %s %d", childVariable, l.Addr(), path, what, size))
	child.Stdout, child.Stderr = os.Stderr, os.Stderr
	if err := child.Start(); err != nil {
		tb.Fatal(err)
	}
	e, err := l.Connect(tb.Context(), []string{"", ""}, nil)
	if err != nil {
		tb.Fatal(err)
	}
	defer e.Close()
	c := testConfig(0, 2, path)
	c.Endpoint = e
	s, err := Open(tb.Context(), c)
	if err != nil {
		tb.Fatal(err)
	}
	return s, child
}

func processConfig(rank int) sock.Config {
	return sock.Config{Network: "unix", Rank: rank, World: 2, Generation: 3, Token: testToken}
}

// TestChild is rank 1 of a test or benchmark.
func TestChild(t *testing.T) {
	args := strings.Fields(os.Getenv(childVariable))
	if len(args) == 0 {
		t.Skip("runs as the child of another test only")
	}
	path, err1 := strconv.Atoi(args[1])
	size, err2 := strconv.Atoi(args[3])
	l, err3 := sock.Listen(processConfig(1))
	if err := errors.Join(err1, err2, err3); err != nil {
		t.Fatal(err)
	}
	e, err := l.Connect(t.Context(), []string{args[0], ""}, nil)
	if err != nil {
		t.Fatal(err)
	}
	c := testConfig(1, 2, Path(path))
	c.Endpoint = e
	s, err := Open(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	_ = e.Close()
	work := map[string]func(context.Context, transport.Streams, int) error{"echo": echo, "sink": sink}[args[2]]
	if err := work(t.Context(), s, size); !errors.Is(err, transport.ErrPeerClosed) {
		t.Error(err)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

// echo sends back what it gets.
func echo(ctx context.Context, s transport.Streams, size int) error {
	for buf := make([]byte, size); ; {
		if err := readFull(ctx, s, 0, buf); err != nil {
			return err
		}
		if err := writeFull(ctx, s, 0, buf); err != nil {
			return err
		}
	}
}

// sink reads size bytes and answers with one.
func sink(ctx context.Context, s transport.Streams, size int) error {
	for buf := make([]byte, 256<<10); ; {
		for left := size; left > 0; {
			n := min(left, len(buf))
			if err := readFull(ctx, s, 0, buf[:n]); err != nil {
				return err
			}
			left -= n
		}
		if err := writeFull(ctx, s, 0, buf[:1]); err != nil {
			return err
		}
	}
}

func writeFull(ctx context.Context, s transport.Streams, peer int, p []byte) error {
	for to := s.To(peer); ; {
		n, err := to.Write(p)
		if p = p[n:]; len(p) == 0 || err != nil {
			return err
		}
		if err := s.Park(ctx, nil, to); err != nil {
			return err
		}
	}
}

func readFull(ctx context.Context, s transport.Streams, peer int, p []byte) error {
	for from := s.To(peer); ; {
		n, err := from.Read(p)
		if p = p[n:]; len(p) == 0 || err != nil {
			return err
		}
		if err := s.Park(ctx, from, nil); err != nil {
			return err
		}
	}
}

// Bytes to another process and back (ns/op is for both ways).
func BenchmarkPingPong(b *testing.B) {
	for _, path := range bodies() {
		for _, size := range []int{64, 4096} {
			b.Run(fmt.Sprintf("%v/%d", path, size), func(b *testing.B) {
				s, child := withProcess(b, path, "echo", size)
				buf := make([]byte, size)
				before := cpuTime(b)
				b.ReportAllocs()
				// The best of many short stretches is that of a quiet machine.
				const stretch = 50
				best, begin, i := time.Hour, time.Now(), 0
				for b.Loop() {
					if i++; i%stretch == 0 {
						now := time.Now()
						best, begin = min(best, now.Sub(begin)), now
					}
					if err := writeFull(b.Context(), s, 1, buf); err != nil {
						b.Fatal(err)
					}
					if err := readFull(b.Context(), s, 1, buf); err != nil {
						b.Fatal(err)
					}
				}
				b.ReportMetric(float64(best.Nanoseconds())/stretch/2, "best-ns/way")
				finish(b, s, child, before)
			})
		}
	}
}

// 64 MiB to another process, which answers with a byte.
func BenchmarkOneWay(b *testing.B) {
	const size = 64 << 20
	for _, path := range bodies() {
		b.Run(path.String(), func(b *testing.B) {
			s, child := withProcess(b, path, "sink", size)
			buf := make([]byte, size)
			b.SetBytes(size)
			before := cpuTime(b)
			best := time.Hour
			for b.Loop() {
				begin := time.Now()
				if err := writeFull(b.Context(), s, 1, buf); err != nil {
					b.Fatal(err)
				}
				if err := readFull(b.Context(), s, 1, buf[:1]); err != nil {
					b.Fatal(err)
				}
				best = min(best, time.Since(begin))
			}
			b.ReportMetric(size/best.Seconds()/1e9, "best-GB/s")
			finish(b, s, child, before)
		})
	}
	b.Run("memmove", func(b *testing.B) { // for comparison: one copy of what the caches do not hold
		from, to := make([]byte, size), make([]byte, size)
		b.SetBytes(size)
		for b.Loop() {
			copy(to, from)
		}
	})
}

func finish(b *testing.B, s transport.Streams, child *exec.Cmd, before int64) {
	// What others run on the machine moves the time, this less so.
	b.ReportMetric(float64(cpuTime(b)-before)/1e3/float64(b.N), "cpu-us/op")
	if err := s.Close(); err != nil {
		b.Error(err)
	}
	if err := child.Wait(); err != nil {
		b.Error(err)
	}
}

// cpuTime returns what this process has used so far, in ns.
func cpuTime(b *testing.B) int64 {
	var u unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return u.Utime.Nano() + u.Stime.Nano()
}
