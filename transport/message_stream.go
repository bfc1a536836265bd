package transport

import (
	"fmt"
	"sync"
	"sync/atomic"
)

// messageStream is one of MessageStreams.
type messageStream struct {
	all  *MessageStreams
	peer int

	// Receives are in a ring: come of them, from head on, are here, and of the
	// first off bytes were read. After end nothing comes.
	in     [messagesInFlight]Receive
	posted atomic.Bool
	head   int
	come   int
	off    int
	end    error
	err    error // what every call returns

	// out is a ring of messages; queued of them, from first on, are to be sent.
	out   [messagesInFlight][]byte
	freed chan struct{} // a message has been sent, or will never be
	send  func()        // made once, so that starting it allocates nothing

	mu      sync.Mutex // of what follows
	first   int
	queued  int
	sending bool
	sendErr error
}

func newMessageStream(m *MessageStreams, peer int) *messageStream {
	s := &messageStream{all: m, peer: peer, freed: make(chan struct{}, 1)}
	s.send = s.sendAll
	for i := range s.in {
		r := &s.in[i]
		r.Peer, r.Tag = peer, m.tag
		r.Grow = func(n int) []byte {
			if n > MessageStreamMax {
				return nil
			}
			return make([]byte, n)
		}
	}
	return s
}

// fail makes a *PeerError of err, unless it is one.
func (s *messageStream) fail(op string, err error) error {
	if pe, ok := err.(*PeerError); ok { //nolint:errorlint // one that is wrapped has lost its rank
		return pe
	}
	return &PeerError{Rank: s.all.rank, Peer: s.peer, Op: op, Tag: s.all.tag, Err: err}
}

// broken returns what every call does, nil while there is nothing.
func (s *messageStream) broken() error {
	if s.err == nil && s.all.isClosed() {
		s.err = s.fail("use stream with", ErrClosed)
	}
	return s.err
}

// misuse keeps the error of a Commit or Release of more than was given.
func (s *messageStream) misuse(op string, n, most int) error {
	s.err = s.fail(op, fmt.Errorf("%d bytes where there are %d", n, most))
	return s.err
}

// next is the receive that ends next.
func (s *messageStream) next() *Receive { return &s.in[(s.head+s.come)%messagesInFlight] }

// offer posts a receive. A refusal is how it ends.
func (s *messageStream) offer(r *Receive) {
	if err := s.all.endpoint.Post(r); err != nil {
		if r.done == nil {
			r.done = make(chan error, 1)
		}
		r.Complete(0, err)
	}
}

// post offers all receives, once.
func (s *messageStream) post() {
	if s.posted.Swap(true) {
		return
	}
	for i := range s.in {
		s.offer(&s.in[i])
	}
}

// look books what has come, and reports whether there is something to read.
func (s *messageStream) look() bool {
	s.post()
	for s.end == nil && s.come < messagesInFlight {
		ended, err := s.next().poll()
		if !ended {
			break
		}
		s.took(err)
	}
	return s.come > 0 || s.end != nil
}

// took books the end of the next receive.
func (s *messageStream) took(err error) {
	r := s.next()
	r.posted = false
	switch {
	case err != nil:
		s.end = s.fail("receive from", err)
	case r.N == 0:
		s.end = s.fail("receive from", ErrPeerClosed)
	default:
		s.come++
		s.all.messagesReceived.Add(1)
		s.all.bytesReceived.Add(int64(r.N))
	}
}

// Peek implements Stream: one message is one piece.
func (s *messageStream) Peek() ([]byte, error) {
	if err := s.broken(); err != nil {
		return nil, err
	}
	if s.come == 0 {
		if s.look(); s.come == 0 {
			s.err = s.end
			return nil, s.end
		}
	}
	r := &s.in[s.head]
	return r.Buf[s.off:r.N], nil
}

// Release implements Stream.
func (s *messageStream) Release(n int) {
	if n == 0 || s.err != nil {
		return
	}
	have := 0
	if s.come > 0 {
		have = s.in[s.head].N - s.off
	}
	if n < 0 || n > have {
		_ = s.misuse("release of", n, have) // the next call returns it
		return
	}
	s.off += n
	if n == have {
		r := &s.in[s.head]
		s.head, s.come, s.off = (s.head+1)%messagesInFlight, s.come-1, 0
		s.offer(r)
	}
}

// Read implements Stream.
func (s *messageStream) Read(p []byte) (int, error) {
	n := 0
	for n < len(p) {
		piece, err := s.Peek()
		if err != nil && n == 0 {
			return 0, err
		}
		if len(piece) == 0 {
			break
		}
		k := copy(p[n:], piece)
		s.Release(k)
		n += k
	}
	return n, nil
}

// writable reports whether Write would take something, or fail.
func (s *messageStream) writable() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.queued < messagesInFlight || s.sendErr != nil || s.end != nil
}

// waiting reports whether messages wait to be sent.
func (s *messageStream) waiting() (bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.queued > 0, s.sendErr
}

// room returns the next free message, nil if there is none.
func (s *messageStream) room() ([]byte, error) {
	if err := s.broken(); err != nil {
		return nil, err
	}
	if s.end != nil {
		return nil, s.end
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.sendErr != nil || s.queued == messagesInFlight {
		return nil, s.sendErr
	}
	m := &s.out[(s.first+s.queued)%messagesInFlight]
	if *m == nil {
		*m = Ordinary(s.all.most)
	}
	return (*m)[:s.all.most], nil
}

// Room implements Stream: it is the next message.
func (s *messageStream) Room() []byte {
	m, _ := s.room()
	return m
}

// Commit implements Stream: what was put into Room is a message.
func (s *messageStream) Commit(n int) error {
	if err := s.broken(); err != nil || n == 0 {
		return err
	}
	if room := s.Room(); n < 0 || n > len(room) {
		return s.misuse("commit to", n, len(room))
	}
	return s.push(n)
}

// push sends the next message, of n bytes.
func (s *messageStream) push(n int) error {
	s.mu.Lock()
	if s.sendErr != nil {
		defer s.mu.Unlock()
		return s.sendErr
	}
	m := &s.out[(s.first+s.queued)%messagesInFlight]
	*m = (*m)[:n]
	s.queued++
	start := !s.sending
	s.sending = true
	s.mu.Unlock()
	if start {
		s.all.senders.Add(1)
		go s.send()
	}
	return nil
}

// Write implements Stream.
func (s *messageStream) Write(p []byte) (int, error) {
	n := 0
	for n < len(p) {
		m, err := s.room()
		if m == nil {
			if n > 0 {
				err = nil
			}
			return n, err
		}
		k := copy(m, p[n:])
		if err := s.push(k); err != nil {
			return n, err
		}
		n += k
	}
	return n, nil
}

// bye sends an empty message if there is room for one: a peer that has left all of
// them lying waits for none.
func (s *messageStream) bye() {
	s.mu.Lock()
	full := s.queued == messagesInFlight
	s.mu.Unlock()
	if !full {
		_ = s.push(0)
	}
}

// sendAll sends what is queued, and ends.
func (s *messageStream) sendAll() {
	defer s.all.senders.Done()
	for {
		s.mu.Lock()
		if s.queued == 0 {
			s.sending = false
			s.mu.Unlock()
			return
		}
		m := s.out[s.first]
		s.mu.Unlock()
		err := s.all.endpoint.Send(s.all.ctx, s.peer, s.all.tag, nil, m)
		s.mu.Lock()
		if err != nil {
			err = s.fail("send to", err)
			s.sendErr, s.sending = err, false
		} else {
			s.first = (s.first + 1) % messagesInFlight
			s.queued--
		}
		s.mu.Unlock()
		if err == nil && len(m) > 0 {
			s.all.messagesSent.Add(1)
			s.all.bytesSent.Add(int64(len(m)))
		}
		select {
		case s.freed <- struct{}{}:
		default:
		}
		if err != nil {
			select {
			case s.all.failed <- err:
			default:
			}
			return
		}
	}
}
