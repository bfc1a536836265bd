package detect

import (
	encoding "encoding/csv"
	"fmt"
	"strings"
)

// csv has the same number of fields in its lines, which a delimiter parts. It is
// asked last: much else has commas.
func csv(lines []string) (Guess, bool) {
	best, fields := "", 1
	for _, d := range []string{",", "\t", ";", "|"} {
		if n := columns(lines, d); n > fields {
			best, fields = d, n
		}
	}
	if best == "" {
		return Guess{}, false
	}
	g := Guess{Format: "csv", Delimiter: best, Header: header(lines, best)}
	if best == "\t" {
		g.Delimiter = "tab"
	}
	g.Why = fmt.Sprintf("its lines have %d fields with %q between them", fields, best)
	return g, true
}

// split parts a line into fields; those of a line that is none are nil.
func split(line, delimiter string) []string {
	if !strings.Contains(line, `"`) {
		return strings.Split(line, delimiter)
	}
	r := encoding.NewReader(strings.NewReader(line))
	r.Comma, r.LazyQuotes, r.TrimLeadingSpace = rune(delimiter[0]), true, delimiter != "\t"
	fields, err := r.Read()
	if err != nil {
		return nil
	}
	return fields
}

// columns is how many fields most lines have, 0 if they do not agree.
func columns(lines []string, delimiter string) int {
	first := len(split(lines[0], delimiter))
	n := 0
	for _, line := range lines {
		if len(split(line, delimiter)) == first {
			n++
		}
	}
	if float64(n) < most*float64(len(lines)) {
		return 0
	}
	return first
}

// header reports whether the first line names columns: its fields are different
// words and no numbers, and below them are numbers, or words that come again.
func header(lines []string, delimiter string) bool {
	if len(lines) < 2 {
		return false
	}
	names := split(lines[0], delimiter)
	seen := map[string]bool{}
	for _, n := range names {
		n = strings.TrimSpace(n)
		if _, ok := number(n); ok || n == "" || n == "?" || seen[n] {
			return false
		}
		seen[n] = true
	}
	again := false
	below := make([]map[string]bool, len(names))
	for i := range below {
		below[i] = map[string]bool{}
	}
	for _, line := range lines[1:] {
		for i, f := range split(line, delimiter) {
			f = strings.TrimSpace(f)
			if i >= len(names) {
				break
			}
			if f == strings.TrimSpace(names[i]) {
				return false // the first line is one of many
			}
			if _, ok := number(f); ok {
				return true
			}
			again = again || below[i][f]
			below[i][f] = true
		}
	}
	return again
}
