package graph

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/gangline/gangline/tensor"
)

// Format writes a graph as text, a header and then one node a line:
//
//	graph f32
//	x = input column=x part=dense -> f32 [? 784]
//	w = variable init=uniform scale=0.08 seed=7 -> f32 [784 10]
//	h = matmul x w -> f32 [? 10]
//
// that is: name, operator, inputs, settings that are not zero, type and shape.
// Equal graphs have equal text, and Parse reads it back.
func Format(g *Graph) string {
	var b strings.Builder
	b.WriteString("graph " + g.Float.String() + "\n")
	for _, n := range g.nodes {
		b.WriteString(formatNode(n) + "\n")
	}
	return b.String()
}

func formatNode(n *Node) string {
	var b strings.Builder
	b.WriteString(n.Name + " = " + string(n.Op))
	for _, x := range n.In {
		b.WriteString(" " + x.Name)
	}
	for _, f := range fields(n.Op) {
		if s := f.Get(&n.Attr); s != "" {
			b.WriteString(" " + f.Key + "=" + s)
		}
	}
	b.WriteString(" -> " + n.DType.String() + " " + n.Shape.String())
	return b.String()
}

// Parse reads what Format wrote, and nothing else: a line that Format would
// write differently is an error. Errors give the line, counted from 1.
func Parse(text string) (*Graph, error) {
	body, ok := strings.CutSuffix(text, "\n")
	if !ok {
		return nil, errors.New("graph: the text does not end with a line end")
	}
	lines := strings.Split(body, "\n")
	name, ok := strings.CutPrefix(lines[0], "graph ")
	float, err := tensor.ParseDType(name)
	if !ok || err != nil || !float.IsFloat() {
		return nil, fmt.Errorf("graph: line 1: %q: want \"graph f32\" or \"graph f64\"", lines[0])
	}
	g := New(float)
	for i, line := range lines[1:] {
		n, err := g.parseNode(line)
		if err == nil && formatNode(n) != line {
			err = fmt.Errorf("%q: want %q", line, formatNode(n))
		}
		if err != nil {
			return nil, fmt.Errorf("graph: line %d: %w", i+2, err)
		}
	}
	return g, nil
}

// parseNode appends the node that a line describes.
func (g *Graph) parseNode(line string) (*Node, error) {
	left, result, ok1 := strings.Cut(line, " -> ")
	name, call, ok2 := strings.Cut(left, " = ")
	_, dims, ok3 := strings.Cut(result, " ")
	if !ok1 || !ok2 || !ok3 {
		return nil, fmt.Errorf("%q: want \"name = operator inputs settings -> dtype [shape]\"", line)
	}
	words := strings.Split(call, " ")
	op := Op(words[0])
	var in []*Node
	words = words[1:]
	for len(words) > 0 && !strings.Contains(words[0], "=") {
		x := g.byName[words[0]]
		if x == nil {
			return nil, fmt.Errorf("node %q: unknown input %q", name, words[0])
		}
		in = append(in, x)
		words = words[1:]
	}
	attr, err := parseAttr(op, words)
	if err != nil {
		return nil, fmt.Errorf("node %q: %w", name, err)
	}
	if declares(op) {
		if attr.Shape, err = parseShape(dims); err != nil {
			return nil, fmt.Errorf("node %q: %w", name, err)
		}
	}
	if err := checkFullName(name, op); err != nil {
		return nil, err
	}
	n := g.add(name, op, attr, in...)
	return n, g.err
}

// checkFullName accepts also the names that Train makes: parameter/grad,
// parameter/rows, parameter/slot and parameter/update.
func checkFullName(name string, op Op) error {
	if head, tail, ok := strings.Cut(name, "/"); ok && (tail == "grad" || op == GatherRows || op == SlotVar || op == Update || op == UpdateRows) {
		return errors.Join(checkName(head), checkName(tail))
	}
	return checkName(name)
}

func parseAttr(op Op, words []string) (Attr, error) {
	var a Attr
	for _, w := range words {
		key, value, ok := strings.Cut(w, "=")
		if !ok {
			return a, fmt.Errorf("%q: inputs stand before settings", w)
		}
		known := false
		for _, f := range fields(op) {
			if f.Key != key {
				continue
			}
			known = true
			if err := f.Set(&a, value); err != nil {
				return a, fmt.Errorf("%s: %w", key, err)
			}
		}
		if !known {
			return a, fmt.Errorf("%s has no setting %q", op, key)
		}
	}
	return a, nil
}

func parseShape(s string) (tensor.Shape, error) {
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
