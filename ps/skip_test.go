package ps

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/gangline/gangline/optim"
	"github.com/gangline/gangline/tensor"
)

// TestSkippedStepBearsNoRows: a step of weight 0 leaves no mark, not even rows
// of tables that only it has named.
func TestSkippedStepBearsNoRows(t *testing.T) {
	m := newModel(tensor.F64, optim.Rule{Kind: optim.Adam, LR: .1})
	s := m.shards(t, 1, []int{0})[0]
	before := assembled(s.Export())
	if a := do(t, s, Event{Kind: EventPush, Seq: 1, Blocks: m.gradient(1, []int64{3, 7}).blocks(&s.layout)}); a.Status != Stored {
		t.Fatalf("push: %v %v", a.Status, a.Err)
	}
	a := do(t, s, Event{Kind: EventFlush, Verdict: Verdict{Given: true, Step: 0, Weight: 0}})
	if a.Status != Done || a.Version != 1 {
		t.Fatalf("verdict: %v %v at version %d", a.Status, a.Err, a.Version)
	}
	if diff := cmp.Diff(before, assembled(s.Export())); diff != "" {
		t.Errorf("a skipped step changed the state (-before +after):\n%s", diff)
	}
}
