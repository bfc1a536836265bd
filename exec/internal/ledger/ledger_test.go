package ledger_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/gangline/gangline/exec/internal/ledger"
	"github.com/gangline/gangline/plan"
)

// Two steps in flight, of two micro-batches each: one is applied, one dropped, and of a
// third nothing is known yet. A gradient that another rank applies is not counted.
func TestLedger(t *testing.T) {
	p, err := plan.Parse(`plan step window=2

values
  0  w   f32  [2]  param
  1  v   f32  [2]  param
  2  gw  f32  [2]  grad   of=w
  3  gv  f32  [2]  grad   of=v

segments
  0  s
  1  u  updates=w

rank 0
  0  device  compute  s  seg=0           -> gw gv
  1  device  compute  s  seg=0           -> gw@1
  2  device  add      s           gw gw@1 -> gw
  3  device  compute  u  seg=1    gw w -> w
`)
	if err != nil {
		t.Fatal(err)
	}
	list := p.Ranks[0]
	l := ledger.New(p, list)
	steps := []struct {
		copy, tasks int
		skipped     bool
		want        ledger.Count
	}{
		{0, 3, false, ledger.Count{State: "w", Pushed: 2}},
		{1, 4, true, ledger.Count{State: "w", Pushed: 4, Dropped: 2}},
		{0, 0, false, ledger.Count{State: "w", Pushed: 4, Applied: 2, Dropped: 2}}, // its update
		{1, 1, false, ledger.Count{State: "w", Pushed: 5, Applied: 2, Dropped: 2}},
		{0, 4, false, ledger.Count{State: "w", Pushed: 7, Applied: 4, Dropped: 2}},
	}
	for i, s := range steps {
		for k := range s.tasks {
			l.Ended(l.EntryOf(p, &list[k]), s.copy, s.skipped)
		}
		if s.tasks == 0 {
			l.Ended(l.EntryOf(p, &list[3]), s.copy, s.skipped)
		}
		if d := cmp.Diff([]ledger.Count{s.want}, l.Counts()); d != "" {
			t.Errorf("after %d (-want +got):\n%s", i, d)
		}
	}
}
