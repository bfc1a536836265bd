package cli

import "testing"

// The examples on real data reach what their first lines say: raw columns of a CSV
// file without and with declared features, Vowpal Wabbit text, and two of several
// classes.
func TestTableExamples(t *testing.T) {
	needData(t)
	for _, c := range []struct {
		file          string
		auc, accuracy float64
		set           string
	}{
		{"adult-csv", .913, .858, "seed=1"},
		{"adult-csv", .905, .852, "data.features=[]"},
		{"rcv1", .945, .87, "seed=1"},
		{"dna", 0, .94, "seed=1"},
		{"news20", 0, .82, "epochs=3"},
	} {
		if raceEnabled && c.file == "news20" {
			continue // a million parameters under the race detector
		}
		r := trained(t, "train", "examples/"+c.file+".yaml", "--data-dir", "../shared/data", "--set", c.set)
		if auc := r.Eval.AUC; c.auc > 0 && (auc == nil || *auc < c.auc) {
			t.Errorf("%s with %s: AUC %v, want at least %v", c.file, c.set, *auc, c.auc)
		}
		if a := r.Eval.Accuracy; a == nil || *a < c.accuracy {
			t.Errorf("%s with %s: accuracy %v, want at least %v", c.file, c.set, *a, c.accuracy)
		}
	}
}
