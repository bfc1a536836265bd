package mem_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/gangline/gangline/transport"
	"github.com/gangline/gangline/transport/mem"
	"github.com/gangline/gangline/transport/transporttest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestSuite(t *testing.T) {
	transporttest.Run(t, func(_ *testing.T, n int) []transport.Endpoint { return mem.NewNetwork(n).Endpoints() })
}

// Links that take time keep the same promises, but for allocation.
func TestSuiteWithTime(t *testing.T) {
	transporttest.Run(t, func(_ *testing.T, n int) []transport.Endpoint {
		return mem.NewNetwork(n, mem.Options{Link: func(int, int) mem.Link {
			return mem.Link{Delay: 20 * time.Microsecond, BytesPerSecond: 1e11}
		}}).Endpoints()
	}, "Reuse")
}

func open(n int, o mem.Options) (*mem.Network, []transport.Endpoint) {
	w := mem.NewNetwork(n, o)
	return w, w.Endpoints()
}

func mustPost(t *testing.T, e transport.Endpoint, peer int, tag uint32, n int) *transport.Receive {
	t.Helper()
	r := &transport.Receive{Peer: peer, Tag: tag, Buf: make([]byte, n)}
	if err := e.Post(r); err != nil {
		t.Fatal(err)
	}
	return r
}

// 1000 bytes at 1000 bytes a second are a second on the link, and arrive after
// the delay; messages follow each other; the other direction is its own.
func TestTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx := t.Context()
		_, e := open(2, mem.Options{Link: func(from, _ int) mem.Link {
			return mem.Link{Delay: time.Duration(1+from) * 100 * time.Millisecond, BytesPerSecond: 1000}
		}})
		begin := time.Now()
		passed := func(what string, want time.Duration) {
			t.Helper()
			if got := time.Since(begin); got != want {
				t.Errorf("%s after %v, want %v", what, got, want)
			}
		}
		var r []*transport.Receive
		for i := range 3 {
			r = append(r, mustPost(t, e[1], 0, uint32(i), 1000))
		}
		back := mustPost(t, e[0], 1, 0, 500)
		for i := range 3 {
			if err := e[0].Send(ctx, 1, uint32(i), make([]byte, 400), make([]byte, 600)); err != nil {
				t.Fatal(err)
			}
			passed("send", time.Duration(i+1)*time.Second)
		}
		if err := r[2].Wait(ctx); err != nil {
			t.Fatal(err)
		}
		passed("arrival", 3100*time.Millisecond)
		if err := e[1].Send(ctx, 0, 0, nil, make([]byte, 500)); err != nil {
			t.Fatal(err)
		}
		passed("send back", 3600*time.Millisecond)
		if err := back.Wait(ctx); err != nil {
			t.Fatal(err)
		}
		passed("arrival back", 3800*time.Millisecond)
	})
}

// What has left when its sender closes still arrives; what has left when its
// sender is killed does not.
func TestUnderWay(t *testing.T) {
	for _, kill := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			w, e := open(2, mem.Options{Link: func(int, int) mem.Link { return mem.Link{Delay: time.Second} }})
			r := mustPost(t, e[1], 0, 0, 4)
			if err := e[0].Send(t.Context(), 1, 0, nil, []byte("last")); err != nil {
				t.Fatal(err)
			}
			want := error(nil)
			if kill {
				w.Kill(0)
				want = transport.ErrPeerLost
			} else if err := e[0].Close(); err != nil {
				t.Fatal(err)
			}
			if err := r.Wait(t.Context()); !errors.Is(err, want) {
				t.Errorf("kill %v: got %v, want %v", kill, err, want)
			}
		})
	}
}

// A ctx that ends while the message is on a slow link gives the receive back.
func TestCancelOnLink(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, e := open(2, mem.Options{Link: func(int, int) mem.Link { return mem.Link{BytesPerSecond: 100} }})
		r := mustPost(t, e[1], 0, 0, 1000)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := e[0].Send(ctx, 1, 0, nil, make([]byte, 1000)); !errors.Is(err, context.DeadlineExceeded) {
			t.Fatalf("got %v", err)
		}
		if err := e[0].Send(t.Context(), 1, 0, nil, []byte("next")); err != nil {
			t.Fatal(err)
		}
		if err := r.Wait(t.Context()); err != nil || string(r.Buf[:r.N]) != "next" {
			t.Fatalf("got %q, %v", r.Buf[:r.N], err)
		}
	})
}

// A kill in the middle of a transfer ends both sides at that moment.
func TestKillOnLink(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, e := open(2, mem.Options{Link: func(int, int) mem.Link { return mem.Link{BytesPerSecond: 100} }})
		r := mustPost(t, e[1], 0, 0, 1000)
		sent := make(chan error, 1)
		go func() { sent <- e[0].Send(t.Context(), 1, 0, nil, make([]byte, 1000)) }()
		time.Sleep(3 * time.Second)
		begin := time.Now()
		w.Kill(1)
		if err := <-sent; !errors.Is(err, transport.ErrPeerLost) {
			t.Errorf("sender: %v", err)
		}
		if err := r.Wait(t.Context()); !errors.Is(err, transport.ErrClosed) {
			t.Errorf("the killed rank's own receive: %v", err)
		}
		if d := time.Since(begin); d != 0 {
			t.Errorf("took %v", d)
		}
	})
}

// A paused rank neither gives nor takes, LastHeard says since when, and after
// Resume all goes on in order.
func TestPause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, e := open(3, mem.Options{})
		time.Sleep(time.Minute)
		since := time.Now()
		w.Pause(1)
		w.Pause(1) // once is enough
		r := mustPost(t, e[1], 0, 0, 4)
		sent := make(chan error, 1)
		go func() { sent <- e[0].Send(t.Context(), 1, 0, nil, []byte("slow")) }()
		sentFirst := make(chan error, 1)
		go func() { sentFirst <- e[0].Send(t.Context(), 1, 1, nil, []byte("wait")) }()
		time.Sleep(time.Hour)
		late := mustPost(t, e[1], 0, 1, 4)
		synctest.Wait()
		select {
		case err := <-sent:
			t.Fatalf("a message to a paused rank left: %v", err)
		case err := <-sentFirst:
			t.Fatalf("a message to a paused rank left when it posted: %v", err)
		default:
		}
		s := e[0].Stats()
		if !s.LastHeard[1].Equal(since) || !s.LastHeard[2].Equal(time.Now()) {
			t.Errorf("heard %v, want rank 1 at %v and rank 2 now", s.LastHeard, since)
		}
		if s := e[1].Stats(); !s.LastHeard[0].Equal(since) {
			t.Errorf("the paused rank heard rank 0 at %v, want %v", s.LastHeard[0], since)
		}
		w.Resume(1)
		if err := <-sent; err != nil {
			t.Fatal(err)
		}
		if err := r.Wait(t.Context()); err != nil || string(r.Buf) != "slow" {
			t.Fatalf("got %q, %v", r.Buf, err)
		}
		if err := errors.Join(<-sentFirst, late.Wait(t.Context())); err != nil || string(late.Buf) != "wait" {
			t.Fatalf("got %q, %v", late.Buf, err)
		}
		if s := e[0].Stats(); !s.LastHeard[1].Equal(time.Now()) {
			t.Errorf("after resume heard %v", s.LastHeard[1])
		}
	})
}

// The sends that wait for one tag are limited, and the limit harms none of them.
func TestSendsLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, e := open(2, mem.Options{})
		sent := make(chan error, transport.MaxSends)
		for range transport.MaxSends {
			go func() { sent <- e[0].Send(t.Context(), 1, 0, nil, nil) }()
		}
		synctest.Wait()
		if err := e[0].Send(t.Context(), 1, 0, nil, nil); !errors.Is(err, transport.ErrLimit) {
			t.Errorf("got %v, want %v", err, transport.ErrLimit)
		}
		for range transport.MaxSends {
			if err := errors.Join(mustPost(t, e[1], 0, 0, 0).Wait(t.Context()), <-sent); err != nil {
				t.Fatal(err)
			}
		}
	})
}

// Each fault at the third message does what it says.
func TestFaults(t *testing.T) {
	for _, tt := range []struct {
		name       string
		fault      mem.Fault
		send, recv error
	}{
		{"none", mem.None, nil, nil},
		{"cut", mem.Cut, transport.ErrPeerLost, transport.ErrPeerLost},
		{"kill sender", mem.KillSender, transport.ErrClosed, transport.ErrPeerLost},
		{"kill receiver", mem.KillReceiver, transport.ErrPeerLost, transport.ErrClosed},
		{"pause sender", mem.PauseSender, context.DeadlineExceeded, context.DeadlineExceeded},
		{"pause receiver", mem.PauseReceiver, context.DeadlineExceeded, context.DeadlineExceeded},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				_, e := open(2, mem.Options{Fault: func(m mem.Message) mem.Fault {
					if m.Tag == 2 {
						return tt.fault
					}
					return mem.None
				}})
				for tag := range uint32(3) {
					var wantSend, wantRecv error
					if tag == 2 {
						wantSend, wantRecv = tt.send, tt.recv
					}
					ctx, cancel := context.WithTimeout(t.Context(), time.Second)
					r := mustPost(t, e[1], 0, tag, 4)
					if err := e[0].Send(ctx, 1, tag, nil, []byte("body")); !errors.Is(err, wantSend) {
						t.Errorf("tag %d: send: %v, want %v", tag, err, wantSend)
					}
					if err := r.Wait(ctx); !errors.Is(err, wantRecv) {
						t.Errorf("tag %d: receive: %v, want %v", tag, err, wantRecv)
					}
					cancel()
				}
			})
		})
	}
}

// Whatever is killed, cut, closed or paused while all ranks exchange, every
// wait ends.
func TestChaos(t *testing.T) {
	for seed := range uint64(30) {
		synctest.Test(t, func(t *testing.T) {
			const n = 4
			rng := rand.New(rand.NewPCG(seed, 1))
			w, e := open(n, mem.Options{Link: func(int, int) mem.Link {
				return mem.Link{Delay: time.Duration(rng.IntN(3)) * time.Millisecond, BytesPerSecond: []float64{0, 1e5}[rng.IntN(2)]}
			}})
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			done := make(chan error, 2*n*n)
			for i := range n * n {
				if i/n == i%n {
					continue
				}
				go func() { done <- exchangeSend(ctx, e[i/n], i%n) }()
				go func() { done <- exchangeTake(ctx, e[i/n], i%n) }()
			}
			for range 3 {
				time.Sleep(time.Duration(rng.IntN(50)) * time.Millisecond)
				rank := rng.IntN(n)
				switch rng.IntN(4) {
				case 0:
					w.Kill(rank)
				case 1:
					w.Cut(rank, (rank+1)%n)
				case 2:
					if err := e[rank].Close(); err != nil {
						t.Error(err)
					}
				case 3:
					w.Pause(rank)
					time.Sleep(time.Duration(rng.IntN(20)) * time.Millisecond)
					w.Resume(rank)
				}
			}
			for range 2 * n * (n - 1) {
				if err := <-done; errors.Is(err, context.DeadlineExceeded) {
					t.Errorf("seed %d: a wait hung: %v", seed, err)
				}
			}
			for _, x := range e {
				if err := x.Close(); err != nil {
					t.Error(err)
				}
			}
		})
	}
}

func exchangeSend(ctx context.Context, e transport.Endpoint, peer int) error {
	for i := range 100 {
		if err := e.Send(ctx, peer, uint32(i%3), nil, make([]byte, i)); err != nil {
			return err
		}
	}
	return nil
}

func exchangeTake(ctx context.Context, e transport.Endpoint, peer int) error {
	for i := range 100 {
		r := &transport.Receive{Peer: peer, Tag: uint32(i % 3), Buf: make([]byte, i)}
		if err := e.Post(r); err != nil {
			return err
		}
		if err := r.Wait(ctx); err != nil {
			return err
		}
		if r.N != i {
			return fmt.Errorf("message %d has %d bytes", i, r.N)
		}
	}
	return nil
}

// Two ranks exchange small messages: the cost of a message in the executor.
func BenchmarkExchange(b *testing.B) {
	for _, size := range []int{64, 4096} {
		b.Run(fmt.Sprint(size), func(b *testing.B) {
			w := mem.NewNetwork(2)
			ctx := b.Context()
			stop := make(chan error, 1)
			run := func(rank, n int) error {
				e, body := w.Endpoint(rank), make([]byte, size)
				r := &transport.Receive{Peer: 1 - rank, Buf: make([]byte, size)}
				for range n {
					if err := e.Post(r); err != nil {
						return err
					}
					if err := e.Send(ctx, 1-rank, 0, nil, body); err != nil {
						return err
					}
					if err := r.Wait(ctx); err != nil {
						return err
					}
				}
				return nil
			}
			b.ReportAllocs()
			b.ResetTimer()
			go func() { stop <- run(1, b.N) }()
			if err := errors.Join(run(0, b.N), <-stop); err != nil {
				b.Fatal(err)
			}
		})
	}
}
