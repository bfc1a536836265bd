package optim

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// slotsMax is how many slots a custom rule may have.
const slotsMax = 8

// Custom is an update rule of somebody else's. A Rule that has it as its Custom,
// and its Name as Kind, is applied by it, in workers and on servers alike.
//
// F32 and F64 update parameters p in place, and the slots, from the sum g of
// the gradient, which they leave as it is. They are called for any part of a
// parameter, or row of a table, that the caller holds; so each element must
// follow from its own gradient, value and slots alone, and nothing may be kept
// between calls. Usually both are one generic function.
type Custom struct {
	// Name is the kind that jobs give: letters, digits, _ and -, none of Kinds.
	Name Kind
	// Uses lists the settings that the rule reads, by the names of a job file
	// ("momentum", "eps", ...), beside those that every rule has: lr,
	// clip_value, clip_norm, schedule and scale_with. What 0 means is up to it.
	Uses []string
	// Slots are what is kept beside a parameter, in the order of slots; at most 8.
	Slots []Slot
	F32   func(u Pass[float32], p, g []float32, slots [][]float32)
	F64   func(u Pass[float64], p, g []float64, slots [][]float64)
}

// Pass is what a custom rule is told of the step.
type Pass[T Float] struct {
	// Rule holds the settings.
	Rule Rule
	// Step is the 0-based step of the run.
	Step int64
	// Rate is the learning rate of the step, by the schedule.
	Rate T
	mean mean[T]
}

// Mean turns an element of the gradient sum into the mean gradient, bounded by
// ClipValue, with the weight decay of the parameter p, L2·p, added.
func (u *Pass[T]) Mean(g, p T) T { return u.mean.of(g, p) }

// Check reports all that is wrong with the rule, but for what its functions do:
// see Rule.Try.
func (c *Custom) Check() error {
	var errs []error
	bad := func(format string, args ...any) {
		errs = append(errs, fmt.Errorf("optim: custom rule %q: "+format, append([]any{c.Name}, args...)...))
	}
	if !isName(string(c.Name)) {
		bad("its name: want letters, digits, _ or -")
	}
	if slices.Contains(Kinds(), c.Name) {
		bad("gangline has a rule of that name")
	}
	if c.F32 == nil || c.F64 == nil {
		bad("F32 or F64 is missing: want both")
	}
	known := settingNames()
	for _, u := range c.Uses {
		if !slices.Contains(known, u) {
			bad("uses %q: want some of %s", u, strings.Join(known, ", "))
		}
	}
	if len(c.Slots) > slotsMax {
		bad("%d slots, the limit is %d", len(c.Slots), slotsMax)
	}
	for i, s := range c.Slots {
		if !isName(s.Name) || slices.Contains([]string{"grad", "rows", "update"}, s.Name) {
			bad("slot %d is named %q: want letters, digits, _ or -, and not grad, rows or update", i, s.Name)
		}
		if slices.ContainsFunc(c.Slots[:i], func(o Slot) bool { return o.Name == s.Name }) {
			bad("slot %q is there twice", s.Name)
		}
		if !finite(s.Init) {
			bad("slot %q starts at %v", s.Name, s.Init)
		}
	}
	return errors.Join(errs...)
}

// isName reports whether s may be part of the name of a node.
func isName(s string) bool {
	for _, c := range s {
		if c != '_' && c != '-' && (c < '0' || c > '9') && (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') {
			return false
		}
	}
	return s != ""
}

// settingNames lists the settings that only some kinds use.
func settingNames() []string {
	var names []string
	for _, s := range (&Rule{}).settings() {
		names = append(names, s.field)
	}
	return names
}

// Try runs a valid custom rule on a few numbers, in both types: applied to the
// whole and to parts it must give the same bits, finite ones, and leave the
// gradient alone. Rules without Custom are known to do so.
func (r Rule) Try() error {
	if r.Custom == nil {
		return nil
	}
	if err := errors.Join(try[float32](r), try[float64](r)); err != nil {
		return fmt.Errorf("optim: custom rule %q: %w", r.Kind, err)
	}
	return nil
}

// try runs a custom rule for three steps on one array, and on its parts.
func try[T Float](r Rule) error {
	const n, cut = 7, 3
	whole, parts := newTrial[T](r, n), newTrial[T](r, n)
	for step := range int64(3) {
		g := make([]T, n)
		for i := range g {
			g[i] = T(i-cut) / T(step+2)
		}
		kept := slices.Clone(g)
		Dense(r, step, 2, whole.p, g, whole.slots)
		if !slices.Equal(g, kept) {
			return errors.New("it changes the gradient")
		}
		for _, at := range [][2]int{{cut, n}, {0, cut}} {
			Dense(r, step, 2, parts.p[at[0]:at[1]], g[at[0]:at[1]], parts.part(at[0], at[1]))
		}
		for i, v := range whole.p {
			if !finite(float64(v)) {
				return fmt.Errorf("step %d makes a parameter of gradient %v %v", step, g[i]/2, v)
			}
			if v != parts.p[i] {
				return fmt.Errorf("step %d makes a parameter %v when given the whole and %v when given a part: each element must follow from its own past alone", step, v, parts.p[i])
			}
		}
	}
	return nil
}

// trial is an array of parameters with its slots.
type trial[T Float] struct {
	p     []T
	slots [][]T
}

func newTrial[T Float](r Rule, n int) trial[T] {
	t := trial[T]{p: make([]T, n)}
	for i := range t.p {
		t.p[i] = 1 / T(i+1)
	}
	for _, s := range r.Slots() {
		v := make([]T, n)
		for i := range v {
			v[i] = T(s.Init)
		}
		t.slots = append(t.slots, v)
	}
	return t
}

func (t *trial[T]) part(lo, hi int) [][]T {
	var part [][]T
	for _, s := range t.slots {
		part = append(part, s[lo:hi])
	}
	return part
}

// function is F32 or F64.
func function[T Float](c *Custom) func(u Pass[T], p, g []T, slots [][]T) {
	if f, ok := any(c.F32).(func(Pass[T], []T, []T, [][]T)); ok {
		return f
	}
	f, _ := any(c.F64).(func(Pass[T], []T, []T, [][]T))
	return f
}

// custom applies the rule to elements lo to hi. The slices of slots are cut for
// the call and put back: a list of its own would be allocated for each.
func (k *kernel[T]) custom(p, g []T, slots [][]T, lo, hi int) {
	var whole [slotsMax][]T
	for i, s := range slots {
		whole[i], slots[i] = s, s[lo:hi:hi]
	}
	function[T](k.rule.Custom)(Pass[T]{Rule: k.rule, Step: k.step, Rate: k.rate, mean: k.mean}, p, g, slots)
	copy(slots, whole[:])
}
