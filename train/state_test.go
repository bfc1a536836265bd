package train

import (
	"testing"

	"github.com/gangline/gangline/params"

	"github.com/google/go-cmp/cmp"

	"github.com/gangline/gangline/checkpoint"
	"github.com/gangline/gangline/data"
	"github.com/gangline/gangline/tensor"
)

// tableSetup is a model with a table and a rule with a slot.
func tableSetup(t *testing.T) *Setup {
	t.Helper()
	j := parse(t, "model: {kind: logistic, table: true}\noptimizer: {kind: adagrad, lr: 0.1, initial_accumulator: 0.5}\ndata: {train: {format: generated}}\n")
	s, err := NewSetup(j, []data.ColumnSpec{
		{Name: "label", Kind: data.DenseColumn, Dim: 1}, {Name: "x", Kind: data.RaggedColumn, Dim: 9},
	})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// A checkpoint has the rows of a table that are not as they began, also those of
// which only a slot changed, and restores all of it bit for bit.
func TestStatePieces(t *testing.T) {
	s := tableSetup(t)
	state := params.New(s.Step)
	state["w"].F32()[3] = 7
	state["w/accumulator"].F32()[5] = 8
	state["b"].F32()[0] = 9
	pieces := state.Pieces(s.Step)
	keys := map[string][]int64{}
	for _, p := range pieces {
		keys[p.Name] = p.Keys
	}
	want := map[string][]int64{"w": {3, 5}, "w/accumulator": {3, 5}, "b": nil, "b/accumulator": nil}
	if diff := cmp.Diff(want, keys); diff != "" {
		t.Fatal(diff)
	}
	text, err := checkpoint.Encode("a", pieces)
	if err != nil {
		t.Fatal(err)
	}
	c, err := checkpoint.InMemory(text)
	if err != nil {
		t.Fatal(err)
	}
	again := params.New(s.Step)
	if err := again.Restore(c); err != nil {
		t.Fatal(err)
	}
	bits := func(s params.State) map[string]string {
		out := map[string]string{}
		for name, x := range s {
			out[name] = string(x.Bytes())
		}
		return out
	}
	if diff := cmp.Diff(bits(state), bits(again)); diff != "" {
		t.Error(diff)
	}
}

func TestStateDigest(t *testing.T) {
	s := tableSetup(t)
	a, b := params.New(s.Step), params.New(s.Step)
	one, err := a.Digest(s.Step)
	if err != nil {
		t.Fatal(err)
	}
	b["w/accumulator"].F32()[0] = 3 // a slot is no parameter
	if two, err := b.Digest(s.Step); err != nil || two != one {
		t.Errorf("%v, a slot changed the digest", err)
	}
	b["w"].F32()[8] = 3
	if two, err := b.Digest(s.Step); err != nil || two == one {
		t.Errorf("%v, a parameter did not change the digest", err)
	}
	if _, err := (params.State{"w": tensor.New(tensor.F32, 9, 1)}).Digest(s.Step); err == nil {
		t.Error("a missing parameter was passed over")
	}
}
