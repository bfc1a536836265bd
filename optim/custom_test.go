package optim_test

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/gangline/gangline/optim"
)

// again is momentum, written as a user would.
func again() *optim.Custom {
	return &optim.Custom{
		Name: "again", Uses: []string{"l2", "momentum"}, Slots: []optim.Slot{{Name: "velocity"}},
		F32: momentum[float32], F64: momentum[float64],
	}
}

func momentum[T optim.Float](u optim.Pass[T], p, g []T, slots [][]T) {
	mu, v := T(u.Rule.Momentum), slots[0]
	for i := range p {
		v[i] = T(mu*v[i]) + u.Mean(g[i], p[i])
		p[i] -= T(u.Rate * v[i])
	}
}

// A custom rule gets the bits of the same rule of ours, dense and by row, with
// clipping, decay and schedule.
func TestCustomIsARule(t *testing.T) {
	ours := optim.Rule{Kind: optim.Momentum, LR: .1, L2: .01, Momentum: .8, ClipValue: .5, Schedule: optim.Schedule{Warmup: 3}}
	theirs := ours
	theirs.Kind, theirs.Custom = "again", again()
	for _, r := range []optim.Rule{ours, theirs} {
		if err := r.Ready(); err != nil {
			t.Fatal(err)
		}
	}
	if err := theirs.Custom.Check(); err != nil {
		t.Error(err)
	}
	if err := theirs.Try(); err != nil {
		t.Error(err)
	}
	customIsRule[float32](t, ours, theirs)
	customIsRule[float64](t, ours, theirs)
}

func customIsRule[T optim.Float](t *testing.T, ours, theirs optim.Rule) {
	p, q := []T{1, -2, 3, 4, 5, 6}, []T{1, -2, 3, 4, 5, 6}
	ps, qs := newSlots[T](ours, 6), newSlots[T](theirs, 6)
	for step := range int64(5) {
		g := []T{1, 2, -3, 4, 5, -6}
		optim.Dense(ours, step, 3, p, g, ps)
		optim.Dense(theirs, step, 3, q, g, qs)
		optim.Rows(ours, step, 3, p, []int{2, 0}, 2, g[:4], ps)
		optim.Rows(theirs, step, 3, q, []int{2, 0}, 2, g[:4], qs)
	}
	if !slices.Equal(p, q) || !slices.Equal(ps[0], qs[0]) {
		t.Errorf("%T: got %v and %v, want %v and %v", p, q, qs, p, ps)
	}
	at, g := []int{0, 1, 2}, make([]T, 6)
	if n := testing.AllocsPerRun(10, func() {
		optim.Dense(theirs, 0, 2, q, g, qs)
		optim.Rows(theirs, 0, 2, q, at, 2, g, qs)
	}); n != 0 {
		t.Errorf("%T: %v allocations", p, n)
	}
}

// What a rule does wrong is found before it is used.
func TestCustomRefusals(t *testing.T) {
	for _, c := range []struct {
		want string
		bend func(c *optim.Custom)
	}{
		{"want letters", func(c *optim.Custom) { c.Name = "a b" }},
		{"has a rule of that name", func(c *optim.Custom) { c.Name = optim.Adam }},
		{"F32 or F64 is missing", func(c *optim.Custom) { c.F64 = nil }},
		{`uses "momentun": want some of l2`, func(c *optim.Custom) { c.Uses = []string{"momentun"} }},
		{`slot 0 is named "update"`, func(c *optim.Custom) { c.Slots[0].Name = "update" }},
		{`slot "velocity" is there twice`, func(c *optim.Custom) { c.Slots = append(c.Slots, c.Slots[0]) }},
		{`starts at +Inf`, func(c *optim.Custom) { c.Slots[0].Init = math.Inf(1) }},
		{"the limit is 8", func(c *optim.Custom) {
			for i := range 8 {
				c.Slots = append(c.Slots, optim.Slot{Name: fmt.Sprint("s", i)})
			}
		}},
	} {
		r := again()
		c.bend(r)
		if err := r.Check(); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("got %v, want %q in it", err, c.want)
		}
	}
	for want, f := range map[string]func(u optim.Pass[float64], p, g []float64, slots [][]float64){
		"changes the gradient":    func(_ optim.Pass[float64], _, g []float64, _ [][]float64) { g[0]++ },
		"from its own past alone": func(_ optim.Pass[float64], p, g []float64, _ [][]float64) { p[0] += g[len(g)-1] },
		"a parameter of gradient": func(_ optim.Pass[float64], p, g []float64, _ [][]float64) {
			for i := range p {
				p[i] = g[i] / g[i]
			}
		},
	} {
		c := again()
		c.F64 = f
		err := optim.Rule{Kind: "again", LR: 1, Custom: c}.Try()
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q in it", err, want)
		}
	}
	for want, r := range map[string]optim.Rule{
		"does not use it":     {Kind: "again", LR: 1, Beta1: .5, Custom: again()},
		"of custom rule":      {Kind: "other", LR: 1, Custom: again()},
		`kind is "again"`:     {Kind: "again", LR: 1},
		"momentum is 2: want": {Kind: "again", LR: 1, Momentum: 2, Custom: again()},
	} {
		if err := r.Validate(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q in it", err, want)
		}
	}
}
