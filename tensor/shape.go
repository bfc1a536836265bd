package tensor

import (
	"slices"
	"strconv"
	"strings"
)

// Dynamic marks a dim whose size is known only when a batch arrives, such as
// the rows of a batch or the distinct keys in it.
const Dynamic = -1

// Shape is the size of each dim, outermost first. A scalar has no dims.
type Shape []int

// Elems returns the number of elements, or Dynamic if any dim is dynamic.
func (s Shape) Elems() int {
	n := 1
	for _, d := range s {
		if d == Dynamic {
			return Dynamic
		}
		n *= d
	}
	return n
}

// Static reports whether every dim is known.
func (s Shape) Static() bool { return !slices.Contains(s, Dynamic) }

// Equal reports whether both shapes have the same dims.
func (s Shape) Equal(o Shape) bool { return slices.Equal(s, o) }

// Matches reports whether a tensor of shape o may stand where s was declared:
// the same number of dims, equal wherever s is static.
func (s Shape) Matches(o Shape) bool {
	if len(s) != len(o) {
		return false
	}
	for i := range s {
		if s[i] != Dynamic && s[i] != o[i] {
			return false
		}
	}
	return true
}

// Clone returns a copy.
func (s Shape) Clone() Shape { return slices.Clone(s) }

// String returns "[128 784]", with ? for a dynamic dim and [] for a scalar.
func (s Shape) String() string {
	parts := make([]string, len(s))
	for i, d := range s {
		parts[i] = strconv.Itoa(d)
		if d == Dynamic {
			parts[i] = "?"
		}
	}
	return "[" + strings.Join(parts, " ") + "]"
}
