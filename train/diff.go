package train

import (
	"math"
	"strings"
)

// lineDiff lists the lines that only one of two texts has.
func lineDiff(was, is string) string {
	var b strings.Builder
	only := func(mark, a, other string) {
		have := map[string]bool{}
		for line := range strings.Lines(other) {
			have[line] = true
		}
		for line := range strings.Lines(a) {
			if !have[line] {
				b.WriteString(mark + strings.TrimRight(line, "\n") + "\n")
			}
		}
	}
	only("  was ", was, is)
	only("  is  ", is, was)
	return strings.TrimRight(b.String(), "\n")
}

// finiteOrNil leaves out what JSON cannot say.
func finiteOrNil(v float64) *float64 {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return nil
	}
	return &v
}
