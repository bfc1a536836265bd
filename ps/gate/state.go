package gate

import (
	"fmt"
	"slices"

	"github.com/gangline/gangline/ps/consistency"
)

// State is all that a gate knows, but for reads that wait, whose workers ask
// again: part of a snapshot and of what a replica begins with. It is plain data,
// for encoding/json among others.
type State struct {
	Version  int64                 `json:"version"`
	Ended    bool                  `json:"ended,omitempty"`
	Verdicts []consistency.Verdict `json:"verdicts,omitempty"`
	// Duplicates, Refused, Reads, SetsApplied and SetsSkipped are as in Stats.
	Duplicates  int64         `json:"duplicates"`
	Refused     int64         `json:"refused"`
	Reads       int64         `json:"reads"`
	SetsApplied int64         `json:"sets_applied"`
	SetsSkipped int64         `json:"sets_skipped"`
	Workers     []WorkerState `json:"workers"`
}

// WorkerState is what a gate knows of a worker.
type WorkerState struct {
	Worker consistency.Worker `json:"worker"`
	Clock  int64              `json:"clock"`
	// Seen is the newest version that was served to it.
	Seen      int64                `json:"seen"`
	Left      bool                 `json:"left,omitempty"`
	Lost      bool                 `json:"lost,omitempty"`
	Counts    consistency.Counts   `json:"counts"` // Pending is 0: see Open and Whole
	Staleness []consistency.Bucket `json:"staleness,omitempty"`
	// Outcomes are those of the last OutcomesKept clocks, oldest first.
	Outcomes []consistency.Outcome `json:"outcomes,omitempty"`
	// Open is the contribution to clock Clock, if a piece of it has come.
	Open *OpenState `json:"open,omitempty"`
	// Whole is the contribution that waits for a verdict.
	Whole *WholeState `json:"whole,omitempty"`
}

// OpenState is a contribution of which pieces are missing.
type OpenState struct {
	// Pieces are those that have come, ascending; Last is the number of the last
	// one, or -1 if that is not known yet.
	Pieces []uint16 `json:"pieces"`
	Last   int      `json:"last"`
	Base   int64    `json:"base"`
	Ballot Ballot   `json:"ballot"`
}

// WholeState is a contribution that waits for a verdict.
type WholeState struct {
	Clock  int64  `json:"clock"`
	Base   int64  `json:"base"`
	Ready  bool   `json:"ready,omitempty"`
	Ballot Ballot `json:"ballot"`
}

// State returns a copy of what the gate knows.
func (g *Gate) State() State {
	s := State{
		Version: g.version, Ended: g.ended, Verdicts: slices.Clone(g.verdicts),
		Duplicates: g.counts.duplicates, Refused: g.counts.refused, Reads: g.counts.reads,
		SetsApplied: g.counts.applied, SetsSkipped: g.counts.skipped,
	}
	for i := range g.peers {
		p := &g.peers[i]
		w := WorkerState{
			Worker: p.worker, Clock: p.clock, Seen: p.seen, Left: p.standing == left, Lost: p.standing == lost,
			Counts: p.counts, Staleness: buckets(p.stale),
		}
		for c := max(0, p.clock-OutcomesKept); c < p.clock; c++ {
			w.Outcomes = append(w.Outcomes, p.outcomes[c%OutcomesKept])
		}
		if o := &p.open; o.pieces > 0 {
			w.Open = &OpenState{Last: o.last, Base: o.base, Ballot: o.ballot}
			for n := range 64 * len(o.got) {
				if o.got[n/64]&(1<<(n%64)) != 0 {
					w.Open.Pieces = append(w.Open.Pieces, uint16(n))
				}
			}
		}
		if c := &p.whole; c.there {
			w.Whole = &WholeState{Clock: c.clock, Base: c.base, Ready: c.ready, Ballot: c.Ballot}
		}
		s.Workers = append(s.Workers, w)
	}
	return s
}

// Restore makes a gate that goes on from a state. Of cfg it takes everything but
// Version and Clock; workers of cfg that the state does not know are as New
// makes them.
func Restore(cfg Config, s State) (*Gate, error) {
	cfg.Version = s.Version
	g, err := New(cfg)
	if err != nil {
		return nil, err
	}
	g.ended, g.verdicts = s.Ended, slices.Clone(s.Verdicts)
	g.counts = totals{duplicates: s.Duplicates, refused: s.Refused, reads: s.Reads, applied: s.SetsApplied, skipped: s.SetsSkipped}
	for i := range s.Workers {
		w := &s.Workers[i]
		at, ok := g.at[w.Worker]
		if !ok {
			return nil, fmt.Errorf("gate: the saved state has rank %d, which is no worker of this job: %v", w.Worker, cfg.Workers)
		}
		if err := g.peers[at].restore(w); err != nil {
			return nil, fmt.Errorf("gate: the saved state of rank %d: %w", w.Worker, err)
		}
	}
	return g, nil
}

func (p *peer) restore(w *WorkerState) error {
	if w.Clock < 0 || int64(len(w.Outcomes)) != min(w.Clock, OutcomesKept) {
		return fmt.Errorf("%d outcomes of %d clocks", len(w.Outcomes), w.Clock)
	}
	p.clock, p.seen, p.counts = w.Clock, w.Seen, w.Counts
	switch {
	case w.Lost:
		p.standing = lost
	case w.Left:
		p.standing = left
	}
	for i, o := range w.Outcomes {
		p.note(w.Clock-int64(len(w.Outcomes)-i), o)
	}
	for _, b := range w.Staleness {
		p.stale[b.Staleness] = b.Count
	}
	if o := w.Open; o != nil {
		p.open = open{pieces: len(o.Pieces), last: o.Last, base: o.Base, ballot: o.Ballot}
		for i, n := range o.Pieces {
			if n >= PiecesMax || i > 0 && o.Pieces[i-1] >= n {
				return fmt.Errorf("pieces %v of clock %d", o.Pieces, w.Clock)
			}
			for len(p.open.got) <= int(n)/64 {
				p.open.got = append(p.open.got, 0)
			}
			p.open.got[n/64] |= 1 << (n % 64)
		}
	}
	if c := w.Whole; c != nil {
		if c.Clock < 0 || c.Clock >= w.Clock {
			return fmt.Errorf("clock %d waits for a verdict, %d are closed", c.Clock, w.Clock)
		}
		p.whole = contribution{there: true, ready: c.Ready, clock: c.Clock, base: c.Base, Ballot: c.Ballot}
	}
	return nil
}
