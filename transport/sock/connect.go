package sock

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"sync"
	"time"

	"github.com/gangline/gangline/transport"
)

// ConnectError says which ranks are missing.
type ConnectError struct {
	Rank    int   // this rank
	Missing []int // ranks without a connection, ascending
	After   time.Duration
	Err     error // why, for each that we dialed; and whom we refused
}

// Error implements error.
func (e *ConnectError) Error() string {
	what := "rank"
	if len(e.Missing) > 1 {
		what = "ranks"
	}
	return fmt.Sprintf("rank %d: connect: no connection with %s %s after %v: %v",
		e.Rank, what, list(e.Missing), e.After.Round(time.Millisecond), e.Err)
}

// Unwrap returns the cause.
func (e *ConnectError) Unwrap() error { return e.Err }

// list writes at most eight ranks.
func list(ranks []int) string {
	const most = 8
	var s []byte
	for i, r := range ranks {
		if i == most {
			return fmt.Sprintf("%s and %d more", s, len(ranks)-most)
		}
		if i > 0 {
			s = append(s, ", "...)
		}
		s = fmt.Append(s, r)
	}
	return string(s)
}

// Connect connects this rank with peers, or with all others if peers is nil,
// and returns their endpoint. Both ranks of a pair must name each other. addrs
// holds every rank's address; only those of lower peers are used. Connect dials
// again and again until ctx or Config.DialTimeout ends; the error, a
// ConnectError, names the ranks that are missing. A rank that says this one is
// wrong (token, world, a stale generation) ends it at once. In any case the
// listener is closed.
func (l *Listener) Connect(ctx context.Context, addrs []string, peers []int) (transport.Endpoint, error) {
	conns, err := l.Conns(ctx, addrs, peers)
	if err != nil {
		return nil, err
	}
	return newEndpoint(l.cfg, conns), nil
}

// Conns is Connect for whoever makes something else of the connections, which it
// returns by rank, nil where there is none. Both sides of each have proved that they
// are the ranks they say; not a byte of what follows was read. The caller closes them.
func (l *Listener) Conns(ctx context.Context, addrs []string, peers []int) ([]net.Conn, error) {
	defer l.Close()
	cfg := l.cfg
	peers, err := checkPeers(cfg, addrs, peers)
	if err != nil {
		return nil, fmt.Errorf("rank %d: connect: %w", cfg.Rank, err)
	}
	begin := time.Now()
	ctx, cancel := context.WithTimeoutCause(ctx, cfg.DialTimeout, fmt.Errorf("dial timeout of %v", cfg.DialTimeout))
	defer cancel()
	ctx, fail := context.WithCancelCause(ctx) // one that is refused for good stops the others
	defer fail(nil)

	split, _ := slices.BinarySearch(peers, cfg.Rank)
	conns := make([]net.Conn, cfg.World)
	errs := make([]error, split)
	var wg sync.WaitGroup
	for i, peer := range peers[:split] {
		wg.Go(func() {
			if conns[peer], errs[i] = dial(ctx, cfg, peer, addrs[peer]); errs[i] != nil {
				errs[i] = fmt.Errorf("rank %d at %s: %w", peer, addrs[peer], errs[i])
				fail(errs[i])
			}
		})
	}
	for peer, c := range l.take(ctx, peers[split:]) {
		conns[peer] = c
	}
	wg.Wait()
	var missing []int
	for _, peer := range peers {
		if conns[peer] == nil {
			missing = append(missing, peer)
		}
	}
	if len(missing) == 0 {
		for _, c := range conns {
			if t, ok := c.(*net.TCPConn); ok {
				tune(t)
			}
		}
		return conns, nil
	}
	for _, c := range conns {
		if c != nil {
			closeQuietly(c)
		}
	}
	return nil, &ConnectError{Rank: cfg.Rank, Missing: missing, After: time.Since(begin), Err: l.why(ctx, errs)}
}

// tune sets what a connection is better with; that it fails is no reason to
// go without the connection.
func tune(t *net.TCPConn) {
	_ = t.SetNoDelay(true)
	_ = t.SetKeepAliveConfig(net.KeepAliveConfig{Enable: true, Idle: 10 * time.Second, Interval: 5 * time.Second, Count: 4})
}

// why joins what is known about a failed Connect.
func (l *Listener) why(ctx context.Context, errs []error) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.refused > 0 {
		errs = append(errs, fmt.Errorf("refused %d connections, the last from %w", l.refused, l.lastWhy))
	}
	if err := errors.Join(errs...); err != nil {
		return err
	}
	if err := context.Cause(ctx); err != nil {
		return err
	}
	return transport.ErrClosed
}

func checkPeers(cfg Config, addrs []string, peers []int) ([]int, error) {
	if len(addrs) != cfg.World {
		return nil, fmt.Errorf("%d addresses for %d ranks", len(addrs), cfg.World)
	}
	if peers == nil {
		for r := range cfg.World {
			if r != cfg.Rank {
				peers = append(peers, r)
			}
		}
		return peers, nil
	}
	peers = slices.Compact(slices.Sorted(slices.Values(peers)))
	for _, p := range peers {
		if p < 0 || p >= cfg.World || p == cfg.Rank {
			return nil, fmt.Errorf("rank %d: %w", p, transport.ErrNoPeer)
		}
	}
	return peers, nil
}

// dial connects with a lower rank. It tries until it is welcome, refused for
// good, or ctx ends, and then returns the last reason.
func dial(ctx context.Context, cfg Config, peer int, addr string) (net.Conn, error) {
	var last error
	for wait := retryFirst; ; wait = min(2*wait, retryMost) {
		c, err := dialOnce(ctx, cfg, peer, addr)
		if err == nil {
			return c, nil
		}
		if r := new(refusal); errors.As(err, &r) && r.final {
			return nil, err
		}
		if last == nil || ctx.Err() == nil {
			last = err
		}
		if err := sleep(ctx, wait); err != nil {
			return nil, fmt.Errorf("%w (%w)", last, err)
		}
	}
}

func dialOnce(ctx context.Context, cfg Config, peer int, addr string) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, cfg.HandshakeTimeout)
	defer cancel()
	var d net.Dialer
	c, err := d.DialContext(ctx, cfg.Network, addr)
	if err != nil {
		return nil, err
	}
	stop := context.AfterFunc(ctx, func() { closeQuietly(c) })
	deadline, _ := ctx.Deadline()
	if err = c.SetDeadline(deadline); err == nil {
		err = greet(c, cfg, peer)
	}
	if !stop() && err == nil {
		err = context.Cause(ctx)
	}
	if err == nil {
		err = c.SetDeadline(time.Time{})
	}
	if err != nil {
		closeQuietly(c)
		return nil, err
	}
	return c, nil
}
