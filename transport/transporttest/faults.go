package transporttest

import (
	"bytes"
	"context"
	"errors"
	"runtime"
	"testing"
	"time"

	"github.com/gangline/gangline/transport"
)

// A Wait whose ctx ends says who did not send, and why the ctx ended.
func testCancelWait(t *testing.T, e []transport.Endpoint) {
	ctx, cancel := context.WithCancelCause(context.Background())
	why := errors.New("step 12 took too long")
	r := post(t, e[1], 0, 5, make([]byte, 4))
	k := start(func() error { return r.Wait(ctx) })
	roundTrips(t, e[0], e[1], 0, 1, 2)
	cancel(why)
	wantPeerError(t, k.wait(t), 1, 0, 5, why)
}

// A Send whose ctx ends says who did not take, leaves no trace, and the next
// one is delivered.
func testCancelSend(t *testing.T, e []transport.Endpoint) {
	why := errors.New("step 12 took too long")
	for range 10 {
		ctx, cancel := context.WithCancelCause(context.Background())
		k := startSend(ctx, e[0], 1, 5, []byte("old"))
		roundTrips(t, e[0], e[1], 0, 1, 2)
		cancel(why)
		wantPeerError(t, k.wait(t), 0, 1, 5, why)
	}
	ctx := patient(t)
	r := post(t, e[1], 0, 5, make([]byte, 4))
	if err := e[0].Send(ctx, 1, 5, nil, []byte("new")); err != nil {
		t.Fatal(err)
	}
	if err := r.Wait(ctx); err != nil || string(r.Buf[:r.N]) != "new" {
		t.Fatalf("got %q, %v", r.Buf[:r.N], err)
	}
}

// A ctx that ends while the receive is being posted either stops the message or
// does not: what Send says is what happened, and no receive is lost.
func testCancelRace(t *testing.T, e []transport.Endpoint) {
	ctx := patient(t)
	why := errors.New("why")
	for i := range 200 {
		ended, cancel := context.WithCancelCause(context.Background())
		k := startSend(ended, e[0], 1, 5, []byte("first"))
		if i%2 == 0 {
			roundTrips(t, e[0], e[1], 0, 1, 1)
		}
		cancel(why)
		r := post(t, e[1], 0, 5, make([]byte, 8))
		want := "first"
		if err := k.wait(t); err != nil {
			wantPeerError(t, err, 0, 1, 5, why)
			want = "second"
			if err := e[0].Send(ctx, 1, 5, nil, []byte(want)); err != nil {
				t.Fatal(err)
			}
		}
		if err := r.Wait(ctx); err != nil || string(r.Buf[:r.N]) != want {
			t.Fatalf("round %d: got %q, %v, want %q", i, r.Buf[:r.N], err, want)
		}
	}
}

// There is no peer beyond the ranks, and none is its own.
func testNoPeer(t *testing.T, e []transport.Endpoint) {
	ctx := patient(t)
	for _, peer := range []int{-1, 0, 2, 1 << 30} {
		wantPeerError(t, e[0].Send(ctx, peer, 1, nil, nil), 0, peer, 1, transport.ErrNoPeer)
		wantPeerError(t, e[0].Post(&transport.Receive{Peer: peer, Tag: 1}), 0, peer, 1, transport.ErrNoPeer)
	}
}

// waits starts a Send and a posted receive of rank with every other rank.
func waits(t *testing.T, e []transport.Endpoint, rank int) (sends, receives []*task, peers []int) {
	ctx := patient(t)
	for peer := range e {
		if peer == rank {
			continue
		}
		r := post(t, e[rank], peer, 70, make([]byte, 4))
		sends = append(sends, startSend(ctx, e[rank], peer, 71, []byte("body")))
		receives = append(receives, start(func() error { return r.Wait(ctx) }))
		peers = append(peers, peer)
		roundTrips(t, e[rank], e[peer], rank, peer, 3)
	}
	return sends, receives, peers
}

// Close ends every wait of this side with ErrClosed, and later operations too;
// a second Close is harmless.
func testClose(t *testing.T, e []transport.Endpoint) {
	sends, receives, peers := waits(t, e, 1)
	if err := e[1].Close(); err != nil {
		t.Fatal(err)
	}
	for i, peer := range peers {
		wantPeerError(t, sends[i].wait(t), 1, peer, 71, transport.ErrClosed)
		wantPeerError(t, receives[i].wait(t), 1, peer, 70, transport.ErrClosed)
		wantPeerError(t, e[1].Send(patient(t), peer, 1, nil, nil), 1, peer, 1, transport.ErrClosed)
		wantPeerError(t, e[1].Post(&transport.Receive{Peer: peer}), 1, peer, 0, transport.ErrClosed)
	}
	if err := e[1].Close(); err != nil {
		t.Fatal(err)
	}
	roundTrips(t, e[0], e[2], 0, 2, 5) // the others go on
}

// testGone checks that rank 1 is gone for ranks 0 and 2, with want, and that
// those two still reach each other.
func testGone(t *testing.T, e []transport.Endpoint, end func(), want error) {
	var sends, receives []*task
	for _, rank := range []int{0, 2} {
		r := post(t, e[rank], 1, 70, make([]byte, 4))
		sends = append(sends, startSend(patient(t), e[rank], 1, 71, []byte("body")))
		receives = append(receives, start(func() error { return r.Wait(patient(t)) }))
		roundTrips(t, e[rank], e[1], rank, 1, 3)
	}
	other := post(t, e[0], 2, 90, make([]byte, 4))
	end()
	for i, rank := range []int{0, 2} {
		wantPeerError(t, receives[i].wait(t), rank, 1, 70, want)
		wantPeerError(t, sends[i].wait(t), rank, 1, 71, want)
		wantPeerError(t, e[rank].Send(patient(t), 1, 1, nil, nil), rank, 1, 1, want)
		wantPeerError(t, e[rank].Post(&transport.Receive{Peer: 1}), rank, 1, 0, want)
	}
	roundTrips(t, e[0], e[2], 0, 2, 5)
	if err := e[2].Send(patient(t), 0, 90, nil, []byte("safe")); err != nil {
		t.Fatal(err)
	}
	if err := other.Wait(patient(t)); err != nil || string(other.Buf) != "safe" {
		t.Errorf("a receive from another rank: %q, %v", other.Buf, err)
	}
}

// A peer that closes is told from one that is lost.
func testPeerCloses(t *testing.T, e []transport.Endpoint) {
	testGone(t, e, func() {
		if err := e[1].Close(); err != nil {
			t.Error(err)
		}
	}, transport.ErrPeerClosed)
}

// A peer that dies is lost for all, at once and from then on.
func testPeerLost(t *testing.T, e []transport.Endpoint) {
	a, ok := e[1].(Aborter)
	if !ok {
		t.Skip("the endpoint cannot die on demand: no Abort")
	}
	testGone(t, e, a.Abort, transport.ErrPeerLost)
}

// What was sent before Close arrives, however much it is.
func testLastWords(t *testing.T, e []transport.Endpoint) {
	ctx := patient(t)
	const n, size = 64, 200_000
	var posted []*transport.Receive
	for range n {
		posted = append(posted, post(t, e[1], 0, 8, make([]byte, size)))
	}
	after := post(t, e[1], 0, 8, make([]byte, size))
	for i := range n {
		if err := e[0].Send(ctx, 1, 8, nil, message(i, size)); err != nil {
			t.Fatal(err)
		}
	}
	if err := e[0].Close(); err != nil {
		t.Fatal(err)
	}
	for i, r := range posted {
		if err := r.Wait(ctx); err != nil || !bytes.Equal(r.Buf[:r.N], message(i, size)) {
			t.Fatalf("message %d: %v, or it differs", i, err)
		}
	}
	wantPeerError(t, after.Wait(ctx), 1, 0, 8, transport.ErrPeerClosed)
}

// Counters are exact, and cover payload only.
func testStats(t *testing.T, e []transport.Endpoint) {
	ctx := patient(t)
	begin := time.Now()
	var bytesSent, messages int64
	for i, size := range []int{0, 1, 100, 70_000, 2 << 20} {
		r := post(t, e[1], 0, uint32(i), make([]byte, size))
		if err := e[0].Send(ctx, 1, uint32(i), nil, make([]byte, size)); err != nil {
			t.Fatal(err)
		}
		if err := r.Wait(ctx); err != nil {
			t.Fatal(err)
		}
		bytesSent += int64(size)
		messages++
	}
	s0, s1, s2 := e[0].Stats(), e[1].Stats(), e[2].Stats()
	if s0.BytesSent != bytesSent || s0.MessagesSent != messages || s0.BytesReceived != 0 || s0.MessagesReceived != 0 {
		t.Errorf("sender: %+v, want %d bytes in %d messages sent", s0, bytesSent, messages)
	}
	if s1.BytesReceived != bytesSent || s1.MessagesReceived != messages || s1.BytesSent != 0 || s1.MessagesSent != 0 {
		t.Errorf("receiver: %+v, want %d bytes in %d messages received", s1, bytesSent, messages)
	}
	if s2.BytesReceived+s2.BytesSent+s2.MessagesReceived+s2.MessagesSent != 0 {
		t.Errorf("a rank without traffic: %+v", s2)
	}
	if len(s1.LastHeard) != len(e) || s1.LastHeard[0].Before(begin) {
		t.Errorf("rank 1 heard %v, want rank 0 after %v", s1.LastHeard, begin)
	}
}

// A warm Receive and a warm pair allocate nothing.
func testReuse(t *testing.T, e []transport.Endpoint) {
	ctx := patient(t)
	const warm, rounds, size = 200, 2000, 300
	bodies := [2][]byte{message(0, size), message(1, size)}
	receives := [2]*transport.Receive{{Peer: 1, Tag: 6, Buf: make([]byte, size)}, {Peer: 0, Tag: 6, Buf: make([]byte, size)}}
	ready, begin := make(chan struct{}), make(chan struct{})
	play := func(rank, n int) error {
		for range n {
			if err := e[rank].Post(receives[rank]); err != nil {
				return err
			}
			if err := e[rank].Send(ctx, 1-rank, 6, nil, bodies[rank]); err != nil {
				return err
			}
			if err := receives[rank].Wait(ctx); err != nil {
				return err
			}
		}
		return nil
	}
	other := start(func() error {
		if err := play(1, warm); err != nil {
			return err
		}
		close(ready)
		<-begin
		return play(1, rounds)
	})
	if err := play(0, warm); err != nil {
		t.Fatal(err)
	}
	<-ready
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	close(begin)
	if err := play(0, rounds); err != nil {
		t.Fatal(err)
	}
	if err := other.wait(t); err != nil {
		t.Fatal(err)
	}
	runtime.ReadMemStats(&after)
	// The runtime itself allocates now and then; one in ten messages is ours.
	if n := after.Mallocs - before.Mallocs; n > 2*rounds/10 {
		t.Errorf("%d allocations in %d messages", n, 2*rounds)
	}
}
