// Package linediff shows people how two texts of some lines differ.
package linediff

import "strings"

// Of lists the lines that only one of two texts has.
func Of(was, is string) string {
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
