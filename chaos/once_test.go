//go:build unix

package chaos

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/gangline/gangline/checkpoint"
	"github.com/gangline/gangline/params"
)

// A plain run of TestEveryRowOnce survives onceKills kills and tries the same every
// time.
const (
	onceKills = 20
	onceSeed  = 1
)

// victims are what a kill may hit. After the death of a rank the launcher either
// starts all again or gives up.
var victims = []string{"rank", "launcher", "rank, restarted", "everything"}

// TestEveryRowOnce kills training at random points, and goes on with whatever number
// of workers and whatever strategy chance draws. Parameters count the uses of every
// row in every epoch; in the end each must be exactly 1.
func TestEveryRowOnce(t *testing.T) {
	want := int(setting(t, "GANGLINE_CHAOS_KILLS", onceKills))
	seed := setting(t, "GANGLINE_CHAOS_SEED", onceSeed)
	t.Logf("GANGLINE_CHAOS_SEED=%d", seed)
	o := &once{b: newBenchOf(t, buildRowcount(t)), rng: rand.New(rand.NewPCG(seed, 1)), counts: map[string]int{}}
	for o.kills < want && !t.Failed() {
		o.round()
	}
	t.Logf("%d kills in %d rounds", o.kills, o.rounds)
	for _, what := range slices.Sorted(maps.Keys(o.counts)) {
		t.Logf("%4d %s", o.counts[what], what)
	}
}

// buildRowcount builds the program that counts.
func buildRowcount(t *testing.T) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "rowcount")
	if err := build(file, "../internal/cmd/rowcount"); err != nil {
		t.Fatal(err)
	}
	return file
}

// once draws rounds and keeps count of what was killed.
type once struct {
	b      *bench
	rng    *rand.Rand
	rounds int
	kills  int
	counts map[string]int
}

// round is one training run, from its first process to the one that ends it.
type round struct {
	*once
	job    counted
	dir    string // of checkpoints
	path   string // of the job file
	at     spread // of the process that was started last
	gates  string // ROWCOUNT_GATE of the process that was started last
	gate   *turnstile
	killed int // kills of this round
	story  []string
}

// round trains one job to its end over some kills.
func (o *once) round() {
	o.b.t.Helper()
	r := &round{once: o, job: drawCounted(o.rng, o.rounds)}
	o.rounds++
	name := fmt.Sprintf("round-%d", o.rounds)
	r.path, r.dir = r.job.write(o.b, name), o.b.path(name+"/checkpoints")
	defer func() { o.b.t.Logf("round %d: %s: %s", o.rounds, r.job.name, strings.Join(r.story, "; ")) }()
	var p *process
	for n := 1 + o.rng.IntN(4); n > 0 && (p == nil || p.running()); n-- {
		p = r.kill(p)
	}
	if p == nil {
		p = r.start()
	}
	r.gate.open()
	report := p.result()
	r.story = append(r.story, fmt.Sprintf("%s from step %d to the end", r.at, report.Resumed))
	if first := report.Resumed; report.Steps != r.job.steps() || report.Examples != r.job.position(r.job.steps())-r.job.position(first) {
		o.b.t.Errorf("round %d: the last run says %d steps and %d examples from step %d on, want %d and %d", o.rounds,
			report.Steps, report.Examples, first, r.job.steps(), r.job.position(r.job.steps())-r.job.position(first))
	}
	r.checkUses()
	o.b.checkCheckpoints(r.dir, r.job.keep)
	o.b.checkClean()
	if left := r.cached(".*"); len(left) > 0 {
		o.b.t.Errorf("round %d: left of dead runs: %v", o.rounds, left)
	}
}

// start starts the job where chance wants it, before a closed gate. Whatever an
// earlier process of the round has saved, it goes on from.
func (r *round) start(settings ...string) *process {
	r.b.t.Helper()
	before := r.at
	r.at = drawSpread(r.rng)
	if r.killed > 0 {
		change := "resumed with as many workers"
		if r.at.workers != before.workers {
			change = "resumed with another number of workers"
		}
		r.counts[change]++
		if before.kind != r.at.kind {
			r.counts["resumed by another strategy"]++
		}
	}
	if r.killed > 0 && r.rng.IntN(4) == 0 && len(r.cached("*")) > 0 && len(r.b.alive()) == 0 { // users clean up, and move to other machines
		if err := os.RemoveAll(filepath.Join(filepath.Dir(r.path), "cache")); err != nil {
			r.b.t.Fatal(err)
		}
		r.counts["resumed without the cache file"]++
	}
	if r.rng.IntN(4) == 0 {
		settings = append(settings, "network.kind=tcp")
	}
	r.gates = r.b.path(fmt.Sprintf("turnstile-%d-", len(r.b.runs)))
	r.gate = newTurnstile(r.b, r.gates, 0)
	args := trainArgs(r.path, slices.Concat(r.at.settings(), []string{"checkpoint.dir=" + r.dir, "--resume"}, settings)...)
	return r.b.start(fmt.Sprintf("round %d, %s", r.rounds, r.at), []string{"ROWCOUNT_GATE=" + r.gates}, args...)
}

// kill kills something of a process, or of a new one, at a random point. It returns
// the process if its launcher has started all ranks again, or was done before.
func (r *round) kill(p *process) *process {
	r.b.t.Helper()
	victim := "rank, restarted"
	if p == nil {
		victim = victims[r.rng.IntN(len(victims))]
		var settings []string
		if victim == "rank, restarted" {
			settings = []string{"restart.max=9"}
		}
		p = r.start(settings...)
	}
	attempt := p.restarts()
	if strings.HasPrefix(victim, "rank") {
		poll(r.b.t, "all ranks to be started", patience, func() bool { return len(p.pids(attempt)) == r.at.world() || !p.running() })
	}
	moment := r.moment(p)
	if !p.running() && r.newest() < r.job.steps() {
		r.b.t.Fatalf("%s ended before anything was killed: %v\n%s", p.name, p.cmd.ProcessState, tail(p.log.String()))
	}
	r.strike(p, victim, attempt)
	if !r.struck(p, victim, attempt) { // it had done all there was to do
		r.counts["too late"]++
		return p
	}
	r.kills++
	r.killed++
	for _, what := range []string{victim, moment, fmt.Sprintf("on %d workers", r.at.workers), r.at.kind} {
		r.counts["killed: "+what]++
	}
	r.story = append(r.story, fmt.Sprintf("%s, %s: %s", r.at, moment, victim))
	if victim == "rank, restarted" {
		return p
	}
	// A user may be quicker than the ranks that lost their launcher.
	if r.rng.IntN(2) == 0 {
		poll(r.b.t, "ranks to end with their launcher", patience, func() bool { return len(r.b.alive()) == 0 })
	}
	return nil
}

// strike sends the signal. Who is left may go on, as far as that is possible without
// the dead; those who are started again find the turnstile closed.
func (r *round) strike(p *process, victim string, attempt int) {
	before := r.gate
	if victim == "rank, restarted" {
		r.gate = newTurnstile(r.b, r.gates, attempt+1)
	}
	if victim == "launcher" || victim == "everything" {
		p.signal(syscall.SIGKILL)
	}
	rank := p.pids(attempt)[r.rng.IntN(r.at.world())]
	for _, pid := range r.b.alive() {
		if victim == "everything" || strings.HasPrefix(victim, "rank") && pid == rank {
			_ = syscall.Kill(pid, syscall.SIGKILL) // or it has ended meanwhile
		}
	}
	before.open()
}

// struck waits for what a kill must lead to, and says whether it came in time.
func (r *round) struck(p *process, victim string, attempt int) bool {
	r.b.t.Helper()
	if victim == "rank, restarted" {
		poll(r.b.t, p.name+" to start all ranks again", patience, func() bool { return p.restarts() > attempt || !p.running() })
		return p.restarts() > attempt
	}
	switch status := p.wait(); {
	case status == 0:
		return false
	case victim == "rank":
		p.checkVerdict(1, `was killed by signal 9`)
	case status != -1:
		r.b.t.Errorf("%s ended with status %d:\n%s", p.name, status, tail(p.log.String()))
	}
	return true
}

// restarts is how often the launcher has started all ranks again.
func (p *process) restarts() int { return strings.Count(p.log.String(), "starting all ranks again") }

// moment waits until a random point of the run, and names it.
func (r *round) moment(p *process) string {
	r.b.t.Helper()
	kind := r.rng.IntN(6)
	if r.job.small && len(r.cached("rows.gcache")) == 0 && r.rng.IntN(2) == 0 {
		return r.caching(p)
	}
	if kind == 0 {
		r.wait(p, 400*time.Millisecond)
		return "before the first step"
	}
	p.await(fmt.Sprintf(`generation %d starts`, p.restarts()+1))
	first := int(r.newest())
	left, per := int(r.job.steps())-first, r.at.updaters()
	due := (first/r.job.every + 1 + r.rng.IntN(3)) * r.job.every
	switch {
	case kind == 1 || left == 0:
		r.gate.admit(left * per)
		r.saving(p, int(r.job.steps()))
		return "at the end"
	case kind < 4 && due < first+left:
		r.gate.admit((due - first) * per)
		if r.saving(p, due) {
			return "in a checkpoint"
		}
		return "behind a checkpoint"
	}
	r.gate.admit(r.rng.IntN(left * per))
	poll(r.b.t, p.name+" to take its steps", patience, func() bool { return r.gate.passed() || !p.running() })
	return "in a step"
}

// caching waits until rows are being put into a cache file, a matter of a millisecond.
func (r *round) caching(p *process) string {
	r.b.t.Helper()
	for p.running() {
		switch {
		case len(r.cached(".rows.gcache.*")) > 0:
			return "making a cache file"
		case len(r.cached("rows.gcache")) > 0:
			return "behind a cache file"
		}
		runtime.Gosched()
	}
	return "making no cache file"
}

// wait waits for a random time below most, or until a process ends.
func (r *round) wait(p *process, most time.Duration) {
	timer := time.NewTimer(time.Duration(r.rng.Int64N(int64(most))))
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-p.done:
	}
}

// cached lists the files in the cache of the round.
func (r *round) cached(pattern string) []string {
	r.b.t.Helper()
	found, err := filepath.Glob(filepath.Join(filepath.Dir(r.path), "cache", "*", pattern))
	if err != nil {
		r.b.t.Fatal(err)
	}
	return found
}

// saving waits until a checkpoint is being written, and for a moment of the writing. It
// gives up after some seconds: a server that a worker needs nothing of may have lost its
// turn to one that is a step ahead.
func (r *round) saving(p *process, step int) bool {
	r.b.t.Helper()
	writing := func() bool {
		found, err := filepath.Glob(filepath.Join(r.dir, fmt.Sprintf(".tmp-*%d*", step)))
		return err == nil && len(found) > 0
	}
	end := time.Now().Add(patience / 8)
	poll(r.b.t, p.name+" to write a checkpoint", patience, func() bool {
		return writing() || r.newest() >= int64(step) || !p.running() || time.Now().After(end)
	})
	r.wait(p, 4*time.Millisecond)
	return writing()
}

// newest is the step of the newest checkpoint; 0: there is none.
func (r *round) newest() int64 {
	r.b.t.Helper()
	found, err := checkpoint.List(r.dir)
	if err != nil {
		r.b.t.Fatal(err)
	}
	if len(found) == 0 {
		return 0
	}
	var step int64
	if _, err := fmt.Sscanf(filepath.Base(found[0]), "step-%d", &step); err != nil {
		r.b.t.Fatal(err)
	}
	return step
}

// checkUses reads how often each row was used in each epoch.
func (r *round) checkUses() {
	r.b.t.Helper()
	c, _, err := checkpoint.Latest(r.dir)
	if err != nil || c == nil {
		r.b.t.Fatalf("round %d: no checkpoint: %v", r.rounds, err)
	}
	if c.Manifest.Step != r.job.steps() {
		r.b.t.Errorf("round %d: the last checkpoint is of step %d, want %d", r.rounds, c.Manifest.Step, r.job.steps())
	}
	state, err := params.Read(c)
	if err != nil {
		r.b.t.Fatalf("round %d: %v", r.rounds, err)
	}
	if err := r.job.check(state["uses"].F64()); err != nil {
		r.b.t.Errorf("round %d: %v", r.rounds, err)
	}
}
