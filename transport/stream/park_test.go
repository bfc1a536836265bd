//go:build unix

package stream

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/gangline/gangline/transport"
)

// Two ranks take turns for thousands of rounds through a small ring, at random
// asleep, spinning or just looking, waiting for bytes, for room or for both. No
// slice of sleep ends: a wake-up that is lost is never made up for.
func TestNoWakeUpIsLost(t *testing.T) {
	for _, path := range bodies() {
		t.Run(path.String(), func(t *testing.T) {
			ctx := patient(t)
			const rounds = 4000
			s := openAll(t, 2, func(rank int) Config {
				c := testConfig(rank, 2, path)
				c.Ring = MinRing
				return c
			})
			errs := make([]error, 2)
			var wg sync.WaitGroup
			for i := range 2 {
				g := s[i].(*Group)
				g.slice = time.Hour
				rng := rand.New(rand.NewPCG(uint64(path), uint64(i)))
				sizes := rand.New(rand.NewPCG(7, 7)) // the same for both
				wg.Go(func() {
					buf := make([]byte, 3*MinRing)
					for round := 0; round < rounds && errs[i] == nil; round++ {
						n := 1 + sizes.IntN(16)
						if round%50 == 0 {
							n = 1 + sizes.IntN(len(buf)-1) // more than fits
						}
						g.spin = time.Duration(rng.IntN(2)) * 20 * time.Microsecond
						for range rng.IntN(3) * rng.IntN(60) {
							runtime.Gosched()
						}
						if round%2 == i {
							errs[i] = writeFull(ctx, g, 1-i, buf[:n])
						} else {
							errs[i] = readFull(ctx, g, 1-i, buf[:n])
						}
						if errs[i] != nil {
							errs[i] = fmt.Errorf("round %d: %w", round, errs[i])
						}
					}
				})
			}
			wg.Wait()
			for i, err := range errs {
				if err != nil {
					t.Errorf("rank %d: %v", i, err)
				}
			}
			closeAll(t, s)
		})
	}
}

// A deadline ends a sleep: it is not only looked at when a slice has ended.
func TestDeadlineEndsSleep(t *testing.T) {
	s := openAll(t, 2, func(rank int) Config { return testConfig(rank, 2, Auto) })
	defer closeAll(t, s)
	s[0].(*Group).slice = time.Hour
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Millisecond)
	defer cancel()
	var err error
	for err == nil {
		err = s[0].Park(ctx, s[0].To(1), nil)
	}
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v, want the deadline", err)
	}
}

// Both ranks write more than fits before they read: each waits for bytes and room
// at once.
func TestParkForEither(t *testing.T) {
	for _, path := range bodies() {
		t.Run(path.String(), func(t *testing.T) {
			ctx := patient(t)
			s := openAll(t, 2, func(rank int) Config { return testConfig(rank, 2, path) })
			const total = 20 << 20
			errs := make([]error, 2)
			var wg sync.WaitGroup
			for i := range 2 {
				s[i].(*Group).slice = time.Hour
				wg.Go(func() {
					st, sent, got := s[i].To(1-i), 0, 0
					buf := make([]byte, 300_000)
					for sent < total || got < total {
						w, err := st.Write(buf[:min(len(buf), total-sent)])
						if err != nil {
							errs[i] = err
							return
						}
						r, err := st.Read(buf[:min(len(buf), total-got)])
						if err != nil {
							errs[i] = err
							return
						}
						if sent, got = sent+w, got+r; w+r > 0 {
							continue
						}
						var in, out transport.Stream
						if got < total {
							in = st
						}
						if sent < total {
							out = st
						}
						if errs[i] = s[i].Park(ctx, in, out); errs[i] != nil {
							return
						}
					}
				})
			}
			wg.Wait()
			for i, err := range errs {
				if err != nil {
					t.Errorf("rank %d: %v", i, err)
				}
			}
			closeAll(t, s)
		})
	}
}

func closeAll(tb testing.TB, s []transport.Streams) {
	tb.Helper()
	var wg sync.WaitGroup
	for _, x := range s {
		wg.Go(func() {
			if err := x.Close(); err != nil {
				tb.Error(err)
			}
		})
	}
	wg.Wait()
}
