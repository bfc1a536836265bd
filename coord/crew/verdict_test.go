package crew

import (
	"context"
	"errors"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gangline/gangline/coord"
	"github.com/gangline/gangline/transport"
)

// Who has given up waits for the verdict until a moment before its deadline, and not
// beyond: it may never come.
func TestVerdictTime(t *testing.T) {
	for _, c := range []struct{ left, want time.Duration }{
		{VerdictWait, VerdictWait - VerdictEarly},
		{time.Second, 900 * time.Millisecond},
		{time.Hour, VerdictWait},
		{100 * time.Millisecond, VerdictLeast},
		{-time.Second, VerdictLeast},
	} {
		if got := VerdictTime(c.left); got != c.want {
			t.Errorf("%v are left: %v, want %v", c.left, got, c.want)
		}
	}
}

// muted is a connection of which, once that is closed, nothing comes any more.
type muted struct {
	net.Conn
	from   <-chan struct{}
	closed chan struct{}
	once   sync.Once
}

func (m *muted) Read(p []byte) (int, error) {
	n, err := m.Conn.Read(p)
	select {
	case <-m.from:
		<-m.closed
		return 0, net.ErrClosed
	default:
		return n, err
	}
}

func (m *muted) Close() error {
	m.once.Do(func() { close(m.closed) })
	return m.Conn.Close()
}

// joined joins three ranks and returns rank 1, whose connection mute mutes.
func joined(t *testing.T, mute <-chan struct{}) *coord.Session {
	t.Helper()
	server, err := coord.NewServer(coord.ServerConfig{World: 3, Token: "a token"})
	if err != nil {
		t.Fatal(err)
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- server.Serve(ln) }()
	var sessions [3]*coord.Session
	var joining sync.WaitGroup
	for rank := range sessions {
		cfg := coord.JoinConfig{Address: ln.Addr().String(), Token: "a token", Rank: rank, World: 3, Led: true}
		if rank == 1 {
			cfg.Dial = func(ctx context.Context, address string) (net.Conn, error) {
				c, err := new(net.Dialer).DialContext(ctx, "tcp", address)
				return &muted{Conn: c, from: mute, closed: make(chan struct{})}, err
			}
		}
		joining.Go(func() {
			s, err := coord.Join(t.Context(), cfg)
			if err != nil {
				t.Error(err)
				return
			}
			sessions[rank] = s
		})
	}
	joining.Wait()
	t.Cleanup(func() {
		for _, s := range sessions {
			if s != nil {
				_ = s.Close() // the server is next
			}
		}
		if err := errors.Join(server.Close(), <-served); err != nil {
			t.Error(err)
		}
	})
	if t.Failed() {
		t.FailNow()
	}
	return sessions[1]
}

// A rank that blames another one outside of calls hears the verdict of all; if the
// coordinator does not answer, it names that one as well, in the rank where it is.
func TestOutside(t *testing.T) {
	lost := coord.Blame(2, errors.New("nothing came"))
	for _, answers := range []bool{true, false} {
		mute := make(chan struct{})
		s := joined(t, mute)
		want := "(host "
		if !answers {
			close(mute)
			want = "the coordinator does not answer, silent for"
		}
		wait := time.Minute
		if !answers {
			wait = time.Millisecond
		}
		a := Outside(s, lost, wait)
		if !strings.Contains(a.Text, want) || !strings.Contains(a.Text, "nothing came") || a.Kind != coord.Failed {
			t.Errorf("answers: %t: %v", answers, a)
		}
		missing := map[int]bool{}
		for _, m := range a.Missing {
			missing[m.Rank] = true
		}
		if !missing[2] || !answers && (a.Rank != 0 || !missing[0]) {
			t.Errorf("blames rank %d, missing %v", a.Rank, a.Missing)
		}
	}
}

// aborted counts how it ends.
type aborted struct {
	transport.Streams
	aborts, closes int
}

func (a *aborted) Abort()       { a.aborts++ }
func (a *aborted) Close() error { a.closes++; return nil }

// silent has only one way to end.
type silent struct {
	transport.Streams
	closes int
}

func (s *silent) Close() error { s.closes++; return nil }

// What is over by an error does not say bye, where there is a choice.
func TestAbort(t *testing.T) {
	a, s := &aborted{}, &silent{}
	Abort(&Watched{Streams: a})
	Abort(s)
	if a.aborts != 1 || s.closes != 1 {
		t.Errorf("%+v, %+v", a, s)
	}
}
