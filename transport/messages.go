package transport

import (
	"context"
	"errors"
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
	rank     int
	tag      uint32
	most     int
	streams  []*messageStream // with the members but this one, in their order

	ctx    context.Context //nolint:containedctx // ends with Close; bounds what is being sent
	cancel context.CancelCauseFunc
	closed chan struct{}
	once   sync.Once
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

// NewMessageStreams returns the streams of rank, which is e's, with the members of a group
// under a tag that nothing else uses, in messages of at most most bytes, which is at most
// MessageStreamMax; 0 is that. Four messages a direction and peer are kept in memory,
// once they are used.
func NewMessageStreams(e Endpoint, rank int, members []int, tag uint32, most int) *MessageStreams {
	if most <= 0 || most > MessageStreamMax {
		most = MessageStreamMax
	}
	m := &MessageStreams{endpoint: e, rank: rank, tag: tag, most: most, closed: make(chan struct{}), failed: make(chan error, 1)}
	m.ctx, m.cancel = context.WithCancelCause(context.Background())
	for _, peer := range members {
		if peer != rank {
			m.streams = append(m.streams, newMessageStream(m, peer))
		}
	}
	return m
}

// To implements Streams: peer is a rank of the endpoint.
func (m *MessageStreams) To(peer int) Stream {
	for _, s := range m.streams {
		if s.peer == peer {
			return s
		}
	}
	return nil
}

func (m *MessageStreams) isClosed() bool {
	select {
	case <-m.closed:
		return true
	default:
		return false
	}
}

// Park implements Streams. It waits on channels alone, so that it works in virtual
// time.
func (m *MessageStreams) Park(ctx context.Context, in, out Stream) error {
	from, err := m.own(in)
	if err != nil {
		return err
	}
	to, err := m.own(out)
	if err != nil {
		return err
	}
	if m.isClosed() {
		return ErrClosed
	}
	var arrived, bye chan error
	var freed chan struct{}
	if from != nil {
		if from.look() {
			return nil
		}
		arrived = from.next().done
	}
	if to != nil {
		if to.look(); to.writable() {
			return nil
		}
		if freed = to.freed; to != from && to.come < messagesInFlight {
			bye = to.next().done
		}
	}
	select {
	case err := <-arrived:
		from.took(err)
	case err := <-bye:
		to.took(err)
	case <-freed:
	case err := <-m.failed:
		m.failed <- err // for the next Park as well
		return err
	case <-m.closed:
		return ErrClosed
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	return nil
}

// own returns one of these streams, nil of nil.
func (m *MessageStreams) own(s Stream) (*messageStream, error) {
	if s == nil {
		return nil, nil
	}
	if x, ok := s.(*messageStream); ok && x.all == m {
		return x, nil
	}
	return nil, errors.New("park on a stream of another group")
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
// within a second is dropped. The endpoint stays open, and receives stay posted. It
// ends a Park that is under way.
func (m *MessageStreams) Close() error {
	m.once.Do(func() {
		for _, s := range m.streams {
			s.post() // what peers send has somewhere to go
			s.bye()
		}
		close(m.closed)
		limit := time.AfterFunc(byeWait, func() { m.cancel(ErrClosed) })
		m.senders.Wait()
		limit.Stop()
		m.cancel(ErrClosed)
	})
	return nil
}
