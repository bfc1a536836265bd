package history_test

import (
	"fmt"
	"testing"

	"github.com/gangline/gangline/ps/consistency"
	"github.com/gangline/gangline/ps/history"
)

var kinds = []consistency.Kind{consistency.BSP, consistency.ASP, consistency.SSP, consistency.Quorum}

// TestRandomHistories: 1,000 random runs of gates a model are what the model
// allows, and between them they had everything that can go wrong.
func TestRandomHistories(t *testing.T) {
	for _, kind := range kinds {
		t.Run(string(kind), func(t *testing.T) {
			t.Parallel()
			seen := make(map[string]int)
			for seed := range uint64(1000) {
				r := draw(t, seed, kind)
				records := r.play()
				if err := history.Check(r.job, records); err != nil {
					t.Fatalf("seed %d, %+v: %v", seed, r.job, err)
				}
				if t.Failed() {
					t.Fatalf("seed %d, %+v", seed, r.job)
				}
				for what, n := range r.seen {
					seen[what] += n
				}
			}
			want := []string{"apply", "skip", "late", "expired", "duplicate", "held", "left", "died", "rejoined", "silent", "restored", "lost message", "message twice"}
			for _, what := range want {
				if kind == consistency.BSP && what == "late" || kind == consistency.ASP && what == "held" { // these workers read nothing ahead
					continue
				}
				if seen[what] == 0 {
					t.Errorf("no %s in 1,000 runs: %v", what, seen)
				}
			}
			t.Log(fmt.Sprint(seen))
		})
	}
}
