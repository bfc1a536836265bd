package exec_test

import (
	"strings"
	"testing"
	"unsafe"

	"github.com/gangline/gangline/exec"
	"github.com/gangline/gangline/plan"
	"github.com/gangline/gangline/tensor"
	"github.com/gangline/gangline/transport/mem"
)

// Values placed in an arena lie side by side in memory of the endpoint, one
// arena for each step in flight.
func TestArena(t *testing.T) {
	w := mem.NewNetwork(1)
	defer closeAll(w)
	d := newDraft(1, 2)
	a, b := d.value("a", plan.Act, plan.NoState, 3), d.value("b", plan.Act, plan.NoState, 2)
	d.Values[a.Value].Arena, d.Values[b.Value].Arena, d.Values[b.Value].Offset = 1, 1, 24
	starts := map[*float64]bool{}
	d.add([]int{0}, d.compute("fill", nil, []plan.Ref{a, b}, func(int) run {
		return func(_ int64, _, out []*tensor.Tensor) error {
			first, second := unsafe.SliceData(out[0].F64()), unsafe.SliceData(out[1].F64())
			if unsafe.Add(unsafe.Pointer(first), 24) != unsafe.Pointer(second) || uintptr(unsafe.Pointer(first))%64 != 0 {
				t.Errorf("a is at %p, b at %p: want b 24 bytes behind a, and a aligned to 64", first, second)
			}
			starts[first] = true
			return nil
		}
	}))
	_, errs := runAll(t, w, 4, d.config(0, w))
	must(t, errs)
	if len(starts) != 2 {
		t.Errorf("two steps in flight share %d arenas, want 2", len(starts))
	}
}

func TestArenaRefused(t *testing.T) {
	for want, change := range map[string]func(v *plan.Value, r *plan.Ref){
		"shape [?]": func(v *plan.Value, _ *plan.Ref) { v.Shape = tensor.Shape{tensor.Dynamic} },
		"one life":  func(_ *plan.Value, r *plan.Ref) { r.Micro = 1 },
		"aligned":   func(v *plan.Value, _ *plan.Ref) { v.Offset = 3 },
	} {
		d := newDraft(1, 1)
		a := d.value("a", plan.Act, plan.NoState, 3)
		d.Values[a.Value].Arena = 1
		change(&d.Values[a.Value], &a)
		d.add([]int{0}, d.compute("fill", nil, []plan.Ref{a}, func(int) run { return nil }))
		w := mem.NewNetwork(1)
		if _, err := exec.New(d.config(0, w)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
		closeAll(w)
	}
}
