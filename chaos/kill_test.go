//go:build unix

package chaos

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// killsDefault is how many kills a plain run of the tests survives.
const killsDefault = 6

// setting reads a number from the environment.
func setting(t *testing.T, name string, fallback uint64) uint64 {
	t.Helper()
	text := os.Getenv(name)
	if text == "" {
		return fallback
	}
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		t.Fatalf("%s=%s: %v", name, text, err)
	}
	return n
}

// reference is what a run gives that nothing happens to.
type reference struct {
	sha      string
	duration time.Duration // from the start of its ranks to the end
}

// killer kills at random moments and keeps count.
type killer struct {
	b       *bench
	rng     *rand.Rand
	refs    map[string]reference
	trials  int
	landed  map[string]int // by role
	writing int            // of these, while a checkpoint was written
	missed  int            // the run was over before
	ends    []time.Duration
}

// TestKilledAtRandomMoments kills workers, servers and launchers with signal 9 at
// random moments. Every run must end, after restarts or --resume, with the
// parameters of an undisturbed run, bit for bit.
func TestKilledAtRandomMoments(t *testing.T) {
	want := int(setting(t, "GANGLINE_CHAOS_KILLS", killsDefault))
	seed := setting(t, "GANGLINE_CHAOS_SEED", rand.Uint64())
	t.Logf("GANGLINE_CHAOS_SEED=%d", seed)
	b := newBench(t)
	writeLines(b)
	k := &killer{b: b, rng: rand.New(rand.NewPCG(seed, 0)), refs: map[string]reference{}, landed: map[string]int{}}
	roles := []string{"worker", "server", "launcher"}
	for n := 0; n < want && k.trials < 4*want && !t.Failed(); n = k.kills() {
		k.trial(roles[k.trials%len(roles)])
	}
	if n := k.kills(); n < want {
		t.Errorf("only %d of %d kills came before the end of the run", n, want)
	}
	slices.Sort(k.ends)
	t.Logf("%d kills in %d runs: %v, %d of them while a checkpoint was written; %d came too late", k.kills(), k.trials, k.landed, k.writing, k.missed)
	if len(k.ends) > 0 {
		t.Logf("all others had ended after: median %v, max %v", k.ends[len(k.ends)/2], k.ends[len(k.ends)-1])
	}
}

// kills counts those that came in time.
func (k *killer) kills() int {
	n := 0
	for _, c := range k.landed {
		n += c
	}
	return n
}

// reference runs a job undisturbed, once.
func (k *killer) reference(s spec) reference {
	k.b.t.Helper()
	if r, ok := k.refs[s.name]; ok {
		return r
	}
	p := k.b.train("undisturbed "+s.name, s.write(k.b), "checkpoint.dir="+k.b.path("undisturbed-"+s.name))
	poll(k.b.t, "all ranks to be started", patience, func() bool { return len(p.pids(0)) == s.world() || !p.running() })
	begin := time.Now()
	r := reference{sha: p.result().ParamsSHA256}
	r.duration = p.ended.Sub(begin)
	k.refs[s.name] = r
	return r
}

// trial runs one job, kills one of its processes once or more often, and lets it
// end.
func (k *killer) trial(role string) {
	var fit []spec
	for _, s := range specs() {
		if s.servers > 0 || role != "server" {
			fit = append(fit, s)
		}
	}
	s := fit[k.rng.IntN(len(fit))]
	ref := k.reference(s)
	k.trials++
	name := fmt.Sprintf("%d %s %s", k.trials, s.name, role)
	dir := k.b.path(fmt.Sprintf("checkpoints-%d", k.trials))
	settings := []string{"checkpoint.dir=" + dir, "restart.max=3"}
	p := k.b.train(name, s.write(k.b), settings...)
	if role == "launcher" {
		p = k.killLaunchers(p, s, dir, ref, settings)
	} else {
		k.killRanks(p, s, dir, role, ref)
	}
	if got := p.result(); got.ParamsSHA256 != ref.sha {
		k.b.t.Errorf("%s: parameters %s, undisturbed %s", name, got.ParamsSHA256, ref.sha)
	}
	keep := 2
	if _, after, ok := strings.Cut(s.text, "keep: "); ok {
		keep = int(after[0] - '0')
	}
	k.b.checkCheckpoints(dir, keep)
	k.b.checkClean()
}

// moment waits until a random moment of the run, biased towards the writing of
// checkpoints: at 2 of 5 it waits on until one is being written. It reports
// whether that is so.
func (k *killer) moment(p *process, dir string, ref reference) (writing bool) {
	at := time.Duration(k.rng.Float64() * float64(ref.duration))
	wait := k.rng.IntN(5) < 2
	timer := time.NewTimer(at)
	defer timer.Stop()
	select {
	case <-p.done:
		return false
	case <-timer.C:
	}
	for end := time.Now().Add(ref.duration); p.running(); time.Sleep(glance / 10) {
		found, err := filepath.Glob(filepath.Join(dir, ".tmp-*"))
		if err != nil {
			k.b.t.Fatal(err)
		}
		if len(found) > 0 || !wait || time.Now().After(end) {
			return len(found) > 0
		}
	}
	return false
}

// count books a kill, and how long the others took to end.
func (k *killer) count(role string, writing bool, took time.Duration) {
	k.landed[role]++
	if writing {
		k.writing++
	}
	k.ends = append(k.ends, took)
	if took > endLimit {
		k.b.t.Errorf("after the kill of a %s the others took %v to end, the limit is %v", role, took, endLimit)
	}
}

// more says whether to kill once again in the same run.
func (k *killer) more() bool { return k.rng.IntN(4) == 0 }

// killRanks kills a rank of a role; the launcher is to start all again.
func (k *killer) killRanks(p *process, s spec, dir, role string, ref reference) {
	lo, n := 0, s.workers
	if role == "server" {
		lo, n = s.workers, s.servers
	}
	for attempt := 0; ; attempt++ {
		poll(k.b.t, "all ranks to be started", patience, func() bool { return len(p.pids(attempt)) == s.world() || !p.running() })
		victim := lo + k.rng.IntN(n)
		writing := k.moment(p, dir, ref)
		pid, running := p.pids(attempt)[victim]
		if !running || syscall.Kill(pid, syscall.SIGKILL) != nil {
			k.missed++
			return
		}
		begin := time.Now()
		again := func() int { return strings.Count(p.log.String(), "starting all ranks again") }
		poll(k.b.t, p.name+" to start all ranks again, or to end", patience, func() bool { return again() > attempt || !p.running() })
		took := time.Since(begin)
		if again() <= attempt { // it had done all there was to do
			k.missed++
			return
		}
		k.count(role, writing, took)
		p.checkSays(fmt.Sprintf(`starting all ranks again.*%s %d \(rank %d, pid %d\) was killed by signal 9`, role, victim-lo, victim, pid))
		if attempt == 2 || !k.more() {
			return
		}
	}
}

// killLaunchers kills the launcher, waits until its ranks are gone, and resumes.
// It returns the run that is left to end.
func (k *killer) killLaunchers(p *process, s spec, dir string, ref reference, settings []string) *process {
	for {
		writing := k.moment(p, dir, ref)
		p.signal(syscall.SIGKILL)
		begin := time.Now()
		if p.wait() != -1 {
			k.missed++
			return p
		}
		poll(k.b.t, "ranks to end with their launcher", patience, func() bool { return len(k.b.alive()) == 0 })
		k.count("launcher", writing, time.Since(begin))
		p = k.b.train(p.name+" resumed", s.write(k.b), append(settings, "--resume")...)
		if !k.more() {
			return p
		}
	}
}
