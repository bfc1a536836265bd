package sock

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/gangline/gangline/transport"
)

const benchVariable = "GANGLINE_SOCK_BENCH"

// TestBenchChild is rank 1 of a benchmark, in a process of its own.
func TestBenchChild(t *testing.T) {
	args := strings.Fields(os.Getenv(benchVariable))
	if len(args) == 0 {
		t.Skip("runs as the child of a benchmark only")
	}
	network, addr := args[0], args[1]
	size, err := strconv.Atoi(args[2])
	if err != nil {
		t.Fatal(err)
	}
	if size == plain {
		if err := plainEcho(network, addr); err != nil {
			t.Error(err)
		}
		return
	}
	l, err := Listen(testConfig(network, 1, 2))
	if err != nil {
		t.Fatal(err)
	}
	e, err := l.Connect(t.Context(), []string{addr, ""}, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	_ = answer(t.Context(), e, size) // until rank 0 closes
}

// answer sends size bytes, or one for a long message, for each that it takes.
func answer(ctx context.Context, e transport.Endpoint, size int) error {
	r := [2]*transport.Receive{{Buf: make([]byte, size)}, {Buf: make([]byte, size)}}
	body := make([]byte, replySize(size))
	if err := e.Post(r[0]); err != nil {
		return err
	}
	for i := 0; ; i++ {
		if err := e.Post(r[(i+1)%2]); err != nil {
			return err
		}
		if err := r[i%2].Wait(ctx); err != nil {
			return err
		}
		if err := e.Send(ctx, 0, 0, nil, body); err != nil {
			return err
		}
	}
}

func replySize(size int) int {
	if size > 1<<20 {
		return 1
	}
	return size
}

// A message to another process and one back: 64 bytes and 4 KiB return the
// same, 16 MiB return one byte.
func BenchmarkProcesses(b *testing.B) {
	for _, network := range []string{"tcp", "unix"} {
		for _, size := range []int{64, 4096, 16 << 20} {
			b.Run(fmt.Sprintf("%s/%d", network, size), func(b *testing.B) { benchProcess(b, network, size) })
		}
	}
}

func benchProcess(b *testing.B, network string, size int) {
	l, err := Listen(testConfig(network, 0, 2))
	if err != nil {
		b.Fatal(err)
	}
	child := startChild(b, network, l.Addr(), size)
	e, err := l.Connect(b.Context(), []string{"", ""}, nil)
	if err != nil {
		b.Fatal(err)
	}
	ctx, body := b.Context(), make([]byte, size)
	r := &transport.Receive{Peer: 1, Buf: make([]byte, size)}
	b.SetBytes(int64(size))
	b.ReportAllocs()
	before := cpuTime(b)
	for b.Loop() {
		if err := e.Post(r); err != nil {
			b.Fatal(err)
		}
		if err := e.Send(ctx, 1, 0, nil, body); err != nil {
			b.Fatal(err)
		}
		if err := r.Wait(ctx); err != nil {
			b.Fatal(err)
		}
	}
	// What others run on the machine moves the time, this less so.
	b.ReportMetric(float64(cpuTime(b)-before)/1e3/float64(b.N), "cpu-us/op")
	if err := e.Close(); err != nil {
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

// For comparison: 4 KiB to another process and back over net.Conn alone, no
// frames, no credits, one goroutine each.
func BenchmarkPlainConn(b *testing.B) {
	for _, network := range []string{"tcp", "unix"} {
		b.Run(network, func(b *testing.B) {
			address := "127.0.0.1:0"
			if network == "unix" {
				address = b.TempDir() + "/s"
			}
			ln, err := net.Listen(network, address)
			if err != nil {
				b.Fatal(err)
			}
			defer ln.Close()
			child := startChild(b, network, ln.Addr().String(), plain)
			c, err := ln.Accept()
			if err != nil {
				b.Fatal(err)
			}
			buf := make([]byte, plainSize)
			before := cpuTime(b)
			for b.Loop() {
				if _, err := c.Write(buf); err != nil {
					b.Fatal(err)
				}
				if err := readFull(c, buf); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(cpuTime(b)-before)/1e3/float64(b.N), "cpu-us/op")
			c.Close()
			if err := child.Wait(); err != nil {
				b.Error(err)
			}
		})
	}
}

// plain as a size asks the child for plainEcho.
const (
	plain     = 0
	plainSize = 4096
)

// plainEcho sends back what it gets, until the other side hangs up.
func plainEcho(network, addr string) error {
	c, err := net.Dial(network, addr)
	if err != nil {
		return err
	}
	defer c.Close()
	buf := make([]byte, plainSize)
	for readFull(c, buf) == nil {
		if _, err := c.Write(buf); err != nil {
			return err
		}
	}
	return nil
}

func startChild(b *testing.B, network, addr string, size int) *exec.Cmd {
	child := exec.Command(os.Args[0], "-test.run=^TestBenchChild$")
	child.Env = append(os.Environ(), fmt.Sprintf("%s=%s %s %d", benchVariable, network, addr, size))
	if err := child.Start(); err != nil {
		b.Fatal(err)
	}
	return child
}

func readFull(c net.Conn, p []byte) error {
	for len(p) > 0 {
		n, err := c.Read(p)
		if err != nil {
			return err
		}
		p = p[n:]
	}
	return nil
}
