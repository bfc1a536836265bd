// Package bench times training steps on one machine, through the serial plan
// and the real executor.
//
// The cases have the shapes that PyTorch is timed with beside it (see
// docs/benchmarks.md): what a step does is what gangline train does, from the
// rows of a batch in memory to the updated parameters.
package bench

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/gangline/gangline/internal/nearest"
)

// Result is the time of one case.
type Result struct {
	Name    string `json:"name"`
	Threads int    `json:"threads"`
	// Iterations is how many were timed, after some that were not.
	Iterations int `json:"iterations"`
	// Median and Min are wall clock seconds of one iteration; CPU is the
	// processor's seconds for one, over all threads, 0 where the system does not say.
	Median float64 `json:"median_s"`
	Min    float64 `json:"min_s"`
	CPU    float64 `json:"cpu_s"`
}

// Config says how to time.
type Config struct {
	// Threads is how many cores kernels use; at least 1.
	Threads int
	// Iterations is how many to time; 0: as many as Time takes, at least 5.
	Iterations int
	// Time is how long to go on without Iterations.
	Time time.Duration
}

// Limits on what is timed.
const (
	iterationsMin = 5
	iterationsMax = 100_000
)

// warmSteps and warmTime are what runs before anything is timed, both.
const (
	warmSteps = 5
	warmTime  = 300 * time.Millisecond
)

// runner runs iterations of a case, which is warm.
type runner interface {
	// run runs n iterations and appends the duration of each.
	run(ctx context.Context, n int, times []time.Duration) ([]time.Duration, error)
	close() error
}

// benchCase is a name with what makes a runner.
type benchCase struct {
	name  string
	about string
	start func(threads int) (runner, error)
}

func cases() []benchCase {
	return []benchCase{
		{"sgemm512", "product of two float32 matrices, 512 by 512", sgemm(512)},
		{"sgemm1024", "product of two float32 matrices, 1024 by 1024", sgemm(1024)},
		{"mlp", "784-512-512-10, batch 128, SGD", step(mlp)},
		{"gpt", "4 layers, dim 256, 4 heads, context 128, batch 8, 256 tokens, Adam", step(gpt)},
		{"ctr", "26 tables of 38462 x 16, 429-256-128-1, batch 2048, SGD", step(ctr(38462, 2048))},
		{"dlrm", "26 tables of 1000000 x 16, 13-64-16 and 367-256-64-1, batch 4096, SGD", step(dlrm(1_000_000, 4096, dlrmBatches))},
	}
}

// Cases returns the names of the cases.
func Cases() []string {
	var names []string
	for _, c := range cases() {
		names = append(names, c.name)
	}
	return names
}

// About describes the cases, one a line.
func About() string {
	var b strings.Builder
	for _, c := range cases() {
		fmt.Fprintf(&b, "  %-10s %s\n", c.name, c.about)
	}
	return b.String()
}

// Check returns an error that gives the nearest name if there is no such case.
func Check(name string) error {
	if !slices.Contains(Cases(), name) {
		return fmt.Errorf("bench: there is no case %q%s", name, nearest.Hint(name, Cases()))
	}
	return nil
}

// Run times a case. dlrm takes 2 GB of memory, the others little.
func Run(ctx context.Context, name string, c Config) (Result, error) {
	if err := Check(name); err != nil {
		return Result{}, err
	}
	i := slices.Index(Cases(), name)
	r, err := measure(ctx, cases()[i].start, c)
	if err != nil {
		return Result{}, fmt.Errorf("bench: %s: %w", name, err)
	}
	r.Name = name
	return r, nil
}

// measure warms a case up and times it.
func measure(ctx context.Context, start func(threads int) (runner, error), c Config) (r Result, err error) {
	run, err := start(max(1, c.Threads))
	if err != nil {
		return Result{}, err
	}
	defer func() {
		if cerr := run.close(); err == nil {
			err = cerr
		}
	}()
	var times []time.Duration
	for begin := time.Now(); len(times) < warmSteps || time.Since(begin) < warmTime; {
		if times, err = run.run(ctx, warmSteps, times); err != nil {
			return Result{}, err
		}
	}
	n := c.Iterations
	if n == 0 {
		one := max(times[len(times)-1], time.Microsecond)
		n = min(max(int(c.Time/one), iterationsMin), iterationsMax)
	}
	cpu := cpuTime()
	if times, err = run.run(ctx, n, slices.Grow(times[:0], n)); err != nil {
		return Result{}, err
	}
	cpu = cpuTime() - cpu
	slices.Sort(times)
	return Result{
		Threads: max(1, c.Threads), Iterations: n,
		Median: (times[(n-1)/2] + times[n/2]).Seconds() / 2, Min: times[0].Seconds(), CPU: cpu.Seconds() / float64(n),
	}, nil
}
