package gate

import (
	"cmp"
	"slices"

	"github.com/gangline/gangline/ps/consistency"
)

// WorkerStats says where a worker stands on a shard and what became of its
// contributions.
type WorkerStats struct {
	consistency.Counts
	Worker consistency.Worker `json:"worker"`
	// Clock is the number of its clocks that are closed or passed over.
	Clock int64 `json:"clock"`
	// Staleness counts its applied contributions by staleness, ascending, exact:
	// the counts add up to Applied.
	Staleness []consistency.Bucket `json:"staleness,omitempty"`
	// Waiting is how many of its reads wait.
	Waiting int  `json:"waiting,omitempty"`
	Left    bool `json:"left,omitempty"`
	Lost    bool `json:"lost,omitempty"`
}

// Stats counts what happened on a shard; Counts are the sums over the workers.
type Stats struct {
	consistency.Counts
	Version int64 `json:"version"`
	// Duplicates are pieces that had come before; Refused, requests that were
	// refused; Reads, those that were answered. No contribution is counted here.
	Duplicates int64 `json:"duplicates"`
	Refused    int64 `json:"refused"`
	Reads      int64 `json:"reads"`
	// SetsApplied and SetsSkipped are verdicts carried out; under asp and ssp a
	// set is one contribution.
	SetsApplied int64         `json:"sets_applied"`
	SetsSkipped int64         `json:"sets_skipped"`
	Workers     []WorkerStats `json:"workers"`
}

// Stats returns the counts so far. It allocates.
func (g *Gate) Stats() Stats {
	s := Stats{
		Version: g.version, Duplicates: g.counts.duplicates, Refused: g.counts.refused, Reads: g.counts.reads,
		SetsApplied: g.counts.applied, SetsSkipped: g.counts.skipped,
	}
	for i := range g.peers {
		p := &g.peers[i]
		w := WorkerStats{
			Counts: p.counts, Worker: p.worker, Clock: p.clock, Waiting: len(p.reads),
			Left: p.standing == left, Lost: p.standing == lost, Staleness: buckets(p.stale),
		}
		if p.open.pieces > 0 {
			w.Pending++
		}
		if p.whole.there {
			w.Pending++
		}
		s.Add(&w.Counts)
		s.Workers = append(s.Workers, w)
	}
	return s
}

func buckets(of map[int64]int64) []consistency.Bucket {
	all := make([]consistency.Bucket, 0, len(of))
	for staleness, n := range of {
		all = append(all, consistency.Bucket{Staleness: staleness, Count: n})
	}
	slices.SortFunc(all, func(a, b consistency.Bucket) int { return cmp.Compare(a.Staleness, b.Staleness) })
	return all
}

// Version returns how many sets were carried out.
func (g *Gate) Version() int64 { return g.version }

// Clock returns the number of a worker's clocks that are closed or passed over.
func (g *Gate) Clock(w consistency.Worker) (clock int64, ok bool) {
	i, ok := g.at[w]
	if !ok {
		return 0, false
	}
	return g.peers[i].clock, true
}

// Outcome returns what became of a contribution; it is Unknown before its first
// piece and OutcomesKept clocks after the last. It never waits.
func (g *Gate) Outcome(w consistency.Worker, clock int64) consistency.Outcome {
	i, ok := g.at[w]
	if !ok {
		return consistency.Unknown
	}
	return g.peers[i].outcome(clock)
}

// Verdict returns the last verdict of bsp or quorum; none: see Verdict.Given.
func (g *Gate) Verdict() consistency.Verdict {
	if n := len(g.verdicts); n > 0 {
		return g.verdicts[n-1]
	}
	return consistency.Verdict{}
}
