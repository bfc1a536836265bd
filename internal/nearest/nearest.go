// Package nearest finds the spelling that somebody most likely meant.
package nearest

import "fmt"

// Hint returns ": did you mean \"x\"?" for the nearest known word, or the list
// of all known words if none is near.
func Hint(word string, known []string) string {
	best, distance := "", len(word)/2+2
	for _, k := range known {
		if d := Distance(word, k); d < distance {
			best, distance = k, d
		}
	}
	if best != "" {
		return fmt.Sprintf(": did you mean %q?", best)
	}
	return fmt.Sprintf(": known are %q", known)
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
