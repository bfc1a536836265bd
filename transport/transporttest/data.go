package transporttest

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"runtime"
	"testing"

	"github.com/gangline/gangline/transport"
)

// Messages of one tag arrive in the order they were sent, whatever their size.
func testOrder(t *testing.T, e []transport.Endpoint) {
	ctx := patient(t)
	const n = 500
	size := func(i int) int { return 4 + i*37%3000 }
	sender := start(func() error {
		for i := range n {
			m := message(i, size(i))
			if err := e[0].Send(ctx, 1, 7, m[:3], m[3:]); err != nil {
				return fmt.Errorf("message %d: %w", i, err)
			}
		}
		return nil
	})
	var window []*transport.Receive
	for i := range n + 8 {
		if i < n {
			window = append(window, post(t, e[1], 0, 7, make([]byte, 4096)))
		}
		if i >= 8 {
			r := window[i-8]
			if err := r.Wait(ctx); err != nil {
				t.Fatal(err)
			}
			if want := message(i-8, size(i-8)); !bytes.Equal(r.Buf[:r.N], want) {
				t.Fatalf("receive %d got message %d of %d bytes, want %d bytes", i-8, binary.LittleEndian.Uint32(r.Buf), r.N, len(want))
			}
		}
	}
	if err := sender.wait(t); err != nil {
		t.Fatal(err)
	}
}

// A tag that nobody takes delays no other, in either direction.
func testTags(t *testing.T, e []transport.Endpoint) {
	ctx := patient(t)
	big := message(1, 3<<20)
	stuck := startSend(ctx, e[0], 1, 1, big)
	stuckBack := startSend(ctx, e[1], 0, 1, big)
	roundTrips(t, e[0], e[1], 0, 1, 50)
	if stuck.ended() || stuckBack.ended() {
		t.Fatal("a send ended without a receive")
	}
	for rank, k := range []*task{stuck, stuckBack} {
		r := post(t, e[1-rank], rank, 1, make([]byte, len(big)))
		if err := r.Wait(ctx); err != nil {
			t.Fatal(err)
		}
		if err := k.wait(t); err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(r.Buf[:r.N], big) {
			t.Fatal("the late message differs")
		}
	}
}

// Send returns only after the receiver has posted, even if it is empty.
func testRendezvous(t *testing.T, e []transport.Endpoint) {
	ctx := patient(t)
	for _, size := range []int{0, 1, 1000} {
		m := message(size, size)
		k := startSend(ctx, e[0], 1, 3, m)
		roundTrips(t, e[0], e[1], 0, 1, 20)
		if k.ended() {
			t.Fatalf("send of %d bytes returned before the receive was posted", size)
		}
		r := post(t, e[1], 0, 3, make([]byte, 1000))
		if err := k.wait(t); err != nil {
			t.Fatal(err)
		}
		if err := r.Wait(ctx); err != nil || r.N != size || !bytes.Equal(r.Buf[:r.N], m) {
			t.Fatalf("got %d bytes, error %v, want %d bytes", r.N, err, size)
		}
	}
}

// Empty, odd and split messages arrive whole, into buffers that fit exactly or
// are larger, and nothing is written beyond a message.
func testSizes(t *testing.T, e []transport.Endpoint) {
	ctx := patient(t)
	sizes := []int{0, 1, 2, 3, 31, 32, 33, 1023, 4095, 4096, 4097, 16383, 16385, 32767, 32768, 32769, 65535, 65536, 65537, 262143, 1<<20 + 1}
	for i, size := range sizes {
		for _, cut := range []int{0, min(size, 5), size / 2, size} {
			for _, spare := range []int{0, 13} {
				m := message(i, size)
				buf := bytes.Repeat([]byte{0xa5}, size+spare)
				r := post(t, e[1], 0, uint32(i), buf)
				if err := e[0].Send(ctx, 1, uint32(i), m[:cut], m[cut:]); err != nil {
					t.Fatalf("size %d cut %d: %v", size, cut, err)
				}
				if err := r.Wait(ctx); err != nil {
					t.Fatalf("size %d cut %d: %v", size, cut, err)
				}
				if r.N != size || !bytes.Equal(r.Buf[:r.N], m) {
					t.Fatalf("size %d cut %d: got %d bytes, or they differ", size, cut, r.N)
				}
				if !bytes.Equal(buf[size:], bytes.Repeat([]byte{0xa5}, spare)) {
					t.Fatalf("size %d cut %d: wrote beyond the message", size, cut)
				}
			}
		}
	}
}

// 32 MiB cross both ways at the same time.
func testBig(t *testing.T, e []transport.Endpoint) {
	ctx := patient(t)
	const size = 32 << 20
	all(t, 2, func(rank int) error {
		m := message(rank, size)
		r := &transport.Receive{Peer: 1 - rank, Tag: 9, Buf: make([]byte, size)}
		if err := e[rank].Post(r); err != nil {
			return err
		}
		if err := e[rank].Send(ctx, 1-rank, 9, m[:11], m[11:]); err != nil {
			return err
		}
		if err := r.Wait(ctx); err != nil {
			return err
		}
		if r.N != size || !bytes.Equal(r.Buf, message(1-rank, size)) {
			return fmt.Errorf("got %d bytes, or they differ", r.N)
		}
		return nil
	})
}

// Grow is asked exactly when the buffer is too small, for exactly the message.
func testGrow(t *testing.T, e []transport.Endpoint) {
	ctx := patient(t)
	asked := 0
	r := &transport.Receive{Peer: 0, Tag: 4, Buf: make([]byte, 10)}
	r.Grow = func(n int) []byte {
		asked = n
		return make([]byte, n+3)
	}
	for _, tt := range []struct{ size, asked int }{{10, 0}, {11, 11}, {14, 0}, {100_000, 100_000}, {0, 0}, {5 << 20, 5 << 20}} {
		asked = 0
		if err := e[1].Post(r); err != nil {
			t.Fatal(err)
		}
		m := message(1, tt.size)
		if err := e[0].Send(ctx, 1, 4, nil, m); err != nil {
			t.Fatal(err)
		}
		if err := r.Wait(ctx); err != nil {
			t.Fatal(err)
		}
		if asked != tt.asked || r.N != tt.size || !bytes.Equal(r.Buf[:r.N], m) {
			t.Fatalf("message of %d: asked for %d, want %d; got %d bytes, or they differ", tt.size, asked, tt.asked, r.N)
		}
	}
}

// A Grow that gives too little fails its own receive and harms nothing else.
func testGrowTooLittle(t *testing.T, e []transport.Endpoint) {
	ctx := patient(t)
	for _, size := range []int{100, 3 << 20} {
		r := &transport.Receive{Peer: 0, Tag: 4, Grow: func(n int) []byte { return make([]byte, n/2) }}
		if err := e[1].Post(r); err != nil {
			t.Fatal(err)
		}
		next := post(t, e[1], 0, 4, make([]byte, 3))
		if err := e[0].Send(ctx, 1, 4, nil, make([]byte, size)); err != nil {
			t.Fatal(err)
		}
		wantPeerError(t, r.Wait(ctx), 1, 0, 4, transport.ErrLimit)
		if err := e[0].Send(ctx, 1, 4, []byte("abc"), nil); err != nil {
			t.Fatal(err)
		}
		if err := next.Wait(ctx); err != nil || string(next.Buf) != "abc" {
			t.Fatalf("the next message: %q, %v", next.Buf, err)
		}
	}
}

// A message that is too long fails on both sides and harms nothing else.
func testTooLong(t *testing.T, e []transport.Endpoint) {
	ctx := patient(t)
	for _, tt := range []struct{ room, size int }{{0, 1}, {100, 101}, {100, 8 << 20}} {
		r := post(t, e[1], 0, 4, make([]byte, tt.room))
		next := post(t, e[1], 0, 4, make([]byte, 3))
		wantPeerError(t, e[0].Send(ctx, 1, 4, nil, make([]byte, tt.size)), 0, 1, 4, transport.ErrLimit)
		wantPeerError(t, r.Wait(ctx), 1, 0, 4, transport.ErrLimit)
		if err := e[0].Send(ctx, 1, 4, []byte("abc"), nil); err != nil {
			t.Fatal(err)
		}
		if err := next.Wait(ctx); err != nil || string(next.Buf) != "abc" {
			t.Fatalf("the next message: %q, %v", next.Buf, err)
		}
	}
	if s := e[0].Stats(); s.MessagesSent != 3 || s.BytesSent != 9 {
		t.Errorf("refused messages were counted: %+v", s)
	}
}

// More receives than MaxPosted are refused, and the rest still works.
func testPostedLimit(t *testing.T, e []transport.Endpoint) {
	ctx := patient(t)
	posted := make([]*transport.Receive, transport.MaxPosted)
	for i := range posted {
		posted[i] = post(t, e[1], 0, 2, make([]byte, 4))
	}
	r := &transport.Receive{Peer: 0, Tag: 2, Buf: make([]byte, 4)}
	wantPeerError(t, e[1].Post(r), 1, 0, 2, transport.ErrLimit)
	for i, r := range posted {
		if err := e[0].Send(ctx, 1, 2, nil, message(i, 4)); err != nil {
			t.Fatal(err)
		}
		if err := r.Wait(ctx); err != nil || !bytes.Equal(r.Buf, message(i, 4)) {
			t.Fatalf("message %d: %v %v", i, r.Buf, err)
		}
	}
	if err := e[1].Post(r); err != nil {
		t.Errorf("post after all were taken: %v", err)
	}
}

// Many goroutines on many tags, both ways, each message checked.
func testManyTags(t *testing.T, e []transport.Endpoint) {
	ctx := patient(t)
	const tags, n = 40, 50
	all(t, 4*tags, func(i int) error {
		tag, rank := uint32(i/4), i%2
		size := func(k int) int { return 4 + (k*97+int(tag)*13)%5000 }
		if i%4 < 2 {
			for k := range n {
				if err := e[rank].Send(ctx, 1-rank, tag, nil, message(k, size(k))); err != nil {
					return err
				}
			}
			return nil
		}
		r := &transport.Receive{Peer: 1 - rank, Tag: tag, Buf: make([]byte, 6000)}
		for k := range n {
			if err := e[rank].Post(r); err != nil {
				return err
			}
			if k%8 == 0 {
				runtime.Gosched()
			}
			if err := r.Wait(ctx); err != nil {
				return err
			}
			if !bytes.Equal(r.Buf[:r.N], message(k, size(k))) {
				return fmt.Errorf("tag %d message %d: got message %d", tag, k, binary.LittleEndian.Uint32(r.Buf))
			}
		}
		return nil
	})
}

// Every rank sends to the next and takes from the one before, as a ring does.
func testRing(t *testing.T, e []transport.Endpoint) {
	ctx := patient(t)
	n := len(e)
	all(t, n, func(rank int) error {
		before, next := (rank+n-1)%n, (rank+1)%n
		r := &transport.Receive{Peer: before, Tag: 1, Buf: make([]byte, 9000)}
		for k := range 200 {
			if err := e[rank].Post(r); err != nil {
				return err
			}
			if err := e[rank].Send(ctx, next, 1, nil, message(k+rank, 9000)); err != nil {
				return err
			}
			if err := r.Wait(ctx); err != nil {
				return err
			}
			if !bytes.Equal(r.Buf, message(k+before, 9000)) {
				return fmt.Errorf("round %d: got message %d", k, binary.LittleEndian.Uint32(r.Buf))
			}
		}
		return nil
	})
}
