package sock

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/gangline/gangline/wire"
)

// Listener takes the calls of higher ranks from the moment it is made.
type Listener struct {
	cfg Config
	ln  net.Listener
	dir string // of a unix socket that we made ourselves

	ctx    context.Context //nolint:containedctx // ends with Close, as do the goroutines it is for
	cancel context.CancelFunc
	wg     sync.WaitGroup
	places chan struct{} // one for each handshake under way

	mu       sync.Mutex
	arrived  map[int]net.Conn // by rank, until Connect takes them
	settled  bool             // Connect or Close was called: nobody is taken in any more
	refused  int
	lastWhy  error // the last refusal
	news     chan struct{}
	pendings map[net.Conn]bool // in a handshake
}

// Listen begins to listen. The listener is closed by Connect, or by Close if
// Connect is never called.
func Listen(cfg Config) (*Listener, error) {
	if err := cfg.Validate(); err != nil {
		return nil, fmt.Errorf("listen: %w", err)
	}
	l := &Listener{cfg: cfg.withDefaults(), arrived: make(map[int]net.Conn), pendings: make(map[net.Conn]bool)}
	address := cfg.Address
	if cfg.Network == "unix" && address == "" {
		dir, err := os.MkdirTemp("", "gangline-")
		if err != nil {
			return nil, fmt.Errorf("rank %d: listen: %w", cfg.Rank, err)
		}
		l.dir, address = dir, filepath.Join(dir, fmt.Sprintf("rank%d.sock", cfg.Rank))
	}
	ln, err := net.Listen(cfg.Network, address)
	if err != nil {
		l.removeDir()
		return nil, fmt.Errorf("rank %d: %w", cfg.Rank, err)
	}
	l.ln = ln
	l.ctx, l.cancel = context.WithCancel(context.Background())
	l.places = make(chan struct{}, cfg.World+MaxStrangers)
	l.news = make(chan struct{}, 1)
	l.wg.Go(l.accept)
	return l, nil
}

// Addr returns the address others dial, with the port that was picked.
func (l *Listener) Addr() string { return l.ln.Addr().String() }

// Close ends the listener and the connections that no endpoint has taken.
func (l *Listener) Close() error {
	l.mu.Lock()
	l.settled = true
	for c := range l.pendings {
		closeQuietly(c)
	}
	for rank, c := range l.arrived {
		closeQuietly(c)
		delete(l.arrived, rank)
	}
	l.mu.Unlock()
	l.cancel()
	err := l.ln.Close()
	l.wg.Wait()
	l.removeDir()
	if errors.Is(err, net.ErrClosed) {
		return nil
	}
	return err
}

func (l *Listener) removeDir() {
	if l.dir != "" {
		_ = os.RemoveAll(l.dir) // left-overs in the temporary directory harm nobody
	}
}

// accept takes calls until the listener is closed. It stops taking while all
// places are busy; each is free again after a handshake's time at most.
func (l *Listener) accept() {
	for {
		select {
		case l.places <- struct{}{}:
		case <-l.ctx.Done():
			return
		}
		c, err := l.ln.Accept()
		if err != nil {
			if l.ctx.Err() != nil || errors.Is(err, net.ErrClosed) {
				return
			}
			l.cfg.Logger.Warn("accept failed", "rank", l.cfg.Rank, "error", err)
			<-l.places
			if sleep(l.ctx, retryFirst) != nil { // out of file descriptors, perhaps
				return
			}
			continue
		}
		l.wg.Go(func() {
			defer func() { <-l.places }()
			l.meet(c)
		})
	}
}

// meet shakes hands with whoever is behind c and gives it a place or refuses it.
func (l *Listener) meet(c net.Conn) {
	if !l.enter(c) {
		closeQuietly(c)
		return
	}
	begin := time.Now()
	err := c.SetDeadline(begin.Add(l.cfg.HandshakeTimeout))
	var rank int
	var proof wire.Proof
	if err == nil {
		rank, proof, err = receive(c, l.cfg)
	}
	proved := err == nil
	if proved {
		err = l.admit(c, rank, proof)
	} else {
		l.leave(c)
	}
	if err == nil {
		return
	}
	defer closeQuietly(c)
	if l.ctx.Err() != nil {
		return // it was us who hung up
	}
	refuse(c, l.cfg, err)
	l.mu.Lock()
	l.refused++
	l.lastWhy = fmt.Errorf("%v: %w", remote(c), err)
	l.mu.Unlock()
	level := slog.LevelWarn
	if _, refused := errors.AsType[*refusal](err); errors.Is(err, errHungUp) || proved && !refused {
		level = slog.LevelDebug // a rank of ours that ended meanwhile says itself why
	}
	l.cfg.Logger.LogAttrs(l.ctx, level, "refused a connection", slog.Int("rank", l.cfg.Rank),
		slog.String("remote", remote(c)), slog.Any("reason", err), slog.Duration("after", time.Since(begin)))
}

func (l *Listener) enter(c net.Conn) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.settled {
		l.pendings[c] = true
	}
	return !l.settled
}

func (l *Listener) leave(c net.Conn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.pendings, c)
}

// admit gives c the place of rank, which has proved itself, and welcomes it.
func (l *Listener) admit(c net.Conn, rank int, proof wire.Proof) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.pendings, c)
	if l.settled {
		return net.ErrClosed
	}
	if first, ok := l.arrived[rank]; ok {
		return &refusal{reason: wire.ReasonDuplicate, text: fmt.Sprintf("rank %d is %s already", rank, remote(first))}
	}
	// The welcome is some 64 bytes into an empty buffer: it does not block.
	if err := writeFrame(c, wire.Header{Kind: wire.Welcome, Generation: l.cfg.Generation}, proof[:]); err != nil {
		return err
	}
	if err := c.SetDeadline(time.Time{}); err != nil {
		return err
	}
	l.arrived[rank] = c
	select {
	case l.news <- struct{}{}:
	default:
	}
	return nil
}

// take waits until the ranks have called and returns their connections; if ctx
// ends first, those that are there.
func (l *Listener) take(ctx context.Context, ranks []int) map[int]net.Conn {
	got := make(map[int]net.Conn)
	for {
		l.mu.Lock()
		for _, rank := range ranks {
			if c, ok := l.arrived[rank]; ok && got[rank] == nil {
				got[rank] = c
			}
		}
		l.mu.Unlock()
		if len(got) == len(ranks) {
			break
		}
		select {
		case <-l.news:
			continue
		case <-ctx.Done():
		case <-l.ctx.Done():
		}
		break
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for rank := range got {
		if l.arrived[rank] == nil {
			delete(got, rank) // closed meanwhile
		}
		delete(l.arrived, rank)
	}
	return got
}

func remote(c net.Conn) string {
	if a := c.RemoteAddr(); a != nil && a.String() != "" {
		return a.String()
	}
	return "a process on this host"
}

func closeQuietly(c net.Conn) { _ = c.Close() }

func sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
