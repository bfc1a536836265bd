package transport

import (
	"context"
	"errors"
	"testing"
)

func TestReceive(t *testing.T) {
	r := &Receive{Peer: 4, Tag: 9, Buf: make([]byte, 8)}
	r.Arm(2)
	r.Complete(5, nil)
	ended, cancel := context.WithCancelCause(context.Background())
	why := errors.New("why")
	cancel(why)
	for range 20 { // what is there wins, always
		if err := r.Wait(ended); err != nil || r.N != 5 {
			t.Fatalf("got %d, %v", r.N, err)
		}
		r.Arm(2)
		r.Complete(5, nil)
	}
	if err := r.Wait(ended); err != nil {
		t.Fatal(err)
	}
	r.Arm(2)
	err := r.Wait(ended)
	var p *PeerError
	if !errors.As(err, &p) || !errors.Is(err, why) || p.Rank != 2 || p.Peer != 4 || p.Tag != 9 {
		t.Errorf("got %v", err)
	}
	if want := "rank 2: receive from rank 4 (tag 9): why"; err.Error() != want {
		t.Errorf("got %q, want %q", err, want)
	}
	defer func() {
		if recover() == nil {
			t.Error("posted twice without a panic")
		}
	}()
	r.Arm(2)
}

func TestFit(t *testing.T) {
	grow := func(n int) []byte { return make([]byte, n) }
	for _, tt := range []struct {
		r    Receive
		room int
		fit  bool
	}{
		{Receive{Buf: make([]byte, 9)}, 9, false},
		{Receive{Buf: make([]byte, 10)}, 10, true},
		{Receive{Grow: grow}, MaxMessage, true},
		{Receive{Grow: func(n int) []byte { return make([]byte, n-1) }}, MaxMessage, false},
	} {
		if got := tt.r.Room(); got != tt.room {
			t.Errorf("room %d, want %d", got, tt.room)
		}
		if got := tt.r.Fit(10); got != tt.fit {
			t.Errorf("fit %v, want %v", got, tt.fit)
		}
	}
}
