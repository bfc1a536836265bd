package comm

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"time"

	"github.com/gangline/gangline/collective"
	"github.com/gangline/gangline/coord"
	"github.com/gangline/gangline/launch"
	"github.com/gangline/gangline/transport"
	"github.com/gangline/gangline/transport/sock"
	"github.com/gangline/gangline/transport/stream"
)

// joinTimeout bounds the time until all ranks have met.
const joinTimeout = 30 * time.Second

// mates are the ranks of a run, from the place of one.
type mates struct {
	place    launch.Place
	endpoint transport.Endpoint
	group    []int    // all of them
	hosts    []string // by rank
	address  string   // where this rank listens for streams over tcp
}

// meet lets the ranks meet, who must all do the same (digest), and connects them. What
// work returns on rank 0 is the report of the run, for whoever launched it.
func meet(ctx context.Context, place launch.Place, digest string, work func(context.Context, *mates) ([]byte, error)) (report []byte, err error) {
	place, coordinator, err := launch.Meet(ctx, place, coord.ServerConfig{JoinTimeout: joinTimeout})
	if err != nil {
		return nil, err
	}
	if coordinator != nil { // of a run that no launcher of ours has started
		defer func() {
			if err == nil {
				_, err = coordinator.Server.Wait(ctx)
			}
			err = errors.Join(err, coordinator.Close())
		}()
	}
	m := &mates{place: place}
	address, err := launch.DataAddress(ctx, "tcp", place.Address)
	if err != nil {
		return nil, fmt.Errorf("rank %d: %w", place.Rank, err)
	}
	l, err := sock.Listen(sock.Config{
		Network: "tcp", Address: address, Rank: place.Rank, World: place.World,
		Generation: m.generation(), Token: place.Token, DialTimeout: joinTimeout,
	})
	if err != nil {
		return nil, fmt.Errorf("rank %d: %w", place.Rank, err)
	}
	session, err := coord.Join(ctx, coord.JoinConfig{
		Address: place.Address, Token: place.Token, Rank: place.Rank, World: place.World,
		Role: "bench", DataAddress: l.Addr(), Digest: digest, Led: !place.Hosted, Timeout: joinTimeout,
	})
	if err != nil {
		return nil, errors.Join(err, l.Close())
	}
	defer func() { _ = session.Close() }()                                           // Done or Fail has said all by then
	if report, err = m.work(session.Context(), l, session.Peers, work); err != nil { //nolint:contextcheck // it is made from ctx
		return nil, session.Fail(err)
	}
	return report, session.Done(ctx, report)
}

// work connects with the others and lets them work.
func (m *mates) work(ctx context.Context, l *sock.Listener, peers []coord.Peer, work func(context.Context, *mates) ([]byte, error)) (report []byte, err error) {
	addrs := make([]string, m.place.World)
	m.group, m.hosts = make([]int, m.place.World), make([]string, m.place.World)
	for _, p := range peers {
		addrs[p.Rank], m.group[p.Rank], m.hosts[p.Rank] = p.Addr, p.Rank, p.Host
	}
	host, _, err := net.SplitHostPort(l.Addr())
	if err != nil {
		return nil, errors.Join(err, l.Close())
	}
	m.address = net.JoinHostPort(host, "0")
	if m.endpoint, err = l.Connect(ctx, addrs, nil); err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, m.endpoint.Close()) }()
	return work(ctx, m)
}

// generation is the number of this attempt.
func (m *mates) generation() uint32 { return uint32(m.place.Attempt) + 1 }

// open opens the streams of some ranks, this one among them.
func (m *mates) open(ctx context.Context, path stream.Path, members []int, tag uint32) (transport.Streams, error) {
	s, err := stream.Open(ctx, stream.Config{
		Endpoint: m.endpoint, Tag: tag, Rank: m.place.Rank, World: m.place.World, Generation: m.generation(), Token: m.place.Token,
		Members: members, Path: path, Address: m.address, Timeout: joinTimeout,
	})
	if errors.Is(err, errors.ErrUnsupported) && path == stream.Auto {
		return transport.NewMessageStreams(m.endpoint, m.place.Rank, members, tag, 0), nil
	}
	return s, err
}

// party is this rank's place among some.
func (m *mates) party(streams transport.Streams, members []int, tag uint32) collective.Party {
	return collective.Party{Endpoint: m.endpoint, Streams: streams, Group: members, Index: slices.Index(members, m.place.Rank), Tag: tag}
}
