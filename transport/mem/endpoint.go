package mem

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gangline/gangline/transport"
)

// Endpoint is one rank of a Network.
type Endpoint struct {
	network *Network
	rank    int

	stopped atomic.Bool    // killed or closed
	flying  sync.WaitGroup // messages that have left this rank and not arrived
	heard   []time.Time    // until when; under network.mu

	bytesSent, bytesReceived       atomic.Int64
	messagesSent, messagesReceived atomic.Int64
}

var _ transport.Endpoint = (*Endpoint)(nil)

// Post implements transport.Endpoint. A short message that is waiting already
// is copied here and now.
func (e *Endpoint) Post(r *transport.Receive) error {
	l, err := e.pair(r.Peer, true)
	if err == nil {
		err = l.post(r)
	}
	if err != nil {
		return e.errorOf(r.Peer, "receive from", r.Tag, err)
	}
	return nil
}

// Send implements transport.Endpoint. If ctx ends while the message is on a
// link with limited bandwidth, the receive is as before.
func (e *Endpoint) Send(ctx context.Context, peer int, tag uint32, head, body []byte) error {
	l, err := e.pair(peer, false)
	if err == nil {
		if f := e.network.fault; f != nil {
			e.network.apply(f(Message{From: e.rank, To: peer, Tag: tag, Bytes: len(head) + len(body)}), e.rank, peer)
		}
		err = l.send(ctx, tag, head, body)
	}
	if err != nil {
		return e.errorOf(peer, "send to", tag, err)
	}
	return nil
}

// Alloc implements transport.Endpoint: all memory is alike here.
func (e *Endpoint) Alloc(n int) []byte { return transport.Ordinary(n) }

// Stats implements transport.Endpoint. LastHeard is now for every peer that is
// connected and not paused: it would have answered.
func (e *Endpoint) Stats() transport.Stats {
	w := e.network
	w.mu.Lock()
	defer w.mu.Unlock()
	s := transport.Stats{
		BytesSent: e.bytesSent.Load(), BytesReceived: e.bytesReceived.Load(),
		MessagesSent: e.messagesSent.Load(), MessagesReceived: e.messagesReceived.Load(),
		LastHeard: make([]time.Time, len(w.endpoints)),
	}
	now := time.Now()
	for peer := range s.LastHeard {
		s.LastHeard[peer] = e.heard[peer]
		if peer == e.rank || w.hears(e.rank, peer) {
			s.LastHeard[peer] = now
		}
	}
	return s
}

// Close implements transport.Endpoint. Messages whose Send has returned still
// arrive; Close waits for them.
func (e *Endpoint) Close() error {
	e.network.stop(e.rank, transport.ErrClosed, transport.ErrPeerClosed)
	e.flying.Wait()
	return nil
}

// Abort ends the endpoint as a crash would; see Network.Kill.
func (e *Endpoint) Abort() {
	e.network.Kill(e.rank)
	e.flying.Wait()
}

// pair returns the link from peer (in) or to it.
func (e *Endpoint) pair(peer int, in bool) (*link, error) {
	if peer < 0 || peer >= len(e.network.endpoints) || peer == e.rank {
		return nil, transport.ErrNoPeer
	}
	if in {
		return e.network.link(peer, e.rank), nil
	}
	return e.network.link(e.rank, peer), nil
}

func (e *Endpoint) errorOf(peer int, op string, tag uint32, err error) error {
	return &transport.PeerError{Rank: e.rank, Peer: peer, Op: op, Tag: tag, Err: err}
}
