//go:build unix

package stream

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"slices"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/gangline/gangline/collective"
	"github.com/gangline/gangline/transport"
	"github.com/gangline/gangline/transport/sock"
)

// Open opens the streams of a group, in which every member takes part, and returns a
// *Group. It waits for all of them, cfg.Timeout at most. A pair that its path cannot
// serve is an error on all members; so are paths that differ. On systems without a body
// the error is errors.ErrUnsupported.
func Open(ctx context.Context, cfg Config) (transport.Streams, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	cfg = cfg.withDefaults()
	ctx, cancel := context.WithTimeoutCause(ctx, cfg.Timeout, fmt.Errorf("timeout of %v", cfg.Timeout))
	defer cancel()
	g, err := open(ctx, cfg)
	if err != nil {
		return nil, fmt.Errorf("rank %d: open streams: %w", cfg.Rank, err)
	}
	cfg.Logger.LogAttrs(ctx, slog.LevelDebug, "opened streams", slog.Int("rank", cfg.Rank), slog.String("paths", g.String()))
	return g, nil
}

func open(ctx context.Context, cfg Config) (*Group, error) {
	if len(cfg.Members) == 1 {
		return newGroup(cfg, 0, nil), nil
	}
	l, err := listen(cfg)
	if err != nil {
		return nil, err
	}
	defer l.close()
	all, err := tell(ctx, cfg, l.record(cfg))
	if err != nil {
		return nil, err
	}
	if err := checkAll(all); err != nil {
		return nil, err
	}
	me := slices.Index(cfg.Members, cfg.Rank)
	bodies, err := l.connect(ctx, cfg, all, me)
	if err != nil {
		return nil, err
	}
	spin := max(0, cfg.Spin)
	if cfg.Spin == 0 && room(all, me) {
		spin = spinDefault
	}
	g := newGroup(cfg, spin, bodies)
	if anySocket(all) {
		g.block = socketBlock
	}
	return g, nil
}

// listeners are where the other members may call.
type listeners struct{ tcp, unix *sock.Listener }

func listen(cfg Config) (listeners, error) {
	var l listeners
	base := sock.Config{
		Network: "tcp", Address: cfg.Address, Rank: cfg.Rank, World: cfg.World, Generation: cfg.Generation,
		Token: cfg.Token, DialTimeout: cfg.Timeout, Logger: cfg.Logger,
	}
	var err error
	if cfg.Path == Auto || cfg.Path == TCP {
		if l.tcp, err = sock.Listen(base); err != nil {
			return l, err
		}
	}
	if cfg.Path != TCP {
		base.Network, base.Address = "unix", unixAddress()
		if l.unix, err = sock.Listen(base); err != nil && cfg.Path != Auto {
			return l, err
		} else if err != nil {
			cfg.Logger.Debug("no unix sockets", "rank", cfg.Rank, "error", err)
		}
	}
	return l, nil
}

func (l *listeners) close() {
	for _, x := range []*sock.Listener{l.tcp, l.unix} {
		if x != nil {
			_ = x.Close() // what it had is taken, or of no use
		}
	}
}

// record is what this rank tells.
func (l *listeners) record(cfg Config) record {
	r := record{rank: cfg.Rank, path: cfg.Path, sums: cfg.Checksum, shm: canShare(), host: thisHost(), cpus: theseCPUs()}
	if l.tcp != nil {
		r.tcp = l.tcp.Addr()
	}
	if l.unix != nil {
		r.unix = l.unix.Addr()
	}
	return r
}

// tell gives mine to all members and returns theirs.
func tell(ctx context.Context, cfg Config, mine record) ([]record, error) {
	bytes, err := mine.encode()
	if err != nil {
		return nil, err
	}
	party := collective.Party{Endpoint: cfg.Endpoint, Group: cfg.Members, Index: slices.Index(cfg.Members, cfg.Rank), Tag: cfg.Tag}
	x, err := collective.NewExchange(party, recordSize)
	if err != nil {
		return nil, err
	}
	theirs, err := x.Run(ctx, bytes)
	if err != nil {
		return nil, err
	}
	all := make([]record, len(cfg.Members))
	for i, rank := range cfg.Members {
		if all[i], err = decodeRecord(theirs[i*recordSize : (i+1)*recordSize]); err != nil {
			return nil, fmt.Errorf("rank %d: %w", rank, err)
		}
		if all[i].rank != rank {
			return nil, fmt.Errorf("rank %d says that it is rank %d: members must stand in the same order everywhere", rank, all[i].rank)
		}
	}
	return all, nil
}

// connect connects with all others and makes the bodies. If it fails nothing is left.
func (l *listeners) connect(ctx context.Context, cfg Config, all []record, me int) ([]body, error) {
	var near, far []int // by unix sockets, by tcp
	paths := make([]Path, len(all))
	tcp, local := make([]string, cfg.World), make([]string, cfg.World)
	for i := range all {
		if i == me {
			continue
		}
		var err error
		if paths[i], err = choose(&all[me], &all[i]); err != nil {
			return nil, err
		}
		tcp[all[i].rank], local[all[i].rank] = all[i].tcp, all[i].unix
		if paths[i] == TCP {
			far = append(far, all[i].rank)
		} else {
			near = append(near, all[i].rank)
		}
	}
	conns, err := l.dial(ctx, tcp, far, local, near)
	if err != nil {
		return nil, err
	}
	bodies, errs := make([]body, len(all)), make([]error, len(all))
	var wg sync.WaitGroup
	for i := range all {
		if i == me {
			continue
		}
		wg.Go(func() {
			bodies[i], errs[i] = newBody(ctx, cfg, paths[i], all[i].rank, conns[all[i].rank])
			if errs[i] != nil {
				errs[i] = fmt.Errorf("with rank %d over %v: %w", all[i].rank, paths[i], errs[i])
			}
		})
	}
	wg.Wait()
	bodies = slices.Delete(bodies, me, me+1)
	if err := errors.Join(errs...); err != nil {
		for _, b := range bodies {
			if b != nil {
				b.free()
			}
		}
		return nil, err
	}
	return bodies, nil
}

// dial connects over both networks at once and returns the connections by rank.
func (l *listeners) dial(ctx context.Context, tcp []string, far []int, local []string, near []int) ([]net.Conn, error) {
	var conns [2][]net.Conn
	var errs [2]error
	ctx, cancel := context.WithCancel(ctx) // one that fails ends the other
	defer cancel()
	call := func(i int, x *sock.Listener, addrs []string, peers []int) {
		if len(peers) > 0 {
			if conns[i], errs[i] = x.Conns(ctx, addrs, peers); errs[i] != nil {
				cancel()
			}
		}
	}
	var wg sync.WaitGroup
	wg.Go(func() { call(0, l.tcp, tcp, far) })
	wg.Go(func() { call(1, l.unix, local, near) })
	wg.Wait()
	all := make([]net.Conn, len(tcp))
	for i := range conns {
		for rank, c := range conns[i] {
			if c != nil {
				all[rank] = c
			}
		}
	}
	err := errors.Join(errs[:]...)
	if err != nil {
		for _, c := range all {
			if c != nil {
				_ = c.Close()
			}
		}
	}
	return all, err
}

// newBody makes the stream of one pair from its connection, which it takes over.
func newBody(ctx context.Context, cfg Config, path Path, peer int, c net.Conn) (body, error) {
	defer c.Close()
	deadline, _ := ctx.Deadline()
	if err := c.SetDeadline(deadline); err != nil {
		return nil, err
	}
	stop := context.AfterFunc(ctx, func() { _ = c.SetDeadline(time.Unix(1, 0)) })
	defer stop()
	switch path {
	case Shm:
		return openShm(cfg, peer, c)
	case Unix:
		return openUnix(cfg, peer, c)
	case TCP:
		return openTCP(cfg, peer, c)
	case Auto:
	}
	return nil, fmt.Errorf("path %v: %w", path, errors.ErrUnsupported)
}

func openTCP(cfg Config, peer int, c net.Conn) (body, error) {
	fd, err := detach(c)
	if err != nil {
		return nil, err
	}
	// One that dies resets the connection; bye takes this back.
	err = unix.SetsockoptLinger(fd, unix.SOL_SOCKET, unix.SO_LINGER, &unix.Linger{Onoff: 1})
	if err == nil {
		err = widen(fd)
	}
	if err != nil {
		_ = unix.Close(fd)
		return nil, fmt.Errorf("set up a socket for streams: %w", err)
	}
	s := newSocket(TCP, peer, fd, -1)
	if cfg.Checksum {
		s.useSums()
	}
	return s, nil
}

// openUnix gives the pair a second connection, for the bye: the lower rank hands
// one end over.
func openUnix(cfg Config, peer int, c net.Conn) (body, error) {
	get := takeControl
	if cfg.Rank < peer {
		get = makeControl
	}
	control, err := get(c)
	if err != nil {
		return nil, err
	}
	fd, err := detach(c)
	if err != nil {
		_ = unix.Close(control)
		return nil, err
	}
	return newSocket(Unix, peer, fd, control), nil
}

func makeControl(c net.Conn) (int, error) {
	ends, err := pair()
	if err != nil {
		return -1, err
	}
	err = handOver(c, hello{}, ends[1])
	_ = unix.Close(ends[1])
	if err != nil {
		_ = unix.Close(ends[0])
		return -1, err
	}
	return ends[0], nil
}

func takeControl(c net.Conn) (int, error) {
	_, fd, err := takeOver(c)
	if err != nil {
		return -1, err
	}
	if err = unix.SetNonblock(fd, true); err == nil {
		err = accept(c)
	}
	if err != nil {
		_ = unix.Close(fd)
		return -1, err
	}
	return fd, nil
}

// pair returns two connected sockets that neither block nor are inherited.
func pair() ([2]int, error) {
	syscall.ForkLock.RLock() // a program that is started now must not get them
	defer syscall.ForkLock.RUnlock()
	ends, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM, 0)
	if err != nil {
		return ends, fmt.Errorf("socketpair: %w", err)
	}
	for _, fd := range ends {
		unix.CloseOnExec(fd)
		if err := unix.SetNonblock(fd, true); err != nil {
			_, _ = unix.Close(ends[0]), unix.Close(ends[1])
			return ends, fmt.Errorf("socketpair: %w", err)
		}
	}
	return ends, nil
}

// detach returns a descriptor of the connection that Go's poller does not watch. It
// does not block, and is for the caller to close; so is c.
func detach(c net.Conn) (int, error) {
	raw, err := c.(syscall.Conn).SyscallConn()
	if err != nil {
		return 0, err
	}
	fd, dup := -1, error(nil)
	if err := raw.Control(func(own uintptr) {
		fd, dup = unix.FcntlInt(own, unix.F_DUPFD_CLOEXEC, 0)
	}); err != nil {
		return 0, err
	}
	return fd, dup
}
