package comm

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/gangline/gangline/chart"
	"github.com/gangline/gangline/collective"
	"github.com/gangline/gangline/tensor"
	"github.com/gangline/gangline/transport"
	"github.com/gangline/gangline/transport/mem"
)

// parties connects n ranks in this process.
func parties(t *testing.T, n int) []collective.Party {
	t.Helper()
	network := mem.NewNetwork(n)
	group := make([]int, n)
	for i := range group {
		group[i] = i
	}
	ps := make([]collective.Party, n)
	for i := range ps {
		e := network.Endpoint(i)
		streams := transport.NewMessageStreams(e, i, group, addressTag, 0)
		t.Cleanup(func() {
			if err := errors.Join(streams.Close(), e.Close()); err != nil {
				t.Error(err)
			}
		})
		ps[i] = collective.Party{Endpoint: e, Streams: streams, Group: group, Index: i, Tag: meterTag}
	}
	return ps
}

// measured is what each rank gets.
func measured(t *testing.T, c Config) ([][]Result, []error) {
	t.Helper()
	ps := parties(t, c.Ranks)
	results, errs := make([][]Result, len(ps)), make([]error, len(ps))
	var wg sync.WaitGroup
	for i, p := range ps {
		wg.Go(func() { results[i], errs[i] = all(t.Context(), c, p) })
	}
	wg.Wait()
	return results, errs
}

// Every op by every algorithm is right, on sizes that chunks divide and others, and
// all ranks agree on the times.
func TestAll(t *testing.T) {
	for _, op := range Ops() {
		c := Config{Op: op, Algorithm: All, Path: "auto", Ranks: 3, Hosts: []int{2, 1}, Bytes: []int{4, 44, 4096}, Iterations: 5}
		if err := c.Validate(); err != nil {
			t.Fatal(err)
		}
		results, errs := measured(t, c)
		if err := errors.Join(errs...); err != nil {
			t.Fatalf("%s: %v", op, err)
		}
		if len(results[0]) != len(c.sizes())*len(Algorithms(op)) {
			t.Errorf("%s: %d results", op, len(results[0]))
		}
		for _, r := range results[0] {
			if r.Op != op || r.Ranks != 3 || r.Iterations != 5 || !(r.Min > 0 && r.Min <= r.Median && r.Median <= r.P99 && (op == barrier || r.AlgBW > 0 && r.BusBW > 0)) {
				t.Errorf("%+v", r)
			}
		}
		for _, other := range results[1:] {
			if !slices.Equal(other, results[0]) {
				t.Errorf("%s: ranks differ: %+v, %+v", op, results[0], other)
			}
		}
	}
}

// Without a name, short buffers are doubled and long ones go round a ring.
func TestChosen(t *testing.T) {
	for bytes, want := range map[int]string{4: "doubling", 64 << 20: "ring"} {
		c := Config{Op: "allreduce", Path: "shm", Ranks: 4, Bytes: []int{bytes}}
		if got, err := c.chosen(bytes); err != nil || len(got) != 1 || got[0].name != want {
			t.Errorf("%d bytes: %v, %v, want %s", bytes, got, err, want)
		}
	}
}

// A wrong sum is found: here the schedule does half of what is asked.
func TestWrong(t *testing.T) {
	ps := parties(t, 2)
	errs := make([]error, len(ps))
	var wg sync.WaitGroup
	for i, p := range ps {
		wg.Go(func() {
			m, err := newMeter(p)
			if err != nil {
				errs[i] = err
				return
			}
			x := tensor.New(tensor.F32, 16)
			half, err := collective.NewRunner(p, collective.RingReduceScatter(2), tensor.F32, 16)
			if err != nil {
				errs[i] = err
				return
			}
			run := func(ctx context.Context) error { return half.Run(ctx, x) }
			errs[i] = m.check(t.Context(), &timed{algorithm: algorithm{op: "allreduce"}, in: x, out: x, run: run})
		})
	}
	wg.Wait()
	for rank, err := range errs {
		if !errors.Is(err, ErrWrong) {
			t.Errorf("rank %d: %v", rank, err)
		}
	}
}

func TestValidate(t *testing.T) {
	good := Config{Op: "allreduce", Path: "auto", Ranks: 2, Bytes: []int{4}}
	if err := good.Validate(); err != nil {
		t.Fatal(err)
	}
	for want, change := range map[string]func(*Config){
		`did you mean "allreduce"`: func(c *Config) { c.Op = "alreduce" },
		`did you mean "ring"`:      func(c *Config) { c.Algorithm = "rign" },
		`did you mean "shm"`:       func(c *Config) { c.Path = "shn" },
		"1 ranks":                  func(c *Config) { c.Ranks = 1 },
		"no sizes":                 func(c *Config) { c.Bytes = nil },
		"a multiple of 4":          func(c *Config) { c.Bytes = []int{6} },
		"iterations":               func(c *Config) { c.Iterations = -1 },
		"have 3 ranks, want 2":     func(c *Config) { c.Hosts = []int{2, 1} },
		"at least one rank":        func(c *Config) { c.Hosts = []int{2, 0} },
		"needs several hosts":      func(c *Config) { c.Algorithm = "hierarchical" },
	} {
		c := good
		change(&c)
		if err := c.Validate(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
}

// The factors of the four-rank case, by hand.
func TestFactor(t *testing.T) {
	for op, want := range map[string]float64{"allreduce": 1.5, "reducescatter": .75, "allgather": .75, "alltoall": .75, "broadcast": 1, "reduce": 1} {
		if got := Factor(op, 4); got != want {
			t.Errorf("%s: %v, want %v", op, got, want)
		}
	}
}

// Results have a table and pictures.
func TestShown(t *testing.T) {
	results := []Result{
		{Op: "allreduce", Ranks: 2, Path: "shm", Algorithm: "ring", Bytes: 4096, Iterations: 7, Median: 4.5, Min: 4, P99: 9, AlgBW: .91, BusBW: .91},
		{Op: "allreduce", Ranks: 2, Path: "shm", Algorithm: "ring", Bytes: 1 << 20, Iterations: 7, Median: 200, Min: 190, P99: 300, AlgBW: 5.2, BusBW: 5.2},
	}
	if text := Table(results); strings.Count(text, "\n") != 3 || !strings.Contains(text, "1048576") {
		t.Errorf("got\n%s", text)
	}
	for _, format := range chart.Formats() {
		var b bytes.Buffer
		if err := chart.Draw(&b, format, "allreduce, 2 ranks", Panels(results)); err != nil {
			t.Fatal(err)
		}
		if format == "svg" && !strings.Contains(b.String(), "64 KiB") {
			t.Error("no mark at 64 KiB")
		}
	}
}

func TestWins(t *testing.T) {
	results := []Result{
		{Algorithm: "ring", Bytes: 4, Median: 3},
		{Algorithm: "tree", Bytes: 4, Median: 2},
		{Algorithm: "halving", Bytes: 4, Median: 4},
		{Algorithm: "ring", Bytes: 8, Median: 3},
		{Algorithm: "ring", Bytes: 16, Median: 3},
		{Algorithm: "tree", Bytes: 16, Median: 4.5},
	}
	want := "4 bytes: tree, 1.50 times as fast as ring\n16 bytes: ring, 1.50 times as fast as tree\n"
	if got := Wins(results); got != want {
		t.Errorf("got\n%s, want\n%s", got, want)
	}
}
