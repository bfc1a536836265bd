package sock

import (
	"context"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gangline/gangline/transport"
	"github.com/gangline/gangline/wire"
)

// Endpoint is one rank's connections. Listener.Connect makes it.
type Endpoint struct {
	cfg   Config
	peers []*peer // by rank; nil where there is no connection
	stop  chan struct{}
	once  sync.Once
	wg    sync.WaitGroup

	bytesSent, bytesReceived       atomic.Int64
	messagesSent, messagesReceived atomic.Int64
}

var _ transport.Endpoint = (*Endpoint)(nil)

// newEndpoint takes over the connections, by rank; nil is none.
func newEndpoint(cfg Config, conns []net.Conn) *Endpoint {
	e := &Endpoint{cfg: cfg, peers: make([]*peer, len(conns)), stop: make(chan struct{})}
	for rank, c := range conns {
		if c == nil {
			continue
		}
		e.peers[rank] = newPeer(e, rank, c)
	}
	for _, p := range e.peers {
		if p != nil {
			e.wg.Go(p.readLoop)
			e.wg.Go(p.flushLoop)
		}
	}
	e.wg.Go(e.pingLoop)
	return e
}

// Post implements transport.Endpoint. The credit leaves with the next message
// for that peer, or at once if there is none.
func (e *Endpoint) Post(r *transport.Receive) error {
	p := e.peer(r.Peer)
	if p == nil {
		return e.errorOf(r.Peer, "receive from", r.Tag, transport.ErrNoPeer)
	}
	if err := p.post(r); err != nil {
		return e.errorOf(r.Peer, "receive from", r.Tag, err)
	}
	return nil
}

// Send implements transport.Endpoint. If ctx ends after the message has begun
// to leave, the connection with peer is given up.
func (e *Endpoint) Send(ctx context.Context, peer int, tag uint32, head, body []byte) error {
	p := e.peer(peer)
	if p == nil {
		return e.errorOf(peer, "send to", tag, transport.ErrNoPeer)
	}
	if err := p.send(ctx, tag, head, body); err != nil {
		return e.errorOf(peer, "send to", tag, err)
	}
	return nil
}

// Alloc implements transport.Endpoint: all memory is alike here.
func (e *Endpoint) Alloc(n int) []byte { return transport.Ordinary(n) }

// Stats implements transport.Endpoint. LastHeard counts pings too; it is the
// zero time for ranks that this one is not connected with.
func (e *Endpoint) Stats() transport.Stats {
	s := transport.Stats{
		BytesSent: e.bytesSent.Load(), BytesReceived: e.bytesReceived.Load(),
		MessagesSent: e.messagesSent.Load(), MessagesReceived: e.messagesReceived.Load(),
		LastHeard: make([]time.Time, len(e.peers)),
	}
	for rank, p := range e.peers {
		if p != nil {
			s.LastHeard[rank] = time.Unix(0, p.lastHeard.Load())
		}
	}
	s.LastHeard[e.cfg.Rank] = time.Now()
	return s
}

// Close implements transport.Endpoint. It says bye to all peers and waits until
// they have heard it, a second at most.
func (e *Endpoint) Close() error {
	e.once.Do(func() {
		close(e.stop)
		var wg sync.WaitGroup
		for _, p := range e.peers {
			if p != nil {
				wg.Go(p.close)
			}
		}
		wg.Wait()
	})
	e.wg.Wait()
	return nil
}

// Abort ends the endpoint as a crash would: no bye, the peers lose this rank.
func (e *Endpoint) Abort() {
	e.once.Do(func() {
		close(e.stop)
		for _, p := range e.peers {
			if p != nil {
				p.fail(transport.ErrClosed)
				p.shut()
			}
		}
	})
	e.wg.Wait()
}

// pingLoop lets idle peers hear that this rank lives.
func (e *Endpoint) pingLoop() {
	tick := time.NewTicker(pingEvery)
	defer tick.Stop()
	for {
		select {
		case <-e.stop:
			return
		case now := <-tick.C:
			for _, p := range e.peers {
				if p != nil && now.UnixNano()-p.lastSent.Load() >= int64(pingEvery)/2 {
					p.ping()
				}
			}
		}
	}
}

func (e *Endpoint) peer(rank int) *peer {
	if rank < 0 || rank >= len(e.peers) {
		return nil
	}
	return e.peers[rank]
}

func (e *Endpoint) errorOf(peer int, op string, tag uint32, err error) error {
	return &transport.PeerError{Rank: e.cfg.Rank, Peer: peer, Op: op, Tag: tag, Err: err}
}

func (e *Endpoint) header(kind wire.Kind, tag uint32) wire.Header {
	return wire.Header{Kind: kind, Generation: e.cfg.Generation, Tag: tag}
}
