package comm

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
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
	m, err := crew.Join(ctx, crew.Config{
		Coord: coord.JoinConfig{
			Address: place.Address, Token: place.Token, Rank: place.Rank, World: place.World,
			Role: "bench", Digest: fmt.Sprintf("%+v", c), Timeout: joinTimeout,
		},
		Network: "tcp", Address: "127.0.0.1:0", Generation: generation, Timeout: joinTimeout,
	})
	if err != nil {
		return fmt.Errorf("rank %d: %w", place.Rank, err)
	}
	defer func() { _ = m.Close() }()               // Done or Fail has said all by then
	report, err := work(m.Session.Context(), c, m) //nolint:contextcheck // it is made from ctx
	if err != nil {
		return m.Session.Fail(err)
	}
	return m.Session.Done(ctx, report)
}

// work opens streams and times. The report is empty but for rank 0.
func work(ctx context.Context, c Config, m *crew.Member) (report []byte, err error) {
	group := make([]int, len(m.Session.Peers))
	for i := range group {
		group[i] = i
	}
	streams, err := open(ctx, c, m, group)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, streams.Close()) }()
	rank := m.Session.Rank()
	results, err := all(ctx, c, collective.Party{Endpoint: m.Endpoint, Streams: streams, Group: group, Index: rank, Tag: meterTag})
	if err != nil || rank != 0 {
		return nil, err
	}
	return json.Marshal(results)
}

// open opens the streams that are timed.
func open(ctx context.Context, c Config, m *crew.Member, group []int) (transport.Streams, error) {
	path, err := stream.ParsePath(c.Path)
	if err != nil {
		return nil, err
	}
	s, err := m.Streams(ctx, addressTag, group, path, "")
	if errors.Is(err, errors.ErrUnsupported) && c.Path == "auto" {
		return transport.NewMessageStreams(m.Endpoint, m.Session.Rank(), group, addressTag, 0), nil
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
