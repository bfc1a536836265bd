package coord

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/metadata"
)

func TestDigestMismatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, ServerConfig{World: 3})
		defer c.close()
		configs := []JoinConfig{c.config(0, 3), c.config(1, 3), c.config(2, 3)}
		configs[1].Digest = "d2"
		for _, j := range joinAll(t.Context(), configs...) {
			wantAbort(t, j.err, 1, Mismatch, "ranks 0, 2 have plan d1", "rank 1 has plan d2")
		}
		_, err := c.server.Wait(t.Context())
		wantAbort(t, err, 1, Mismatch)
	})
}

func TestMissingRank(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, ServerConfig{World: 3, JoinTimeout: 20 * time.Second})
		defer c.close()
		begin := time.Now()
		for _, j := range joinAll(t.Context(), c.config(0, 3), c.config(2, 3)) {
			wantAbort(t, j.err, 1, Missing, "rank 1 of 3 did not join within 20s")
		}
		if took := time.Since(begin); took != 20*time.Second {
			t.Errorf("took %v", took)
		}
	})
}

func TestRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, ServerConfig{World: 1})
		defer c.close()
		defer closeAll(c.startAll(1))
		wrong := c.config(1, 2)
		if _, err := Join(t.Context(), wrong); !errors.Is(err, ErrRefused) || !strings.Contains(err.Error(), "a world of 2, this one has 1") {
			t.Errorf("wrong world: %v", err)
		}
		if _, err := Join(t.Context(), c.config(0, 1)); !errors.Is(err, ErrRefused) || !strings.Contains(err.Error(), "is taken by rank 0") {
			t.Errorf("second rank 0: %v", err)
		}
		long := c.config(0, 1)
		long.Digest = strings.Repeat("x", maxWord+1)
		if _, err := Join(t.Context(), long); !errors.Is(err, ErrRefused) || !strings.Contains(err.Error(), "limit") {
			t.Errorf("endless digest: %v", err)
		}
	})
}

// TestStranger proves that a wrong token opens nothing but health, that the log
// names where it came from, and that the generation is not hurt.
func TestStranger(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, ServerConfig{World: 2})
		defer c.close()
		for _, token := range []string{"secre", "secret ", "Secret", "x"} {
			intruder := c.config(1, 2)
			intruder.Token = token
			if _, err := Join(t.Context(), intruder); !errors.Is(err, ErrToken) {
				t.Errorf("token %q: %v", token, err)
			}
		}
		if log := c.logs.String(); !strings.Contains(log, "refused a stranger") || !strings.Contains(log, "address=bufconn") {
			t.Errorf("the log does not name the stranger: %s", log)
		}
		conn, err := grpc.NewClient("passthrough:///memory", grpc.WithTransportCredentials(insecure.NewCredentials()),
			grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return c.ln.DialContext(ctx) }))
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		sessions := c.startAll(2)
		defer closeAll(sessions)
		reply, err := healthpb.NewHealthClient(conn).Check(t.Context(), &healthpb.HealthCheckRequest{})
		if err != nil || reply.GetStatus() != healthpb.HealthCheckResponse_SERVING {
			t.Errorf("health: %v, %v", reply, err)
		}
		for _, token := range []string{"", "secret"} {
			ctx := metadata.AppendToOutgoingContext(t.Context(), tokenKey, tokenPrefix+token)
			stream, err := conn.NewStream(ctx, &grpc.StreamDesc{ClientStreams: true, ServerStreams: true},
				"/grpc.reflection.v1.ServerReflection/ServerReflectionInfo")
			if err == nil {
				if err = stream.CloseSend(); err == nil {
					err = stream.RecvMsg(&healthpb.HealthCheckResponse{})
				}
			}
			if refused := strings.Contains(fmt.Sprint(err), "Unauthenticated"); refused == (token == "secret") {
				t.Errorf("reflection with token %q: %v", token, err)
			}
		}
	})
}

// TestFirstError proves that one rank's error ends all ranks within a second,
// that all get the same sentence, and that a second error changes nothing.
func TestFirstError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, ServerConfig{World: 4})
		defer c.close()
		sessions := c.startAll(4)
		defer closeAll(sessions)
		begin := time.Now()
		wantAbort(t, sessions[2].Fail(errors.New("loss is NaN\xff at step 7")), 2, Failed, "rank 2 (worker", "loss is NaN? at step 7")
		for rank, s := range sessions {
			<-s.Context().Done()
			wantAbort(t, context.Cause(s.Context()), 2, Failed, "loss is NaN")
			wantAbort(t, s.Fail(errors.New("later")), 2, Failed)
			wantAbort(t, s.Done(t.Context(), nil), 2, Failed)
			if took := time.Since(begin); took >= time.Second {
				t.Errorf("rank %d heard after %v", rank, took)
			}
		}
		_, err := c.server.Wait(t.Context())
		wantAbort(t, err, 2, Failed)
	})
}

// TestBlame proves that the rank that died is named, not the one that noticed.
func TestBlame(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, ServerConfig{World: 3, LostGrace: 200 * time.Millisecond})
		defer c.close()
		sessions := c.startAll(3)
		defer closeAll(sessions)
		begin := time.Now()
		var wg sync.WaitGroup
		wg.Go(func() {
			err := sessions[0].Fail(fmt.Errorf("step 3: %w", Blame(1, errors.New("peer lost"))))
			wantAbort(t, err, 1, ProcessExited, "worker 1 was killed")
		})
		synctest.Wait()
		c.conns[1].Close()
		synctest.Wait()
		c.server.Exited(1, "worker 1 was killed")
		<-sessions[2].Context().Done()
		if took := time.Since(begin); took >= time.Second {
			t.Errorf("took %v", took)
		}
		wg.Wait()
	})
}

// TestStreamCut proves that a broken connection names the rank with host and
// pid, to the others, and the coordinator to the one that was cut off.
func TestStreamCut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, ServerConfig{World: 3})
		defer c.close()
		sessions := c.startAll(3)
		defer closeAll(sessions)
		begin := time.Now()
		c.conns[1].Close()
		for rank, s := range sessions {
			<-s.Context().Done()
			if rank == 1 {
				wantAbort(t, context.Cause(s.Context()), NoRank, CoordinatorLost, "the coordinator at memory was lost")
				continue
			}
			wantAbort(t, context.Cause(s.Context()), 1, StreamLost, "rank 1 (worker, host ", ", pid ")
		}
		if took := time.Since(begin); took >= time.Second {
			t.Errorf("took %v", took)
		}
	})
}

// TestLeave proves that Close before Done is the loss of the rank.
func TestLeave(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, ServerConfig{World: 2})
		defer c.close()
		sessions := c.startAll(2)
		defer closeAll(sessions)
		sessions[0].Close()
		<-sessions[1].Context().Done()
		wantAbort(t, context.Cause(sessions[1].Context()), 0, StreamLost)
	})
}

// stalled is a connection that carries nothing any more, as of a dead host.
type stalled struct {
	net.Conn
	dead chan struct{}
}

func (s *stalled) Write(p []byte) (int, error) {
	select {
	case <-s.dead:
		return len(p), nil
	default:
		return s.Conn.Write(p)
	}
}

// TestSilent proves that a dead host is noticed on both sides, by the limit.
func TestSilent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, ServerConfig{World: 2, HeartbeatTimeout: 3 * time.Second})
		defer c.close()
		dead := make(chan struct{})
		configs := []JoinConfig{c.config(0, 2), c.config(1, 2)}
		dial := configs[1].Dial
		configs[1].Dial = func(ctx context.Context, address string) (net.Conn, error) {
			conn, err := dial(ctx, address)
			return &stalled{Conn: conn, dead: dead}, err
		}
		both := joinAll(t.Context(), configs...)
		for _, j := range both {
			if j.err != nil {
				t.Fatal(j.err)
			}
			defer j.s.Close()
		}
		time.Sleep(time.Minute)
		begin := time.Now()
		close(dead)
		<-both[0].s.Context().Done()
		wantAbort(t, context.Cause(both[0].s.Context()), 1, Silent, "silent for 3s, the limit is 3s")
		if took := time.Since(begin); took > 3*time.Second {
			t.Errorf("took %v", took)
		}
	})
}

// TestCoordinatorSilent proves that a member does not wait for a coordinator
// whose host is dead.
func TestCoordinatorSilent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, ServerConfig{World: 1, HeartbeatTimeout: 3 * time.Second})
		defer c.close()
		s := c.startAll(1)[0]
		defer s.Close()
		s.mu.Lock()
		s.heard = s.heard.Add(-time.Hour) // as if nothing had come
		s.mu.Unlock()
		if s.coordinatorLives(time.Now(), true); s.Context().Err() != nil {
			t.Error("a member that was held up itself must not blame the coordinator")
		}
		if s.coordinatorLives(time.Now().Add(4*time.Second), false) {
			t.Error("4s of silence with a limit of 3s")
		}
		wantAbort(t, context.Cause(s.Context()), NoRank, CoordinatorLost, "silent for 4s")
	})
}

// TestCoordinatorCloses proves that members learn why, and at once.
func TestCoordinatorCloses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, ServerConfig{World: 2})
		sessions := c.startAll(2)
		defer closeAll(sessions)
		c.server.Stop("interrupted by signal 2")
		c.close()
		for _, s := range sessions {
			<-s.Context().Done()
			wantAbort(t, context.Cause(s.Context()), NoRank, Stopped, "interrupted by signal 2")
		}
		_, err := c.server.Wait(t.Context())
		wantAbort(t, err, NoRank, Stopped)
	})
}

// TestJoinGivesUp proves that the caller's context and timeout end Join, with
// what is known of the connection.
func TestJoinGivesUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg := JoinConfig{
			Address: "nowhere:1", Token: "x", World: 1, Timeout: 5 * time.Second,
			Dial: func(context.Context, string) (net.Conn, error) { return nil, errors.New("nobody is home") },
		}
		_, err := Join(t.Context(), cfg)
		if err == nil || !strings.Contains(err.Error(), "did not start within 5s") || !strings.Contains(err.Error(), "nobody is home") {
			t.Errorf("no coordinator: %v", err)
		}
		c := newCluster(t, ServerConfig{World: 2})
		defer c.close()
		ctx, cancel := context.WithCancelCause(t.Context())
		go func() {
			time.Sleep(2 * time.Second)
			cancel(errors.New("changed my mind"))
		}()
		if _, err := Join(ctx, c.config(0, 2)); err == nil || !strings.Contains(err.Error(), "changed my mind") {
			t.Errorf("cancelled: %v", err)
		}
	})
}

// TestCancelAfterJoin proves that the context of Join ends the session's, while
// the rank can still say why.
func TestCancelAfterJoin(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, ServerConfig{World: 1})
		defer c.close()
		ctx, cancel := context.WithCancelCause(t.Context())
		s, err := Join(ctx, c.config(0, 1))
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		cancel(errors.New("interrupted"))
		<-s.Context().Done()
		wantAbort(t, s.Fail(context.Cause(s.Context())), 0, Failed, "failed: interrupted")
	})
}

func TestLimits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, ServerConfig{World: 1})
		defer c.close()
		s := c.startAll(1)[0]
		defer s.Close()
		if err := s.Done(t.Context(), make([]byte, MaxReport+1)); !errors.Is(err, ErrLimit) {
			t.Errorf("report over the limit: %v", err)
		}
		err := s.Fail(errors.New(strings.Repeat("long ", maxText)))
		if n := len(abortOfErr(t, err).Text); n > maxText+200 {
			t.Errorf("text of %d bytes", n)
		}
	})
	for _, cfg := range []ServerConfig{{World: 0, Token: "x"}, {World: MaxWorld + 1, Token: "x"}, {World: 1}} {
		if _, err := NewServer(cfg); err == nil {
			t.Errorf("%+v was taken", cfg)
		}
	}
	for _, cfg := range []JoinConfig{{World: 0, Token: "x"}, {World: 2, Rank: 2, Token: "x"}, {World: 1}} {
		if _, err := Join(t.Context(), cfg); err == nil {
			t.Errorf("%+v was taken", cfg)
		}
	}
}

// TestTCP proves the same over a real socket, and that Close before anybody
// joined leaves nothing behind.
func TestTCP(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server, err := NewServer(ServerConfig{World: 2, Token: "secret"})
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- server.Serve(ln) }()
	cfg := JoinConfig{Address: ln.Addr().String(), Token: "secret", World: 2}
	second := cfg
	second.Rank = 1
	var wg sync.WaitGroup
	for _, j := range joinAll(t.Context(), cfg, second) {
		if j.err != nil {
			t.Fatal(j.err)
		}
		wg.Go(func() {
			defer j.s.Close()
			if err := j.s.Done(t.Context(), []byte("x")); err != nil {
				t.Error(err)
			}
		})
	}
	if out, err := server.Wait(t.Context()); err != nil || len(out.Reports) != 2 {
		t.Errorf("%+v, %v", out, err)
	}
	if err := server.Close(); err != nil {
		t.Error(err)
	}
	wg.Wait()
	if err := <-served; err != nil {
		t.Error(err)
	}
	idle, err := NewServer(ServerConfig{World: 1, Token: "x"})
	if err != nil {
		t.Fatal(err)
	}
	idle.Close()
}

func TestClock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newClock()
		for _, way := range []struct{ there, back time.Duration }{{9, 1}, {2, 2}, {1, 30}} {
			sent := c.now()
			time.Sleep(way.there * time.Millisecond)
			other := time.Now().Add(time.Hour).UnixNano()
			time.Sleep(way.back * time.Millisecond)
			c.sample(sent, other)
		}
		if c.offset != time.Hour || c.best != 4*time.Millisecond {
			t.Errorf("offset %v by a way of %v", c.offset, c.best)
		}
	})
}
