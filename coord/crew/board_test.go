package crew

import (
	"context"
	"testing"
	"time"

	"github.com/gangline/gangline/transport"
)

// A call is open from its begin to its end; one that fails stays open. They are counted
// by group, and say what they are.
func TestBoard(t *testing.T) {
	var b Board
	b.Add("workers", []int{0, 1, 2})
	b.Add("ranks 0, 1", []int{0, 1})
	b.Begin(0, 3, "task a")
	b.End(0)
	b.Begin(0, 4, "task a")
	calls := b.Calls()
	if c := calls[0]; c.Group != "workers" || c.Sequence != 2 || !c.Open || !c.Waited || c.What != "step 4, task a" || len(c.Members) != 3 {
		t.Errorf("%+v", c)
	}
	if c := calls[1]; c.Sequence != 0 || c.Open || c.What != "" {
		t.Errorf("%+v", c)
	}
	b.End(0)
	if c := b.Calls()[0]; c.Open || c.Sequence != 2 {
		t.Errorf("%+v", c)
	}
}

// still are streams of which nothing comes.
type still struct{ transport.Streams }

type dead struct {
	transport.Stream
	_ byte // so that two are not one
}

func (still) To(int) transport.Stream { return &dead{} }

func (still) Park(context.Context, transport.Stream, transport.Stream) error { return nil }

// Streams that are watched say for whom their rank waits, until the call ends.
func TestWatched(t *testing.T) {
	s := still{}
	w := NewWatched(s, []int{0, 1, 2}, 1)
	var in transport.Stream
	for stream, rank := range w.peers {
		if rank == 2 {
			in = stream
		}
	}
	var b Board
	b.Add("g", []int{0, 1, 2})
	b.Watch(0, w)
	b.Begin(0, 0, "x")
	if err := w.Park(t.Context(), in, nil); err != nil {
		t.Fatal(err)
	}
	if c := b.Calls()[0]; len(c.Waits) != 1 || c.Waits[0] != 2 {
		t.Errorf("%+v", c)
	}
	b.End(0)
	if got := w.Waits(); got != nil {
		t.Errorf("waits for %v after the end", got)
	}
}

// To note a call costs no memory: it is done for every collective.
func TestBoardAllocates(t *testing.T) {
	var b Board
	b.Add("g", []int{0, 1})
	if n := testing.AllocsPerRun(100, func() { b.Begin(0, 1, "x"); b.End(0) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// A call gives up before its deadline, so that the verdict is there by then.
func TestPatience(t *testing.T) {
	for within, want := range map[time.Duration]time.Duration{
		time.Second: 500 * time.Millisecond, 3 * time.Second: 1500 * time.Millisecond, time.Minute: 58500 * time.Millisecond,
	} {
		if got := Patience(within); got != want {
			t.Errorf("within %v: %v, want %v", within, got, want)
		}
	}
}
