package transport

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// A Queue does what a slice does.
func TestQueue(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var q Queue[int]
		var want []int
		for i := range rapid.IntRange(0, 60).Draw(t, "steps") {
			switch rapid.IntRange(0, 4).Draw(t, "op") {
			case 0, 1:
				q.Push(i)
				want = append(want, i)
			case 2:
				q.PushFront(i)
				want = append([]int{i}, want...)
			case 3:
				if len(want) > 0 {
					if got := q.Pop(); got != want[0] {
						t.Fatalf("popped %d, want %d", got, want[0])
					}
					want = want[1:]
				}
			case 4:
				v := rapid.IntRange(0, 60).Draw(t, "value")
				found := false
				for k, w := range want {
					if w == v {
						want, found = append(want[:k:k], want[k+1:]...), true
						break
					}
				}
				if got := q.RemoveFunc(func(w int) bool { return w == v }); got != found {
					t.Fatalf("remove %d: %v, want %v", v, got, found)
				}
			}
			if q.Len() != len(want) {
				t.Fatalf("length %d, want %d", q.Len(), len(want))
			}
		}
		var got []int
		for q.Len() > 0 {
			got = append(got, q.Pop())
		}
		if len(want) > 0 {
			if d := cmp.Diff(want, got); d != "" {
				t.Fatal(d)
			}
		}
	})
}

// A popped element is not kept alive by the ring.
func TestQueueForgets(t *testing.T) {
	var q Queue[*int]
	for i := range 5 {
		q.Push(&i)
	}
	q.RemoveFunc(func(p *int) bool { return *p == 2 })
	for q.Len() > 0 {
		q.Pop()
	}
	for i, p := range q.ring {
		if p != nil {
			t.Errorf("place %d still holds %d", i, *p)
		}
	}
}

// Any number of tags may pass; busy lines stay what they are, idle ones are
// recycled, and only too many busy ones are refused.
func TestLines(t *testing.T) {
	type line struct{ busy int }
	idle := func(l *line) bool { return l.busy == 0 }
	var lines Lines[line]
	for tag := range uint32(100) {
		lines.Get(tag, idle).busy = int(tag) + 1
	}
	for tag := range uint32(1_000_000) {
		if lines.Get(1000+tag, idle) == nil {
			t.Fatalf("tag %d was refused", tag)
		}
	}
	if n := len(lines.byTag); n > 2*idleTags {
		t.Errorf("keeps %d lines", n)
	}
	for tag := range uint32(100) {
		if got := lines.Get(tag, idle).busy; got != int(tag)+1 {
			t.Errorf("line %d holds %d", tag, got)
		}
	}
	for tag := range uint32(MaxTags - 100) {
		lines.Get(1000+tag, idle).busy = 1
	}
	if lines.Get(500, idle) != nil {
		t.Errorf("took more than %d busy tags", MaxTags)
	}
	lines.Get(7, idle).busy = 0
	if lines.Get(500, idle) == nil {
		t.Error("refused a tag although one was free")
	}
	n := 0
	lines.All(func(uint32, *line) { n++ })
	if n != MaxTags {
		t.Errorf("All saw %d lines, want %d", n, MaxTags)
	}
}
