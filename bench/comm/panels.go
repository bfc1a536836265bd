package comm

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/gangline/gangline/chart"
)

// Panels are the diagrams of results: time and bandwidth over the size, a line an
// algorithm, and path if there are several.
func Panels(results []Result) []chart.Panel {
	time := chart.Panel{Title: "median, µs", Log: true, Bytes: true}
	band := chart.Panel{Title: "bus bandwidth, GB/s", Bytes: true}
	at := map[string]int{}
	for _, r := range results {
		name := r.Algorithm
		if r.Path != results[0].Path || r.Path != results[len(results)-1].Path {
			name += ", " + r.Path
		}
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

// Wins says at which sizes which algorithm was the fastest, and by how much; "" if there
// was one a size.
func Wins(results []Result) string {
	var b strings.Builder
	for len(results) > 0 {
		n := 1
		for n < len(results) && results[n].Bytes == results[0].Bytes {
			n++
		}
		same := slices.Clone(results[:n])
		results = results[n:]
		if n == 1 {
			continue
		}
		slices.SortStableFunc(same, func(a, b Result) int { return cmp.Compare(a.Median, b.Median) })
		fmt.Fprintf(&b, "%d bytes: %s, %.2f times as fast as %s\n", same[0].Bytes, same[0].Algorithm, same[1].Median/same[0].Median, same[1].Algorithm)
	}
	return b.String()
}
