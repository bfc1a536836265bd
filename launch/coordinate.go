package launch

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"sync"
	"time"

	"github.com/gangline/gangline/coord"
)

// Coordinator is what rank 0 runs where no launcher coordinates.
type Coordinator struct {
	// Server answers the ranks.
	Server *coord.Server

	meeting *meeting
	serving sync.WaitGroup
	closed  chan struct{}
	once    sync.Once
	err     error // of serving; valid when it has ended
}

// Meet makes a place of FromEnv one that can be joined: with an address and a token.
// For rank 0 of a job whose launcher does not coordinate, it starts the coordinator
// with cfg, of which World, Token and Generation are set here; the caller must close it.
// Other ranks get none (nil). Where ranks meet in private, they wait for rank 0, for
// cfg.JoinTimeout at most; what is in the directory is gone when all have joined.
func Meet(ctx context.Context, p Place, cfg coord.ServerConfig) (Place, *Coordinator, error) {
	if cfg.JoinTimeout <= 0 {
		cfg.JoinTimeout = coord.DefaultJoinTimeout
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	if p.Hosted {
		return p, nil, nil
	}
	if p.Rank != 0 {
		if p.Private == "" {
			return p, nil, nil
		}
		ctx, cancel := context.WithTimeoutCause(ctx, cfg.JoinTimeout, fmt.Errorf("rank 0 did not come within %v", cfg.JoinTimeout))
		defer cancel()
		if err := find(ctx, &p); err != nil {
			return p, nil, fmt.Errorf("rank %d: cannot meet rank 0 in %s: %w", p.Rank, p.Private, err)
		}
		return p, nil, nil
	}
	c := &Coordinator{closed: make(chan struct{})}
	ln, err := c.listen(ctx, &p)
	if err != nil {
		return p, nil, err
	}
	cfg.World, cfg.Token, cfg.Generation = p.World, p.Token, uint64(p.Attempt)+1
	if c.Server, err = coord.NewServer(cfg); err != nil {
		return p, nil, errors.Join(err, ln.Close(), c.meeting.end())
	}
	c.serving.Go(func() { c.err = c.Server.Serve(ln) })
	c.serving.Go(func() {
		select {
		case <-c.Server.Started():
		case <-c.closed:
		}
		if err := c.meeting.end(); err != nil {
			cfg.Logger.Debug("leave the private place", "error", err)
		}
	})
	return p, c, nil
}

// listen opens the coordinator's port.
func (c *Coordinator) listen(ctx context.Context, p *Place) (net.Listener, error) {
	if p.Private != "" {
		m, err := hold(p.Private)
		if err != nil {
			return nil, fmt.Errorf("rank 0 cannot coordinate in %s: %w", p.Private, err)
		}
		c.meeting, p.Address, p.Token = m, m.address(), m.token
		return m.listener, nil
	}
	var listen net.ListenConfig
	ln, err := listen.Listen(ctx, "tcp", p.Address)
	if err != nil {
		return nil, fmt.Errorf("rank 0 cannot coordinate at %s: %w", p.Address, err)
	}
	return ln, nil
}

// Close ends the generation if it is not over, and returns when nothing is left.
func (c *Coordinator) Close() error {
	c.once.Do(func() {
		close(c.closed)
		err := c.Server.Close()
		c.serving.Wait()
		c.err = errors.Join(c.err, err)
	})
	return c.err
}

// Waits between two looks for rank 0.
const (
	lookFirst = 5 * time.Millisecond
	lookMost  = 200 * time.Millisecond
)

// find waits for rank 0 to hold the meeting of a private place.
func find(ctx context.Context, p *Place) error {
	for wait := lookFirst; ; wait = min(2*wait, lookMost) {
		var err error
		if p.Address, p.Token, err = look(ctx, p.Private); err == nil {
			return nil
		}
		timer := time.NewTimer(wait)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return fmt.Errorf("%w (%w)", context.Cause(ctx), err)
		}
	}
}
