//go:build unix

package stream

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
	"unsafe"

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
	work := map[string]func(context.Context, transport.Streams, int) error{"echo": echo, "sink": sink, "speak": speak, "swap": swap}[args[2]]
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

// speak sends size bytes and then waits.
func speak(ctx context.Context, s transport.Streams, size int) error {
	buf := make([]byte, size)
	for i := range buf {
		buf[i] = byte(i)
	}
	if err := writeFull(ctx, s, 0, buf); err != nil {
		return err
	}
	return readFull(ctx, s, 0, buf)
}

// swap is rank 1's part of what sum does.
func swap(ctx context.Context, s transport.Streams, size int) error {
	for x := make([]float32, size/4); ; {
		if err := sum(ctx, s, 0, x); err != nil {
			return err
		}
	}
}

// sum adds the peer's numbers to x, as an all-reduce of two ranks does: each gives all
// that it has and adds what it gets, where it lies.
func sum(ctx context.Context, s transport.Streams, peer int, x []float32) error {
	st := s.To(peer)
	if err := writeFull(ctx, s, peer, unsafe.Slice((*byte)(unsafe.Pointer(&x[0])), 4*len(x))); err != nil {
		return err
	}
	for len(x) > 0 {
		p, err := st.Peek()
		if err != nil {
			return err
		}
		n := min(len(p)/4, len(x))
		if n == 0 {
			if err := s.Park(ctx, st, nil); err != nil {
				return err
			}
			continue
		}
		for i, v := range unsafe.Slice((*float32)(unsafe.Pointer(&p[0])), n) {
			x[i] += v
		}
		st.Release(4 * n)
		x = x[n:]
	}
	return nil
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

// Two processes add 4 KiB of each other's.
func BenchmarkSum(b *testing.B) {
	const size = 4096
	for _, path := range bodies() {
		b.Run(path.String(), func(b *testing.B) {
			s, child := withProcess(b, path, "swap", size)
			x := make([]float32, size/4)
			before := cpuTime(b)
			c := newStretches()
			for b.Loop() {
				c.step()
				if err := sum(b.Context(), s, 1, x); err != nil {
					b.Fatal(err)
				}
			}
			c.report(b, 1)
			finish(b, s, child, before)
		})
	}
}

// stretches times short stretches of a benchmark: the best of many is that of a quiet machine.
type stretches struct {
	all   []time.Duration
	begin time.Time
	i     int
}

const stretch = 20 // steps

func (c *stretches) step() {
	if c.i++; c.i%stretch != 0 || len(c.all) == cap(c.all) {
		return
	}
	now := time.Now()
	c.all, c.begin = append(c.all, now.Sub(c.begin)), now
}

func newStretches() *stretches {
	return &stretches{all: make([]time.Duration, 0, 1<<16), begin: time.Now()}
}

// report gives the best and the median time of a part of a step: 2 is half of it.
func (c *stretches) report(b *testing.B, part float64) {
	if len(c.all) == 0 {
		return
	}
	slices.Sort(c.all)
	b.ReportMetric(float64(c.all[0])/stretch/part, "best-ns")
	b.ReportMetric(float64(c.all[len(c.all)/2])/stretch/part, "median-ns")
}

// Bytes to another process and back: ns/op is for both ways, best and median for one.
func BenchmarkPingPong(b *testing.B) {
	for _, path := range bodies() {
		for _, size := range []int{64, 4096} {
			b.Run(fmt.Sprintf("%v/%d", path, size), func(b *testing.B) {
				s, child := withProcess(b, path, "echo", size)
				buf := make([]byte, size)
				before := cpuTime(b)
				b.ReportAllocs()
				c := newStretches()
				for b.Loop() {
					c.step()
					if err := writeFull(b.Context(), s, 1, buf); err != nil {
						b.Fatal(err)
					}
					if err := readFull(b.Context(), s, 1, buf); err != nil {
						b.Fatal(err)
					}
				}
				c.report(b, 2)
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
