//go:build linux

package chaos

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"go.uber.org/goleak"
	"golang.org/x/sys/unix"

	"github.com/gangline/gangline"
	"github.com/gangline/gangline/launch"
)

// The environment that makes this test binary a rank which calls until something
// happens to it.
const (
	rankSeed     = "GANGLINE_CHAOS_RANK_SEED"
	rankDeadline = "GANGLINE_CHAOS_RANK_DEADLINE"
	rankWork     = "GANGLINE_CHAOS_RANK_WORK" // one of works
)

// ending is what a rank says when its job is over.
type ending struct {
	Rank, Blamed int
	Missing      []int
	Text         string
	Calls        int
	// At is when the call returned, in Unix nanoseconds.
	At int64
	// Left is what was not given back: goroutines, files, shared memory.
	Left string
}

// rankMain is a rank: it makes the same calls as the others, which the seed draws, and
// checks every result, until one fails. The signal USR1 cuts its connections.
func rankMain() int {
	files := openFiles()
	place, found, err := launch.FromEnv(os.LookupEnv)
	if err != nil || !found {
		return complain(fmt.Errorf("no place: %w", err))
	}
	deadline, err := time.ParseDuration(os.Getenv(rankDeadline))
	if err != nil {
		return complain(err)
	}
	seed, err := strconv.ParseUint(os.Getenv(rankSeed), 10, 64)
	if err != nil {
		return complain(err)
	}
	cut := make(chan os.Signal, 1)
	signal.Notify(cut, syscall.SIGUSR1)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	cutting := make(chan struct{})
	go func() {
		defer close(cutting)
		select {
		case <-cut:
			cutAll(ctx, rand.New(rand.NewPCG(seed, 1)))
		case <-ctx.Done():
		}
	}()
	var e ending
	switch work := os.Getenv(rankWork); work {
	case "job":
		e, err = trainUntilError(ctx, place, deadline)
	default:
		e, err = callUntilError(ctx, place, deadline, seed, work == "groups")
	}
	if err != nil {
		return complain(err)
	}
	e.Rank = place.Rank
	cancel()
	<-cutting
	signal.Stop(cut)
	e.Left = left(files)
	if err := json.NewEncoder(os.Stdout).Encode(e); err != nil {
		return complain(err)
	}
	return 0
}

func complain(err error) int {
	fmt.Fprintln(os.Stderr, err)
	return 1
}

// callUntilError is a rank of a program that calls.
func callUntilError(ctx context.Context, place launch.Place, deadline time.Duration, seed uint64, overlaps bool) (ending, error) {
	g, err := gangline.JoinWith(ctx, gangline.Config{
		Place: place, Timeout: deadline, HeartbeatTimeout: 30 * time.Second, Logger: slog.New(slog.NewTextHandler(os.Stderr, nil)),
	})
	if err != nil {
		return ending{}, err
	}
	defer g.Close() // the error is that of the call
	c := &caller{g: g, rng: rand.New(rand.NewPCG(seed, 0)), overlaps: overlaps}
	return c.untilError(ctx)
}

// caller makes calls.
type caller struct {
	g        *gangline.Group
	overlaps bool // calls on groups that overlap, mostly
	groups   []*gangline.Group
	rng      *rand.Rand
	calls    int
}

// untilError makes calls until one fails for what happened to the job; any other error
// is its own. When the first round is over it says so.
func (c *caller) untilError(ctx context.Context) (ending, error) {
	pairs := [][]int{{0, 1}, {1, 2}} // they overlap in rank 1
	if c.overlaps {
		for r := 2; r < c.g.Size(); r++ { // a ring of pairs
			pairs = append(pairs, []int{r, (r + 1) % c.g.Size()})
		}
	}
	for _, ranks := range pairs {
		if slices.Contains(ranks, c.g.Rank()) {
			sub, err := c.g.Group(ctx, ranks...)
			if err != nil {
				return ending{}, err
			}
			c.groups = append(c.groups, sub)
		}
	}
	for {
		err := c.round(ctx)
		if err == nil {
			if c.calls++; c.calls == 1 {
				fmt.Println("ready")
			}
			continue
		}
		e, ok := errors.AsType[*gangline.Error](err)
		if !ok {
			return ending{}, err
		}
		end := ending{Blamed: e.Blamed, Text: e.Text, Calls: c.calls, At: time.Now().UnixNano()}
		for _, m := range e.Missing {
			end.Missing = append(end.Missing, m.Rank)
		}
		return end, nil
	}
}

// round makes one call on all ranks, or started ones on the groups, and checks what
// comes of it.
func (c *caller) round(ctx context.Context) error {
	n, me := c.g.Size(), c.g.Rank()
	elems := 1 << c.rng.IntN(18)
	root := c.rng.IntN(n)
	kind := c.rng.IntN(6)
	if c.overlaps && kind > 0 {
		kind = 5 + kind%2
	}
	switch kind {
	case 0:
		return c.g.Barrier(ctx)
	case 1, 2:
		values := make([]float32, elems)
		for i := range values {
			values[i] = float32(me + i%5)
		}
		if err := c.g.AllReduce(ctx, values, gangline.Name("sum")); err != nil {
			return err
		}
		return check(values, func(i int) float32 { return float32(n*(n-1)/2 + n*(i%5)) })
	case 3:
		values := make([]int64, elems)
		if me == root {
			for i := range values {
				values[i] = int64(i * i)
			}
		}
		if err := c.g.Broadcast(ctx, values, root); err != nil {
			return err
		}
		return check(values, func(i int) int64 { return int64(i * i) })
	case 4:
		values := make([]int32, elems)
		lo, hi := c.g.Chunk(elems)
		for i := lo; i < hi; i++ {
			values[i] = int32(i)
		}
		if err := c.g.AllGather(ctx, values); err != nil {
			return err
		}
		return check(values, func(i int) int32 { return int32(i) })
	case 5:
		return c.overlap(ctx, elems)
	default: // one after the other, in the common order
		for _, g := range c.groups {
			if err := g.AllReduce(ctx, make([]float32, elems)); err != nil {
				return err
			}
		}
		return nil
	}
}

// overlap starts sums on all groups of this rank.
func (c *caller) overlap(ctx context.Context, elems int) error {
	values := make([][]float64, len(c.groups))
	handles := make([]*gangline.Handle, len(c.groups))
	for i, g := range c.groups {
		values[i] = make([]float64, elems)
		for k := range values[i] {
			values[i][k] = float64(c.g.Rank())
		}
		handles[i] = g.StartAllReduce(ctx, values[i])
	}
	var errs []error
	for i, h := range handles {
		if err := h.Wait(ctx); err != nil {
			errs = append(errs, err)
			continue
		}
		want := 0
		for _, r := range c.groups[i].Ranks() {
			want += r
		}
		errs = append(errs, check(values[i], func(int) float64 { return float64(want) }))
	}
	return errors.Join(errs...)
}

// check returns an error if a value is not what it should be.
func check[T comparable](values []T, want func(i int) T) error {
	for i, v := range values {
		if v != want(i) {
			return fmt.Errorf("element %d is %v, want %v", i, v, want(i))
		}
	}
	return nil
}

// cutAll shuts the sockets of this process down, one after the other in any order.
func cutAll(ctx context.Context, rng *rand.Rand) {
	var sockets []int
	for _, fd := range openFiles() {
		if _, err := unix.Getpeername(fd); err == nil {
			sockets = append(sockets, fd)
		}
	}
	rng.Shuffle(len(sockets), func(i, k int) { sockets[i], sockets[k] = sockets[k], sockets[i] })
	every := time.NewTicker(50 * time.Millisecond)
	defer every.Stop()
	for _, fd := range sockets {
		_ = unix.Shutdown(fd, unix.SHUT_RDWR)
		select {
		case <-every.C:
		case <-ctx.Done():
			return
		}
	}
}

// openFiles lists the descriptors of this process.
func openFiles() []int {
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return nil
	}
	var fds []int
	for _, e := range entries {
		fd, err := strconv.Atoi(e.Name())
		if _, gone := os.Readlink(filepath.Join("/proc/self/fd", e.Name())); err == nil && gone == nil { // not that of the directory
			fds = append(fds, fd)
		}
	}
	return fds
}

// left says what this process has and had not at first: "" if nothing.
func left(files []int) string {
	var out []string
	if err := goleak.Find(); err != nil {
		out = append(out, err.Error())
	}
	for _, fd := range openFiles() {
		name, _ := os.Readlink(fmt.Sprintf("/proc/self/fd/%d", fd))
		if !slices.Contains(files, fd) && !strings.HasPrefix(name, "anon_inode:") { // what Go's poller keeps
			out = append(out, fmt.Sprintf("descriptor %d is %s", fd, name))
		}
	}
	maps, err := os.ReadFile("/proc/self/maps")
	if err != nil || strings.Contains(string(maps), "memfd:") {
		out = append(out, fmt.Sprintf("shared memory is mapped (%v)", err))
	}
	return strings.Join(out, "; ")
}
