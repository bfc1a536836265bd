package native_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/gangline/gangline/compute/native"
	"github.com/gangline/gangline/compute/ref"
	"github.com/gangline/gangline/graph"
	"github.com/gangline/gangline/tensor"
)

// lookups is a graph of embeddings side by side, their dot products beside a dense
// input, and the gradients of both: what is joined and cut in place.
type lookups struct {
	seg *graph.Segment
	per map[*graph.Node]int // how many entries an example has, of every index
}

// rowsOf is how many rows a table has.
const rowsOf = 7

func newLookups(seed uint64, d tensor.DType) lookups {
	r := rand.New(rand.NewPCG(seed, 17))
	dim := []int{1, 3, 4, 8, 16, 24}[r.IntN(6)]
	g, l := graph.New(d), lookups{per: map[*graph.Node]int{}}
	dense := g.Input("dense", dim)
	parts, starts := []*graph.Node{}, []int{}
	var tables, at []*graph.Node
	width := 0
	for i := range 1 + r.IntN(4) {
		if r.IntN(3) == 0 {
			parts, width = append(parts, g.Reshape(dense, tensor.Dynamic, 1, dim)), width+1
		}
		n := 1 + r.IntN(3)
		cat := g.Ragged(fmt.Sprint("cat", i))
		table := g.Variable(fmt.Sprint("table", i), graph.Init{}, rowsOf, dim)
		l.per[cat.Pos()] = n
		tables, at, starts = append(tables, table), append(at, cat.Pos()), append(starts, width)
		parts, width = append(parts, g.Reshape(g.Gather(table, cat.Pos()), tensor.Dynamic, n, dim)), width+n
	}
	all := g.ConcatAxis(1, append(parts, g.Reshape(dense, tensor.Dynamic, 1, dim))...)
	width++
	top := g.Concat(dense, g.DotInteraction(all))
	down := g.Apply(graph.DotInteractionGrad, graph.Attr{}, all, g.Slice(top, dim, dim+width*(width-1)/2))
	out := []*graph.Node{top}
	for i, table := range tables {
		n := l.per[at[i]]
		piece := g.Reshape(g.SliceAxis(down, 1, starts[i], starts[i]+n), tensor.Dynamic, dim)
		out = append(out, g.Apply(graph.GatherGrad, graph.Attr{}, piece, at[i], table))
	}
	if err := g.Err(); err != nil {
		panic(err)
	}
	l.seg = &graph.Segment{Name: "lookups", Out: out}
	for _, n := range g.Nodes() {
		switch {
		case !n.IsSource():
			l.seg.Nodes = append(l.seg.Nodes, n)
		case l.per[n] > 0 || n.DType == d:
			l.seg.In = append(l.seg.In, n)
		}
	}
	return l
}

func (l lookups) feed(seed uint64, batch int) []*tensor.Tensor {
	r := rand.New(rand.NewPCG(seed, uint64(batch)))
	in := feed(r, l.seg, batch)
	for i, n := range l.seg.In {
		if l.per[n] > 0 {
			in[i] = tensor.New(tensor.I64, l.per[n]*batch)
			for e := range in[i].I64() {
				in[i].I64()[e] = r.Int64N(rowsOf)
			}
		}
	}
	return in
}

// TestLookups compares what is computed in its place with ref in float64; on any
// number of threads it must have the same bits.
func TestLookups(t *testing.T) {
	for seed := range uint64(60) {
		d, eps := tensor.F32, 0x1p-23
		if seed%4 == 3 {
			d, eps = tensor.F64, 0x1p-52
		}
		l, exact := newLookups(seed, d), newLookups(seed, tensor.F64)
		judge, want := program(t, ref.New(), exact.seg), empty(exact.seg)
		first := map[string][]byte{}
		for name, b := range backends() {
			p, out := program(t, b, l.seg), empty(l.seg)
			for _, batch := range []int{5, 0, 1, 200} {
				about := fmt.Sprintf("seed %d, %s, batch %d", seed, name, batch)
				if err := judge.Run(0, exact.feed(seed, batch), want); err != nil {
					t.Fatal(about, err)
				}
				if err := p.Run(0, l.feed(seed, batch), out); err != nil {
					t.Fatal(about, err)
				}
				near(t, l.seg, out, want, eps, about)
				for k, o := range out {
					key := fmt.Sprint(strings.HasPrefix(name, "go"), batch, k)
					if b, ok := first[key]; ok && string(b) != string(o.Bytes()) {
						t.Fatalf("%s: %q has other bits than elsewhere", about, l.seg.Out[k].Name)
					}
					first[key] = append([]byte(nil), o.Bytes()...)
				}
			}
		}
	}
}

// TestLookupOutside names the gather whose index has an id outside of its table,
// also where it is computed in its place.
func TestLookupOutside(t *testing.T) {
	g := graph.New(tensor.F32)
	cat := g.Ragged("cat")
	table := g.Variable("table", graph.Init{}, rowsOf, 8)
	dense := g.Input("dense", 8)
	seg := &graph.Segment{Name: "lookups", In: []*graph.Node{table, cat.Pos(), dense}}
	row := g.Named("row", g.Gather(table, cat.Pos()))
	both := g.Named("both", g.Concat(row, dense))
	seg.Out = []*graph.Node{both}
	for _, n := range g.Nodes() {
		if !n.IsSource() {
			seg.Nodes = append(seg.Nodes, n)
		}
	}
	at := tensor.From([]int64{0, rowsOf, 1}, 3)
	err := program(t, native.New(), seg).Run(0, []*tensor.Tensor{tensor.New(tensor.F32, rowsOf, 8), at, tensor.New(tensor.F32, 3, 8)}, empty(seg))
	if err == nil || !strings.Contains(err.Error(), `"row"`) || !strings.Contains(err.Error(), fmt.Sprint(rowsOf)) {
		t.Fatalf("got %v, want an error that names row and the id %d", err, rowsOf)
	}
}
