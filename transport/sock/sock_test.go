package sock

import (
	"context"
	"fmt"
	"net"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/gangline/gangline/transport"
	"github.com/gangline/gangline/transport/transporttest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const testToken = "a token of the tests"

func testConfig(network string, rank, world int) Config {
	c := Config{Network: network, Rank: rank, World: world, Generation: 3, Token: testToken}
	if network == "tcp" {
		c.Address = "127.0.0.1:0"
	}
	return c
}

// connectAll connects world ranks, each with the peers it names.
func connectAll(tb testing.TB, world int, config func(rank int) Config, peers func(rank int) []int) []transport.Endpoint {
	tb.Helper()
	listeners, addrs := make([]*Listener, world), make([]string, world)
	for rank := range world {
		l, err := Listen(config(rank))
		if err != nil {
			tb.Fatal(err)
		}
		listeners[rank], addrs[rank] = l, l.Addr()
	}
	e, errs := make([]transport.Endpoint, world), make([]error, world)
	var wg sync.WaitGroup
	for rank, l := range listeners {
		wg.Go(func() { e[rank], errs[rank] = l.Connect(context.Background(), addrs, peers(rank)) })
	}
	wg.Wait()
	for _, err := range errs {
		if err != nil {
			tb.Fatal(err)
		}
	}
	return e
}

func everyone(int) []int { return nil }

func TestSuite(t *testing.T) {
	for _, tt := range []struct {
		name, network string
		checksum      bool
	}{{"tcp", "tcp", false}, {"unix", "unix", false}, {"checksum", "unix", true}} {
		t.Run(tt.name, func(t *testing.T) {
			transporttest.Run(t, func(t *testing.T, n int) []transport.Endpoint {
				return connectAll(t, n, func(rank int) Config {
					c := testConfig(tt.network, rank, n)
					c.Checksum = tt.checksum
					return c
				}, everyone)
			})
		})
	}
}

// The portable stream passes too, though no platform of the tests needs it.
func TestSuitePortable(t *testing.T) {
	transporttest.Run(t, func(t *testing.T, n int) []transport.Endpoint {
		e := make([]transport.Endpoint, n)
		for rank, conns := range meshed(t, "tcp", n) {
			e[rank] = newEndpointOver(testConfig("tcp", rank, n).withDefaults(), conns, func(c net.Conn) stream { return newNetStream(c) })
		}
		return e
	})
}

// meshed returns plain connections, by rank and peer.
func meshed(tb testing.TB, network string, n int) [][]net.Conn {
	tb.Helper()
	conns := make([][]net.Conn, n)
	for i := range conns {
		conns[i] = make([]net.Conn, n)
	}
	address := "127.0.0.1:0"
	if network == "unix" {
		address = tb.TempDir() + "/s"
	}
	ln, err := net.Listen(network, address)
	if err != nil {
		tb.Fatal(err)
	}
	defer ln.Close()
	for i := range n {
		for j := range i {
			a, err := net.Dial(network, ln.Addr().String())
			if err != nil {
				tb.Fatal(err)
			}
			b, err := ln.Accept()
			if err != nil {
				tb.Fatal(err)
			}
			conns[i][j], conns[j][i] = a, b
		}
	}
	return conns
}

func benchStreams(b *testing.B, run func(b *testing.B, e []transport.Endpoint)) {
	for _, network := range []string{"tcp", "unix"} {
		for _, v := range []struct {
			name string
			over func(net.Conn) stream
		}{{"raw", newStream}, {"net", func(c net.Conn) stream { return newNetStream(c) }}} {
			b.Run(network+"/"+v.name, func(b *testing.B) {
				e := make([]transport.Endpoint, 2)
				for rank, conns := range meshed(b, network, 2) {
					e[rank] = newEndpointOver(testConfig(network, rank, 2).withDefaults(), conns, v.over)
				}
				b.ReportAllocs()
				b.ResetTimer()
				run(b, e)
				b.StopTimer()
				for _, x := range e {
					if err := x.Close(); err != nil {
						b.Error(err)
					}
				}
			})
		}
	}
}

// A message there and one back, posted before each is sent.
func BenchmarkPingPong(b *testing.B) {
	for _, size := range []int{64, 4096} {
		b.Run(fmt.Sprint(size), func(b *testing.B) {
			benchStreams(b, func(b *testing.B, e []transport.Endpoint) {
				ctx := context.Background()
				done := make(chan error, 1)
				body := make([]byte, size)
				n := b.N
				go func() {
					r := &transport.Receive{Peer: 0, Buf: make([]byte, size)}
					err := e[1].Post(r)
					for i := 0; i < n && err == nil; i++ {
						if err = r.Wait(ctx); err == nil && i < n-1 {
							err = e[1].Post(r)
						}
						if err == nil {
							err = e[1].Send(ctx, 0, 0, nil, body)
						}
					}
					done <- err
				}()
				r := &transport.Receive{Peer: 1, Buf: make([]byte, size)}
				for range n {
					if err := e[0].Post(r); err != nil {
						b.Fatal(err)
					}
					if err := e[0].Send(ctx, 1, 0, nil, body); err != nil {
						b.Fatal(err)
					}
					if err := r.Wait(ctx); err != nil {
						b.Fatal(err)
					}
				}
				if err := <-done; err != nil {
					b.Fatal(err)
				}
			})
		})
	}
}

// 16 MiB messages one after another, two receives posted.
func BenchmarkStream(b *testing.B) {
	const size = 16 << 20
	benchStreams(b, func(b *testing.B, e []transport.Endpoint) {
		ctx := context.Background()
		b.SetBytes(size)
		done := make(chan error, 1)
		n := b.N
		go func() {
			body := make([]byte, size)
			var err error
			for i := 0; i < n && err == nil; i++ {
				err = e[0].Send(ctx, 1, 0, nil, body)
			}
			done <- err
		}()
		rs := [2]*transport.Receive{{Buf: make([]byte, size)}, {Buf: make([]byte, size)}}
		for i := range n + 2 {
			r := rs[i%2]
			if i >= 2 {
				if err := r.Wait(ctx); err != nil {
					b.Fatal(err)
				}
			}
			if i < n {
				if err := e[1].Post(r); err != nil {
					b.Fatal(err)
				}
			}
		}
		if err := <-done; err != nil {
			b.Fatal(err)
		}
	})
}

// For comparison: 4 KiB there and back over net.Conn alone, no frames, no
// credits, two goroutines.
func BenchmarkPlainConn(b *testing.B) {
	for _, network := range []string{"tcp", "unix"} {
		b.Run(network, func(b *testing.B) {
			conns := meshed(b, network, 2)
			a, z := conns[0][1], conns[1][0]
			n := b.N
			var wg sync.WaitGroup
			echo := func(c net.Conn, first bool) {
				buf := make([]byte, 4096)
				for i := range n {
					if first || i > 0 {
						if _, err := c.Write(buf); err != nil {
							b.Error(err)
							return
						}
					}
					for got := 0; got < len(buf); {
						k, err := c.Read(buf[got:])
						if err != nil {
							return
						}
						got += k
					}
					if !first && i == n-1 {
						_, _ = c.Write(buf)
					}
				}
			}
			b.ResetTimer()
			wg.Go(func() { echo(z, false) })
			echo(a, true)
			wg.Wait()
			b.StopTimer()
			a.Close()
			z.Close()
		})
	}
}

// A message whose Send is cut by its ctx half way costs the connection, and
// says so on both sides.
func TestCancelHalfway(t *testing.T) {
	conns := meshed(t, "unix", 2)
	e := newEndpoint(testConfig("unix", 0, 2).withDefaults(), conns[0])
	defer e.Close()
	// The other side gives a credit and then takes nothing.
	p := newPeer(&Endpoint{cfg: testConfig("unix", 1, 2)}, 0, newStream(conns[1][0]))
	r := &transport.Receive{Peer: 0, Buf: make([]byte, 64<<20)}
	p.e.cfg.MaxMessage = transport.MaxMessage
	if err := p.post(r); err != nil {
		t.Fatal(err)
	}
	p.flush()
	ctx, cancel := context.WithTimeout(context.Background(), 100*time.Millisecond)
	defer cancel()
	err := e.Send(ctx, 1, 0, nil, make([]byte, 64<<20))
	wantIs(t, err, context.DeadlineExceeded)
	wantIs(t, e.Send(context.Background(), 1, 0, nil, nil), transport.ErrPeerLost)
	wantIs(t, e.Post(&transport.Receive{Peer: 1}), transport.ErrPeerLost)
	p.readLoop() // finds the half message and then the end
	wantIs(t, r.Wait(context.Background()), transport.ErrPeerLost)
}
