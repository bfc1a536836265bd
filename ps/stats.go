package ps

import "github.com/gangline/gangline/ps/consistency"

// Counts accounts for contributions: what one worker gives to one state for one step.
// Each is counted once. Expired are those that were pending when the run ended.
type Counts = consistency.Counts

// WorkerStats counts one worker's contributions to a store.
type WorkerStats struct {
	Counts
	Rank int `json:"rank"`
	// LastStep is the last step the worker contributed to, -1 before the first.
	LastStep int64 `json:"last_step"`
	Lost     bool  `json:"lost,omitempty"`
}

// Stats counts what happened to a store; Counts are the sums over the workers.
type Stats struct {
	Counts
	Store   int   `json:"store"`
	Version int64 `json:"version"`
	// Duplicates are pushes acknowledged again, Refused are requests answered
	// with an error, Pulls are pulls answered; no contribution is counted here.
	Duplicates int64 `json:"duplicates"`
	Refused    int64 `json:"refused"`
	Pulls      int64 `json:"pulls"`
	// Parked are pulls that wait for a verdict now.
	Parked int `json:"parked"`
	// StepsApplied and StepsSkipped count verdicts carried out.
	StepsApplied int64 `json:"steps_applied"`
	StepsSkipped int64 `json:"steps_skipped"`
	// Rows are the rows of each table that were ever updated.
	Rows    map[string]int `json:"rows,omitempty"`
	Workers []WorkerStats  `json:"workers"`
}

// Stats returns the counts so far. It allocates.
func (s *Shard) Stats() Stats {
	t := s.counts
	t.Store, t.Version = s.layout.Store, s.version
	for i := range s.peers {
		p := &s.peers[i]
		w := WorkerStats{Counts: p.counts, Rank: p.rank, LastStep: p.lastStep, Lost: p.lost}
		w.Pending = int64(s.rounds[0].stored[i] + s.rounds[1].stored[i])
		if p.parked {
			t.Parked++
		}
		t.Add(&w.Counts)
		t.Workers = append(t.Workers, w)
	}
	t.Rows = make(map[string]int)
	for i := range s.cells {
		if s.layout.States[i].Table {
			t.Rows[s.layout.States[i].Name] = s.cells[i].rows()
		}
	}
	return t
}
