package cli

import (
	"bytes"
	"strings"
	"testing"

	"github.com/gangline/gangline/metric"
)

// All metrics that there are are printed, with the table of probabilities; those
// that there are not are not.
func TestPrintMetrics(t *testing.T) {
	b := &metric.Binary{Threshold: .4}
	b.Add(metric.Rows{Predict: []float64{2, .5, -1, -3}, Label: []float64{1, 0, 1, 0}, Group: []uint64{1, 1, 2, 2}})
	var r metric.Result
	b.Into(&r)
	var out bytes.Buffer
	if err := printMetrics(&out, &r); err != nil {
		t.Fatal(err)
	}
	want := `AUC 0.75000, accuracy 0.50000, log loss 0.61571, 4 rows
AUC in groups 1.00000 (2 of both kinds), precision 0.50000, recall 0.50000, F1 0.50000 above 0.4, predicted/observed 0.90981, calibration error 0.38004
  probability  rows  predicted  observed
      0.0-0.1     1    0.04743   0.00000
      0.2-0.3     1    0.26894   1.00000
      0.6-0.7     1    0.62246   0.00000
      0.8-0.9     1    0.88080   1.00000
`
	if out.String() != want {
		t.Errorf("got\n%swant\n%s", out.String(), want)
	}
	out.Reset()
	rmse := .25
	if err := printMetrics(&out, &metric.Result{Rows: 3, RMSE: &rmse}); err != nil || strings.TrimSpace(out.String()) != "RMSE 0.25000, 3 rows" {
		t.Errorf("%q, %v", out.String(), err)
	}
}
