package comm

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/gangline/gangline/collective"
	"github.com/gangline/gangline/launch"
	"github.com/gangline/gangline/transport/stream"
)

// addressTag is of the messages in which ranks exchange the addresses of their
// streams, meterTag of those in which they exchange times.
const (
	addressTag = 1
	meterTag   = 2
)

// Rank is the life of one rank: it meets the others, times what is asked for, and
// reports. Rank 0 reports the results as JSON, for whoever launched it.
func Rank(ctx context.Context, c Config, place launch.Place) error {
	_, err := meet(ctx, place, fmt.Sprintf("%+v", c), func(ctx context.Context, m *mates) (report []byte, err error) {
		path, err := stream.ParsePath(c.Path)
		if err != nil {
			return nil, err
		}
		streams, err := m.open(ctx, path, m.group, addressTag)
		if err != nil {
			return nil, err
		}
		defer func() { err = errors.Join(err, streams.Close()) }()
		results, err := all(ctx, c, m.party(streams, m.group, meterTag))
		if err != nil || place.Rank != 0 {
			return nil, err
		}
		return json.Marshal(results)
	})
	return err
}

// all times every size by every algorithm asked for.
func all(ctx context.Context, c Config, p collective.Party) ([]Result, error) {
	m, err := newMeter(p)
	if err != nil {
		return nil, err
	}
	m.hosts = c.hosts()
	var results []Result
	for _, bytes := range c.sizes() {
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
