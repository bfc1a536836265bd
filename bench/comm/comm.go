// Package comm times collectives between processes of one machine, in the manner
// of nccl-tests and the OSU micro-benchmarks: every rank is a process, buffers are
// summed in place, all ranks begin an iteration together, and the time of an
// iteration is that of the slowest rank. What came out is checked before anything
// is timed.
//
// A rank runs what training runs: the same runner on the same streams, with
// opening frames compared and a deadline on every wait.
package comm

import (
	"fmt"
	"slices"
	"strings"

	"github.com/gangline/gangline/collective"
	"github.com/gangline/gangline/collective/cost"
	"github.com/gangline/gangline/internal/nearest"
	"github.com/gangline/gangline/plan"
)

// Result is the time of one collective of one size.
type Result struct {
	Op         string `json:"op"`
	Ranks      int    `json:"ranks"`
	Path       string `json:"path"`
	Algorithm  string `json:"algorithm"`
	Bytes      int    `json:"bytes"`
	Iterations int    `json:"iterations"`
	// Times of an iteration in microseconds, each that of the slowest rank.
	Median float64 `json:"median_us"`
	Min    float64 `json:"min_us"`
	P99    float64 `json:"p99_us"`
	// AlgBW is Bytes by the median time, BusBW that times Factor: what each rank
	// must move at least, which can be compared with the speed of the wire. Both in
	// 10^9 bytes a second.
	AlgBW float64 `json:"algbw_gbs"`
	BusBW float64 `json:"busbw_gbs"`
}

// Factor is the bytes a rank must send for one byte of buffer at the least: 2(n-1)/n for
// an all-reduce. A barrier has no bytes.
//
// Source: NVIDIA, nccl-tests, "Performance reported by NCCL tests".
func Factor(op string, n int) float64 {
	f := float64(n-1) / float64(n)
	switch op {
	case "allreduce":
		return 2 * f
	case "reducescatter", "allgather", "gather", "scatter", allToAll:
		return f
	}
	return 1
}

// algorithm is one way to do an op.
type algorithm struct{ op, name string }

// algorithms are all of them. Those of all-reduce are those of plan.Algorithm; of
// other ops the first is taken by default.
func algorithms() []algorithm {
	var all []algorithm
	for _, a := range plan.Algorithms() {
		all = append(all, algorithm{"allreduce", a.String()})
	}
	return append(all,
		algorithm{"reducescatter", "ring"},
		algorithm{"allgather", "ring"},
		algorithm{"broadcast", "binomial"},
		algorithm{"reduce", "binomial"},
		algorithm{"gather", "binomial"},
		algorithm{"scatter", "binomial"},
		algorithm{allToAll, "pairwise"},
		algorithm{barrier, "dissemination"},
	)
}

// The ops that have runners of their own.
const (
	allToAll = "alltoall"
	barrier  = "barrier"
)

// schedule is how the algorithm goes over n ranks, which are on these hosts; of ops
// without a runner of their own.
func (a algorithm) schedule(n int, hosts [][]int) (*collective.Schedule, error) {
	switch a.op {
	case "allreduce":
		by, err := plan.ParseAlgorithm(a.name)
		if err != nil {
			return nil, err
		}
		return collective.AllReduceBy(by, n, hosts)
	case "reducescatter":
		return collective.RingReduceScatter(n), nil
	case "allgather":
		return collective.RingAllGather(n), nil
	case "broadcast":
		return collective.BinomialBroadcast(n), nil
	case "reduce":
		return collective.BinomialReduce(n), nil
	case "gather":
		return collective.BinomialGather(n), nil
	case "scatter":
		return collective.BinomialScatter(n), nil
	}
	return nil, fmt.Errorf("there is no schedule of %s by %s", a.op, a.name)
}

// Ops returns the names of the collectives.
func Ops() []string {
	var names []string
	for _, a := range algorithms() {
		if !slices.Contains(names, a.op) {
			names = append(names, a.op)
		}
	}
	return names
}

// Algorithms returns the names of the algorithms of an op.
func Algorithms(op string) []string {
	var names []string
	for _, a := range algorithms() {
		if a.op == op {
			names = append(names, a.name)
		}
	}
	return names
}

// All stands for every algorithm of an op.
const All = "all"

// find returns the algorithms that are asked for.
func find(op, name string) ([]algorithm, error) {
	if !slices.Contains(Ops(), op) {
		return nil, fmt.Errorf("there is no collective %q%s", op, nearest.Hint(op, Ops()))
	}
	var found []algorithm
	for _, a := range algorithms() {
		if a.op == op && (a.name == name || name == All) {
			found = append(found, a)
		}
	}
	if len(found) == 0 {
		return nil, fmt.Errorf("there is no algorithm %q of %s%s", name, op, nearest.Hint(name, append(Algorithms(op), All)))
	}
	return found, nil
}

// chosen returns the algorithms by which a size is timed: of an all-reduce that nobody
// chose, the one that training would take by default.
func (c Config) chosen(bytes int) ([]algorithm, error) {
	if c.Algorithm == All && len(c.Hosts) < 2 {
		all, err := find(c.Op, All)
		return slices.DeleteFunc(all, func(a algorithm) bool { return a.name == plan.ByHosts.String() }), err
	}
	if c.Algorithm != "" {
		return find(c.Op, c.Algorithm)
	}
	if c.Op != "allreduce" {
		return find(c.Op, Algorithms(c.Op)[0])
	}
	chooser, err := cost.NewChooser(c.Ranks, cost.Machine{Local: c.local(), Hosts: c.hosts()})
	if err != nil {
		return nil, err
	}
	return find(c.Op, chooser.Choices(bytes)[0].Algorithm.String())
}

// local is the path in the words of package cost.
func (c Config) local() cost.Path {
	switch c.Path {
	case "tcp":
		return cost.TCP
	case "unix":
		return cost.Unix
	}
	return cost.SHM
}

// Config says what to time.
type Config struct {
	// Op is one of Ops, Algorithm one of its Algorithms, All or empty: chosen by size.
	Op, Algorithm string
	// Path is auto, shm, unix or tcp.
	Path string
	// Ranks is how many processes there are.
	Ranks int
	// Hosts is how many ranks are on each host, in their order, for the algorithms that
	// look at it: a pretence on one machine, whose ways are all as short. Empty: all
	// are on one.
	Hosts []int
	// Bytes are the sizes of the buffers, each a multiple of 4; of a barrier, which has
	// none, they do not count.
	Bytes []int
	// Iterations is how many to time; 0: as many as the size calls for.
	Iterations int
}

// Limits of a Config.
const (
	MaxRanks      = 64
	MaxBytes      = 1 << 30
	MaxIterations = 100_000
)

// Validate says what to change.
func (c Config) Validate() error {
	switch {
	case c.Ranks < 2 || c.Ranks > MaxRanks:
		return fmt.Errorf("%d ranks: want 2 to %d", c.Ranks, MaxRanks)
	case !slices.Contains(Paths(), c.Path):
		return fmt.Errorf("there is no path %q%s", c.Path, nearest.Hint(c.Path, Paths()))
	case len(c.Bytes) == 0:
		return fmt.Errorf("no sizes: want some, 4KiB,1MiB for example")
	case c.Iterations < 0 || c.Iterations > MaxIterations:
		return fmt.Errorf("%d iterations: want 1 to %d, or 0 for as many as the size calls for", c.Iterations, MaxIterations)
	}
	for _, b := range c.Bytes {
		if b < 4 || b > MaxBytes || b%4 != 0 {
			return fmt.Errorf("buffers of %d bytes: want 4 to %d, a multiple of 4 (float32)", b, MaxBytes)
		}
	}
	if err := c.validateHosts(); err != nil {
		return err
	}
	if c.Algorithm == "" {
		_, err := find(c.Op, All)
		return err
	}
	_, err := find(c.Op, c.Algorithm)
	return err
}

// validateHosts checks that every rank is on one host.
func (c Config) validateHosts() error {
	total := 0
	for _, n := range c.Hosts {
		if n < 1 {
			return fmt.Errorf("hosts %v: want at least one rank on each", c.Hosts)
		}
		total += n
	}
	switch {
	case total > 0 && total != c.Ranks:
		return fmt.Errorf("hosts %v have %d ranks, want %d", c.Hosts, total, c.Ranks)
	case c.Algorithm == plan.ByHosts.String() && len(c.Hosts) < 2:
		return fmt.Errorf("algorithm %s needs several hosts: say how many ranks are to be taken as on each, 2,2 for example", c.Algorithm)
	}
	return nil
}

// hosts lists the ranks by host.
func (c Config) hosts() (all [][]int) {
	next := 0
	for _, n := range c.Hosts {
		var host []int
		for range n {
			host = append(host, next)
			next++
		}
		all = append(all, host)
	}
	return all
}

// sizes are the bytes that are timed.
func (c Config) sizes() []int {
	if c.Op == barrier {
		return []int{0}
	}
	return c.Bytes
}

// Paths returns the names of the paths between ranks.
func Paths() []string { return []string{"auto", "shm", "unix", "tcp"} }

// iterations is how many a size calls for: those of the peer programs.
func (c Config) iterations(bytes int) int {
	switch {
	case c.Iterations > 0:
		return c.Iterations
	case bytes <= 64<<10:
		return 2000
	case bytes <= 1<<20:
		return 300
	case bytes <= 16<<20:
		return 40
	case bytes <= 64<<20:
		return 15
	}
	return 7
}

// Table writes results as an aligned table.
func Table(results []Result) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%-13s %5s %-5s %-12s %11s %6s %11s %11s %11s %8s %8s\n",
		"op", "ranks", "path", "algorithm", "bytes", "iters", "median us", "min us", "p99 us", "alg GB/s", "bus GB/s")
	for _, r := range results {
		fmt.Fprintf(&b, "%-13s %5d %-5s %-12s %11d %6d %11.1f %11.1f %11.1f %8.3f %8.3f\n",
			r.Op, r.Ranks, r.Path, r.Algorithm, r.Bytes, r.Iterations, r.Median, r.Min, r.P99, r.AlgBW, r.BusBW)
	}
	return b.String()
}
