package chart_test

import (
	"bytes"
	"encoding/xml"
	"errors"
	"image/png"
	"io"
	"math"
	"os"
	"strings"
	"testing"

	"github.com/gangline/gangline/chart"
)

// panels are those of a run: loss, a metric, the learning rate.
func panels() []chart.Panel {
	var loss, rate, test chart.Line
	loss.Name, rate.Name, test.Name = "train", "lr", "test"
	for i := range 400 {
		x := float64(i + 1)
		loss.X, loss.Y = append(loss.X, x), append(loss.Y, .45+.3*math.Exp(-x/60)+.01*math.Sin(x*1.7))
		rate.X, rate.Y = append(rate.X, x), append(rate.Y, .01*math.Exp(-x/50))
		if (i+1)%50 == 0 {
			test.X, test.Y = append(test.X, x), append(test.Y, .8-.3*math.Exp(-x/80))
		}
	}
	return []chart.Panel{
		{Title: "loss", Lines: []chart.Line{loss, {Name: "test", X: test.X, Y: []float64{.6, .55, .5, .48, .475, .47, .472, .475}}}, MarkName: "best", Mark: 300},
		{Title: "auc", Lines: []chart.Line{test}},
		{Title: "learning rate", Lines: []chart.Line{rate}, Log: true},
	}
}

func drawn(t *testing.T, format string, p []chart.Panel) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := chart.Draw(&b, format, "ctr", p); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// A PNG can be decoded, has room for all panels, and ink in each; equal panels give
// equal bytes. With CHART_KEEP set it is kept there, to be looked at.
func TestPNG(t *testing.T) {
	text := drawn(t, "png", panels())
	im, err := png.Decode(bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	b := im.Bounds()
	if b.Dx() != 770 || b.Dy() != 726 {
		t.Errorf("%d by %d pixels", b.Dx(), b.Dy())
	}
	for third := range 3 {
		blue := 0
		for y := third * b.Dy() / 3; y < (third+1)*b.Dy()/3; y++ {
			for x := range b.Dx() {
				if r, g, bl, _ := im.At(x, y).RGBA(); r < 0x2000 && g > 0x6000 && g < 0x8800 && bl > 0xa000 {
					blue++
				}
			}
		}
		if blue < 200 {
			t.Errorf("panel %d has %d pixels of its first line", third, blue)
		}
	}
	if !bytes.Equal(text, drawn(t, "png", panels())) {
		t.Error("the same panels give another picture")
	}
	if path := os.Getenv("CHART_KEEP"); path != "" {
		if err := os.WriteFile(path, text, 0o644); err != nil {
			t.Error(err)
		}
	}
}

// An SVG is well-formed and has the words of all panels.
func TestSVG(t *testing.T) {
	text := drawn(t, "svg", panels())
	d := xml.NewDecoder(bytes.NewReader(text))
	for {
		if _, err := d.Token(); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
	}
	for _, want := range []string{"ctr", "loss", "auc", "learning rate", "step", "train", "best"} {
		if !strings.Contains(string(text), ">"+want+"<") {
			t.Errorf("it does not say %q", want)
		}
	}
}

// Runs of one step, of numbers that do not vary, or with gaps are drawn; nothing is
// an error.
func TestOddRuns(t *testing.T) {
	nan := math.NaN()
	for name, p := range map[string]chart.Panel{
		"one point":  {Title: "a", Lines: []chart.Line{{X: []float64{1}, Y: []float64{3}}}},
		"constant":   {Title: "a", Lines: []chart.Line{{X: []float64{1, 2, 3}, Y: []float64{0, 0, 0}}}, Log: true},
		"gaps":       {Title: "a", Lines: []chart.Line{{X: []float64{1, 2, 3, 4}, Y: []float64{1, nan, math.Inf(1), 2}}}},
		"log of 0":   {Title: "a", Lines: []chart.Line{{X: []float64{1, 2}, Y: []float64{0, 1}}}, Log: true},
		"tiny":       {Title: "a", Lines: []chart.Line{{X: []float64{1, 2}, Y: []float64{1e-300, 2e-300}}}},
		"zoom":       {Title: "a", Zoom: true, Lines: []chart.Line{{X: []float64{1, 2}, Y: []float64{9, 1}}, {X: []float64{30, 40, 50}, Y: []float64{1, 2, nan}}}},
		"many lines": {Title: "a", Lines: make([]chart.Line, 7)},
	} {
		for _, format := range chart.Formats() {
			err := chart.Draw(io.Discard, format, "", []chart.Panel{p})
			if (err != nil) != (name == "many lines") { // which have no values
				t.Errorf("%s as %s: %v", name, format, err)
			}
		}
	}
	if err := chart.Draw(io.Discard, "gif", "", panels()); err == nil || !strings.Contains(err.Error(), "gif") {
		t.Error(err)
	}
	if err := chart.Draw(io.Discard, "png", "", []chart.Panel{{Lines: []chart.Line{{Name: "l", X: []float64{1}}}}}); err == nil || !strings.Contains(err.Error(), `"l" has 1 steps and 0 values`) {
		t.Error(err)
	}
}
