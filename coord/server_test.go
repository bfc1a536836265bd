package coord

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
	"google.golang.org/grpc/test/bufconn"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// cluster is a server and what dials it, over memory: real gRPC, virtual time.
type cluster struct {
	t      *testing.T
	server *Server
	ln     *bufconn.Listener
	served chan error
	logs   *logBuffer

	mu    sync.Mutex
	conns map[int]net.Conn // by rank
}

type logBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (l *logBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.Write(p)
}

func (l *logBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.String()
}

func newCluster(t *testing.T, cfg ServerConfig) *cluster {
	t.Helper()
	c := &cluster{t: t, ln: bufconn.Listen(1 << 20), served: make(chan error, 1), logs: &logBuffer{}, conns: make(map[int]net.Conn)}
	cfg.Token, cfg.Generation = "secret", 3
	cfg.Logger = slog.New(slog.NewTextHandler(c.logs, nil))
	var err error
	if c.server, err = NewServer(cfg); err != nil {
		t.Fatal(err)
	}
	go func() { c.served <- c.server.Serve(c.ln) }()
	return c
}

func (c *cluster) close() {
	c.t.Helper()
	if err := c.server.Close(); err != nil {
		c.t.Error(err)
	}
	if err := <-c.served; err != nil {
		c.t.Error(err)
	}
}

func (c *cluster) config(rank, world int) JoinConfig {
	return JoinConfig{
		Address: "memory", Token: "secret", Rank: rank, World: world, Role: "worker", Digest: "d1",
		DataAddress: fmt.Sprintf("data-%d", rank),
		Dial: func(ctx context.Context, _ string) (net.Conn, error) {
			conn, err := c.ln.DialContext(ctx)
			c.mu.Lock()
			defer c.mu.Unlock()
			c.conns[rank] = conn
			return conn, err
		},
	}
}

// joined is what one rank's Join returned.
type joined struct {
	s   *Session
	err error
}

// joinAll joins the ranks of configs at the same time.
func joinAll(ctx context.Context, configs ...JoinConfig) []joined {
	out := make([]joined, len(configs))
	var wg sync.WaitGroup
	for i, cfg := range configs {
		wg.Go(func() { out[i].s, out[i].err = Join(ctx, cfg) })
	}
	wg.Wait()
	return out
}

func (c *cluster) startAll(world int) []*Session {
	c.t.Helper()
	configs := make([]JoinConfig, world)
	for rank := range configs {
		configs[rank] = c.config(rank, world)
	}
	sessions := make([]*Session, world)
	for rank, j := range joinAll(c.t.Context(), configs...) {
		if j.err != nil {
			c.t.Fatal(j.err)
		}
		sessions[rank] = j.s
	}
	return sessions
}

func closeAll(sessions []*Session) {
	for _, s := range sessions {
		s.Close()
	}
}

// abortOfErr returns the AbortError in err or fails the test.
func abortOfErr(t *testing.T, err error) *AbortError {
	t.Helper()
	abort, ok := errors.AsType[*AbortError](err)
	if !ok {
		t.Fatalf("got %v (%T), want an AbortError", err, err)
	}
	return abort
}

// wantAbort checks who is named and for what.
func wantAbort(t *testing.T, err error, rank int, kind Kind, words ...string) {
	t.Helper()
	abort := abortOfErr(t, err)
	if abort.Rank != rank || abort.Kind != kind {
		t.Errorf("abort names rank %d, %s; want rank %d, %s: %v", abort.Rank, abort.Kind, rank, kind, err)
	}
	for _, word := range words {
		if !strings.Contains(err.Error(), word) {
			t.Errorf("error %q lacks %q", err, word)
		}
	}
}

// TestRun proves the good way: everybody starts with everybody's address, and
// the reports arrive, up to the limit.
func TestRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		offset := 5 * time.Second
		var mu sync.Mutex
		progress := map[int]Progress{}
		last := Progress{Step: 100, Total: 200, Loss: .5, MetricName: "auc", Metric: .75, ExamplesPerSecond: 1e6, BytesPerSecond: 2.5e6}
		c := newCluster(t, ServerConfig{
			World: 3,
			Now:   func() time.Time { return time.Now().Add(offset) },
			OnProgress: func(rank int, p Progress) {
				mu.Lock()
				defer mu.Unlock()
				progress[rank] = p
			},
		})
		defer c.close()
		sessions := c.startAll(3)
		defer closeAll(sessions)
		var wg sync.WaitGroup
		for rank, s := range sessions {
			if s.Generation != 3 || len(s.Peers) != 3 || s.Peers[2].Addr != "data-2" || s.Peers[1].Role != "worker" {
				t.Errorf("rank %d: session %d, %+v", rank, s.Generation, s.Peers)
			}
			if s.ClockOffset != offset { // virtual time: the way takes none
				t.Errorf("rank %d: clock offset %v, want %v", rank, s.ClockOffset, offset)
			}
			wg.Go(func() {
				for step := range 100 {
					p := last
					p.Step = int64(step + 1)
					s.Progress(p)
				}
				time.Sleep(time.Duration(rank) * time.Minute) // heartbeats keep it alive
				report := []byte(fmt.Sprintf("report %d", rank))
				if rank == 1 {
					report = make([]byte, MaxReport)
				}
				if err := s.Done(t.Context(), report); err != nil {
					t.Errorf("rank %d: %v", rank, err)
				}
				if err := s.Context().Err(); err != nil {
					t.Errorf("rank %d: context ended: %v", rank, err)
				}
			})
		}
		out, err := c.server.Wait(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		wg.Wait()
		if string(out.Reports[2]) != "report 2" || len(out.Reports[1]) != MaxReport || len(out.Members) != 3 {
			t.Errorf("outcome: %d reports, %d members", len(out.Reports), len(out.Members))
		}
		mu.Lock()
		defer mu.Unlock()
		for rank := range 3 {
			if p := progress[rank]; p != last {
				t.Errorf("rank %d: last progress %+v", rank, p)
			}
		}
	})
}

// Ranks that follow plan by what rank 0 says, whoever comes first; what goes wrong with
// that is their own error, and a plan that differs is a mismatch for all.
func TestFollow(t *testing.T) {
	wrong := errors.New("there is no such model")
	for name, c := range map[string]struct {
		digest string
		err    error
		want   Kind
		words  string
	}{
		"equal":  {digest: "d1"},
		"other":  {digest: "d2", want: Mismatch, words: "rank 2 has plan d2"},
		"failed": {err: wrong, want: Failed, words: "rank 2 (worker, host"},
	} {
		synctest.Test(t, func(t *testing.T) {
			cl := newCluster(t, ServerConfig{World: 3})
			defer cl.close()
			note := strings.Repeat("n", MaxNote)
			configs := []JoinConfig{cl.config(0, 3), cl.config(1, 3), cl.config(2, 3)}
			configs[0].Note, configs[1].Note, configs[2].Digest = note, "of rank 1", ""
			configs[2].Follow = func(got string) (string, error) {
				synctest.Wait() // rank 1 has joined: who comes after the end is refused
				if got != note {
					t.Errorf("%s: told %.20q of %d bytes", name, got, len(got))
				}
				return c.digest, c.err
			}
			for rank, j := range joinAll(t.Context(), configs...) {
				if c.words != "" {
					wantAbort(t, j.err, 2, c.want, c.words)
					continue
				}
				if j.err != nil {
					t.Fatalf("%s: rank %d: %v", name, rank, j.err)
				}
				defer j.s.Close()
			}
		})
	}
	synctest.Test(t, func(t *testing.T) {
		cl := newCluster(t, ServerConfig{World: 1})
		defer cl.close()
		long := cl.config(0, 1)
		long.Note = strings.Repeat("n", MaxNote+1)
		if _, err := Join(t.Context(), long); !errors.Is(err, ErrLimit) {
			t.Errorf("a long note: %v", err)
		}
	})
}
