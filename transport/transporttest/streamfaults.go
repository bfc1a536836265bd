package transporttest

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/gangline/gangline/transport"
)

const someBytes = 10_000 // fewer than fit, in any body

// wantStream fails unless err is a PeerError of rank about peer, and is want.
func wantStream(t *testing.T, err error, rank, peer int, want error) {
	t.Helper()
	p, ok := errors.AsType[*transport.PeerError](err)
	if !ok || p.Rank != rank || p.Peer != peer || !errors.Is(err, want) {
		t.Errorf("got %v, want a PeerError of rank %d about rank %d: %v", err, rank, peer, want)
	}
}

// untilError reads from peer until an error, and returns how many bytes came.
func untilError(ctx context.Context, s transport.Streams, peer int) (int, error) {
	buf, sum := make([]byte, 30_000), 0
	from := s.To(peer)
	for {
		n, err := from.Read(buf)
		sum += n
		if err != nil {
			return sum, err
		}
		if n > 0 {
			continue
		}
		if err := s.Park(ctx, from, nil); err != nil {
			return sum, err
		}
	}
}

// writeUntilError writes to rank 1 until an error.
func writeUntilError(ctx context.Context, s transport.Streams) error {
	for buf := make([]byte, 10_000); ; {
		if err := writeAll(ctx, s, 1, buf); err != nil {
			return err
		}
	}
}

// All that a peer wrote before it closed can be read, and then the error says that it
// closed; so it does to who writes.
func testStreamPeerCloses(t *testing.T, s []transport.Streams) {
	ctx := patient(t)
	last := make([]byte, someBytes)
	if err := writeAll(ctx, s[1], 0, last); err != nil {
		t.Fatal(err)
	}
	closing := start(func() error { return s[1].Close() })
	if n, err := untilError(ctx, s[0], 1); n != someBytes {
		t.Errorf("read %d bytes, want %d; then %v", n, someBytes, err)
	} else {
		wantStream(t, err, 0, 1, transport.ErrPeerClosed)
	}
	_, err := s[0].To(1).Peek()
	wantStream(t, err, 0, 1, transport.ErrPeerClosed)
	wantStream(t, writeUntilError(ctx, s[0]), 0, 1, transport.ErrPeerClosed)
	wantStream(t, writeUntilError(ctx, s[2]), 2, 1, transport.ErrPeerClosed)
	if err := closing.wait(t); err != nil {
		t.Error(err)
	}
}

// All that fitted can be read, even if the peer closed while its stream was full and
// bytes for it had not been read.
func testStreamLastWords(t *testing.T, s []transport.Streams) {
	ctx := patient(t)
	if err := writeAll(ctx, s[1], 0, make([]byte, someBytes)); err != nil {
		t.Fatal(err)
	}
	sent := fill(t, s[0], 1)
	if err := s[0].Close(); err != nil {
		t.Fatal(err)
	}
	n, err := untilError(ctx, s[1], 0)
	if int64(n) != sent {
		t.Errorf("read %d bytes, want %d; then %v", n, sent, err)
	}
	wantStream(t, err, 1, 0, transport.ErrPeerClosed)
}

// abort lets a rank die without a bye.
func abort(t *testing.T, s transport.Streams) {
	t.Helper()
	a, ok := s.(Aborter)
	if !ok {
		t.Skip("cannot abort")
	}
	a.Abort()
}

// A peer that dies is lost to who reads and to who writes, and stays lost.
func testStreamPeerLost(t *testing.T, s []transport.Streams) {
	ctx := patient(t)
	readers := []*task{
		start(func() error { _, err := untilError(ctx, s[0], 1); return err }),
		start(func() error { return writeUntilError(ctx, s[2]) }),
	}
	abort(t, s[1])
	wantStream(t, readers[0].wait(t), 0, 1, transport.ErrPeerLost)
	wantStream(t, readers[1].wait(t), 2, 1, transport.ErrPeerLost)
	_, err := s[0].To(1).Read(make([]byte, 5))
	wantStream(t, err, 0, 1, transport.ErrPeerLost)
	_, err = s[2].To(1).Write(make([]byte, 5))
	wantStream(t, err, 2, 1, transport.ErrPeerLost)
}

// A peer that dies while it holds bytes that nobody took is lost too.
func testLostWhileWriting(t *testing.T, s []transport.Streams) {
	fill(t, s[0], 1)
	abort(t, s[1])
	wantStream(t, writeUntilError(patient(t), s[0]), 0, 1, transport.ErrPeerLost)
}

// Who waits for one member learns that another is lost.
func testAnyMemberLost(t *testing.T, s []transport.Streams) {
	ctx := patient(t)
	k := start(func() error { _, err := untilError(ctx, s[0], 1); return err })
	abort(t, s[2])
	wantStream(t, k.wait(t), 0, 2, transport.ErrPeerLost)
}

// Who waits for one member is not disturbed by another that has closed.
func testByeOfOthers(t *testing.T, s []transport.Streams) {
	ctx := patient(t)
	k := start(func() error { return readAll(ctx, s[0], 1, make([]byte, 10)) })
	if err := s[2].Close(); err != nil {
		t.Fatal(err)
	}
	short, cancel := context.WithTimeout(ctx, 30*time.Millisecond)
	defer cancel()
	for err := error(nil); err == nil; {
		if err = s[1].Park(short, s[1].To(0), nil); err != nil && !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
	}
	if err := writeAll(ctx, s[1], 0, make([]byte, 10)); err != nil {
		t.Error(err)
	}
	if err := k.wait(t); err != nil {
		t.Error(err)
	}
}

// Every call after Close says so.
func testAfterClose(t *testing.T, s []transport.Streams) {
	st := s[0].To(1)
	all(t, 2, func(i int) error { return s[i].Close() })
	_, werr := st.Write([]byte("a"))
	_, rerr := st.Read(make([]byte, 1))
	_, perr := st.Peek()
	for _, err := range []error{werr, rerr, perr, st.Commit(0), s[0].Park(patient(t), st, nil), s[0].Park(patient(t), nil, nil)} {
		if !errors.Is(err, transport.ErrClosed) {
			t.Errorf("got %v, want %v", err, transport.ErrClosed)
		}
	}
	if room := st.Room(); len(room) > 0 {
		t.Errorf("room for %d bytes", len(room))
	}
	st.Release(0)
	if err := s[0].Close(); err != nil {
		t.Error(err)
	}
}

// Close ends a Park that is under way.
func testCloseEndsPark(t *testing.T, s []transport.Streams) {
	ctx := patient(t)
	parked := make(chan struct{})
	k := start(func() error {
		close(parked)
		for {
			if err := s[0].Park(ctx, nil, nil); err != nil {
				return err
			}
		}
	})
	<-parked
	all(t, 2, func(i int) error { return s[i].Close() })
	if err := k.wait(t); !errors.Is(err, transport.ErrClosed) {
		t.Errorf("got %v, want %v", err, transport.ErrClosed)
	}
}

// There is no stream with oneself, and what was not given cannot be given back.
func testMisuse(t *testing.T, s []transport.Streams) {
	for _, peer := range []int{0, -1, 2, 1 << 30} {
		if st := s[0].To(peer); st != nil {
			t.Errorf("there is a stream of rank 0 with rank %d: %v", peer, st)
		}
	}
	if err := s[0].Park(patient(t), s[1].To(0), nil); err == nil {
		t.Error("park on another rank's stream")
	}
	room := s[0].To(1).Room()
	if err := s[0].To(1).Commit(len(room) + 1); err == nil {
		t.Error("commit of more than there is room for")
	}
	s[1].To(0).Release(1)
	if _, err := s[1].To(0).Read(make([]byte, 1)); err == nil {
		t.Error("release of more than has arrived")
	}
}

// Bytes are counted on both sides, and when they came.
func testStreamStats(t *testing.T, s []transport.Streams) {
	ctx := patient(t)
	before := time.Now()
	k := start(func() error { return writeAll(ctx, s[0], 1, make([]byte, someBytes)) })
	if err := readAll(ctx, s[1], 0, make([]byte, someBytes)); err != nil {
		t.Fatal(err)
	}
	if err := k.wait(t); err != nil {
		t.Fatal(err)
	}
	if st := s[0].Stats(); st.BytesSent != someBytes || st.BytesReceived != 0 || len(st.LastHeard) != 3 {
		t.Errorf("rank 0: %+v", st)
	}
	if st := s[1].Stats(); st.BytesSent != 0 || st.BytesReceived != someBytes {
		t.Errorf("rank 1: %+v", st)
	}
	short, cancel := context.WithTimeout(ctx, time.Millisecond)
	defer cancel()
	for s[1].Park(short, s[1].To(0), nil) == nil { // notes what has come before
	}
	if heard := s[1].Stats().LastHeard[0]; heard.Before(before) {
		t.Errorf("rank 0 was heard at %v, before %v", heard, before)
	}
}
