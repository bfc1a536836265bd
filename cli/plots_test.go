package cli

import (
	"bytes"
	"image/png"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gangline/gangline/report"

	"github.com/gangline/gangline/metric"
)

// Curves are drawn beside the report, or where --plots says, or not at all; they
// are of the whole run.
func TestPlots(t *testing.T) {
	small := []string{"train", "--set", "data.train.rows=20000", "--set", "data.eval.rows=1000", "--set", "eval.every=8", "--progress", "none"}
	dir := t.TempDir()
	names := func(dir string) string {
		entries, err := os.ReadDir(dir)
		if err != nil {
			t.Fatal(err)
		}
		var all []string
		for _, e := range entries {
			all = append(all, e.Name())
		}
		return strings.Join(all, " ")
	}
	for _, c := range []struct {
		args []string
		in   string
		want string
	}{
		{[]string{"--report", filepath.Join(dir, "a", "out.json")}, "a", "out.json out.png out.svg"},
		{[]string{"--report", filepath.Join(dir, "b", "out.json"), "--plots", filepath.Join(dir, "c", "new")}, "c/new", "curves.png curves.svg"},
		{[]string{"--report", filepath.Join(dir, "d", "out.json"), "--plots", "none"}, "d", "out.json"},
	} {
		for _, sub := range []string{"a", "b", "c", "d"} {
			if err := os.MkdirAll(filepath.Join(dir, sub), 0o755); err != nil {
				t.Fatal(err)
			}
		}
		if stderr, status := gangline(t, append(small, c.args...)...); status != 0 {
			t.Fatal(stderr)
		}
		if got := names(filepath.Join(dir, c.in)); got != c.want {
			t.Errorf("%v: %s, want %s", c.args, got, c.want)
		}
	}
	text, err := os.ReadFile(filepath.Join(dir, "a", "out.png"))
	if err != nil {
		t.Fatal(err)
	}
	im, err := png.Decode(bytes.NewReader(text))
	if err != nil || im.Bounds().Dy() != 726 { // three panels
		t.Errorf("%v, %v", im.Bounds(), err)
	}
	svg, err := os.ReadFile(filepath.Join(dir, "c", "new", "curves.svg"))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{">ctr<", ">loss<", ">auc<", ">learning rate<", ">test<"} {
		if !bytes.Contains(svg, []byte(want)) {
			t.Errorf("the picture does not say %s", want)
		}
	}
	for want, args := range map[string][]string{
		"the curves go there": {"--report", filepath.Join(dir, "x.png")},
		"--plots":             {"--plots", filepath.Join(dir, "a", "out.json")},
	} {
		if _, errs, status := invoke(t, append([]string{"train"}, args...)...); status != exitRequest || !strings.Contains(errs, want) {
			t.Errorf("%v: status %d: %s", args, status, errs)
		}
	}
}

// The panels of a report: tests beside training, the metric by its name, the best.
func TestPanels(t *testing.T) {
	p := []metric.Point{{Step: 1, Value: 2}, {Step: 2, Value: 1}}
	r := &report.Report{}
	r.Curves = []metric.Curve{{Name: "loss", Points: p}, {Name: "test_loss", Points: p[:1]}, {Name: "rmse", Points: p}, {Name: "lr", Points: p}}
	r.Best = &report.Best{Step: 7}
	panels := panelsOf(r)
	if len(panels) != 3 || len(panels[0].Lines) != 2 || panels[0].Mark != 7 || panels[1].Title != "rmse" || panels[2].Lines[0].Y[1] != 1 {
		t.Errorf("%+v", panels)
	}
	if panels := panelsOf(&report.Report{}); len(panels) != 0 {
		t.Errorf("of nothing: %+v", panels)
	}
}
