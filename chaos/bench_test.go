//go:build unix

package chaos

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/gangline/gangline/report"
)

const (
	// patience is how long a test waits for what must come; far more than any
	// machine needs.
	patience = 2 * time.Minute
	// endLimit is how long a job may take to end after a rank is lost.
	endLimit = 10 * time.Second
	// glance is the time between two looks at something that is waited for.
	glance = time.Millisecond
)

// poll looks until ok says yes.
func poll(t *testing.T, what string, limit time.Duration, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(limit); !ok(); time.Sleep(glance) {
		if time.Now().After(end) {
			t.Fatalf("waited %v in vain: %s", limit, what)
		}
	}
}

// bench is where one test runs its processes: with a program file of its own,
// by which they are found again, and a directory for temporary files.
type bench struct {
	t    *testing.T
	exe  string
	dir  string // data, jobs, checkpoints, reports
	tmp  string // what processes take for /tmp
	runs []*process
}

func newBench(t *testing.T) *bench {
	t.Helper()
	return newBenchOf(t, program)
}

// newBenchOf is newBench for another program.
func newBenchOf(t *testing.T, program string) *bench {
	t.Helper()
	b := &bench{t: t, dir: t.TempDir()}
	// go test takes an old result for this one unless it sees that we looked.
	if _, err := os.ReadDir("../cmd/gangline"); err != nil {
		t.Fatal(err)
	}
	b.tmp = filepath.Join(b.dir, "tmp")
	b.exe = filepath.Join(b.dir, "gangline")
	if err := os.Mkdir(b.tmp, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Link(program, b.exe); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.finish)
	return b
}

// path is that of a file of this bench.
func (b *bench) path(name string) string { return filepath.Join(b.dir, name) }

// write makes a file and returns its path.
func (b *bench) write(name, text string) string {
	b.t.Helper()
	if err := os.WriteFile(b.path(name), []byte(text), 0o644); err != nil {
		b.t.Fatal(err)
	}
	return b.path(name)
}

// pidText finds processes in logs, where the system does not list them by program.
var pidText = regexp.MustCompile(`\bpid=(\d+)`)

// alive returns the processes of this bench that run.
func (b *bench) alive() []int {
	var pids []int
	if runtime.GOOS != "linux" {
		for _, p := range b.runs {
			for _, m := range pidText.FindAllStringSubmatch(p.log.String(), -1) {
				pid, _ := strconv.Atoi(m[1])
				if syscall.Kill(pid, 0) == nil {
					pids = append(pids, pid)
				}
			}
		}
		return pids
	}
	links, err := filepath.Glob("/proc/[0-9]*/exe")
	if err != nil {
		b.t.Fatal(err)
	}
	for _, link := range links {
		// One that has ended meanwhile, or is another user's, has no target.
		if target, err := os.Readlink(link); err == nil && target == b.exe {
			pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(link)))
			pids = append(pids, pid)
		}
	}
	return pids
}

// checkClean fails if processes, temporary files or sockets are left.
func (b *bench) checkClean() {
	b.t.Helper()
	if pids := b.alive(); len(pids) > 0 {
		b.t.Errorf("processes are left: %v", pids)
	}
	files, err := os.ReadDir(b.tmp)
	if err != nil {
		b.t.Fatal(err)
	}
	for _, f := range files {
		b.t.Errorf("a temporary file is left: %s", f)
	}
}

// checkCheckpoints fails if a directory of checkpoints holds anything but whole
// checkpoints, or more than keep.
func (b *bench) checkCheckpoints(dir string, keep int) {
	b.t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		b.t.Fatal(err)
	}
	if len(entries) > keep {
		b.t.Errorf("%d checkpoints are left, want %d at most: %v", len(entries), keep, entries)
	}
	for _, e := range entries {
		if !strings.HasPrefix(e.Name(), "step-") {
			b.t.Errorf("left in the checkpoint directory: %s", e.Name())
		}
	}
}

// finish ends what runs, which is a failure, and keeps the logs of a failed test.
func (b *bench) finish() {
	for _, p := range b.runs {
		select {
		case <-p.done:
		default:
			b.t.Errorf("%s still runs", p.name)
			p.signal(syscall.SIGKILL)
			<-p.done
		}
	}
	b.checkClean()
	for _, pid := range b.alive() {
		_ = syscall.Kill(pid, syscall.SIGKILL)
	}
	if !b.t.Failed() {
		return
	}
	kept, err := os.MkdirTemp("", "gangline-chaos-logs-")
	if err != nil {
		b.t.Log(err)
		return
	}
	for i, p := range b.runs {
		file := filepath.Join(kept, fmt.Sprintf("%03d-%s.log", i, strings.ReplaceAll(p.name, " ", "-")))
		if err := os.WriteFile(file, []byte(p.log.String()), 0o644); err != nil {
			b.t.Log(err)
		}
	}
	b.t.Logf("logs are kept in %s", kept)
}

// transcript takes what a process writes.
type transcript struct {
	mu   sync.Mutex
	text []byte
}

// Write implements io.Writer.
func (r *transcript) Write(p []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.text = append(r.text, p...)
	return len(p), nil
}

// String returns all that was written.
func (r *transcript) String() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return string(r.text)
}

// process is a gangline that a test started.
type process struct {
	b      *bench
	name   string
	cmd    *exec.Cmd
	log    *transcript
	report string
	done   chan struct{}
	ended  time.Time // after done
}

// start starts the program; train and eval get a report besides.
func (b *bench) start(name string, env []string, args ...string) *process {
	b.t.Helper()
	return b.startAs(name, nil, env, args, b.exe)
}

// startAs starts the program through another one, which gets the arguments after
// its own.
func (b *bench) startAs(name string, as *syscall.SysProcAttr, env, args []string, through ...string) *process {
	b.t.Helper()
	p := &process{b: b, name: name, log: &transcript{}, done: make(chan struct{})}
	p.report = b.path(fmt.Sprintf("report-%d.json", len(b.runs)))
	all := slices.Concat(through[1:], args)
	if args[0] == "train" || args[0] == "eval" {
		all = append(all, "--report", p.report)
	}
	p.cmd = exec.Command(through[0], all...)
	p.cmd.Dir, p.cmd.SysProcAttr = b.dir, as
	p.cmd.Env = append(append(environ(), "TMPDIR="+b.tmp), env...)
	p.cmd.Stdout, p.cmd.Stderr = p.log, p.log
	if err := p.cmd.Start(); err != nil {
		b.t.Fatal(err)
	}
	b.runs = append(b.runs, p)
	go func() {
		defer close(p.done)
		_ = p.cmd.Wait() // the state says it
		p.ended = time.Now()
	}()
	return p
}

// train starts a job with all decisions logged.
func (b *bench) train(name, job string, settings ...string) *process {
	b.t.Helper()
	return b.start(name, nil, trainArgs(job, settings...)...)
}

func trainArgs(job string, settings ...string) []string {
	args := []string{"train", job, "-v", "--progress", "plain"}
	for _, s := range settings {
		if strings.HasPrefix(s, "--") {
			args = append(args, s)
			continue
		}
		args = append(args, "--set", s)
	}
	return args
}

func (p *process) signal(s syscall.Signal) { _ = p.cmd.Process.Signal(s) }

func (p *process) running() bool {
	select {
	case <-p.done:
		return false
	default:
		return true
	}
}

// wait returns the exit status, -1 after a signal.
func (p *process) wait() int {
	p.b.t.Helper()
	poll(p.b.t, p.name+" to end", patience, func() bool { return !p.running() })
	return p.cmd.ProcessState.ExitCode()
}

// await waits until the log matches.
func (p *process) await(pattern string) {
	p.b.t.Helper()
	re := regexp.MustCompile(pattern)
	poll(p.b.t, p.name+" to write "+pattern, patience, func() bool {
		running := p.running() // before the look, so that the last words are seen
		found := re.MatchString(p.log.String())
		if !found && !running {
			p.b.t.Fatalf("%s ended (%v) without writing %s:\n%s", p.name, p.cmd.ProcessState, pattern, tail(p.log.String()))
		}
		return found
	})
}

// startedText is how the launcher says that it started a rank.
var startedText = regexp.MustCompile(`msg="started (worker|server) \d+" rank=(\d+) pid=(\d+) attempt=(\d+)`)

// pids returns the processes of an attempt by rank, as far as they were started.
func (p *process) pids(attempt int) map[int]int {
	out := map[int]int{}
	for _, m := range startedText.FindAllStringSubmatch(p.log.String(), -1) {
		if m[4] == strconv.Itoa(attempt) {
			rank, _ := strconv.Atoi(m[2])
			out[rank], _ = strconv.Atoi(m[3])
		}
	}
	return out
}

// result waits for a run to end well and returns its report.
func (p *process) result() *report.Report {
	p.b.t.Helper()
	if status := p.wait(); status != 0 {
		p.b.t.Fatalf("%s ended with %v:\n%s", p.name, p.cmd.ProcessState, tail(p.log.String()))
	}
	var r report.Report
	p.read(&r)
	return &r
}

// read fills what --report wrote.
func (p *process) read(into any) {
	p.b.t.Helper()
	text, err := os.ReadFile(p.report)
	if err != nil {
		p.b.t.Fatal(err)
	}
	if err := json.Unmarshal(text, into); err != nil {
		p.b.t.Fatal(err)
	}
}

// tail returns the last lines of a text.
func tail(text string) string {
	const n = 15
	lines := strings.Split(strings.TrimRight(text, "\n"), "\n")
	return strings.Join(lines[max(0, len(lines)-n):], "\n")
}

// checkSays fails if a process's words lack some.
func (p *process) checkSays(words ...string) {
	p.b.t.Helper()
	text := p.log.String()
	for _, w := range words {
		if !regexp.MustCompile(w).MatchString(text) {
			p.b.t.Errorf("%s does not say %q:\n%s", p.name, w, tail(text))
		}
	}
}
