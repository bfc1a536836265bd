// Package transporttest is the suite that every body of transport.Endpoint
// passes. A body's test calls [Run] with a function that connects n ranks.
//
// The suite waits for events only, never for time to pass, so it may run inside
// or outside of a testing/synctest bubble, and under the race detector.
package transporttest

import (
	"context"
	"encoding/binary"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/gangline/gangline/transport"
)

// patience is how long a test waits for what must come: only a failing test
// ever takes as long.
const patience = 60 * time.Second

// Aborter is what an endpoint may implement so that the suite can let it die
// without a bye, as a crash would.
type Aborter interface{ Abort() }

// Open connects n ranks with one another; the suite closes the endpoints.
type Open func(t *testing.T, n int) []transport.Endpoint

// Run runs the whole suite as subtests of t, without those named in skip, which
// are what the body does not promise.
func Run(t *testing.T, open Open, skip ...string) {
	for _, tt := range []struct {
		name string
		n    int
		run  func(t *testing.T, e []transport.Endpoint)
	}{
		{"Order", 2, testOrder},
		{"TagsAreIndependent", 2, testTags},
		{"Rendezvous", 2, testRendezvous},
		{"Sizes", 2, testSizes},
		{"Big", 2, testBig},
		{"Grow", 2, testGrow},
		{"GrowTooLittle", 2, testGrowTooLittle},
		{"TooLong", 2, testTooLong},
		{"PostedLimit", 2, testPostedLimit},
		{"ManyTags", 2, testManyTags},
		{"Ring", 4, testRing},
		{"CancelWait", 2, testCancelWait},
		{"CancelSend", 2, testCancelSend},
		{"CancelRace", 2, testCancelRace},
		{"NoPeer", 2, testNoPeer},
		{"CloseEndsWaits", 3, testClose},
		{"PeerCloses", 3, testPeerCloses},
		{"LastWords", 2, testLastWords},
		{"PeerLost", 3, testPeerLost},
		{"Stats", 3, testStats},
		{"Reuse", 2, testReuse},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if slices.Contains(skip, tt.name) {
				t.Skip("not promised")
			}
			e := open(t, tt.n)
			defer closeAll(t, e)
			tt.run(t, e)
		})
	}
}

func closeAll(t *testing.T, e []transport.Endpoint) {
	t.Helper()
	for rank, x := range e {
		if err := x.Close(); err != nil {
			t.Errorf("rank %d: close: %v", rank, err)
		}
	}
}

func patient(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeoutCause(context.Background(), patience, errors.New("the suite's patience ended"))
	t.Cleanup(cancel)
	return ctx
}

// message i: its index at both ends, and between them bytes that depend on index
// and place, with a period that divides no size of a buffer.
func message(i, size int) []byte {
	const period = 251
	b := make([]byte, size)
	n := min(period, size)
	for k := range n {
		b[k] = byte(i*31 + k*7)
	}
	for n < size && n > 0 {
		n += copy(b[n:], b[:n])
	}
	if size >= 8 {
		binary.LittleEndian.PutUint32(b[size-4:], uint32(i))
	}
	if size >= 4 {
		binary.LittleEndian.PutUint32(b, uint32(i))
	}
	return b
}

func post(t *testing.T, e transport.Endpoint, peer int, tag uint32, buf []byte) *transport.Receive {
	t.Helper()
	r := &transport.Receive{Peer: peer, Tag: tag, Buf: buf}
	if err := e.Post(r); err != nil {
		t.Fatalf("post: %v", err)
	}
	return r
}

// task is a function that runs beside the test.
type task struct {
	done chan struct{}
	err  error
}

func start(f func() error) *task {
	k := &task{done: make(chan struct{})}
	go func() {
		defer close(k.done)
		k.err = f()
	}()
	return k
}

func (k *task) ended() bool {
	select {
	case <-k.done:
		return true
	default:
		return false
	}
}

// wait returns the task's error.
func (k *task) wait(t *testing.T) error {
	t.Helper()
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case <-k.done:
		return k.err
	case <-timer.C:
		t.Fatal("the task did not end")
		return nil
	}
}

func startSend(ctx context.Context, e transport.Endpoint, peer int, tag uint32, body []byte) *task {
	return start(func() error { return e.Send(ctx, peer, tag, nil, body) })
}

// roundTrips lets messages cross both ways on a tag of their own, which gives
// everything before it ample occasion to happen. It does not stop on time.
func roundTrips(t *testing.T, a, b transport.Endpoint, rankA, rankB, n int) {
	t.Helper()
	const tag = 0xfffffff0
	ctx := patient(t)
	for range n {
		ra, rb := post(t, a, rankB, tag, make([]byte, 8)), post(t, b, rankA, tag, make([]byte, 8))
		if err := a.Send(ctx, rankB, tag, nil, []byte("ping")); err != nil {
			t.Fatal(err)
		}
		if err := rb.Wait(ctx); err != nil {
			t.Fatal(err)
		}
		if err := b.Send(ctx, rankA, tag, []byte("pong"), nil); err != nil {
			t.Fatal(err)
		}
		if err := ra.Wait(ctx); err != nil {
			t.Fatal(err)
		}
	}
}

// wantPeerError fails unless err is a PeerError of rank about peer and is one of
// the wanted.
func wantPeerError(t *testing.T, err error, rank, peer int, tag uint32, want ...error) {
	t.Helper()
	var p *transport.PeerError
	if !errors.As(err, &p) {
		t.Errorf("got %v, want a PeerError", err)
		return
	}
	if p.Rank != rank || p.Peer != peer || p.Tag != tag {
		t.Errorf("%v: is of rank %d about rank %d tag %d, want %d, %d, %d", err, p.Rank, p.Peer, p.Tag, rank, peer, tag)
	}
	for _, w := range want {
		if errors.Is(err, w) {
			return
		}
	}
	t.Errorf("got %v, want one of %v", err, want)
}

// all runs f for every index beside each other and fails on the first error.
func all(t *testing.T, n int, f func(i int) error) {
	t.Helper()
	errs := make([]error, n)
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() { errs[i] = f(i) })
	}
	wg.Wait()
	for i, err := range errs {
		if err != nil {
			t.Fatalf("%d: %v", i, err)
		}
	}
}
