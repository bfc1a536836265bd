// Package text writes graphs as text and reads them back.
package text

import (
	"errors"
	"fmt"
	"strings"

	"github.com/gangline/gangline/graph"
	"github.com/gangline/gangline/graph/internal/line"
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
func Format(g *graph.Graph) string {
	var b strings.Builder
	b.WriteString("graph " + g.Type().String() + "\n")
	for _, n := range g.Nodes() {
		b.WriteString(n.String() + "\n")
	}
	return b.String()
}

// Parse reads what Format wrote, and nothing else: a line that Format would
// write differently is an error. Errors give the line, counted from 1.
func Parse(text string) (*graph.Graph, error) {
	body, ok := strings.CutSuffix(text, "\n")
	if !ok {
		return nil, errors.New("graph: the text does not end with a line end")
	}
	lines := strings.Split(body, "\n")
	name, ok := strings.CutPrefix(lines[0], "graph ")
	float, err := tensor.ParseDType(name)
	if !ok || err != nil || !float.IsFloat() && !float.IsHalf() {
		return nil, fmt.Errorf("graph: line 1: %q: want \"graph f32\", \"graph f64\", \"graph bf16\" or \"graph f16\"", lines[0])
	}
	g := graph.New(float)
	for i, text := range lines[1:] {
		n, err := parseNode(g, text)
		if err == nil && n.String() != text {
			err = fmt.Errorf("%q: want %q", text, n.String())
		}
		if err != nil {
			return nil, fmt.Errorf("graph: line %d: %w", i+2, err)
		}
	}
	return g, nil
}

// parseNode appends the node that a line describes.
func parseNode(g *graph.Graph, text string) (*graph.Node, error) {
	l, err := line.Cut(text)
	if err != nil {
		return nil, err
	}
	op := graph.Op(l.Op)
	var in []*graph.Node
	for _, name := range l.Inputs {
		x := g.ByName(name)
		if x == nil {
			return nil, fmt.Errorf("node %q: unknown input %q", l.Name, name)
		}
		in = append(in, x)
	}
	attr, err := graph.ReadAttr(op, l.Settings, l.Dims)
	if err != nil {
		return nil, fmt.Errorf("node %q: %w", l.Name, err)
	}
	if err := checkName(l.Name, op); err != nil {
		return nil, err
	}
	return g.Restore(l.Name, op, attr, in...)
}

// checkName accepts also the names that graph.Train makes: parameter/grad,
// parameter/rows, parameter/slot and parameter/update.
func checkName(name string, op graph.Op) error {
	made := op == graph.GatherRows || op == graph.SlotVar || op == graph.Update || op == graph.UpdateRows || op == graph.UpdateScale
	if head, tail, ok := strings.Cut(name, "/"); ok && (tail == "grad" || made) {
		return errors.Join(line.CheckName(head), line.CheckName(tail))
	}
	return line.CheckName(name)
}
