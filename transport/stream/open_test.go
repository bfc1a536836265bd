//go:build unix

package stream

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gangline/gangline/transport"
	"github.com/gangline/gangline/transport/mem"
)

// openErrors opens with n ranks, and returns what each got.
func openErrors(t *testing.T, n int, config func(rank int) Config) []error {
	t.Helper()
	net := mem.NewNetwork(n)
	errs := make([]error, n)
	var wg sync.WaitGroup
	for rank := range n {
		wg.Go(func() {
			c := config(rank)
			c.Endpoint = net.Endpoint(rank)
			defer c.Endpoint.Close()
			s, err := Open(t.Context(), c)
			if errs[rank] = err; err == nil {
				errs[rank] = s.Close()
			}
		})
	}
	wg.Wait()
	return errs
}

func wantAll(t *testing.T, errs []error, parts ...string) {
	t.Helper()
	for rank, err := range errs {
		for _, part := range parts {
			if err == nil || !strings.Contains(err.Error(), part) {
				t.Errorf("rank %d: got %v, want it to say %q", rank, err, part)
			}
		}
	}
}

// Members that allow different paths are told so, all of them.
func TestOpenPathsDiffer(t *testing.T) {
	errs := openErrors(t, 3, func(rank int) Config {
		return testConfig(rank, 3, []Path{TCP, TCP, Unix}[rank])
	})
	wantAll(t, errs, "rank 0 allows path tcp, rank 2 unix")
}

// One with another token is kept out, and those that miss it say so in time.
func TestOpenWrongToken(t *testing.T) {
	for _, path := range []Path{Unix, TCP} {
		errs := openErrors(t, 2, func(rank int) Config {
			c := testConfig(rank, 2, path)
			c.Timeout = time.Second
			if rank == 1 {
				c.Token = "another token of the tests"
			}
			return c
		})
		wantAll(t, errs, "token")
	}
}

// A member that does not come is named.
func TestOpenMemberMissing(t *testing.T) {
	c := testConfig(0, 2, Auto)
	c.Endpoint = mem.NewNetwork(2).Endpoint(0)
	c.Timeout = 50 * time.Millisecond
	_, err := Open(t.Context(), c)
	p, ok := errors.AsType[*transport.PeerError](err)
	if !ok || p.Peer != 1 {
		t.Errorf("got %v, want an error about rank 1", err)
	}
	wantAll(t, []error{err}, "timeout of 50ms")
}

// The members of a group need not be all ranks, nor ascend; a group of one has nobody.
func TestOpenGroups(t *testing.T) {
	net := mem.NewNetwork(5)
	members := []int{4, 0, 2}
	s := make([]transport.Streams, len(members))
	errs := make([]error, len(members))
	var wg sync.WaitGroup
	for i, rank := range members {
		wg.Go(func() {
			c := testConfig(rank, 5, Auto)
			c.Members, c.Endpoint = members, net.Endpoint(rank)
			s[i], errs[i] = Open(context.Background(), c)
		})
	}
	wg.Wait()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	want := bodies()[0]
	for i, rank := range members {
		g := s[i].(*Group)
		for peer := range 5 {
			is := peer != rank && peer != 1 && peer != 3
			if (g.To(peer) != nil) != is || is && g.Path(peer) != want || !is && g.Path(peer) != Auto {
				t.Errorf("rank %d with rank %d: %v by %v", rank, peer, g.To(peer), g.Path(peer))
			}
		}
	}
	buf := []byte("abc")
	if err := errors.Join(writeFull(t.Context(), s[0], 2, buf), readFull(t.Context(), s[2], 4, buf)); err != nil {
		t.Error(err)
	}
	closeAll(t, s)

	c := testConfig(0, 5, Auto)
	c.Members = []int{0}
	alone, err := Open(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	if alone.To(1) != nil {
		t.Error("alone with rank 1")
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	if err := alone.Park(ctx, nil, nil); err != nil && !errors.Is(err, context.DeadlineExceeded) {
		t.Error(err)
	}
	closeAll(t, []transport.Streams{alone})
}

// A ctx that ends while Open waits ends it.
func TestOpenCanceled(t *testing.T) {
	c := testConfig(0, 2, Auto)
	c.Endpoint = mem.NewNetwork(2).Endpoint(0)
	why := errors.New("another rank failed")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(why)
	if _, err := Open(ctx, c); !errors.Is(err, why) {
		t.Errorf("got %v, want %v", err, why)
	}
}
