//go:build unix

package chaos

import (
	"fmt"
	"regexp"
	"slices"
	"syscall"
	"testing"
	"time"
)

// underWay starts an endless job and returns when every rank works, with the
// processes by rank.
func underWay(b *bench, s spec, settings ...string) (*process, map[int]int) {
	b.t.Helper()
	p := b.train(s.name, s.write(b), append(endless(), settings...)...)
	p.await(`generation 1 starts`)
	p.await(`step [1-9]`)
	return p, p.pids(0)
}

// verdict returns the error that a process ended with: its last words, from the
// program's name on.
func (p *process) verdict() string {
	p.b.t.Helper()
	at := regexp.MustCompile(`(?m)^gangline: `).FindAllStringIndex(p.log.String(), -1)
	if len(at) != 1 {
		p.b.t.Errorf("%s says %d errors, want one:\n%s", p.name, len(at), tail(p.log.String()))
		return ""
	}
	return p.log.String()[at[0][0]:]
}

// checkVerdict waits for the end and compares status and error.
func (p *process) checkVerdict(status int, words ...string) {
	p.b.t.Helper()
	if got := p.wait(); got != status {
		p.b.t.Errorf("%s: exit status %d, want %d:\n%s", p.name, got, status, tail(p.log.String()))
	}
	text := p.verdict()
	for _, w := range words {
		if !regexp.MustCompile(w).MatchString(text) {
			p.b.t.Errorf("%s: the error lacks %q:\n%s", p.name, w, text)
		}
	}
}

// TestKilledRankIsNamed proves that a rank that is killed ends the job on all
// others, by themselves and within the limit, with an error that names it.
func TestKilledRankIsNamed(t *testing.T) {
	var ends []time.Duration
	for _, tc := range []struct {
		job  string
		rank int
		name string
	}{
		{"logistic-allreduce", 0, "worker 0"},
		{"ctr-allreduce", 1, "worker 1"},
		{"mlp-zero", 2, "worker 2"},
		{"ctr-ps", 1, "worker 1"},
		{"ctr-ps", 2, "server 0"},
		{"table-ps", 3, "server 1"},
	} {
		t.Run(tc.job+" "+tc.name, func(t *testing.T) {
			b := newBench(t)
			writeLines(b)
			p, pids := underWay(b, specOf(tc.job))
			begin := time.Now()
			if err := syscall.Kill(pids[tc.rank], syscall.SIGKILL); err != nil {
				t.Fatal(err)
			}
			p.checkVerdict(1, fmt.Sprintf(`^gangline: %s \(rank %d, pid %d\) was killed by signal 9 \(killed\) before it was done`, tc.name, tc.rank, pids[tc.rank]))
			ends = append(ends, p.ended.Sub(begin))
			for rank, pid := range pids {
				if rank != tc.rank {
					p.checkSays(fmt.Sprintf(`\(rank %d, pid %d\) ended with exit status 1`, rank, pid))
				}
			}
			if took := p.ended.Sub(begin); took > endLimit {
				t.Errorf("the job ended after %v, the limit is %v", took, endLimit)
			}
		})
	}
	slices.Sort(ends)
	t.Logf("jobs had ended after %v", ends)
}

// TestPausedRankIsNamed proves that a rank that is there but does not move is
// named, with the task that waited for it, and that it is not left behind.
func TestPausedRankIsNamed(t *testing.T) {
	for _, tc := range []struct {
		job  string
		rank int
		says string
	}{
		{"ctr-allreduce", 1, `rank 0: step \d+: task \d+ (collective|commit) "[^"]+" on \S+: waited \S+ for rank 1, silent for \S+:`},
		{"ctr-ps", 1, `rank 0: step \d+: task \d+ (push|pull|commit) "[^"]+" on \S+: waited \S+ for rank 1, silent for \S+:`},
		{"mlp-ps", 2, `rank [01]: step \d+: task \d+ (push|pull) "[^"]+" on store.0: waited \S+ for rank 2, silent for \S+:`},
	} {
		t.Run(fmt.Sprintf("%s rank %d", tc.job, tc.rank), func(t *testing.T) {
			t.Parallel() // they wait most of the time
			b := newBench(t)
			writeLines(b)
			p, pids := underWay(b, specOf(tc.job), "network.task_timeout=2s")
			if err := syscall.Kill(pids[tc.rank], syscall.SIGSTOP); err != nil {
				t.Fatal(err)
			}
			p.checkVerdict(1, tc.says)
			p.checkSays(fmt.Sprintf(`msg="killed .*did not end by itself.*" rank=%d pid=%d`, tc.rank, pids[tc.rank]))
		})
	}
}

// TestInterrupted proves that a signal to the launcher ends all, wherever it is.
func TestInterrupted(t *testing.T) {
	for _, tc := range []struct {
		signal syscall.Signal
		job    string
	}{{syscall.SIGINT, "ctr-ps"}, {syscall.SIGTERM, "logistic-allreduce"}} {
		t.Run(tc.signal.String()+" "+tc.job, func(t *testing.T) {
			b := newBench(t)
			writeLines(b)
			p, pids := underWay(b, specOf(tc.job), "restart.max=5")
			begin := time.Now()
			p.signal(tc.signal)
			p.checkVerdict(1, `^gangline: [^\n]*interrupted[^\n]*`+tc.signal.String())
			if took := p.ended.Sub(begin); took > endLimit {
				t.Errorf("it took %v", took)
			}
			for rank, pid := range pids {
				p.checkSays(fmt.Sprintf(`\(rank %d, pid %d\) ended with exit status 1`, rank, pid))
			}
		})
	}
	t.Run("at once", func(t *testing.T) {
		b := newBench(t)
		writeLines(b)
		p := b.train("at once", specOf("ctr-ps").write(b), endless()...)
		p.await(`msg="started `)
		p.signal(syscall.SIGTERM)
		p.checkVerdict(1, `interrupted`)
	})
}

// TestKilledLauncher proves that ranks end with their launcher, even one that is
// paused meanwhile.
func TestKilledLauncher(t *testing.T) {
	b := newBench(t)
	writeLines(b)
	p, pids := underWay(b, specOf("ctr-ps"))
	if err := syscall.Kill(pids[1], syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	begin := time.Now()
	p.signal(syscall.SIGKILL)
	if status := p.wait(); status != -1 {
		t.Errorf("the launcher ended with status %d", status)
	}
	poll(t, "ranks to end with their launcher", endLimit, func() bool { return len(b.alive()) == 0 })
	t.Logf("ranks were gone after %v", time.Since(begin))
}
