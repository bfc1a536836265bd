package gate

import (
	"testing"
	"time"

	"github.com/gangline/gangline/ps/consistency"
)

// FuzzGate: whatever comes, the gate does not panic, every request has at most
// one answer, data is kept once and used or forgotten once, versions go up by
// one, and the counts add up.
func FuzzGate(f *testing.F) {
	for kind := range 4 {
		f.Add([]byte{byte(kind), 3, 2, 1, 0, 0, 0, 1, 0, 1, 2, 0, 1, 1, 2, 1, 0, 1, 3, 0, 1, 4, 5, 6, 7})
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		next := func() int64 {
			if len(data) == 0 {
				return 0
			}
			b := data[0]
			data = data[1:]
			return int64(int8(b))
		}
		kinds := []consistency.Kind{consistency.BSP, consistency.ASP, consistency.SSP, consistency.Quorum}
		cfg := Config{Model: consistency.Model{Kind: kinds[next()&3], Deadline: 50}, Workers: []consistency.Worker{0, 1, 2}, Shards: int(1 + next()&1)}
		cfg.Shard = int(next()&1) * (cfg.Shards - 1)
		switch cfg.Model.Kind { //nolint:exhaustive // the others have no number
		case consistency.Quorum:
			cfg.Model.K = int(1 + (next()&127)%3)
		case consistency.SSP:
			cfg.Model.Slack = next() & 3
		default:
		}
		g, err := New(cfg)
		if err != nil {
			t.Fatal(err)
		}
		w := watch{t: t, kept: make(map[[2]int64]int), asked: make(map[uint64]int)}
		for now := time.Duration(0); len(data) > 0; now += time.Duration(next() & 7) {
			ev := Event{
				Kind: EventKind(next() & 15), Worker: consistency.Worker(next() & 3), Request: uint64(now)<<32 + uint64(len(data)),
				Seq: consistency.Seq{Clock: next() & 15, Piece: uint16(next() & 3), Last: next()&1 == 0}, Base: next() & 7, Version: next() & 3,
				Ballot: Ballot{Weight: float64(next()), Finite: next() != 0},
			}
			for i := range next() & 3 {
				ev.Verdict.Set = append(ev.Verdict.Set, consistency.Member{Worker: consistency.Worker(i), Clock: next() & 15, Weight: float64(next())})
			}
			ev.Verdict.Version = next() & 15
			version := g.Version()
			actions, _ := g.Step(now, ev)
			w.actions(version, actions, cfg.Model.Synchronous())
			st := g.Stats()
			if !st.Balanced() || st.Pending != int64(len(w.kept)) || st.Version != w.version || st.Pending > 6 {
				t.Fatalf("%d kept, version %d: %+v", len(w.kept), w.version, st)
			}
			again, err := Restore(cfg, g.State())
			if err != nil || again.Version() != g.Version() || again.Stats().Counts != st.Counts {
				t.Fatalf("restored: %v, %+v, was %+v", err, again.Stats(), st)
			}
		}
	})
}

// watch checks actions.
type watch struct {
	t       *testing.T
	kept    map[[2]int64]int // pieces
	asked   map[uint64]int   // answers
	version int64
}

func (w *watch) actions(version int64, actions []Action, synchronous bool) {
	w.version = version
	for _, a := range actions {
		name := [2]int64{int64(a.Worker), a.Clock}
		switch a.Kind {
		case ActionKeep:
			w.kept[name]++
		case ActionApply, ActionSkip:
			if a.Version != w.version || a.Verdict.Version != w.version {
				w.t.Fatalf("%+v at version %d", a, w.version)
			}
			for _, m := range a.Verdict.Set {
				w.forget([2]int64{int64(m.Worker), m.Clock})
			}
			if a.Kind == ActionApply || synchronous {
				w.version++
			}
		case ActionDrop:
			w.forget(name)
		case ActionReply, ActionServe, ActionRefuse:
			if w.asked[a.Request]++; w.asked[a.Request] > 1 {
				w.t.Fatalf("a second answer: %+v", a)
			}
		case ActionLost:
		}
	}
}

func (w *watch) forget(name [2]int64) {
	if w.kept[name] == 0 {
		w.t.Fatalf("%v is used and was not kept, or is used twice", name)
	}
	delete(w.kept, name)
}
