package exec_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/gangline/gangline/exec"
	"github.com/gangline/gangline/tensor"
	"github.com/gangline/gangline/trace"
)

// grid is a plan of empty tasks: lanes side by side, each of depth tasks, of
// which each waits for that of the lane before it.
func grid(lanes, depth, window int) *draft {
	d := newDraft(1, window)
	nothing := func(int) run {
		return func(int64, []*tensor.Tensor, []*tensor.Tensor) error { return nil }
	}
	for k := range depth {
		for l := range lanes {
			t := d.compute(fmt.Sprintf("%d.%d", l, k), nil, nil, nothing)
			t.Lane.ID = l
			if l > 0 {
				d.add([]int{0}, t, fmt.Sprintf("%d.%d", l-1, k))
			} else {
				d.add([]int{0}, t)
			}
		}
	}
	return d
}

// A warm executor allocates nothing a task: what a Run allocates does not grow
// with its steps.
func TestWarmStepsAllocateNothing(t *testing.T) {
	cfg := grid(3, 8, 2).config(0, nil)
	cfg.Trace = trace.NewRecorder(64)
	cfg.Deadline = time.Hour
	e, err := exec.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = e.Close() }()
	next := int64(0)
	allocs := func(steps int64) float64 {
		return testing.AllocsPerRun(20, func() {
			if err := e.Run(t.Context(), next, next+steps); err != nil {
				t.Error(err)
			}
			next += steps
		})
	}
	allocs(10)
	few, many := allocs(1), allocs(101)
	if perTask := (many - few) / (100 * 24); perTask > 0.001 {
		t.Errorf("%v allocations a task (a run of 1 step has %v, of 101 has %v)", perTask, few, many)
	}
}

// BenchmarkExec is the cost of a task that does nothing: on one lane, which
// never wakes another, and on several, where every task waits for another lane.
func BenchmarkExec(b *testing.B) {
	for _, lanes := range []int{1, 2, 4} {
		b.Run(fmt.Sprintf("lanes=%d", lanes), func(b *testing.B) {
			const depth = 16
			e, err := exec.New(grid(lanes, depth, 2).config(0, nil))
			if err != nil {
				b.Fatal(err)
			}
			defer func() { _ = e.Close() }()
			if err := e.Run(b.Context(), 0, 10); err != nil {
				b.Fatal(err)
			}
			b.ReportAllocs()
			b.ResetTimer()
			if err := e.Run(b.Context(), 10, 10+int64(b.N)); err != nil {
				b.Fatal(err)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*lanes*depth), "ns/task")
		})
	}
}
