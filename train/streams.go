package train

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/gangline/gangline/coord/crew"
	"github.com/gangline/gangline/coord/verdict"
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
// on messages: where the job asks for that, and on systems that have no streams. Groups
// are put on the board, so that all know where a rank stands in them.
func (m *member) openStreams(ctx context.Context, address string) error {
	n := &m.cfg.Job.Network
	path, err := stream.ParsePath(n.Path)
	if messages := n.Path == job.PathMessages; err != nil && !messages {
		return fmt.Errorf("rank %d: %w", m.cfg.Rank, err)
	} else if !messages {
		m.streams = make([]transport.Streams, len(m.groups()))
	}
	for g, members := range m.groups() {
		if m.streams == nil || len(members) < 2 || !slices.Contains(members, m.cfg.Rank) || !m.setup.sums(g) {
			continue
		}
		s, err := m.joined.Streams(ctx, streamTag+uint32(g), members, path, address)
		if errors.Is(err, errors.ErrUnsupported) && n.Path == job.PathAuto {
			m.streams = nil
			continue
		}
		if err != nil {
			return fmt.Errorf("rank %d: cannot open streams among ranks %v: %w", m.cfg.Rank, members, err)
		}
		w := crew.NewWatched(s, members, m.cfg.Rank)
		m.streams[g] = w
		m.board.Watch(g, w)
	}
	return nil
}

// groups are those of all plans.
func (m *member) groups() [][]int { return m.setup.Program.Plans[strategy.StepPlan].Groups }

// newBoard puts the groups on it.
func (m *member) newBoard() {
	for _, members := range m.groups() {
		name := verdict.Ranks(members)
		if len(members) == m.setup.Cluster.Workers {
			name = "workers"
		}
		m.board.Add(name, members)
	}
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
		if s != nil && m.failed {
			crew.Abort(s)
		} else if s != nil {
			errs = append(errs, s.Close())
		}
	}
	return errors.Join(errs...)
}
