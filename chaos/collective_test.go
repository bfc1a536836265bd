//go:build linux

package chaos

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/gangline/gangline/coord/crew"
)

const (
	// roundsDefault is how many ranks a plain run of the tests hits.
	roundsDefault = 24
	// lifetime is how long a rank may take to say how it ended, on a busy machine.
	lifetime = 30 * time.Second
	// strikeDeadline of a call is the shortest in which the verdict has all of its time, of
	// which the greater part is for a busy machine.
	strikeDeadline = 2 * crew.VerdictWait
	// deathKnown is within which all ranks of a host know of a process that has died.
	deathKnown = time.Second
)

// kinds are what happens to a rank, and works what the ranks do meanwhile: calls of all
// kinds, calls on groups that overlap, or a training job whose gradients go in buckets.
func kinds() []string { return []string{"kill", "stop", "cut", "slow"} }
func works() []string { return []string{"calls", "groups", "job"} }

// TestCollectiveFaults kills, stops, or cuts off any rank of a group in the middle of
// its calls. Every rank that lives must return an error that names the right one, the
// same text on all that can reach the coordinator, and leave nothing behind. A rank that
// is slow, but not for as long as the deadline, is waited for: nobody says anything until
// it is killed after that.
func TestCollectiveFaults(t *testing.T) {
	rounds := int(setting(t, "GANGLINE_CHAOS_ROUNDS", roundsDefault))
	seed := setting(t, "GANGLINE_CHAOS_SEED", rand.Uint64())
	t.Logf("GANGLINE_CHAOS_SEED=%d", seed)
	took, hit := map[string][]time.Duration{}, map[string]int{}
	for i := range rounds {
		if t.Failed() {
			break
		}
		rng := rand.New(rand.NewPCG(seed, uint64(i)))
		f := &fault{world: 3 + rng.IntN(2), kind: kinds()[i%len(kinds())], work: works()[i/len(kinds())%len(works())], deadline: strikeDeadline}
		if f.kind == "slow" {
			f.deadline = 2 * lifetime
		}
		f.victim = rng.IntN(f.world)
		f.wait = time.Duration(rng.IntN(100_000)) * time.Microsecond
		f.pause = time.Duration(100+rng.IntN(1000)) * time.Millisecond
		f.seed = rng.Uint64()
		d := f.strike(t)
		took[f.kind] = append(took[f.kind], d...)
		hit[f.kind+" "+f.work]++
	}
	t.Logf("rounds: %v", hit)
	for kind, all := range took {
		slices.Sort(all)
		t.Logf("%s: %d ranks had their error after: median %v, max %v", kind, len(all), all[len(all)/2], all[len(all)-1])
	}
}

// fault is what happens to whom.
type fault struct {
	world, victim int
	kind, work    string
	wait          time.Duration
	pause         time.Duration // of one that is slow
	deadline      time.Duration
	seed          uint64
}

// String describes it for a failure.
func (f *fault) String() string {
	return fmt.Sprintf("%s rank %d of %d at its %s after %v, seed %d", f.kind, f.victim, f.world, f.work, f.wait, f.seed)
}

// chaosRank is the process of a rank.
type chaosRank struct {
	cmd   *exec.Cmd
	out   *bufio.Reader
	errs  strings.Builder
	said  chan ending // what it said, closed if it says no more
	ready chan struct{}
}

// strike starts the ranks, lets the fault happen and judges what the others say. It
// returns after what time each had its error.
func (f *fault) strike(t *testing.T) []time.Duration {
	t.Helper()
	tmp := t.TempDir()
	ranks := f.start(t, tmp)
	defer func() {
		for _, r := range ranks {
			_ = r.cmd.Process.Kill() // it may have ended
			_ = r.cmd.Wait()
		}
	}()
	for i, r := range ranks {
		select {
		case <-r.ready:
		case <-time.After(lifetime):
			t.Fatalf("%v: rank %d did not begin: %s", f, i, r.errs.String())
		}
	}
	time.Sleep(f.wait) // the moment is what is tried
	if f.kind == "slow" {
		f.slow(t, ranks)
	}
	struck, busy := time.Now(), newMeter()
	signal := map[string]syscall.Signal{"kill": syscall.SIGKILL, "slow": syscall.SIGKILL, "stop": syscall.SIGSTOP, "cut": syscall.SIGUSR1}[f.kind]
	if err := ranks[f.victim].cmd.Process.Signal(signal); err != nil {
		t.Fatal(err)
	}
	var ends []ending
	for i, r := range ranks {
		if i == f.victim && f.kind != "cut" {
			continue
		}
		select {
		case e, ok := <-r.said:
			if !ok {
				t.Errorf("%v: rank %d said nothing of its end: %s", f, i, r.errs.String())
				continue
			}
			ends = append(ends, e)
		case <-time.After(lifetime):
			t.Errorf("%v: rank %d hangs: %s", f, i, r.errs.String())
		}
	}
	held := busy.stop()
	if f.kind == "stop" { // what it left is its own
		_ = ranks[f.victim].cmd.Process.Kill()
		<-ranks[f.victim].said
	}
	f.judge(t, ends)
	if left, err := os.ReadDir(tmp); err != nil || len(left) > 0 {
		t.Errorf("%v: left in the directory for temporary files: %v, %v", f, left, err)
	}
	var took []time.Duration
	for _, e := range ends {
		d := time.Unix(0, e.At).Sub(struck)
		// One that was cut off may not need what was cut until its deadline.
		bound := f.deadline
		if f.kind == "kill" || f.kind == "slow" {
			bound = deathKnown
		}
		// What happens goes through all ranks, and one that dies must run to do so; each may
		// be held up as long as this process was.
		if allowed := time.Duration(f.world+1) * held; d > bound+allowed {
			t.Errorf("%v: rank %d returned after %v, not within %v, and others held up this process for %v only: %s",
				f, e.Rank, d, bound, held, ranks[e.Rank].errs.String())
		}
		took = append(took, d)
	}
	return took
}

// meter measures how busy a machine is.
type meter struct{ quit, done chan time.Duration }

// newMeter starts to measure for how long this process does not run though it wants to: so
// long may one that reacts to something take more, than it would on a machine of its own.
func newMeter() *meter {
	m := &meter{make(chan time.Duration), make(chan time.Duration)}
	go func() {
		const nap = 20 * time.Millisecond
		late, last := time.Duration(0), time.Now()
		for {
			select {
			case <-m.quit:
				m.done <- late
				return
			case <-time.After(nap):
				now := time.Now()
				late, last = late+now.Sub(last)-nap, now
			}
		}
	}()
	return m
}

// stop returns what was measured.
func (m *meter) stop() time.Duration {
	close(m.quit)
	return <-m.done
}

// slow stops the victim for a while, which is far from the deadline, and sees that
// nobody minds.
func (f *fault) slow(t *testing.T, ranks []*chaosRank) {
	t.Helper()
	for _, s := range []syscall.Signal{syscall.SIGSTOP, syscall.SIGCONT} {
		if err := ranks[f.victim].cmd.Process.Signal(s); err != nil {
			t.Fatal(err)
		}
		time.Sleep(f.pause)
	}
	for i, r := range ranks {
		select {
		case e := <-r.said:
			t.Errorf("%v: rank %d gave up though rank %d was slow for %v only: %+v %s", f, i, f.victim, f.pause, e, r.errs.String())
		default:
		}
	}
}

// judge holds the errors against what happened.
func (f *fault) judge(t *testing.T, ends []ending) {
	t.Helper()
	victim := fmt.Sprintf("rank %d", f.victim)
	text := ""
	for _, e := range ends {
		if e.Left != "" {
			t.Errorf("%v: rank %d left: %s", f, e.Rank, e.Left)
		}
		named := e.Blamed == f.victim || slices.Contains(e.Missing, f.victim)
		if f.kind == "cut" { // a connection has two ends, both of which live
			named = strings.Contains(e.Text, victim) || e.Rank == f.victim || f.victim == 0 && strings.Contains(e.Text, "the coordinator")
		}
		if !named {
			t.Errorf("%v: rank %d blames rank %d, missing %v: %s", f, e.Rank, e.Blamed, e.Missing, e.Text)
		}
		if f.victim == 0 || e.Rank == f.victim { // who cannot reach the coordinator speaks for itself
			continue
		}
		if strings.Contains(e.Text, "the coordinator does not answer") { // on a machine that is far too busy
			t.Logf("%v: rank %d had no verdict in time: %s", f, e.Rank, e.Text)
			continue
		}
		if text == "" {
			text = e.Text
		}
		if e.Text != text {
			t.Errorf("%v: ranks say different things:\n%s\n%s", f, text, e.Text)
		}
	}
}

// start starts the ranks as a shell would.
func (f *fault) start(t *testing.T, tmp string) []*chaosRank {
	t.Helper()
	port := freePort(t)
	var ranks []*chaosRank
	for i := range f.world {
		exe, err := os.Executable()
		if err != nil {
			t.Fatal(err)
		}
		r := &chaosRank{cmd: exec.Command(exe), said: make(chan ending, 1), ready: make(chan struct{})}
		r.cmd.Env = append(environ(), "RANK="+strconv.Itoa(i), "WORLD_SIZE="+strconv.Itoa(f.world), "MASTER_ADDR=127.0.0.1",
			"MASTER_PORT="+strconv.Itoa(port), "TMPDIR="+tmp, rankSeed+"="+strconv.FormatUint(f.seed, 10), rankDeadline+"="+f.deadline.String(), rankWork+"="+f.work)
		r.cmd.Stderr = &r.errs
		r.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
		pipe, err := r.cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := r.cmd.Start(); err != nil {
			t.Fatal(err)
		}
		r.out = bufio.NewReader(pipe)
		go r.listen()
		ranks = append(ranks, r)
	}
	return ranks
}

// listen reads what a rank says until it ends.
func (r *chaosRank) listen() {
	defer close(r.said)
	line, err := r.out.ReadString('\n')
	if err != nil || line != "ready\n" {
		return
	}
	close(r.ready)
	var e ending
	if err := json.NewDecoder(r.out).Decode(&e); err == nil {
		r.said <- e
		_, _ = io.Copy(io.Discard, r.out)
	} else if !errors.Is(err, io.EOF) {
		r.said <- ending{Left: err.Error()}
	}
}

func freePort(t *testing.T) int {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	return ln.Addr().(*net.TCPAddr).Port
}
