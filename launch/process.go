package launch

import (
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"sync"
	"time"
)

// drainWait is how long the output of an ended process is waited for, if
// something it started holds the pipe open.
const drainWait = 500 * time.Millisecond

// process is one rank's process.
type process struct {
	rank   int
	name   string
	cmd    *exec.Cmd
	output *lines        // its stderr, or both
	stdout *lines        // nil: output has it
	cut    func() error  // its lifeline; nil before it was started
	done   chan struct{} // closed when it has been waited for, or never started

	mu     sync.Mutex
	pid    int
	ended  bool // its pid may belong to another soon
	killed bool
	state  *os.ProcessState
}

// newProcess prepares the process of a place.
// out takes its stderr, apart its stdout; nil: out takes both.
func newProcess(cfg *Config, place Place, out, apart *together) *process {
	p := &process{rank: place.Rank, name: cfg.Names(place.Rank), done: make(chan struct{})}
	p.output = newLines(out, p.name)
	p.cmd = exec.Command(cfg.Exe, cfg.Args(place.Rank, place.Attempt)...)
	p.cmd.Dir = cfg.Dir
	p.cmd.Env = append(slices.Clip(cfg.Env), place.Environ()...)
	p.cmd.Env = append(p.cmd.Env, EnvParent+"="+strconv.Itoa(os.Getpid()))
	p.cmd.Stdout, p.cmd.Stderr = p.output, p.output
	if apart != nil {
		p.stdout = newLines(apart, p.name)
		p.cmd.Stdout = p.stdout
	}
	p.cmd.WaitDelay = drainWait
	p.cmd.SysProcAttr = attributes()
	return p
}

// start starts it. Its stdin stays open until it ends: the lifeline. The calling
// goroutine must be locked to its thread and stay until the process has ended,
// because the parent-death signal is sent when that thread ends.
func (p *process) start() error {
	lifeline, err := p.cmd.StdinPipe()
	if err != nil {
		return fmt.Errorf("launch: %s: %w", p.name, err)
	}
	if err := p.cmd.Start(); err != nil {
		lifeline.Close()
		return fmt.Errorf("launch: start %s: %w", p.name, err)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.pid, p.cut = p.cmd.Process.Pid, lifeline.Close
	return nil
}

// hangUp tells it that the launcher has no more use for it: see WatchParent.
func (p *process) hangUp() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.cut != nil {
		_ = p.cut() // it may have ended just now, which is as good
	}
}

// wait returns when it has ended and its output was read. What it started and
// left behind is killed.
func (p *process) wait() {
	defer close(p.done)
	if awaitEnd(p.pid) { // still a zombie: nobody else has its pid
		p.mu.Lock()
		killGroup(p.pid)
		p.ended = true
		p.mu.Unlock()
	}
	// The error repeats what the state says, or that drainWait was over.
	_ = p.cmd.Wait()
	p.output.flush()
	if p.stdout != nil {
		p.stdout.flush()
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.ended = true
	p.state = p.cmd.ProcessState
}

// kill ends it and what it started, if it has not ended. It does not wait.
func (p *process) kill() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.pid == 0 || p.ended {
		return false
	}
	p.killed = true
	killGroup(p.pid)
	// It may have ended just now, which is as good.
	_ = p.cmd.Process.Kill()
	return true
}

// sentence says how it ended; after done.
func (p *process) sentence() string {
	if p.state == nil {
		return fmt.Sprintf("%s (rank %d, pid %d) could not be waited for", p.name, p.rank, p.pid)
	}
	return fmt.Sprintf("%s (rank %d, pid %d) %s", p.name, p.rank, p.pid, ending(p.state))
}

// summary is what the outcome keeps; after done.
func (p *process) summary() Process {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := Process{Rank: p.rank, Name: p.name, PID: p.pid, ExitStatus: -1, Killed: p.killed}
	if p.state != nil {
		s.ExitStatus, s.MaxRSS = p.state.ExitCode(), maxRSS(p.state)
	}
	return s
}

// request says whether it ended because its request was wrong. The Go runtime
// ends a crashed program with the same status.
func (p *process) request() bool {
	_, crash := p.output.last()
	return p.summary().ExitStatus == ExitRequest && !crash
}

// diedAlone says whether it ended by a crash or a signal that we did not send.
func (p *process) diedAlone() bool {
	s := p.summary()
	_, crash := p.output.last()
	return s.PID != 0 && !s.Killed && (s.ExitStatus == -1 || crash && s.ExitStatus != 0)
}
