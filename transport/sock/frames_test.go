package sock

import (
	"bytes"
	"context"
	"io"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gangline/gangline/transport"
	"github.com/gangline/gangline/wire"
)

// pipeEndpoint returns rank 0 of two and the other end of its connection, in
// memory, so that it runs under virtual time.
func pipeEndpoint() (*Endpoint, net.Conn) {
	ours, theirs := net.Pipe()
	return newEndpoint(testConfig("tcp", 0, 2).withDefaults(), []net.Conn{nil, ours}), theirs
}

func frame(t testing.TB, h wire.Header, payload string) []byte {
	t.Helper()
	h.Length = uint32(len(payload))
	var b [wire.HeaderSize]byte
	if err := h.Encode(&b); err != nil {
		t.Fatal(err)
	}
	return append(b[:], payload...)
}

// Whatever a peer says that it may not say costs its connection, with an error
// that tells what it was; nothing of it is taken for a message.
func TestForbiddenFrames(t *testing.T) {
	damaged := frame(t, wire.Header{Kind: wire.Ping, Generation: 3}, "")
	damaged[31] ^= 1
	tooMany := bytes.Repeat(frame(t, wire.Header{Kind: wire.Credit, Generation: 3, Tag: 5, Arg: 1}, ""), transport.MaxPosted+1)
	for _, tt := range []struct {
		name  string
		bytes []byte
		want  error
	}{
		{"damaged header", damaged, wire.ErrChecksum},
		{"garbage", bytes.Repeat([]byte{7}, 64), wire.ErrStranger},
		{"other generation", frame(t, wire.Header{Kind: wire.Ping, Generation: 2}, ""), transport.ErrCorrupt},
		{"no credit", frame(t, wire.Header{Kind: wire.Data, Generation: 3, Tag: 2}, "body"), transport.ErrCorrupt},
		{"longer than the credit", frame(t, wire.Header{Kind: wire.Data, Generation: 3, Tag: 1}, "12345"), transport.ErrCorrupt},
		{"damaged payload", frame(t, wire.Header{Kind: wire.Data, Generation: 3, Tag: 1, Flags: wire.FlagChecksum, Checksum: 1}, "1234"), wire.ErrChecksum},
		{"refusal without credit", frame(t, wire.Header{Kind: wire.Refuse, Generation: 3, Tag: 2, Arg: 9}, ""), transport.ErrCorrupt},
		{"hello again", frame(t, wire.Header{Kind: wire.Hello, Generation: 3}, ""), transport.ErrCorrupt},
		{"too many credits", tooMany, transport.ErrCorrupt},
		{"cut header", frame(t, wire.Header{Kind: wire.Ping, Generation: 3}, "")[:20], io.EOF},
		{"cut payload", frame(t, wire.Header{Kind: wire.Data, Generation: 3, Tag: 1}, "1234")[:34], io.EOF},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				e, theirs := pipeEndpoint()
				defer e.Close()
				go func() { _, _ = io.Copy(io.Discard, theirs) }()
				r := &transport.Receive{Peer: 1, Tag: 1, Buf: make([]byte, 4)}
				if err := e.Post(r); err != nil {
					t.Fatal(err)
				}
				_, _ = theirs.Write(tt.bytes)
				theirs.Close()
				err := r.Wait(t.Context())
				wantIs(t, err, transport.ErrPeerLost)
				wantIs(t, err, tt.want)
				wantIs(t, e.Send(t.Context(), 1, 0, nil, nil), transport.ErrPeerLost)
				if s := e.Stats(); s.MessagesReceived != 0 {
					t.Errorf("counted: %+v", s)
				}
			})
		})
	}
}

// Two idle ranks hear each other every few seconds; a silent one is seen to be
// silent; pings are no payload.
func TestPing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ours, theirs := net.Pipe()
		a := newEndpoint(testConfig("tcp", 0, 2).withDefaults(), []net.Conn{nil, ours})
		b := newEndpoint(testConfig("tcp", 1, 2).withDefaults(), []net.Conn{theirs, nil})
		time.Sleep(time.Hour)
		for rank, s := range []transport.Stats{a.Stats(), b.Stats()} {
			if d := time.Since(s.LastHeard[1-rank]); d > 2*pingEvery {
				t.Errorf("rank %d heard nothing for %v", rank, d)
			}
			if s.BytesSent+s.BytesReceived+s.MessagesSent+s.MessagesReceived != 0 {
				t.Errorf("pings were counted: %+v", s)
			}
		}
		for _, e := range []*Endpoint{a, b} {
			if err := e.Close(); err != nil {
				t.Error(err)
			}
		}

		c, silent := pipeEndpoint()
		go func() { _, _ = io.Copy(io.Discard, silent) }()
		begin := time.Now()
		time.Sleep(time.Hour)
		if at := c.Stats().LastHeard[1]; !at.Equal(begin) {
			t.Errorf("heard a silent peer at %v", at.Sub(begin))
		}
		begin = time.Now()
		if err := c.Close(); err != nil { // it does not answer the bye either
			t.Error(err)
		}
		if d := time.Since(begin); d > byeLinger+cancelCheck {
			t.Errorf("close took %v", d)
		}
		silent.Close()
	})
}

// After its bye a rank takes and drops what the peer still says, until the peer
// hangs up: to close with bytes unread would reset a tcp connection, and on most
// systems destroy what the peer has not read yet, the bye included.
func TestCloseDrains(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, theirs := pipeEndpoint()
		closed := make(chan error, 1)
		go func() { closed <- e.Close() }()
		h, _, err := readFrame(theirs)
		if err != nil || h.Kind != wire.Bye {
			t.Fatalf("got %v, %v, want a bye", h, err)
		}
		begin := time.Now()
		if _, err := theirs.Write(make([]byte, 3*readBuffer)); err != nil {
			t.Errorf("write after the bye: %v", err)
		}
		theirs.Close()
		if err := <-closed; err != nil {
			t.Error(err)
		}
		if d := time.Since(begin); d != 0 {
			t.Errorf("close took %v after the peer hung up", d)
		}
	})
}

// A peer that takes nothing at all cannot hold up Close for long.
func TestCloseStuck(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, theirs := pipeEndpoint()
		defer theirs.Close()
		if _, err := theirs.Write(frame(t, wire.Header{Kind: wire.Credit, Generation: 3, Arg: 100}, "")); err != nil {
			t.Fatal(err)
		}
		sent := make(chan error, 1)
		go func() { sent <- e.Send(context.Background(), 1, 0, nil, make([]byte, 100)) }()
		time.Sleep(time.Minute)
		begin := time.Now()
		if err := e.Close(); err != nil {
			t.Error(err)
		}
		if d := time.Since(begin); d > byePatience+byeLinger+2*cancelCheck {
			t.Errorf("close took %v", d)
		}
		wantIs(t, <-sent, transport.ErrClosed)
	})
}

// The sends that wait for one tag are limited.
func TestSendsLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, theirs := pipeEndpoint()
		sent := make(chan error, transport.MaxSends)
		for range transport.MaxSends {
			go func() { sent <- e.Send(t.Context(), 1, 0, nil, nil) }()
		}
		synctest.Wait()
		wantIs(t, e.Send(t.Context(), 1, 0, nil, nil), transport.ErrLimit)
		theirs.Close()
		for range transport.MaxSends {
			wantIs(t, <-sent, transport.ErrPeerLost)
		}
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	})
}

// A credit that reaches a Send just as its ctx ends goes to the next Send.
func TestCreditHandedOn(t *testing.T) {
	p := newPeer(&Endpoint{cfg: testConfig("tcp", 0, 2).withDefaults()}, 1, byteConn{})
	first, second := &waiter{done: make(chan error, 1)}, &waiter{done: make(chan error, 1)}
	n := p.lines.Get(5, idle)
	n.waiting.Push(first)
	n.waiting.Push(second)
	if err := p.credited(5, 10); err != nil {
		t.Fatal(err)
	}
	wantIs(t, p.forget(5, first, context.Canceled), context.Canceled)
	if len(second.done) != 1 {
		t.Fatal("the second Send did not get the credit")
	}
	wantIs(t, p.forget(5, second, context.Canceled), context.Canceled)
	if n.free != 1 {
		t.Errorf("%d credits are free, want the one", n.free)
	}
}

// byteConn is a connection that says what it was given and takes everything.
type byteConn struct {
	net.Conn // never used: only deadlines, Read, Write and Close are called
	said     *bytes.Reader
}

func (c byteConn) Read(p []byte) (int, error)       { return c.said.Read(p) }
func (c byteConn) Write(p []byte) (int, error)      { return len(p), nil }
func (c byteConn) Close() error                     { return nil }
func (c byteConn) SetReadDeadline(time.Time) error  { return nil }
func (c byteConn) SetWriteDeadline(time.Time) error { return nil }

// Whatever bytes come after the handshake, the reader ends, does not panic, and
// every receive is completed once.
func FuzzReader(f *testing.F) {
	data := wire.Header{Kind: wire.Data, Generation: 3, Tag: 1}
	f.Add(frame(f, data, "body"))
	f.Add(append(frame(f, wire.Header{Kind: wire.Credit, Generation: 3, Arg: 9}, ""), frame(f, data, "")...))
	f.Add(frame(f, wire.Header{Kind: wire.Refuse, Generation: 3, Tag: 1, Arg: 9}, "why"))
	f.Add(frame(f, wire.Header{Kind: wire.Bye, Generation: 3}, ""))
	f.Fuzz(func(t *testing.T, said []byte) {
		e := &Endpoint{cfg: testConfig("tcp", 0, 2).withDefaults()}
		p := newPeer(e, 1, byteConn{said: bytes.NewReader(said)})
		receives := []*transport.Receive{
			{Peer: 1, Tag: 1, Buf: make([]byte, 4)},
			{Peer: 1, Tag: 1, Grow: func(n int) []byte { return make([]byte, min(n, 1000)) }},
			{Peer: 1, Tag: 2, Buf: make([]byte, 4)},
		}
		for _, r := range receives {
			if err := p.post(r); err != nil {
				t.Fatal(err)
			}
		}
		p.readLoop()
		for _, r := range receives {
			if err := r.Wait(context.Background()); err == nil && r.N > len(r.Buf) {
				t.Errorf("%d bytes in a buffer of %d", r.N, len(r.Buf))
			}
		}
	})
}
