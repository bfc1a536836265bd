package compressed_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gangline/gangline/collective"
	"github.com/gangline/gangline/collective/compress"
	"github.com/gangline/gangline/collective/compressed"
	"github.com/gangline/gangline/tensor"
	"github.com/gangline/gangline/transport"
	"github.com/gangline/gangline/transport/mem"
)

// Who is missing is named, and the runner is used up.
func TestMissingRankIsNamed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		// Who waits for its bytes names it: in a ring the one behind it.
		for kind, at := range map[string]int{"onebit": 1, "powersgd": 0} {
			w := newWorld(3, mem.Options{})
			s := sums(t, w, kind, 100)
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			errs := w.each(func(i int) error {
				if i == 2 {
					return nil
				}
				return s[i].Run(ctx, tensor.New(tensor.F32, 100))
			})
			cancel()
			pe, ok := errors.AsType[*transport.PeerError](errs[at])
			if !ok || pe.Rank != w.group[at] || pe.Peer != w.group[2] || !errors.Is(errs[at], context.DeadlineExceeded) {
				t.Errorf("%s: %v", kind, errs[at])
			}
			if err := s[at].Run(t.Context(), tensor.New(tensor.F32, 100)); !errors.Is(err, collective.ErrUsedUp) {
				t.Errorf("%s: used up: %v", kind, err)
			}
			w.close()
		}
	})
}

// Ranks that disagree on the codec find out.
func TestOtherCodecsAreRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const elems = 128
		w := newWorld(2, mem.Options{})
		defer w.close()
		must(t, w.each(func(i int) error {
			name := []string{"int8", "topk"}[i]
			a, err := compressed.NewAllReduce(w.party(i), codec(t, name), elems, true)
			if err != nil {
				return err
			}
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			if err = a.Run(ctx, tensor.New(tensor.F32, elems)); err == nil {
				return errors.New("no error")
			}
			return nil
		}))
	})
}

// What is none of the codec's is refused, and the rank named that sent it: a message that is
// too short, and one with a scale that is infinite.
func TestBadBytesAreRefused(t *testing.T) {
	const elems = 128
	whole := make([]byte, codec(t, "int8").Bytes(elems/2))
	whole[3], whole[2] = 0x7f, 0x80
	for what, b := range map[string][]byte{"ranks disagree": make([]byte, len(whole)-1), "scale": whole} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(2, mem.Options{})
			defer w.close()
			errs := w.each(func(i int) error {
				ctx, cancel := context.WithTimeout(t.Context(), time.Second)
				defer cancel()
				if i == 0 { // takes its part, and gives the bad one
					rc := transport.Receive{Peer: w.group[1], Tag: 5, Buf: make([]byte, 1000)}
					if err := w.party(0).Endpoint.Post(&rc); err != nil {
						return err
					}
					return errors.Join(w.party(0).Endpoint.Send(ctx, w.group[1], 5, nil, b), rc.Wait(ctx))
				}
				a, err := compressed.NewAllReduce(w.party(i), codec(t, "int8"), elems, true)
				if err != nil {
					return err
				}
				return a.Run(ctx, tensor.New(tensor.F32, elems))
			})
			pe, ok := errors.AsType[*transport.PeerError](errs[1])
			if errs[0] != nil || !ok || pe.Peer != w.group[0] || !errors.Is(errs[1], transport.ErrCorrupt) || !strings.Contains(errs[1].Error(), what) {
				t.Errorf("%s: %v", what, errs)
			}
		})
	}
}

func TestMisuseIsRefused(t *testing.T) {
	w := newWorld(2, mem.Options{})
	defer w.close()
	bad := w.party(0)
	bad.Index = 2
	lonely := w.party(0)
	lonely.Endpoint = nil
	for name, f := range map[string]func() error{
		"index": func() error { _, err := compressed.NewAllReduce(bad, compress.F16{}, 1, false); return err },
		"endpoint": func() error {
			_, err := compressed.NewPowerSGD(lonely, 1, 1, nil)
			return err
		},
		"elements": func() error { _, err := compressed.NewAllReduce(w.party(0), compress.F16{}, -1, false); return err },
		"message":  func() error { _, err := compressed.NewAllReduce(w.party(0), compress.F16{}, 3<<30, false); return err },
		"rank":     func() error { _, err := compressed.NewPowerSGD(w.party(0), 100, 0, nil); return err },
	} {
		if f() == nil {
			t.Errorf("%s: taken", name)
		}
	}
	a, err := compressed.NewAllReduce(w.party(0), compress.F16{}, 4, false)
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range []*tensor.Tensor{tensor.New(tensor.F64, 4), tensor.New(tensor.F32, 5)} {
		if err := a.Run(t.Context(), v); err == nil || !strings.Contains(err.Error(), "4 f32") {
			t.Errorf("%v %v: %v", v.DType(), v.Shape(), err)
		}
	}
	if s := a.State(); s.First != nil || a.Restore(nil) != nil {
		t.Error("there is state without feedback")
	}
}

// Once warm, a Run allocates nothing.
func TestWarmRunsAllocateNothing(t *testing.T) {
	const n, elems = 3, 3003
	for _, kind := range kinds() {
		w := newWorld(n, mem.Options{})
		s := sums(t, w, kind, elems)
		starts, ends := make([]chan bool, n), make(chan error, n)
		for i := range n {
			starts[i] = make(chan bool)
			v := tensor.From(vector(i, 0, elems), elems)
			go func() {
				for range starts[i] {
					ends <- s[i].Run(t.Context(), v)
				}
				ends <- nil
			}()
		}
		round := func() {
			for _, c := range starts {
				c <- true
			}
			for range n {
				if err := <-ends; err != nil {
					t.Error(err)
				}
			}
		}
		for range 20 {
			round()
		}
		if a := testing.AllocsPerRun(50, round); a != 0 {
			t.Errorf("%s: %v allocations a run", kind, a)
		}
		for _, c := range starts {
			close(c)
		}
		for range n {
			if err := <-ends; err != nil {
				t.Error(err)
			}
		}
		w.close()
	}
}
