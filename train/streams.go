package train

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/gangline/gangline/job"
	"github.com/gangline/gangline/plan"
	"github.com/gangline/gangline/strategy"
	"github.com/gangline/gangline/transport"
	"github.com/gangline/gangline/transport/stream"
)

// streamTag is of the messages in which ranks tell each other where to open
// streams. Strategies count their tags from 1.
const streamTag = 1 << 30

// openStreams opens the streams of every group that sums over them in some plan. All
// its members do, in the order of the groups. A group without runs its collectives
// on messages: where the job asks for that or for checksums, which streams do not have,
// and on systems that have no streams.
func (m *member) openStreams(ctx context.Context, generation uint32, address string) error {
	n := &m.cfg.Job.Network
	if n.Path == job.PathMessages || n.Checksum || m.setup == nil {
		return nil
	}
	path, err := stream.ParsePath(n.Path)
	if err != nil {
		return fmt.Errorf("rank %d: %w", m.cfg.Rank, err)
	}
	groups := m.setup.Program.Plans[strategy.StepPlan].Groups
	m.streams = make([]transport.Streams, len(groups))
	for g, members := range groups {
		if len(members) < 2 || !slices.Contains(members, m.cfg.Rank) || !m.setup.sums(g) {
			continue
		}
		s, err := stream.Open(ctx, stream.Config{
			Endpoint: m.endpoint, Tag: streamTag + uint32(g), Rank: m.cfg.Rank, World: m.cfg.world(), Generation: generation,
			Token: m.cfg.Token, Members: members, Path: path, Address: address,
			Timeout: time.Duration(n.JoinTimeout), Logger: m.cfg.Logger,
		})
		if errors.Is(err, errors.ErrUnsupported) && n.Path == job.PathAuto {
			return nil
		}
		if err != nil {
			return fmt.Errorf("rank %d: cannot open streams among ranks %v: %w", m.cfg.Rank, members, err)
		}
		m.streams[g] = s
	}
	return nil
}

// sums reports whether some plan has a group's collectives that run on streams.
func (s *Setup) sums(group int) bool {
	for _, p := range s.Program.Plans {
		for _, tasks := range p.Ranks {
			if slices.ContainsFunc(tasks, func(t plan.Task) bool { return t.Kind == plan.Collective && t.Group == group }) {
				return true
			}
		}
	}
	return false
}

// streamAddress is where a rank listens for streams over tcp: at the address that
// others reach it by, or the loopback where all are on one host.
func streamAddress(network, address string) string {
	if network == "tcp" {
		return address
	}
	return ""
}

// stats is what this rank has moved, by messages and by streams.
func (m *member) stats() transport.Stats {
	all := m.endpoint.Stats()
	for _, s := range m.streams {
		if s == nil {
			continue
		}
		more := s.Stats()
		all.BytesSent += more.BytesSent
		all.BytesReceived += more.BytesReceived
		all.MessagesSent += more.MessagesSent
		all.MessagesReceived += more.MessagesReceived
	}
	return all
}

// closeStreams ends the streams before the endpoint.
func (m *member) closeStreams() error {
	var errs []error
	for _, s := range m.streams {
		if s != nil {
			errs = append(errs, s.Close())
		}
	}
	return errors.Join(errs...)
}
