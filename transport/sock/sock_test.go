package sock

import (
	"context"
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

// A message whose Send is cut by its ctx half way costs the connection, and
// says so on both sides.
func TestCancelHalfway(t *testing.T) {
	conns := meshed(t, "unix", 2)
	e := newEndpoint(testConfig("unix", 0, 2).withDefaults(), conns[0])
	defer e.Close()
	// The other side gives a credit and then takes nothing.
	p := newPeer(&Endpoint{cfg: testConfig("unix", 1, 2)}, 0, conns[1][0])
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
