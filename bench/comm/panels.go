package comm

import "github.com/gangline/gangline/chart"

// Panels are the diagrams of results: time and bandwidth over the size, a line an
// algorithm and path.
func Panels(results []Result) []chart.Panel {
	time := chart.Panel{Title: "median, µs", Log: true, Bytes: true}
	band := chart.Panel{Title: "bus bandwidth, GB/s", Bytes: true}
	at := map[string]int{}
	for _, r := range results {
		name := r.Algorithm + ", " + r.Path
		i, known := at[name]
		if !known {
			i = len(at)
			at[name] = i
			time.Lines = append(time.Lines, chart.Line{Name: name})
			band.Lines = append(band.Lines, chart.Line{Name: name})
		}
		add := func(l *chart.Line, y float64) { l.X, l.Y = append(l.X, float64(r.Bytes)), append(l.Y, y) }
		add(&time.Lines[i], r.Median)
		add(&band.Lines[i], r.BusBW)
	}
	return []chart.Panel{time, band}
}
