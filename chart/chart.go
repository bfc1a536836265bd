// Package chart draws the curves of a run, one panel below the other, as PNG and
// SVG.
package chart

import (
	"errors"
	"fmt"
	"image/color"
	"io"
	"math"
	"slices"
	"strconv"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgimg"
	"gonum.org/v1/plot/vg/vgsvg"
)

// Size of a picture: width, and height of a panel.
const (
	width  = 7 * vg.Inch
	height = 2.2 * vg.Inch
	dpi    = 110
)

// Line is one curve.
type Line struct {
	Name string
	X, Y []float64 // as many of one as of the other; what is not finite is a gap
}

// Panel is one diagram: curves over the same steps that share a scale.
type Panel struct {
	Title string
	Lines []Line
	// Zoom lets the first steps leave the scale where they are far off the others,
	// as the loss of a run begins.
	Zoom bool
	// Log makes the scale logarithmic, if all values are above 0.
	Log bool
	// Mark is a step to point out, with what it is; "" marks none.
	Mark     float64
	MarkName string
	// Bytes says that X are no steps but numbers of bytes, above 0: their scale is
	// logarithmic, with marks at powers of 4.
	Bytes bool
}

// Formats returns the names of the formats that Draw knows, which are extensions
// of files, too.
func Formats() []string { return []string{"png", "svg"} }

// Draw writes the panels that have values as one picture. It fails if there are
// none, and on an unknown format. Equal panels give equal pictures.
func Draw(w io.Writer, format, title string, panels []Panel) error {
	plots, err := plots(title, panels)
	if err != nil {
		return err
	}
	size := height * vg.Length(len(plots))
	switch format {
	case "png":
		c := vgimg.NewWith(vgimg.UseWH(width, size), vgimg.UseDPI(dpi))
		arrange(draw.New(c), plots)
		_, err = vgimg.PngCanvas{Canvas: c}.WriteTo(w)
	case "svg":
		c := vgsvg.New(width, size)
		arrange(draw.New(c), plots)
		_, err = c.WriteTo(w)
	default:
		return fmt.Errorf("chart: format %q is neither png nor svg", format)
	}
	if err != nil {
		return fmt.Errorf("chart: %w", err)
	}
	return nil
}

// arrange draws plots below one another, their axes in one line.
func arrange(c draw.Canvas, plots []*plot.Plot) {
	rows := make([][]*plot.Plot, len(plots))
	for i, p := range plots {
		rows[i] = []*plot.Plot{p}
	}
	t := draw.Tiles{Rows: len(plots), Cols: 1, PadTop: vg.Points(6), PadBottom: vg.Points(4), PadLeft: vg.Points(4), PadRight: vg.Points(12), PadY: vg.Points(8)}
	for i, row := range plot.Align(rows, t, c) {
		plots[i].Draw(row[0])
	}
}

// plots makes a plot of every panel with values.
func plots(title string, panels []Panel) ([]*plot.Plot, error) {
	lo, hi := math.Inf(1), math.Inf(-1)
	for _, p := range panels {
		for _, l := range p.Lines {
			if len(l.X) != len(l.Y) {
				return nil, fmt.Errorf("chart: line %q has %d steps and %d values", l.Name, len(l.X), len(l.Y))
			}
			for _, x := range l.X {
				lo, hi = min(lo, x), max(hi, x)
			}
		}
	}
	var out []*plot.Plot
	for _, panel := range panels {
		p, err := panel.plot(lo, hi)
		if err != nil {
			return nil, fmt.Errorf("chart: %s: %w", panel.Title, err)
		}
		if p != nil {
			out = append(out, p)
		}
	}
	if len(out) == 0 {
		return nil, errors.New("chart: there is nothing to draw")
	}
	if title != "" {
		out[0].Title.Text = title
	}
	out[len(out)-1].X.Label.Text = "step"
	if panels[len(panels)-1].Bytes {
		out[len(out)-1].X.Label.Text = "bytes"
	}
	return out, nil
}

// colors of the lines, which people who do not see all colors can tell apart
// (Okabe and Ito 2008).
func colors() []color.Color {
	return []color.Color{
		color.RGBA{0, 114, 178, 255},
		color.RGBA{213, 94, 0, 255},
		color.RGBA{0, 158, 115, 255},
		color.RGBA{204, 121, 167, 255},
		color.RGBA{230, 159, 0, 255},
		color.RGBA{86, 180, 233, 255},
		color.RGBA{0, 0, 0, 255},
	}
}

// plot makes the plot of a panel over steps lo to hi; nil if it has no values.
func (panel *Panel) plot(lo, hi float64) (*plot.Plot, error) {
	p := plot.New()
	p.Y.Label.Text = panel.Title
	p.X.Min, p.X.Max = lo, hi
	p.X.Tick.Marker, p.Y.Tick.Marker = ticks(7), ticks(5)
	for _, style := range []*draw.TextStyle{
		&p.Title.TextStyle, &p.X.Label.TextStyle, &p.Y.Label.TextStyle, &p.X.Tick.Label, &p.Y.Tick.Label, &p.Legend.TextStyle,
	} {
		style.Font.Variant = "Sans"
		style.Font.Size = vg.Points(9)
	}
	grid := plotter.NewGrid()
	grid.Vertical.Color, grid.Horizontal.Color = color.Gray{225}, color.Gray{225}
	p.Add(grid)
	drawn, positive := 0, true
	for i, l := range panel.Lines {
		for n, piece := range pieces(l) {
			line, points, err := plotter.NewLinePoints(piece)
			if err != nil {
				return nil, err
			}
			line.Color, line.Width = colors()[i%len(colors())], vg.Points(1.4)
			points.Color, points.Radius, points.Shape = line.Color, vg.Points(1.8), draw.CircleGlyph{}
			p.Add(line)
			if len(piece) <= sparse {
				p.Add(points)
			}
			if n == 0 && len(panel.Lines) > 1 {
				p.Legend.Add(l.Name, line)
			}
			positive = positive && slices.IndexFunc(piece, func(q plotter.XY) bool { return q.Y <= 0 }) < 0
			drawn += len(piece)
		}
	}
	if drawn == 0 {
		return nil, nil
	}
	p.Legend.Top, p.Legend.Padding = true, vg.Points(2)
	if lo == hi { // one step only
		p.X.Min, p.X.Max = lo-1, hi+1
	}
	if panel.Bytes && lo > 0 {
		p.X.Scale, p.X.Tick.Marker = plot.LogScale{}, sizes{}
		if len(panel.Lines) > 1 { // lines may end anywhere: the names stand beyond
			p.X.Max *= math.Pow(hi/lo, legendShare)
		}
	}
	if panel.Zoom {
		p.Y.Min, p.Y.Max = panel.zoomed(lo, hi, p.Y.Min, p.Y.Max)
	}
	if p.Y.Min == p.Y.Max {
		room := math.Max(math.Abs(p.Y.Min)*.05, 1e-9)
		p.Y.Min, p.Y.Max = p.Y.Min-room, p.Y.Max+room
	}
	if panel.Log && positive && p.Y.Max > 20*p.Y.Min && p.Y.Min > 0 {
		p.Y.Scale, p.Y.Tick.Marker = plot.LogScale{}, plot.LogTicks{Prec: -1}
	}
	return p, panel.mark(p)
}

// legendShare is how much wider a scale of bytes is for the names of lines.
const legendShare = .3

// zoomed is the scale without the first steps, with room for half as much again, if
// they take most of it; else the scale as it is.
func (panel *Panel) zoomed(lo, hi, least, most float64) (newLeast, newMost float64) {
	const early, far = .05, 3
	a, b := math.Inf(1), math.Inf(-1)
	for _, l := range panel.Lines {
		for i, y := range l.Y {
			if l.X[i] > lo+early*(hi-lo) && !math.IsNaN(y) && !math.IsInf(y, 0) {
				a, b = min(a, y), max(b, y)
			}
		}
	}
	if !(b > a) || most-least < far*(b-a) {
		return least, most
	}
	return max(least, a-(b-a)/2), min(most, b+(b-a)/2)
}

// sparse is how many points of a line are shown as points, too.
const sparse = 60

// mark adds the line of a step.
func (panel *Panel) mark(p *plot.Plot) error {
	if panel.MarkName == "" {
		return nil
	}
	line, err := plotter.NewLine(plotter.XYs{{X: panel.Mark, Y: p.Y.Min}, {X: panel.Mark, Y: p.Y.Max}})
	if err != nil {
		return err
	}
	line.Color, line.Width, line.Dashes = color.Gray{120}, vg.Points(1), []vg.Length{vg.Points(3), vg.Points(3)}
	p.Add(line)
	p.Legend.Add(panel.MarkName, line)
	return nil
}

// pieces are the runs of finite values of a line.
func pieces(l Line) (all []plotter.XYs) {
	var piece plotter.XYs
	for i, y := range l.Y {
		if math.IsNaN(y) || math.IsInf(y, 0) {
			if len(piece) > 0 {
				all = append(all, piece)
			}
			piece = nil
			continue
		}
		piece = append(piece, plotter.XY{X: l.X[i], Y: y})
	}
	if len(piece) > 0 {
		all = append(all, piece)
	}
	return all
}

// ticks places about so many marks at round numbers.
type ticks int

// Ticks implements plot.Ticker.
func (n ticks) Ticks(lo, hi float64) (marks []plot.Tick) {
	raw := (hi - lo) / float64(n)
	step := math.Pow(10, math.Floor(math.Log10(raw)))
	for _, f := range []float64{1, 2, 5, 10} {
		if f*step >= raw {
			step *= f
			break
		}
	}
	if !(step > 0) || math.IsInf(step, 0) {
		return []plot.Tick{{Value: lo, Label: strconv.FormatFloat(lo, 'g', 4, 64)}}
	}
	for i := math.Ceil(lo / step); i*step <= hi && len(marks) < 3*int(n); i++ {
		v := i * step
		marks = append(marks, plot.Tick{Value: v, Label: strconv.FormatFloat(v, 'g', 6, 64)})
	}
	return marks
}

// sizes places marks at powers of 4, at 1 KiB, 4 KiB and so on.
type sizes struct{}

// Ticks implements plot.Ticker.
func (sizes) Ticks(lo, hi float64) (marks []plot.Tick) {
	units := []string{"B", "KiB", "MiB", "GiB", "TiB"}
	for v, i := 1.0, 0; v <= hi && i < 5*len(units); v, i = v*4, i+1 {
		if v < lo {
			continue
		}
		unit := i / 5
		label := strconv.FormatFloat(v/math.Pow(1024, float64(unit)), 'g', 4, 64) + " " + units[unit]
		marks = append(marks, plot.Tick{Value: v, Label: label})
	}
	return marks
}
