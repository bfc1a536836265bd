package ps

import (
	"errors"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"

	"github.com/gangline/gangline/optim"
	"github.com/gangline/gangline/tensor"
	"github.com/gangline/gangline/transport/mem"
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

// TestSnapshotIsOfOneVersion: servers save the version that is asked for or
// none, so that a checkpoint cannot hold parts of two steps.
func TestSnapshotIsOfOneVersion(t *testing.T) {
	m := newModel(tensor.F64, optim.Rule{Kind: optim.SGD, LR: .1})
	s := m.shards(t, 1, []int{0})[0]
	do(t, s, Event{Kind: EventPush, Seq: 1, Blocks: m.gradient(1, []int64{3}).blocks(&s.layout)})
	do(t, s, Event{Kind: EventFlush, Verdict: Verdict{Given: true, Step: 0, Weight: 1}})
	for step, want := range []ActionKind{ActionRefuse, ActionSnapshot, ActionRefuse} {
		a := do(t, s, Event{Kind: EventSnapshot, Step: int64(step)})
		if a.Kind != want || want == ActionRefuse && !errors.Is(a.Err, ErrUsage) {
			t.Errorf("snapshot of step %d at version 1: %v %v", step, a.Kind, a.Err)
		}
	}
}

// TestLastVerdictArrives: the verdict on the last step of a run rides on
// whatever comes last: a flush, or the goodbye.
func TestLastVerdictArrives(t *testing.T) {
	for _, flush := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			c := newCluster(t, newModel(tensor.F32, rules[0]), 2, 2, Config{}, mem.Options{Link: delays})
			c.start(t.Context())
			train[float32](t, c, 2, always)
			if flush {
				if err := c.clients[1].Flush(t.Context()); err != nil {
					t.Error(err)
				}
				c.versions(t, "a flush", 2)
			}
			if err := c.each(func(w int) error { return c.clients[w].Close(t.Context()) }); err != nil {
				t.Error(err)
			}
			if err := c.stop(); err != nil {
				t.Error(err)
			}
			c.versions(t, "the goodbye", 2)
		})
	}
}

// versions looks at the servers when nothing moves.
func (c *cluster) versions(t *testing.T, after string, want int64) {
	t.Helper()
	synctest.Wait()
	for i, s := range c.servers {
		if got := s.shard.Version(); got != want {
			t.Errorf("after %s store %d is at version %d, want %d", after, i, got, want)
		}
	}
}
