// Package crew is what a process has of a job once it has joined: a session with the
// coordinator, an endpoint to other ranks, the streams of groups, and where it stands in
// the calls of groups, so that of one that cannot end all ranks get one verdict.
package crew

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/gangline/gangline/coord"
	"github.com/gangline/gangline/transport"
	"github.com/gangline/gangline/transport/sock"
	"github.com/gangline/gangline/transport/stream"
)

// Config says who joins, and how it is reached.
type Config struct {
	// Coord says who this rank is and where the coordinator; Join fills in DataAddress.
	Coord coord.JoinConfig
	// Network and Address are where this rank listens for data, as in sock.Config.
	Network, Address string
	// Generation is the agreed membership.
	Generation uint32
	// Checksum protects all that crosses a socket to other hosts.
	Checksum bool
	// Timeout bounds the wait for connections.
	Timeout time.Duration
	// Peers are the ranks to connect with; nil: all others.
	Peers []int
	// Check is asked when all ranks have joined, before any connection; may be nil.
	Check func(peers []coord.Peer) error
	// Logger takes what is not an error; nil discards it.
	Logger *slog.Logger
}

// Member is a rank that has joined.
type Member struct {
	Session  *coord.Session
	Endpoint transport.Endpoint
	// Address is where this rank is reached for data.
	Address string

	cfg      Config
	listener *sock.Listener
}

// Join meets the other ranks and connects with them. It fails with the verdict, if the
// job is over before that. After an error nothing is left.
func Join(ctx context.Context, cfg Config) (*Member, error) {
	c := &cfg.Coord
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	m := &Member{cfg: cfg}
	var err error
	m.listener, err = sock.Listen(sock.Config{
		Network: cfg.Network, Address: cfg.Address, Rank: c.Rank, World: c.World, Generation: cfg.Generation,
		Token: c.Token, Logger: cfg.Logger, Checksum: cfg.Checksum, DialTimeout: cfg.Timeout,
	})
	if err != nil {
		return nil, fmt.Errorf("cannot listen for data: %w", err)
	}
	m.Address = m.listener.Addr()
	c.DataAddress, c.Logger = m.Address, cfg.Logger
	if m.Session, err = coord.Join(ctx, *c); err != nil {
		m.Close()
		return nil, err
	}
	if err := m.connect(); err != nil { //nolint:contextcheck // the session's context ends with ctx
		err = m.Session.Fail(err)
		m.Close()
		return nil, err
	}
	return m, nil
}

// connect opens the connections.
func (m *Member) connect() error {
	if m.Session.Generation != uint64(m.cfg.Generation) {
		return fmt.Errorf("rank %d is of generation %d, the coordinator of %d", m.cfg.Coord.Rank, m.cfg.Generation, m.Session.Generation)
	}
	if m.cfg.Check != nil {
		if err := m.cfg.Check(m.Session.Peers); err != nil {
			return err
		}
	}
	addrs := make([]string, len(m.Session.Peers))
	for _, p := range m.Session.Peers {
		addrs[p.Rank] = p.Addr
	}
	// The session's context ends with that of Join, and when another rank fails.
	e, err := m.listener.Connect(m.Session.Context(), addrs, m.cfg.Peers)
	if err != nil {
		return fmt.Errorf("cannot connect: %w", err)
	}
	m.Endpoint = e
	return nil
}

// Streams opens the streams of a group, in which all its members take part. They tell
// each other under tag where; address is where this one listens for tcp, "" on one
// host. On systems that have no streams the error is errors.ErrUnsupported.
func (m *Member) Streams(ctx context.Context, tag uint32, members []int, path stream.Path, address string) (transport.Streams, error) {
	c := &m.cfg.Coord
	return stream.Open(ctx, stream.Config{
		Endpoint: m.Endpoint, Tag: tag, Rank: c.Rank, World: c.World, Generation: m.cfg.Generation, Token: c.Token,
		Members: members, Path: path, Address: address, Checksum: m.cfg.Checksum, Timeout: m.cfg.Timeout, Logger: m.cfg.Logger,
	})
}

// Abort is Close where the job is over by an error: it waits for nobody to hear a bye, for
// up to a second otherwise, since what is on the way is of no use any more and one of the
// ranks may be stopped.
func (m *Member) Abort() {
	if a, ok := m.Endpoint.(aborter); ok {
		a.Abort()
	}
	if err := m.Close(); err != nil {
		m.cfg.Logger.Debug("leave", "rank", m.cfg.Coord.Rank, "error", err)
	}
}

// aborter is what can end as a crash would: peers lose this rank.
type aborter interface{ Abort() }

// Abort closes streams in the same way.
func Abort(s transport.Streams) {
	if w, ok := s.(*Watched); ok {
		s = w.Streams
	}
	if a, ok := s.(aborter); ok {
		a.Abort()
	}
	_ = s.Close() // of what is over
}

// Close closes the connections, and then leaves. Streams are to be closed before.
func (m *Member) Close() error {
	var errs []error
	if m.Endpoint != nil {
		errs = append(errs, m.Endpoint.Close())
	}
	if m.Session != nil {
		errs = append(errs, m.Session.Close())
	}
	return errors.Join(append(errs, m.listener.Close())...)
}
