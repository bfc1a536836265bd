package transporttest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"testing"

	"github.com/gangline/gangline/transport"
)

// OpenStreams opens the streams of n ranks with one another; the suite closes them.
type OpenStreams func(t *testing.T, n int) []transport.Streams

// RunStreams runs the suite that every body of transport.Streams passes as subtests of t,
// without those named in skip, which are what the body does not promise. The
// streams may be Aborters.
func RunStreams(t *testing.T, open OpenStreams, skip ...string) {
	for _, tt := range []struct {
		name string
		n    int
		run  func(t *testing.T, s []transport.Streams)
	}{
		{"Bytes", 2, testBytes},
		{"Interleaved", 2, testInterleaved},
		{"Backpressure", 2, testBackpressure},
		{"PassOn", 4, testPassOn},
		{"PingPong", 2, testPingPong},
		{"ParkCanceled", 3, testParkCanceled},
		{"ParkDeadline", 2, testParkDeadline},
		{"StreamPeerCloses", 3, testStreamPeerCloses},
		{"StreamLastWords", 2, testStreamLastWords},
		{"StreamPeerLost", 3, testStreamPeerLost},
		{"LostWhileWriting", 2, testLostWhileWriting},
		{"AnyMemberLost", 3, testAnyMemberLost},
		{"ByeOfOthers", 3, testByeOfOthers},
		{"AfterClose", 2, testAfterClose},
		{"CloseEndsPark", 2, testCloseEndsPark},
		{"Misuse", 2, testMisuse},
		{"StreamStats", 3, testStreamStats},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if slices.Contains(skip, tt.name) {
				t.Skip("not promised")
			}
			s := open(t, tt.n)
			defer closeStreams(t, s)
			tt.run(t, s)
		})
	}
}

// closeStreams closes all at once: a close may wait for that of a peer.
func closeStreams(t *testing.T, s []transport.Streams) {
	t.Helper()
	all(t, len(s), func(i int) error { return s[i].Close() })
}

// at is byte i of the stream from rank to peer: what it is depends on all three.
func at(from, to int, i int64) byte { return byte(int64(from*7+to*13) + i*31 + i>>8*7 + i>>16) }

func content(p []byte, from, to int, begin int64) {
	for i := range p {
		p[i] = at(from, to, begin+int64(i))
	}
}

// check fails for the first byte that is not as it was written.
func check(p []byte, from, to int, begin int64) error {
	for i, b := range p {
		if want := at(from, to, begin+int64(i)); b != want {
			return fmt.Errorf("byte %d from rank %d to rank %d is %#x, want %#x", begin+int64(i), from, to, b, want)
		}
	}
	return nil
}

// writeAll writes all of p.
func writeAll(ctx context.Context, s transport.Streams, peer int, p []byte) error {
	to := s.To(peer)
	for {
		n, err := to.Write(p)
		if err != nil {
			return err
		}
		if p = p[n:]; len(p) == 0 {
			return nil
		}
		if err := s.Park(ctx, nil, to); err != nil {
			return err
		}
	}
}

// readAll fills p.
func readAll(ctx context.Context, s transport.Streams, peer int, p []byte) error {
	from := s.To(peer)
	for {
		n, err := from.Read(p)
		if err != nil {
			return err
		}
		if p = p[n:]; len(p) == 0 {
			return nil
		}
		if err := s.Park(ctx, from, nil); err != nil {
			return err
		}
	}
}

// Bytes of all sizes arrive as they were written, in one direction and the other.
func testBytes(t *testing.T, s []transport.Streams) {
	ctx := patient(t)
	for _, n := range []int{0, 1, 63, 64, 4095, 4096, 4097, 70000, 3<<20 + 5} {
		for from := range 2 {
			sent := make([]byte, n)
			content(sent, from, 1-from, int64(n))
			k := start(func() error { return writeAll(ctx, s[from], 1-from, sent) })
			got := make([]byte, n)
			if err := readAll(ctx, s[1-from], from, got); err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(got, sent) {
				t.Fatalf("%d bytes from rank %d arrived otherwise", n, from)
			}
			if err := k.wait(t); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// talker drives both directions of one stream at random.
type talker struct {
	s          transport.Streams
	rank, peer int
	rng        *rand.Rand
	sent, got  int64
	total      int64
	buf        []byte
}

func (k *talker) run(ctx context.Context) error {
	st := k.s.To(k.peer)
	for k.sent < k.total || k.got < k.total {
		before := k.sent + k.got
		if k.sent < k.total && k.rng.IntN(2) == 0 {
			if err := k.write(st); err != nil {
				return err
			}
		}
		if k.got < k.total && k.rng.IntN(2) == 0 {
			if err := k.read(st); err != nil {
				return err
			}
		}
		if k.sent+k.got > before || k.rng.IntN(3) > 0 {
			continue
		}
		in, out := st, st
		if k.got == k.total {
			in = nil
		}
		if k.sent == k.total {
			out = nil
		}
		if in == nil && out == nil {
			break
		}
		if err := k.s.Park(ctx, in, out); err != nil {
			return err
		}
	}
	return nil
}

// size is small mostly, sometimes large.
func (k *talker) size() int {
	if k.rng.IntN(8) == 0 {
		return k.rng.IntN(len(k.buf)) + 1
	}
	return k.rng.IntN(200)
}

func (k *talker) write(st transport.Stream) error {
	n := int(min(int64(k.size()), k.total-k.sent))
	if room := st.Room(); len(room) > 0 && k.rng.IntN(2) == 0 {
		n = min(n, len(room))
		content(room[:n], k.rank, k.peer, k.sent)
		k.sent += int64(n)
		return st.Commit(n)
	}
	content(k.buf[:n], k.rank, k.peer, k.sent)
	w, err := st.Write(k.buf[:n])
	if w < 0 || w > n {
		return fmt.Errorf("wrote %d of %d bytes", w, n)
	}
	k.sent += int64(w)
	return err
}

func (k *talker) read(st transport.Stream) error {
	n := k.size()
	if k.rng.IntN(2) == 0 {
		p, err := st.Peek()
		if err != nil {
			return err
		}
		n = min(n, len(p))
		if err := check(p[:n], k.peer, k.rank, k.got); err != nil {
			return err
		}
		st.Release(n)
		k.got += int64(n)
		return nil
	}
	n, err := st.Read(k.buf[:n])
	if err != nil {
		return err
	}
	err = check(k.buf[:n], k.peer, k.rank, k.got)
	k.got += int64(n)
	return err
}

// Both ranks write and read at random, by copying and in place: all bytes arrive, in
// order, many times round any ring.
func testInterleaved(t *testing.T, s []transport.Streams) {
	ctx := patient(t)
	for seed := range uint64(4) {
		var talkers [2]*talker
		all(t, 2, func(i int) error {
			k := &talker{
				s: s[i], rank: i, peer: 1 - i, rng: rand.New(rand.NewPCG(seed, uint64(i))),
				total: 5 << 20, buf: make([]byte, 100_000),
			}
			talkers[i] = k
			return k.run(ctx)
		})
		if talkers[0].got != talkers[1].sent || talkers[1].got != talkers[0].sent {
			t.Fatalf("seed %d: sent %d and %d, got %d and %d", seed, talkers[0].sent, talkers[1].sent, talkers[1].got, talkers[0].got)
		}
	}
}

// fill writes from rank 0, whose streams s are, until nothing fits for good, and returns how much did.
func fill(t *testing.T, s transport.Streams, peer int) int64 {
	t.Helper()
	const most = 256 << 20
	var sent int64
	buf := make([]byte, 64<<10)
	to := s.To(peer)
	for tries := 0; sent < most && tries < 20; {
		content(buf, 0, peer, sent)
		n, err := to.Write(buf)
		if err != nil {
			t.Fatal(err)
		}
		sent += int64(n)
		if tries++; n > 0 {
			tries = 0
		}
		runtime.Gosched()
	}
	if sent >= most {
		t.Fatalf("%d bytes fit, and nobody read", sent)
	}
	return sent
}

// A writer whose peer does not read is told that nothing fits; once the peer reads,
// more does.
func testBackpressure(t *testing.T, s []transport.Streams) {
	ctx := patient(t)
	sent := fill(t, s[0], 1)
	if sent == 0 {
		t.Fatal("nothing fits at all")
	}
	if room := s[0].To(1).Room(); len(room) > 0 {
		t.Errorf("room for %d bytes where nothing fits", len(room))
	}
	end := make([]byte, 100_000)
	content(end, 0, 1, sent)
	k := start(func() error { return writeAll(ctx, s[0], 1, end) })
	total, buf := sent+int64(len(end)), make([]byte, 50_000)
	for got := int64(0); got < total; {
		n := int(min(total-got, int64(len(buf))))
		if err := readAll(ctx, s[1], 0, buf[:n]); err != nil {
			t.Fatal(err)
		}
		if err := check(buf[:n], 0, 1, got); err != nil {
			t.Fatal(err)
		}
		got += int64(n)
	}
	if err := k.wait(t); err != nil {
		t.Fatal(err)
	}
}

// What each rank takes from the one before it, it gives, changed, to the next: in
// place where that is possible.
func testPassOn(t *testing.T, s []transport.Streams) {
	ctx := patient(t)
	const total = 3 << 20
	n := len(s)
	all(t, n, func(i int) error {
		if i == 0 {
			return passFirst(ctx, s[0], n, total)
		}
		in, out := s[i].To(i-1), s[i].To((i+1)%n)
		for done := 0; done < total; {
			from, err := in.Peek()
			if err != nil {
				return err
			}
			k, err := passOn(out, from)
			if err != nil {
				return err
			}
			in.Release(k)
			if done += k; k > 0 || done == total {
				continue
			}
			wait := in
			if len(from) > 0 {
				wait = nil
			}
			if err := s[i].Park(ctx, wait, out); err != nil {
				return err
			}
		}
		return nil
	})
}

// passOn gives as much of from plus 1 as fits.
func passOn(out transport.Stream, from []byte) (int, error) {
	if room := out.Room(); room != nil {
		k := min(len(room), len(from))
		for i := range k {
			room[i] = from[i] + 1
		}
		return k, out.Commit(k)
	}
	var buf [1000]byte
	k := min(len(buf), len(from))
	for i := range k {
		buf[i] = from[i] + 1
	}
	return out.Write(buf[:k])
}

func passFirst(ctx context.Context, s transport.Streams, n, total int) error {
	sent := make([]byte, total)
	content(sent, 0, 1, 0)
	got := make([]byte, total)
	in, out := s.To(n-1), s.To(1)
	for w, r := 0, 0; r < total; {
		k, err := out.Write(sent[w:])
		if err != nil {
			return err
		}
		w += k
		if k, err = in.Read(got[r:]); err != nil {
			return err
		}
		if r += k; r == total {
			break
		}
		wait := out
		if w == total {
			wait = nil
		}
		if err := s.Park(ctx, in, wait); err != nil {
			return err
		}
	}
	for i := range got {
		if want := sent[i] + byte(n-1); got[i] != want {
			return fmt.Errorf("byte %d is %#x, want %#x", i, got[i], want)
		}
	}
	return nil
}

// Thousands of turns in which each side sleeps or does not, as it happens: no wake-up
// is lost.
func testPingPong(t *testing.T, s []transport.Streams) {
	ctx := patient(t)
	const rounds = 3000
	all(t, 2, func(i int) error {
		rng := rand.New(rand.NewPCG(5, uint64(i)))
		buf := make([]byte, 16)
		for round := range rounds {
			if round%2 == i {
				for range rng.IntN(4) * rng.IntN(40) {
					runtime.Gosched()
				}
				content(buf, i, 1-i, int64(round))
				if err := writeAll(ctx, s[i], 1-i, buf); err != nil {
					return err
				}
				continue
			}
			if err := readAll(ctx, s[i], 1-i, buf); err != nil {
				return err
			}
			if err := check(buf, 1-i, i, int64(round)); err != nil {
				return fmt.Errorf("round %d: %w", round, err)
			}
		}
		return nil
	})
}

// stuff writes until there is no room, to a stream of which nobody reads; nil has none.
func stuff(to transport.Stream) error {
	if to == nil {
		return nil
	}
	buf := make([]byte, 64<<10)
	for {
		if n, err := to.Write(buf); n == 0 || err != nil {
			return err
		}
	}
}

// A Park whose ctx is canceled returns the cause, whatever it waits for.
func testParkCanceled(t *testing.T, s []transport.Streams) {
	fill(t, s[0], 2)
	for name, wait := range map[string][2]transport.Stream{
		"bytes": {s[0].To(1), nil}, "room": {nil, s[0].To(2)}, "both": {s[0].To(1), s[0].To(2)}, "nothing": {},
	} {
		why := errors.New("step 12 took too long")
		ctx, cancel := context.WithCancelCause(patient(t))
		park := func() error {
			for {
				if err := s[0].Park(ctx, wait[0], wait[1]); err != nil {
					return err
				}
				if err := stuff(wait[1]); err != nil { // the system has found more room since
					return err
				}
			}
		}
		k := start(park)
		runtime.Gosched()
		cancel(why)
		if err := k.wait(t); !errors.Is(err, why) {
			t.Errorf("%s: got %v, want %v", name, err, why)
		}
		if err := park(); !errors.Is(err, why) {
			t.Errorf("%s: after it: got %v, want %v", name, err, why)
		}
	}
}

// A Park ends with its deadline.
func testParkDeadline(t *testing.T, s []transport.Streams) {
	ctx, cancel := context.WithTimeout(t.Context(), 1)
	defer cancel()
	for {
		err := s[0].Park(ctx, s[0].To(1), nil)
		if errors.Is(err, context.DeadlineExceeded) {
			return
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}
