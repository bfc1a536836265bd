// Package line reads the lines of the text form of a graph.
package line

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/gangline/gangline/tensor"
)

// Line is what a line says of a node.
type Line struct {
	Name, Op string
	Inputs   []string
	Settings []string // key=value; what stands behind the first
	Dims     string   // of the result
}

// Cut takes a line apart.
func Cut(text string) (l Line, err error) {
	left, result, ok1 := strings.Cut(text, " -> ")
	name, call, ok2 := strings.Cut(left, " = ")
	_, dims, ok3 := strings.Cut(result, " ")
	if !ok1 || !ok2 || !ok3 {
		return l, fmt.Errorf("%q: want \"name = operator inputs settings -> dtype [shape]\"", text)
	}
	words := strings.Split(call, " ")
	l = Line{Name: name, Op: words[0], Dims: dims}
	for words = words[1:]; len(words) > 0 && !strings.Contains(words[0], "="); words = words[1:] {
		l.Inputs = append(l.Inputs, words[0])
	}
	l.Settings = words
	return l, nil
}

// Shape reads a shape.
func Shape(s string) (tensor.Shape, error) {
	inner, ok := strings.CutPrefix(s, "[")
	inner, ok2 := strings.CutSuffix(inner, "]")
	if !ok || !ok2 {
		return nil, fmt.Errorf("shape %q: want [dims]", s)
	}
	shape := tensor.Shape{}
	for w := range strings.FieldsSeq(inner) {
		d := tensor.Dynamic
		if w != "?" {
			var err error
			if d, err = strconv.Atoi(w); err != nil || d < 1 {
				return nil, fmt.Errorf("shape %q: %q is not a dim", s, w)
			}
		}
		shape = append(shape, d)
	}
	return shape, nil
}

// CheckName accepts names of letters, digits and _ . - that start with a
// letter or _. The slash is kept for what Train adds (w/m is slot m of w).
func CheckName(s string) error {
	for i, r := range s {
		letter := r == '_' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z'
		if !letter && (i == 0 || r != '.' && r != '-' && (r < '0' || r > '9')) {
			return fmt.Errorf("name %q: want letters, digits, _ . or -, a letter or _ first", s)
		}
	}
	if s == "" {
		return fmt.Errorf("the name is empty")
	}
	return nil
}
