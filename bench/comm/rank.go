package comm

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
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

// generation of ranks that are started once.
const generation = 1

// addressTag is of the messages in which ranks exchange the addresses of their
// streams, meterTag of those in which they exchange times.
const (
	addressTag = 1
	meterTag   = 2
)

// Rank is the life of one rank: it meets the others, times what is asked for, and
// reports. Rank 0 reports the results as JSON, for whoever launched it.
func Rank(ctx context.Context, c Config, place launch.Place) error {
	l, err := sock.Listen(sock.Config{
		Network: "tcp", Address: "127.0.0.1:0", Rank: place.Rank, World: place.World,
		Generation: generation, Token: place.Token, DialTimeout: joinTimeout,
	})
	if err != nil {
		return fmt.Errorf("rank %d: %w", place.Rank, err)
	}
	session, err := coord.Join(ctx, coord.JoinConfig{
		Address: place.Address, Token: place.Token, Rank: place.Rank, World: place.World,
		Role: "bench", DataAddress: l.Addr(), Digest: fmt.Sprintf("%+v", c), Timeout: joinTimeout,
	})
	if err != nil {
		return errors.Join(err, l.Close())
	}
	defer func() { _ = session.Close() }()                             // Done or Fail has said all by then
	report, err := work(session.Context(), c, place, l, session.Peers) //nolint:contextcheck // it is made from ctx
	if err != nil {
		return session.Fail(err)
	}
	return session.Done(ctx, report)
}

// work connects with the others and times. The report is empty but for rank 0.
func work(ctx context.Context, c Config, place launch.Place, l *sock.Listener, peers []coord.Peer) (report []byte, err error) {
	addrs := make([]string, place.World)
	group := make([]int, place.World)
	for _, p := range peers {
		addrs[p.Rank], group[p.Rank] = p.Addr, p.Rank
	}
	e, err := l.Connect(ctx, addrs, nil)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, e.Close()) }()
	streams, err := open(ctx, c, place, e, group)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, streams.Close()) }()
	results, err := all(ctx, c, collective.Party{Endpoint: e, Streams: streams, Group: group, Index: place.Rank, Tag: meterTag})
	if err != nil || place.Rank != 0 {
		return nil, err
	}
	return json.Marshal(results)
}

// open opens the streams that are timed.
func open(ctx context.Context, c Config, place launch.Place, e transport.Endpoint, group []int) (transport.Streams, error) {
	path, err := stream.ParsePath(c.Path)
	if err != nil {
		return nil, err
	}
	s, err := stream.Open(ctx, stream.Config{
		Endpoint: e, Tag: addressTag, Rank: place.Rank, World: place.World, Generation: generation, Token: place.Token,
		Members: group, Path: path, Timeout: joinTimeout,
	})
	if errors.Is(err, errors.ErrUnsupported) && c.Path == "auto" {
		return transport.NewMessageStreams(e, place.Rank, group, addressTag, 0), nil
	}
	return s, err
}

// all times every size by every algorithm asked for.
func all(ctx context.Context, c Config, p collective.Party) ([]Result, error) {
	m, err := newMeter(p)
	if err != nil {
		return nil, err
	}
	var results []Result
	for _, bytes := range c.Bytes {
		algorithms, err := c.chosen(bytes)
		if err != nil {
			return nil, err
		}
		for _, a := range algorithms {
			r, err := m.time(ctx, a, bytes, c.iterations(bytes))
			if err != nil {
				return nil, fmt.Errorf("%s by %s of %d bytes: %w", a.op, a.name, bytes, err)
			}
			r.Path = c.Path
			results = append(results, r)
		}
	}
	return results, nil
}
