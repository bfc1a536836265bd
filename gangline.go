// Package gangline lets the processes of a job compute together: sums, copies and
// barriers over slices, for programs that train, search or count on several ranks.
//
//	g, err := gangline.Join(ctx)
//	if err != nil { return err }
//	defer g.Close()
//	if err := g.AllReduce(ctx, grads, gangline.Mean, gangline.Name("grads")); err != nil { return err }
//
// # Starting
//
// Join finds out by the environment which rank this process is: of gangline launch
// -n 4 -- ./prog, of mpirun, of srun, or of a shell that sets RANK, WORLD_SIZE,
// MASTER_ADDR and MASTER_PORT. Without a launcher of ours rank 0 coordinates, at
// MASTER_ADDR and MASTER_PORT or, if all ranks are on one host, in a directory that
// only this user can enter. Ranks on several hosts share a secret, GANGLINE_TOKEN.
//
// # Calls
//
// All members of a group make the same calls in the same order. A call works in place
// on a slice of float32, float64, int32 or int64 that has the same length on all. It
// returns when this rank's part is done: after an AllReduce the result is there, but
// others may still be at it.
//
// Start makes a call that goes on while the program computes; Handle.Wait returns its
// result, and until then the slice is not to be touched. A group makes one call at a
// time, in the order in which they were begun; at most QueueMax wait.
//
// # Groups
//
// Group.Group makes a group of some ranks, with streams and a queue of its own. So
// what was started on one group never holds up another, and started calls of groups
// that share ranks can end in any order. Calls that the program waits for one after the
// other must be begun, on groups that share ranks, in the same order on all of
// these ranks: otherwise rank 0 waits in group A for rank 1, and rank 1 in
// group B for rank 0. Nothing that happens inside the package adds to these waits, so
// that keeping the order is enough: the first call in the common order that has not
// ended can always go on. Who does not keep it gets an error that says so, when the
// deadline of a call is over.
//
// # Errors
//
// Before data moves, partners compare what they are about to do: number of the call,
// operation, name, type, length. Every call has a deadline (Config.Timeout, Within, or
// that of ctx). When ranks do different things, one does not come, is silent, or dies,
// every rank gets the same *Error, with who is missing and for how long, or who differs;
// the death of a process is known to all within a second, on one host within some
// milliseconds. A call gives up 1.5 s before its deadline, or half way if that is less
// than 3 s, so that the verdict is there by the deadline, even if the coordinator itself
// does not answer: 0.1 s before the deadline a rank speaks for itself (of a deadline below
// 1.2 s, up to half a second after it). After an error the job is over: every later call
// returns it.
//
// # Costs
//
// For n ranks and B bytes, a rank sends in
//
//	AllReduce      2B(n-1)/n by ring or halving, B log2 n by doubling, 2B by tree
//	ReduceScatter  B(n-1)/n
//	AllGather      B(n-1)/n
//	Broadcast      B for each rank that it feeds; log2 n rounds
//	Reduce         B, but the root; log2 n rounds
//	Gather         its chunk; Scatter: the root n-1 chunks
//	AllToAll       B(n-1)/n in n-1 rounds
//	Barrier        4 bytes in each of log2 n rounds
//
// An AllReduce goes by the algorithm that takes least for its size, for the number of
// ranks and their hosts, by Config.Costs (see package collective/cost): few steps for few
// bytes, few bytes for many, and few of them between hosts.
//
// Inside a rank a call that the program waits for runs in its own goroutine. Joining
// takes some milliseconds a rank.
package gangline

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/gangline/gangline/collective/cost"
	"github.com/gangline/gangline/coord"
	"github.com/gangline/gangline/coord/crew"
	"github.com/gangline/gangline/launch"
)

// Defaults and limits.
const (
	// DefaultTimeout is how long a call may take.
	DefaultTimeout = 5 * time.Minute
	// QueueMax bounds the calls of a group that wait; who starts another one waits
	// for room.
	QueueMax = 64
	// GroupsMax bounds the groups of a rank.
	GroupsMax = coord.MaxCalls

	// EnvCosts names a file of costs of messages that gangline probe has measured, for
	// Join. All ranks must read the same.
	EnvCosts = "GANGLINE_COSTS"

	digest  = "gangline collectives 1"
	allName = "all" // of the group of all ranks
)

// ErrNoRank says that nobody has started this process as a rank.
var ErrNoRank = errors.New("nobody has started this process as a rank: start it with gangline launch -n 4 -- PROGRAM, " +
	"mpirun or srun, or set RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT")

// Config says how to join.
type Config struct {
	// Place is which rank this is, and where the others are.
	Place launch.Place
	// Timeout of a call without one of its own; 0 is DefaultTimeout.
	Timeout time.Duration
	// JoinTimeout is how long ranks have to join; 0 is a minute.
	JoinTimeout time.Duration
	// HeartbeatTimeout is how long a process may be silent; 0 is ten seconds. Rank
	// 0's counts, unless a launcher coordinates.
	HeartbeatTimeout time.Duration
	// Costs of messages, by which algorithms are chosen: the same on all ranks. Zero is
	// cost.Default.
	Costs cost.Table
	// Logger takes what is not an error; nil discards it.
	Logger *slog.Logger
}

// digest is what all ranks must agree on to join.
func (c *Config) digest() string {
	if c.Costs == (cost.Table{}) {
		return digest
	}
	return fmt.Sprintf("%s, costs %v", digest, c.Costs)
}

// Join makes this process a rank of the job that the environment describes, and
// returns the group of all ranks. It waits until all have joined, a minute at most,
// or until ctx ends. The error says what is missing: ErrNoRank, a variable, a rank.
func Join(ctx context.Context) (*Group, error) {
	place, found, err := launch.FromEnv(os.LookupEnv)
	switch {
	case err != nil:
		return nil, fmt.Errorf("gangline: %w", err)
	case !found && place.World != 1:
		return nil, fmt.Errorf("gangline: %w", ErrNoRank)
	}
	cfg := Config{Place: place}
	if path := os.Getenv(EnvCosts); path != "" {
		if cfg.Costs, err = readCosts(path); err != nil {
			return nil, fmt.Errorf("gangline: %s is %s: %w", EnvCosts, path, err)
		}
	}
	return JoinWith(ctx, cfg)
}

func readCosts(path string) (cost.Table, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return cost.Table{}, err
	}
	return cost.Parse(text)
}

// JoinWith is Join for a place that the program knows, and with other limits. The
// Place of a world of one needs nothing else.
func JoinWith(ctx context.Context, cfg Config) (*Group, error) {
	if cfg.Timeout < 0 || cfg.JoinTimeout < 0 || cfg.HeartbeatTimeout < 0 {
		return nil, errors.New("gangline: negative timeout")
	}
	if cfg.Timeout == 0 {
		cfg.Timeout = DefaultTimeout
	}
	if cfg.JoinTimeout == 0 {
		cfg.JoinTimeout = coord.DefaultJoinTimeout
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	if cfg.Place.World == 1 && cfg.Place.Address == "" {
		dir, err := os.MkdirTemp("", "gangline-one-*")
		if err != nil {
			return nil, fmt.Errorf("gangline: %w", err)
		}
		defer os.RemoveAll(dir) // the place in it is gone when this returns
		cfg.Place.Private = filepath.Join(dir, "place")
	}
	w := newWorld(cfg)
	g, err := w.join(ctx)
	if err != nil {
		if left := w.leave(); left != nil {
			cfg.Logger.Debug("leave", "rank", cfg.Place.Rank, "error", left)
		}
		if said, ok := errors.AsType[*Error](err); ok {
			return nil, said
		}
		if abort, ok := errors.AsType[*coord.AbortError](err); ok {
			return nil, newError(cfg.Place.Rank, abort, nil)
		}
		return nil, fmt.Errorf("gangline: rank %d: %w", cfg.Place.Rank, err)
	}
	return g, nil
}

// join meets the other ranks, connects with them and opens the group of all. ctx
// bounds it, but not what comes after.
//
//nolint:contextcheck // the job's own ctx ends with ctx while this runs, and goes on after it
func (w *world) join(ctx context.Context) (*Group, error) {
	stop := context.AfterFunc(ctx, func() { w.end(context.Cause(ctx)) })
	defer stop()
	if w.cfg.Place.Hosted {
		watched, unwatch, err := launch.WatchParent(w.ctx, os.LookupEnv)
		if err != nil {
			return nil, err
		}
		w.onLeave(func() error { unwatch(); return nil })
		context.AfterFunc(watched, func() { w.end(context.Cause(watched)) })
	}
	var err error
	var coordinator *launch.Coordinator
	w.cfg.Place, coordinator, err = launch.Meet(w.ctx, w.cfg.Place, coord.ServerConfig{
		JoinTimeout: w.cfg.JoinTimeout, HeartbeatTimeout: w.cfg.HeartbeatTimeout, Logger: w.cfg.Logger,
	})
	if err != nil {
		return nil, err
	}
	if coordinator != nil {
		w.onLeave(coordinator.Close)
	}
	if err := w.connect(); err != nil {
		return nil, err
	}
	all := make([]int, w.cfg.Place.World)
	for r := range all {
		all[r] = r
	}
	return w.open(w.ctx, allName, all)
}

// connect joins the coordinator and opens connections with all others.
func (w *world) connect() error {
	p := &w.cfg.Place
	network := "tcp"
	if p.OneHost() {
		network = "unix"
	}
	address, err := launch.DataAddress(w.ctx, network, p.Address)
	if err != nil {
		return fmt.Errorf("cannot listen for data: %w", err)
	}
	w.member, err = crew.Join(w.ctx, crew.Config{
		Coord: coord.JoinConfig{
			Address: p.Address, Token: p.Token, Rank: p.Rank, World: p.World, Digest: w.cfg.digest(),
			Led: !p.Hosted, State: w.stand, OnLeft: w.left, Timeout: w.cfg.JoinTimeout + 5*time.Second,
		},
		Network: network, Address: address, Generation: uint32(p.Attempt) + 1, Timeout: w.cfg.JoinTimeout, Logger: w.cfg.Logger,
	})
	if err != nil {
		return err
	}
	w.onLeave(func() error {
		if w.broken() {
			w.member.Abort()
			return nil
		}
		return w.member.Close()
	})
	w.session, w.endpoint = w.member.Session, w.member.Endpoint
	context.AfterFunc(w.session.Context(), func() { w.aborted(context.Cause(w.session.Context())) })
	w.hosts = make([]string, p.World)
	for _, peer := range w.session.Peers {
		w.hosts[peer.Rank] = peer.Host
	}
	if network == "tcp" {
		host, _, err := net.SplitHostPort(w.member.Address)
		if err != nil {
			return err
		}
		w.address = net.JoinHostPort(host, "0")
	}
	w.running.Go(w.watch)
	return nil
}

// onLeave has f called when the job is left: what was opened last is closed first.
func (w *world) onLeave(f func() error) { w.closers = append(w.closers, f) }

// leave closes all that join has opened.
func (w *world) leave() error {
	w.end(ErrClosed)
	close(w.stop)
	w.running.Wait()
	var errs []error
	for _, closer := range slices.Backward(w.closers) {
		errs = append(errs, closer())
	}
	w.closers = nil
	return errors.Join(errs...)
}
