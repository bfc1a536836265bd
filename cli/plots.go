package cli

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/gangline/gangline/cli/command"
	"github.com/gangline/gangline/report"

	"github.com/gangline/gangline/chart"
	"github.com/gangline/gangline/metric"
)

// noPlots is what --plots is set to so that none are drawn.
const noPlots = "none"

// plotFiles are where the curves of a run go: into the directory of --plots, or
// beside the report; none without either.
func (f *trainFlags) plotFiles() []string {
	base := ""
	switch {
	case f.plots == noPlots:
	case f.plots != "":
		base = filepath.Join(f.plots, "curves")
	case f.report != "":
		base = strings.TrimSuffix(f.report, filepath.Ext(f.report))
	}
	if base == "" {
		return nil
	}
	var files []string
	for _, format := range chart.Formats() {
		files = append(files, base+"."+format)
	}
	return files
}

// checkPlots refuses places where no picture can be written; a directory of --plots
// is made.
func (f *trainFlags) checkPlots() error {
	if f.plots != "" && f.plots != noPlots {
		if err := os.MkdirAll(f.plots, 0o755); err != nil {
			return requestError{fmt.Errorf("--plots %s: %w", f.plots, err)}
		}
	}
	for _, file := range f.plotFiles() {
		if file == f.report {
			return requestError{fmt.Errorf("--report %s: the curves go there; name a file of JSON, or set --plots", f.report)}
		}
		if err := command.CheckOut("--plots", file); err != nil {
			return err
		}
	}
	return nil
}

// writePlots draws the curves of a run. One without steps has none.
func (f *trainFlags) writePlots(r *report.Report) error {
	panels := panelsOf(r)
	if len(panels) == 0 {
		return nil
	}
	var errs []error
	for _, file := range f.plotFiles() {
		errs = append(errs, command.WriteWhole(file, func(out *os.File) error {
			return chart.Draw(out, strings.TrimPrefix(filepath.Ext(file), "."), r.Job, panels)
		}))
	}
	return errors.Join(errs...)
}

// panelsOf are the diagrams of a report: loss of training and tests, a metric, the
// learning rate.
func panelsOf(r *report.Report) []chart.Panel {
	loss, rate := chart.Panel{Title: "loss", Zoom: true}, chart.Panel{Title: "learning rate", Log: true}
	var others []chart.Panel
	for _, c := range r.Curves {
		switch c.Name {
		case "loss":
			loss.Lines = append(loss.Lines, lineOf("train", c.Points))
		case "test_loss":
			loss.Lines = append(loss.Lines, lineOf("test", c.Points))
		case "lr":
			rate.Lines = append(rate.Lines, lineOf(c.Name, c.Points))
		default:
			others = append(others, chart.Panel{Title: c.Name, Lines: []chart.Line{lineOf(c.Name, c.Points)}})
		}
	}
	if r.Best != nil {
		loss.Mark, loss.MarkName = float64(r.Best.Step), "best"
	}
	panels := append(append([]chart.Panel{loss}, others...), rate)
	return slices.DeleteFunc(panels, func(p chart.Panel) bool { return len(p.Lines) == 0 })
}

func lineOf(name string, points []metric.Point) chart.Line {
	l := chart.Line{Name: name}
	for _, p := range points {
		l.X, l.Y = append(l.X, float64(p.Step)), append(l.Y, p.Value)
	}
	return l
}
