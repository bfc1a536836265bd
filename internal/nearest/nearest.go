// Package nearest finds the spelling that somebody most likely meant.
package nearest

import (
	"fmt"
	"strings"
)

// Hint says which known word is nearest to one that is not known, unless none is
// near, and lists them all:
//
//	: did you mean "workers"? There are kind, workers, servers
func Hint(word string, known []string) string {
	best, distance := "", len(word)/2+2
	for _, k := range known {
		if d := Distance(strings.ToLower(word), strings.ToLower(k)); d < distance {
			best, distance = k, d
		}
	}
	all := "here are " + strings.Join(known, ", ")
	if best == "" {
		return ": t" + all
	}
	return fmt.Sprintf(": did you mean %q? T%s", best, all)
}

// Distance is the edit distance of Levenshtein (1966): the least number of
// insertions, deletions and replacements of bytes that turn a into b.
func Distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := 1
			if a[i] == b[j] {
				cost = 0
			}
			next := min(row[j]+1, row[j+1]+1, diagonal+cost)
			diagonal, row[j+1] = row[j+1], next
		}
	}
	return row[len(b)]
}
