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
	"github.com/gangline/gangline/coord/crew"
	"github.com/gangline/gangline/launch"
	"github.com/gangline/gangline/transport"
	"github.com/gangline/gangline/transport/stream"
)

// joinTimeout bounds the time until all ranks have met.
const joinTimeout = 30 * time.Second

// mates are the ranks of a run, from the place of one.
type mates struct {
	place    launch.Place
	crew     *crew.Member
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
	address, err := launch.DataAddress(ctx, "tcp", place.Address)
	if err != nil {
		return nil, fmt.Errorf("rank %d: %w", place.Rank, err)
	}
	c, err := crew.Join(ctx, crew.Config{
		Coord: coord.JoinConfig{
			Address: place.Address, Token: place.Token, Rank: place.Rank, World: place.World,
			Role: "bench", Digest: digest, Led: !place.Hosted, Timeout: joinTimeout,
		},
		Network: "tcp", Address: address, Generation: uint32(place.Attempt) + 1, Timeout: joinTimeout,
	})
	if err != nil {
		return nil, fmt.Errorf("rank %d: %w", place.Rank, err)
	}
	defer func() { _ = c.Close() }() // Done or Fail has said all by then
	m, err := matesOf(place, c)
	if err == nil {
		report, err = work(c.Session.Context(), m) //nolint:contextcheck // it is made from ctx
	}
	if err != nil {
		return nil, c.Session.Fail(err)
	}
	return report, c.Session.Done(ctx, report)
}

// matesOf are those of a crew.
func matesOf(place launch.Place, c *crew.Member) (*mates, error) {
	host, _, err := net.SplitHostPort(c.Address)
	if err != nil {
		return nil, err
	}
	m := &mates{
		place: place, crew: c, endpoint: c.Endpoint, address: net.JoinHostPort(host, "0"),
		group: make([]int, place.World), hosts: make([]string, place.World),
	}
	for _, p := range c.Session.Peers {
		m.group[p.Rank], m.hosts[p.Rank] = p.Rank, p.Host
	}
	return m, nil
}

// open opens the streams of some ranks, this one among them.
func (m *mates) open(ctx context.Context, path stream.Path, members []int, tag uint32) (transport.Streams, error) {
	s, err := m.crew.Streams(ctx, tag, members, path, m.address)
	if errors.Is(err, errors.ErrUnsupported) && path == stream.Auto {
		return transport.NewMessageStreams(m.endpoint, m.place.Rank, members, tag, 0), nil
	}
	return s, err
}

// party is this rank's place among some.
func (m *mates) party(streams transport.Streams, members []int, tag uint32) collective.Party {
	return collective.Party{Endpoint: m.endpoint, Streams: streams, Group: members, Index: slices.Index(members, m.place.Rank), Tag: tag}
}
