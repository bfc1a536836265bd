package comm

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"time"

	"github.com/gangline/gangline/collective"
	"github.com/gangline/gangline/collective/cost"
	"github.com/gangline/gangline/internal/nearest"
	"github.com/gangline/gangline/launch"
	"github.com/gangline/gangline/plan"
	"github.com/gangline/gangline/transport/stream"
)

// Probe says of which paths the costs are measured.
type Probe struct {
	// Ranks is how many processes there are.
	Ranks int
	// Paths are some of ProbePaths; empty: those that this system has.
	Paths []string
	// Quick takes fewer iterations: for tests.
	Quick bool
}

// ProbePaths returns the names of the paths that have costs.
func ProbePaths() []string { return []string{"shm", "unix", "tcp"} }

// Validate says what to change.
func (p Probe) Validate() error {
	if p.Ranks < 2 || p.Ranks > MaxRanks {
		return fmt.Errorf("%d ranks: want 2 to %d", p.Ranks, MaxRanks)
	}
	for i, name := range p.Paths {
		if !slices.Contains(ProbePaths(), name) {
			return fmt.Errorf("there is no path %q to measure%s", name, nearest.Hint(name, ProbePaths()))
		}
		if slices.Contains(p.Paths[:i], name) {
			return fmt.Errorf("path %q stands twice", name)
		}
	}
	return nil
}

// paths are those that are measured.
func (p Probe) paths() []string {
	switch {
	case len(p.Paths) > 0:
		return p.Paths
	case runtime.GOOS == "linux":
		return ProbePaths()
	}
	return []string{"unix", "tcp"}
}

// Probed is what was measured of one path.
type Probed struct {
	Path string `json:"path"`
	// Ranks took part, on so many Hosts.
	Ranks int `json:"ranks"`
	Hosts int `json:"hosts"`
	// Fitted is empty where Skipped or NoFit says why.
	cost.Fitted
	Skipped string  `json:"skipped,omitempty"`
	NoFit   string  `json:"no_fit,omitempty"`
	Checks  []Check `json:"checks,omitempty"`
}

// Check is an all-reduce that was measured, beside what the costs foretell.
type Check struct {
	Algorithm string  `json:"algorithm"`
	Bytes     int     `json:"bytes"`
	Measured  float64 `json:"measured_us"`
	Modelled  float64 `json:"modelled_us"`
}

// probePatience bounds a probe as a whole, and with it every wait.
const probePatience = 3 * time.Minute

// probeTag is of the messages in which ranks wait for those that measure; the streams
// of each path have a tag beyond it.
const probeTag = 8

// ProbeRank is the life of one rank of a probe. It returns what rank 0 measured, there.
func ProbeRank(ctx context.Context, p Probe, place launch.Place) ([]Probed, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, probePatience, fmt.Errorf("the probe did not end within %v", probePatience))
	defer cancel()
	report, err := meet(ctx, place, fmt.Sprintf("%+v", p), func(ctx context.Context, m *mates) ([]byte, error) {
		all, err := p.measure(ctx, m)
		if err != nil || place.Rank != 0 {
			return nil, err
		}
		return json.Marshal(all)
	})
	if err != nil || place.Rank != 0 {
		return nil, err
	}
	return read[Probed](report)
}

// RunProbe starts the ranks and returns what rank 0 measured.
func RunProbe(ctx context.Context, p Probe, program Program) ([]Probed, error) {
	return start[Probed](ctx, p, p.Ranks, program)
}

// measure goes through the paths, one after the other.
func (p Probe) measure(ctx context.Context, m *mates) ([]Probed, error) {
	wait, err := collective.NewExchange(m.party(nil, m.group, probeTag), 1)
	if err != nil {
		return nil, err
	}
	var all []Probed
	for i, name := range p.paths() {
		members := membersOf(name, m.hosts)
		done := Probed{Path: name, Ranks: len(members), Hosts: hostsOf(members, m.hosts)}
		switch {
		case len(members) < 2:
			done.Skipped = "rank 0 is alone on its host"
		case slices.Contains(members, m.place.Rank):
			if err := p.path(ctx, m, &done, members, uint32(probeTag+1+2*i)); err != nil {
				return nil, fmt.Errorf("path %s: %w", name, err)
			}
		}
		all = append(all, done)
		if _, err := wait.Run(ctx, []byte{0}); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// membersOf are the ranks between which a path is measured: those on the host of
// rank 0; over tcp, if there are several hosts, the first rank of each.
func membersOf(path string, hosts []string) (members []int) {
	seen := map[string]bool{}
	for rank, host := range hosts {
		if path == "tcp" && !seen[host] {
			members = append(members, rank)
		}
		seen[host] = true
	}
	if len(members) > 1 {
		return members
	}
	members = nil
	for rank, host := range hosts {
		if host == hosts[0] {
			members = append(members, rank)
		}
	}
	return members
}

// hostsOf counts the hosts of some ranks.
func hostsOf(members []int, hosts []string) int {
	seen := map[string]bool{}
	for _, rank := range members {
		seen[hosts[rank]] = true
	}
	return len(seen)
}

// path measures one path between its members, and fits its costs on all of them alike.
func (p Probe) path(ctx context.Context, m *mates, done *Probed, members []int, tag uint32) (err error) {
	by, err := stream.ParsePath(done.Path)
	if err != nil {
		return err
	}
	streams, err := m.open(ctx, by, members, tag)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, streams.Close()) }()
	return p.over(ctx, m.party(streams, members, tag+1), done)
}

// over measures and fits on open streams.
func (p Probe) over(ctx context.Context, party collective.Party, done *Probed) error {
	meter, err := newMeter(party)
	if err != nil {
		return err
	}
	samples, err := p.samples(ctx, meter)
	if err != nil {
		return err
	}
	fitted, err := cost.Fit(samples)
	if errors.Is(err, cost.ErrNoFit) {
		done.NoFit = err.Error() // that of rank 0 counts; all have the same times
		return nil
	}
	if err != nil {
		return err
	}
	done.Fitted = fitted
	done.Checks, err = p.checks(ctx, meter, done)
	return err
}

// messages and buffers are the sizes of a probe, in bytes.
func (p Probe) messages() []int {
	all := []int{4, 1 << 10, 8 << 10, 64 << 10, 512 << 10, 2 << 20, 8 << 20}
	if p.Quick {
		return all[:4]
	}
	return all
}

func (p Probe) buffers() []int {
	all := []int{4 << 10, 64 << 10, 1 << 20, 16 << 20}
	if p.Quick {
		return all[:2]
	}
	return all
}

// probeRounds is how often all sizes are gone through: what disturbs for a while
// then disturbs no size alone.
const probeRounds = 5

// laps is how many iterations of a size a round has, and how many runs are timed
// together in one: of few bytes several, as a rank that a barrier has to wake comes
// later than the others, which takes longer than the run.
func (p Probe) laps(bytes int) (iterations, runs int) {
	switch {
	case p.Quick:
		return 2, 2
	case bytes <= 16<<10:
		return 12, 10
	case bytes <= 128<<10:
		return 8, 6
	case bytes <= 2<<20:
		return 4, 3
	}
	return 3, 1
}

// samples times collectives of all sizes whose ranks do alike: those of one message or
// few and of many, with additions and without.
func (p Probe) samples(ctx context.Context, m *meter) ([]cost.Sample, error) {
	n := len(m.party.Group)
	var samples []cost.Sample
	var ways []*timed
	for _, b := range p.messages() {
		for _, a := range []algorithm{{"allgather", "ring"}, {"reducescatter", "ring"}, {"allreduce", "ring"}, {"allreduce", "doubling"}} {
			t, s, err := m.way(ctx, a, n*b)
			if err != nil {
				return nil, err
			}
			ways = append(ways, t)
			samples = append(samples, cost.SampleOf(s, n*b))
		}
	}
	times, err := p.medians(ctx, m, ways)
	for i, t := range times {
		samples[i].Seconds = t / 1e6
	}
	return samples, err
}

// way prepares an algorithm, and returns its schedule.
func (m *meter) way(ctx context.Context, a algorithm, bytes int) (*timed, *collective.Schedule, error) {
	s, err := a.schedule(len(m.party.Group), nil)
	if err != nil {
		return nil, nil, err
	}
	t, err := m.prepare(ctx, a, bytes)
	return t, s, err
}

// medians goes through all ways in rounds, and returns the median time of each in
// microseconds.
func (p Probe) medians(ctx context.Context, m *meter, ways []*timed) ([]float64, error) {
	times := make([][]float64, len(ways))
	for range probeRounds {
		for i, t := range ways {
			iterations, runs := p.laps(t.bytes)
			laps, err := m.laps(ctx, t, iterations, runs)
			if err != nil {
				return nil, err
			}
			times[i] = append(times[i], laps...)
		}
	}
	all := make([]float64, len(ways))
	for i, t := range times {
		slices.Sort(t)
		all[i] = t[len(t)/2]
	}
	return all, nil
}

// checks times all-reduces, and works out what the costs foretell of them.
func (p Probe) checks(ctx context.Context, m *meter, done *Probed) ([]Check, error) {
	machine := done.machine()
	var ways []*timed
	var all []Check
	for _, bytes := range p.buffers() {
		for _, by := range plan.Algorithms() {
			if by == plan.ByHosts {
				continue
			}
			t, s, err := m.way(ctx, algorithm{"allreduce", by.String()}, bytes)
			if err != nil {
				return nil, err
			}
			ways = append(ways, t)
			all = append(all, Check{Algorithm: t.name, Bytes: bytes, Modelled: 1e6 * cost.Time(s, bytes, machine)})
		}
	}
	times, err := p.medians(ctx, m, ways)
	for i, t := range times {
		all[i].Measured = t
	}
	return all, err
}

// machine is what the costs say of ranks on this path.
func (p *Probed) machine() cost.Machine {
	m := cost.Machine{Local: Config{Path: p.Path}.local(), Costs: cost.Default()}
	m.Costs[m.Local] = p.Link
	return m
}
