package cli

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/gangline/gangline/metric"
)

// metricsText lists the metrics that one looks at first.
func metricsText(m *metric.Result) string {
	return listed(fmt.Sprintf("%d rows", m.Rows), []shown{
		{"AUC", m.AUC}, {"accuracy", m.Accuracy}, {"log loss", m.LogLoss}, {"perplexity", m.Perplexity}, {"RMSE", m.RMSE},
	})
}

// moreMetrics lists the others; empty if there are none.
func moreMetrics(m *metric.Result) string {
	var parts []string
	if m.GroupAUC != nil {
		parts = append(parts, fmt.Sprintf("AUC in groups %.5f (%d of both kinds)", *m.GroupAUC, m.Groups))
	}
	if m.Threshold != nil {
		if rates := listed("", []shown{{"precision", m.Precision}, {"recall", m.Recall}, {"F1", m.F1}}); rates != "" {
			parts = append(parts, fmt.Sprintf("%s above %g", rates, *m.Threshold))
		}
	}
	if c := m.Calibration; c != nil {
		parts = append(parts, listed("", []shown{{"predicted/observed", c.Ratio}, {"calibration error", c.Error}}))
	}
	return strings.Join(parts, ", ")
}

// shown is a metric as people read it; nil: there is none.
type shown struct {
	name  string
	value *float64
}

// listed joins the metrics that there are, and what comes last.
func listed(last string, metrics []shown) string {
	var parts []string
	for _, x := range metrics {
		if x.value != nil {
			parts = append(parts, fmt.Sprintf("%s %.5f", x.name, *x.value))
		}
	}
	if last != "" {
		parts = append(parts, last)
	}
	return strings.Join(parts, ", ")
}

// printMetrics writes all metrics of a test, and how probabilities compare with
// what happened.
func printMetrics(w io.Writer, m *metric.Result) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintf(w, "%s\n", metricsText(m))
	if more := moreMetrics(m); more != "" {
		fmt.Fprintf(w, "%s\n", more)
	}
	if m.AUCShare != nil {
		fmt.Fprintf(w, "%.2f %% of the best possible AUC, %.5f\n", 100**m.AUCShare, *m.BestAUC)
	}
	if m.Calibration == nil {
		return nil
	}
	fmt.Fprintln(t, "probability\trows\tpredicted\tobserved\t")
	for _, b := range m.Calibration.Bins {
		if b.Weight > 0 {
			fmt.Fprintf(t, "%.1f-%.1f\t%.6g\t%.5f\t%.5f\t\n", b.Lo, b.Hi, b.Weight, b.Predicted, b.Observed)
		}
	}
	return t.Flush()
}
