package simtest

import (
	"cmp"
	"flag"
	"fmt"
	"hash"
	"hash/fnv"
	"maps"
	"math/rand/v2"
	"runtime/debug"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gangline/gangline/params"

	"github.com/gangline/gangline/ps"
)

// Long runs: go test ./simtest -run TestCluster -seed=0x1 -scenarios=100000 -v.
var (
	seedFlag      = flag.Uint64("seed", 0, "the seed of the first scenario; 0: past failures, then 1, 2, ...")
	scenariosFlag = flag.Int("scenarios", 0, "the number of scenarios, with seeds one after the other; 0: one with -seed, else 200")
)

// always is the number of scenarios of a run without flags.
const always = 300

// pastFailures are seeds that found something once.
func pastFailures() []uint64 { return slices.Concat(plainSeeds()) }

// plainSeeds are those that did so when there was no way to train but the plain one.
func plainSeeds() []uint64 {
	return []uint64{
		0x4,   // a table of which a server had updated no row could not be restored
		0x58d, // a coordinator that was stopped blamed a rank that it had not read
	}
}

// reportEvery is the number of scenarios after which a long run says how it is.
const reportEvery = 1000

// notesMax is how many of the last decisions a failure tells.
const notesMax = 40

// liveness is how long a run may take in virtual time after the last fault,
// and eventsMax how much may happen in all.
const (
	liveness  = 3 * time.Minute
	eventsMax = 1_000_000
)

// cluster is one simulated run.
type cluster struct {
	clock
	network
	s       *scenario
	name    string // calm, disturbed, serial
	problem *problem
	rng     *rand.Rand
	ledger  *ledger
	disk    *disk

	gen         uint32
	coordinator *coordinator
	members     []*member
	struck      []bool        // by fault
	trouble     time.Duration // when the last fault is over
	usual       []int         // by rank: events of an undisturbed run
	resumed     int64         // the step of the checkpoint it was begun with
	restarts    int
	retries     int
	ended       bool

	rows    map[int64]map[int][]int // by step and worker: rows fed since the last rollback
	commits map[int64]int           // by step: workers that ended it since the last rollback
	weights map[int64]float64       // by step: what the workers agreed on

	notes     []string
	history   hash.Hash64 // of all notes
	violation error
}

func newCluster(s *scenario, name string, l *ledger, usual []int) (*cluster, error) {
	p, err := newProblem(s)
	if err != nil {
		return nil, err
	}
	return &cluster{
		network: newNetwork(), s: s, name: name, problem: p, ledger: l, disk: newDisk(), usual: usual,
		rng: rand.New(rand.NewPCG(s.seed, 2)), history: fnv.New64a(),
		members: make([]*member, s.world()), struck: make([]bool, len(s.faults)),
		rows: map[int64]map[int][]int{}, commits: map[int64]int{}, weights: map[int64]float64{},
	}, nil
}

// violate ends the run: an invariant does not hold.
func (c *cluster) violate(format string, args ...any) {
	if c.violation == nil {
		c.violation = fmt.Errorf("%s run, generation %d, at %v: %s\nbefore that:\n  %s",
			c.name, c.gen, c.now, fmt.Sprintf(format, args...), strings.Join(c.notes, "\n  "))
	}
}

// note remembers a decision for the case of a failure.
func (c *cluster) note(format string, args ...any) {
	if len(c.notes) == notesMax {
		c.notes = append(c.notes[:0], c.notes[1:]...)
	}
	text := fmt.Sprintf("%v: ", c.now) + fmt.Sprintf(format, args...)
	c.notes = append(c.notes, text)
	c.history.Write([]byte(text)) // a hash never fails to write
}

// run simulates until all ranks are done, and looks at what is left.
func (c *cluster) run() (final params.State, err error) {
	defer func() {
		if p := recover(); p != nil {
			c.violate("panic: %v\n%s", p, debug.Stack())
			err = c.violation
		}
		for _, m := range c.members { // what blocks ends
			if m != nil {
				m.kill()
			}
		}
	}()
	c.generation()
	for !c.ended && c.violation == nil {
		switch {
		case !c.next():
			c.violate("nothing can happen any more")
		case c.now > c.trouble+liveness, c.count > eventsMax:
			c.violate("no end %v after the last fault, after %d events:%s", c.now-c.trouble, c.count, c.waits())
		}
	}
	if c.violation != nil {
		return nil, c.violation
	}
	return c.final()
}

// waits tells what each worker waits in.
func (c *cluster) waits() string {
	var b strings.Builder
	for _, m := range c.members {
		if m.worker == nil || m.worker.deck == nil {
			continue
		}
		fmt.Fprintf(&b, "\n  rank %d (dead %t, failed %t, done %t) waits in", m.rank, m.dead, m.failed, m.done)
		for _, r := range m.worker.deck.cursor.Running(nil) {
			t := m.worker.deck.tasks[r.Task]
			fmt.Fprintf(&b, " %v %s of step %d,", t.Kind, t.Name, r.Step)
		}
	}
	return b.String()
}

// final checks what is left at the end.
func (c *cluster) final() (params.State, error) {
	last := c.disk.latest()
	if last == nil || last.at != c.s.steps {
		c.violate("the last checkpoint is not that of step %d", c.s.steps)
		return nil, c.violation
	}
	for _, m := range c.members[c.s.workers:] {
		st := m.store.shard.Stats()
		states := int64(len(m.store.layout.States) * c.s.workers)
		if st.Pending != 0 || st.Applied+st.Skipped != states*(c.s.steps-m.first) || st.Version != c.s.steps && states > 0 {
			c.violate("store %d ends with %+v after steps %d to %d", m.store.layout.Store, st, m.first, c.s.steps)
		}
	}
	c.checkRows()
	if c.violation != nil {
		return nil, c.violation
	}
	return last.state(c.problem)
}

// fed notes the rows that a worker has for a step.
func (c *cluster) fed(rank int, step int64, rows []int) {
	if c.rows[step] == nil {
		c.rows[step] = map[int][]int{}
	}
	if c.rows[step][rank] != nil {
		c.violate("rank %d gets rows for step %d twice", rank, step)
	}
	c.rows[step][rank] = append([]int{}, rows...)
}

// verdict: all workers of a Commit agree on the weight of a step, in all generations.
func (c *cluster) verdict(m *member, step int64, weight float64, workers int) {
	c.weights[step] = weight
	var f fold
	f.text(fmt.Sprint(weight))
	s := sight{what: "verdict", step: step}
	if workers == 1 { // who trains a copy of its own
		s.rank = m.rank
	}
	c.ledger.see(m, s, f.digest())
}

// applied: a store does what the workers agreed on, and applies no step of
// weight 0.
func (c *cluster) applied(s *store, a ps.Action) {
	weight, agreed := c.weights[a.Step]
	if !agreed || (weight > 0) != (a.Kind == ps.ActionApplied) {
		c.violate("store %d ends step %d (applied: %t); the workers agreed: %t, on weight %v",
			s.layout.Store, a.Step, a.Kind == ps.ActionApplied, agreed, weight)
	}
}

// rollback forgets what was done from a step on: the run goes on from there.
func (c *cluster) rollback(first int64) {
	later := func(step int64) bool { return step >= first }
	maps.DeleteFunc(c.rows, func(s int64, _ map[int][]int) bool { return later(s) })
	maps.DeleteFunc(c.commits, func(s int64, _ int) bool { return later(s) })
	maps.DeleteFunc(c.weights, func(s int64, _ float64) bool { return later(s) })
}

// checkRows: the steps that count have used every row of each whole epoch
// exactly once, and none twice in the last.
func (c *cluster) checkRows() {
	per := int64(c.problem.order.StepsPerEpoch())
	used := map[int]int{}
	for step := c.resumed; step < c.s.steps; step++ {
		// A step may count before every worker has ended it: rank 0 saves alone.
		if c.commits[step] == 0 || c.commits[step] > c.s.workers || len(c.rows[step]) != c.s.workers {
			c.violate("step %d was fed to %d and ended by %d of %d workers", step, len(c.rows[step]), c.commits[step], c.s.workers)
		}
		for rank := range c.s.workers {
			for _, row := range c.rows[step][rank] {
				used[row]++
			}
		}
		over := (step+1)%per == 0
		if !over && step < c.s.steps-1 {
			continue
		}
		for row := range c.s.rows {
			if n := used[row]; n > 1 || n == 0 && over && step+1-per >= c.resumed {
				c.violate("row %d is used %d times in the epoch that ends with step %d", row, n, step)
			}
		}
		clear(used)
	}
}

// tally is what a number of scenarios came to.
type tally struct {
	scenarios, events, restarts, refused, retries, skipped int
	met, hit                                               [ways]int // by way: all, and those that were restarted
	virtual                                                time.Duration
	history                                                uint64 // of all decisions of the last scenario
}

// simulate runs a scenario: undisturbed, disturbed, on one worker, and from a
// checkpoint on other servers.
func simulate(s *scenario, t *tally) error {
	l := &ledger{seen: map[sight]seen{}}
	calm, err := newCluster(s.calm(), "calm", l, nil)
	if err != nil {
		return err
	}
	want, err := calm.run()
	if err != nil {
		return err
	}
	var usual []int
	for _, m := range calm.members {
		usual = append(usual, m.handled)
	}
	wild, err := newCluster(s, "disturbed", l, usual)
	if err != nil {
		return err
	}
	got, err := wild.run()
	if err != nil {
		return err
	}
	if digestState(got) != digestState(want) {
		return fmt.Errorf("the disturbed run ends with other bits than the calm one")
	}
	skipped := slices.DeleteFunc(slices.Sorted(maps.Keys(calm.weights)), func(step int64) bool { return calm.weights[step] > 0 })
	if err := againstSerial(s, skipped, got); err != nil {
		return err
	}
	if err := resumeElsewhere(s, wild.disk.oldest, skipped, want); err != nil {
		return err
	}
	if t.met[s.way]++; wild.restarts > 0 {
		t.hit[s.way]++
	}
	t.scenarios++
	t.events += wild.count
	t.restarts += wild.restarts
	t.refused += wild.refused
	t.retries += wild.retries
	t.skipped += len(skipped)
	t.virtual += wild.now
	t.history = wild.history.Sum64()
	return nil
}

// againstSerial compares with one worker that trains on all rows, to the bit where the order
// of sums does not depend on workers. What is compressed, in 16 bits or a copy for each
// worker is other numbers.
func againstSerial(s *scenario, skipped []int64, got params.State) error {
	if s.lossy() {
		return nil
	}
	one, err := newCluster(s.serial(skipped), "serial", &ledger{seen: map[sight]seen{}}, nil)
	if err != nil {
		return err
	}
	serial, err := one.run()
	if err != nil {
		return err
	}
	return s.compare(serial, got)
}

// compare says how far states are apart that should be one.
func (s *scenario) compare(want, got params.State) error {
	if s.slices > 0 && digestState(want) != digestState(got) {
		return fmt.Errorf("in slices, other workers end with other bits")
	}
	if d, where := far(want, got); d > 1e-12 {
		return fmt.Errorf("the parameters are %g away from those of other workers: %s", d, where)
	}
	return nil
}

// resumeElsewhere goes on from a checkpoint of the disturbed run on another number of
// servers, or of workers where there are none, to the same end.
func resumeElsewhere(s *scenario, from *saved, skipped []int64, want params.State) error {
	if from.at == s.steps {
		return nil
	}
	moved := s.moved(skipped)
	c, err := newCluster(moved, "moved", &ledger{seen: map[sight]seen{}}, nil)
	if err != nil {
		return err
	}
	c.disk.published[from.at] = from
	c.resumed = from.at
	got, err := c.run()
	switch {
	case err != nil:
		return err
	case s.servers > 0 && digestState(got) != digestState(want):
		return fmt.Errorf("from step %d on, %d servers come to other bits than %d", from.at, s.otherServers, s.servers)
	case s.servers > 0 || s.lossy():
		return nil
	}
	if err := s.compare(want, got); err != nil {
		return fmt.Errorf("from step %d on, %d workers in place of %d: %w", from.at, moved.workers, s.workers, err)
	}
	return nil
}

// simulateIn is simulate in a bubble, in which it can wait for what blocks.
func simulateIn(t *testing.T, s *scenario, sum *tally) (err error) {
	t.Helper()
	synctest.Test(t, func(*testing.T) { err = simulate(s, sum) })
	return err
}

func TestCluster(t *testing.T) {
	first, seeds := max(*seedFlag, 1), []uint64(nil)
	count := cmp.Or(*scenariosFlag, 1)
	if *seedFlag == 0 {
		seeds, count = pastFailures(), cmp.Or(*scenariosFlag, always)
	}
	if testing.Short() {
		count = min(count, 40)
	}
	for i := range count {
		seeds = append(seeds, first+uint64(i))
	}
	var sum tally
	began := time.Now()
	report := func() {
		t.Logf("%d scenarios, %.0f a second: %d events in %v of virtual time, %d restarts, %d stale messages refused, %d requests repeated, %d steps skipped",
			sum.scenarios, float64(sum.scenarios)/time.Since(began).Seconds(), sum.events, sum.virtual.Round(time.Second),
			sum.restarts, sum.refused, sum.retries, sum.skipped)
		for w := range ways {
			t.Logf("%v: %d scenarios, %d with restarts", w, sum.met[w], sum.hit[w])
		}
	}
	for i, seed := range seeds {
		s := draw(seed)
		if err := simulateIn(t, s, &sum); err != nil {
			t.Fatalf("seed %#x: %v\nscenario: %v\nrun it again: go test ./simtest -run TestCluster -seed=%#x", seed, err, s, seed)
		}
		if i%reportEvery == reportEvery-1 {
			report()
		}
	}
	report()
	if *seedFlag == 0 && !testing.Short() && slices.Contains(sum.hit[:], 0) {
		t.Errorf("of the ways to train (%v and so on), restarts by way are %v: want some of each", way(0), sum.hit)
	}
	if *seedFlag == 0 && (sum.restarts == 0 || sum.refused == 0 || sum.retries == 0 || sum.skipped == 0) {
		t.Error("the scenarios that are always run do not meet every kind of trouble")
	}
}

// TestReplay: a seed gives the same run again, decision by decision, whatever the way to train.
func TestReplay(t *testing.T) {
	var met [ways]int
	for seed := uint64(0); slices.Contains(met[:], 0); seed++ {
		s := draw(seed)
		if met[s.way]++; met[s.way] > 2 {
			continue
		}
		var first, again tally
		for _, sum := range []*tally{&first, &again} {
			if err := simulateIn(t, draw(seed), sum); err != nil {
				t.Fatalf("seed %#x: %v", seed, err)
			}
		}
		if first != again {
			t.Errorf("seed %#x runs in two ways: %+v, %+v", seed, first, again)
		}
	}
}
