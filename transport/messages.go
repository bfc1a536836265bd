package transport

import (
	"context"
	"sync"
	"sync/atomic"
	"time"
)

// Limits of streams that travel as messages.
const (
	// MessageStreamMax bounds one message of a stream in bytes.
	MessageStreamMax = 64 << 10
	// messagesInFlight bounds the messages of one direction of a stream that wait to
	// be sent, and those that may arrive before they are read.
	messagesInFlight = 4
	// byeWait bounds how long Close waits for peers to take what was written to them.
	byeWait = time.Second
)

// MessageStreams are streams that travel as messages of an Endpoint under one tag,
// for a pair of ranks that has nothing better: in one process, in simulations, on
// systems without the others. Every Write is a message at least, and costs what
// an Endpoint's Send costs, and two copies.
//
// While messages wait for the peer to take them, a goroutine sends them. It ends
// when they are gone, or with Close, or when the endpoint closes. Receives are
// posted when a stream is first read, and stay posted: the tag is of no other
// use until the endpoint closes.
type MessageStreams struct {
	endpoint Endpoint
	tag      uint32
	most     int
	peers    map[int]*messageStream
	streams  []*messageStream // the same

	ctx    context.Context //nolint:containedctx // ends with Close; bounds what is being sent
	cancel context.CancelCauseFunc
	closed bool
	// failed has the first error of a goroutine that sends, for a Park that waits
	// for another peer.
	failed chan error

	senders                        sync.WaitGroup
	bytesSent, bytesReceived       atomic.Int64
	messagesSent, messagesReceived atomic.Int64
}

var (
	_ Streams = (*MessageStreams)(nil)
	_ Stream  = (*messageStream)(nil)
)

// NewMessageStreams returns the streams of e under a tag that nothing else uses, with
// messages of at most most bytes, which is at most MessageStreamMax; 0 is that.
// Four messages a direction and peer are kept in memory.
func NewMessageStreams(e Endpoint, tag uint32, most int) *MessageStreams {
	if most <= 0 || most > MessageStreamMax {
		most = MessageStreamMax
	}
	m := &MessageStreams{endpoint: e, tag: tag, most: most, peers: map[int]*messageStream{}, failed: make(chan error, 1)}
	m.ctx, m.cancel = context.WithCancelCause(context.Background())
	return m
}

// To implements Streams: peer is a rank of the endpoint.
func (m *MessageStreams) To(peer int) Stream {
	s := m.peers[peer]
	if s == nil {
		s = newMessageStream(m, peer)
		m.peers[peer] = s
		m.streams = append(m.streams, s)
	}
	return s
}

// Park implements Streams. It waits on channels alone, so that it works in virtual
// time.
func (m *MessageStreams) Park(ctx context.Context, in, out Stream) error {
	var arrived chan error
	var from *messageStream
	if in != nil {
		from, _ = in.(*messageStream)
		if from.fetch() {
			return nil
		}
		arrived = from.in[from.head].done
	}
	var freed chan struct{}
	if out != nil {
		to, _ := out.(*messageStream)
		if to.writable() {
			return nil
		}
		freed = to.freed
	}
	select {
	case err := <-arrived:
		from.in[from.head].posted = false
		from.took(err)
		return nil
	case <-freed:
		return nil
	case err := <-m.failed:
		m.failed <- err // for the next Park as well
		return err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// Flush waits until the peers have taken all that was written.
func (m *MessageStreams) Flush(ctx context.Context) error {
	for _, s := range m.streams {
		for {
			waits, err := s.waiting()
			if err != nil {
				return err
			}
			if !waits {
				break
			}
			select {
			case <-s.freed:
			case <-ctx.Done():
				return s.fail("send to", context.Cause(ctx))
			}
		}
	}
	return nil
}

// Stats implements Streams: all that was written and read counts, but LastHeard is
// the endpoint's.
func (m *MessageStreams) Stats() Stats {
	return Stats{
		BytesSent: m.bytesSent.Load(), BytesReceived: m.bytesReceived.Load(),
		MessagesSent: m.messagesSent.Load(), MessagesReceived: m.messagesReceived.Load(),
		LastHeard: m.endpoint.Stats().LastHeard,
	}
}

// Close implements Streams: an empty message is the bye. What a peer has not taken
// within a second is dropped. The endpoint stays open, and receives stay posted.
func (m *MessageStreams) Close() error {
	if m.closed {
		return nil
	}
	m.closed = true
	for _, s := range m.streams {
		s.bye()
	}
	limit := time.AfterFunc(byeWait, func() { m.cancel(ErrClosed) })
	m.senders.Wait()
	limit.Stop()
	m.cancel(ErrClosed)
	return nil
}

// messageStream is one of MessageStreams.
type messageStream struct {
	all  *MessageStreams
	peer int

	// Receives are in a ring: head is the next to be read, of which off bytes were,
	// if it is here.
	in      [messagesInFlight]Receive
	refused [messagesInFlight]error // of posting
	posted  bool
	head    int
	off     int
	here    bool
	readErr error

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
	return &PeerError{Rank: -1, Peer: s.peer, Op: op, Tag: s.all.tag, Err: err}
}

// post offers receive i to the peer.
func (s *messageStream) post(i int) { s.refused[i] = s.all.endpoint.Post(&s.in[i]) }

// fetch reports whether the next message or an error is here.
func (s *messageStream) fetch() bool {
	if s.here || s.readErr != nil {
		return true
	}
	if s.all.closed {
		s.readErr = s.fail("receive from", ErrClosed)
		return true
	}
	if !s.posted {
		s.posted = true
		for i := range s.in {
			s.post(i)
		}
	}
	if err := s.refused[s.head]; err != nil {
		s.took(err)
		return true
	}
	ended, err := s.in[s.head].poll()
	if ended {
		s.took(err)
	}
	return ended
}

// took books the end of the receive at the head.
func (s *messageStream) took(err error) {
	n := s.in[s.head].N
	switch {
	case err != nil:
		s.readErr = s.fail("receive from", err)
	case n == 0:
		s.readErr = s.fail("receive from", ErrPeerClosed)
	default:
		s.here, s.off = true, 0
		s.all.messagesReceived.Add(1)
		s.all.bytesReceived.Add(int64(n))
	}
}

// Peek implements Stream: one message is one piece.
func (s *messageStream) Peek() ([]byte, error) {
	if !s.fetch() {
		return nil, nil
	}
	if s.readErr != nil {
		return nil, s.readErr
	}
	r := &s.in[s.head]
	return r.Buf[s.off:r.N], nil
}

// Release implements Stream.
func (s *messageStream) Release(n int) {
	s.off += n
	if s.here && s.off == s.in[s.head].N {
		s.here = false
		s.post(s.head)
		s.head = (s.head + 1) % messagesInFlight
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
	return s.queued < messagesInFlight || s.sendErr != nil
}

// waiting reports whether messages wait to be sent.
func (s *messageStream) waiting() (bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.queued > 0, s.sendErr
}

// room returns the next free message, nil if there is none.
func (s *messageStream) room() ([]byte, error) {
	if s.all.closed {
		return nil, s.fail("send to", ErrClosed)
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
	if n == 0 {
		return nil
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
	quiet := s.sendErr != nil || s.queued == messagesInFlight || !s.posted && s.out[s.first] == nil
	s.mu.Unlock()
	if !quiet {
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
