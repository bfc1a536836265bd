package launch

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gangline/gangline/coord"
)

// safeBuffer is a writer for several goroutines.
type safeBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (b *safeBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

func (b *safeBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}

func config(t *testing.T, mode string) (Config, *safeBuffer) {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	out, logs := &safeBuffer{}, &safeBuffer{}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("output:\n%s\nlog:\n%s", out, logs)
		}
	})
	return Config{
		Exe: exe, World: 3, Stderr: out,
		// The race detector makes every program sleep for a second at its end.
		Env:    append(os.Environ(), "GORACE=atexit_sleep_ms=0"),
		Args:   func(int, int) []string { return []string{mode} },
		Names:  func(rank int) string { return fmt.Sprintf("worker %d", rank) },
		Logger: slog.New(slog.NewTextHandler(logs, nil)),
	}, out
}

// checkGone fails if a process of the outcome is left.
func checkGone(t *testing.T, out Outcome) {
	t.Helper()
	for _, p := range out.Processes {
		if p.PID != 0 && alive(p.PID) {
			t.Errorf("%s (pid %d) is left", p.Name, p.PID)
		}
	}
}

// victimError returns the RankError in err and checks that it names the victim.
func victimError(t *testing.T, err error, kind coord.Kind, words ...string) *RankError {
	t.Helper()
	failed, ok := errors.AsType[*RankError](err)
	if !ok {
		t.Fatalf("got %v (%T), want a RankError", err, err)
	}
	if failed.Cause.Rank != victim || failed.Cause.Kind != kind {
		t.Errorf("error names rank %d, %s; want %d, %s", failed.Cause.Rank, failed.Cause.Kind, victim, kind)
	}
	for _, word := range words {
		if !strings.Contains(err.Error(), word) {
			t.Errorf("error lacks %q:\n%v", word, err)
		}
	}
	return failed
}

func TestRunToTheEnd(t *testing.T) {
	cfg, _ := config(t, "ok")
	cfg.Coordinator.Generation = 8
	before := descriptors(t)
	out, err := Run(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	if after := descriptors(t); after > before {
		t.Errorf("%d descriptors before, %d after", before, after)
	}
	checkGone(t, out)
	if out.Generation != 8 || len(out.Processes) != 3 || len(out.Restarts) != 0 {
		t.Errorf("outcome %+v", out)
	}
	for rank, p := range out.Processes {
		if want := fmt.Sprintf("rank %d attempt 0", rank); string(out.Reports[rank]) != want {
			t.Errorf("report of rank %d is %q, want %q", rank, out.Reports[rank], want)
		}
		if p.ExitStatus != 0 || p.Killed || p.PID == 0 {
			t.Errorf("process %+v", p)
		}
		if tellsRSS() && p.MaxRSS < 1<<20 {
			t.Errorf("rank %d: peak memory is %d bytes", rank, p.MaxRSS)
		}
	}
}

// TestFailures proves that each way to fail names the rank, with what it wrote.
func TestFailures(t *testing.T) {
	for _, tc := range []struct {
		mode  string
		kind  coord.Kind
		words []string
		lines bool
	}{
		{"crash", coord.ProcessExited, []string{"worker 1 (rank 1, pid ", "ended with exit status 3", "last lines of worker 1:\n  first line\n  second line\n  the end"}, true},
		{"panic", coord.ProcessExited, []string{"worker 1 (rank 1, pid ", "ended with exit status 2", "\n  panic: out of cheese"}, true},
		{"quit", coord.ProcessExited, []string{"worker 1 (rank 1, pid ", "exit status 0 before it was done"}, false},
		{"fail", coord.Failed, []string{"worker 1: rank 1 (worker, host ", "failed: loss is NaN"}, false},
		{"mismatch", coord.Mismatch, []string{"rank 1 has plan plan of 1"}, false},
	} {
		t.Run(tc.mode, func(t *testing.T) {
			cfg, printed := config(t, tc.mode)
			if tc.mode == "mismatch" {
				cfg.Restart.Max = 3 // which cannot help
			}
			out, err := Run(t.Context(), cfg)
			failed := victimError(t, err, tc.kind, tc.words...)
			if (len(failed.Lines) > 0) != tc.lines || failed.Request {
				t.Errorf("error %+v", failed)
			}
			if len(out.Restarts) > 0 {
				t.Errorf("restarts %+v", out.Restarts)
			}
			if tc.mode == "crash" && !strings.Contains(printed.String(), "[worker 1] second line\n") {
				t.Errorf("output has no prefix")
			}
			checkGone(t, out)
		})
	}
}

// TestRestart proves that a crash is mended by a restart with a new generation,
// a Go panic among them, and that the last error counts when there is no other.
func TestRestart(t *testing.T) {
	for _, mode := range []string{"flaky", "panic"} {
		t.Run(mode, func(t *testing.T) {
			cfg, _ := config(t, mode)
			cfg.Restart.Max = 2
			out, err := Run(t.Context(), cfg)
			if err != nil {
				t.Fatal(err)
			}
			if len(out.Restarts) != 1 || out.Restarts[0].Generation != 1 || !strings.Contains(out.Restarts[0].Reason, "worker 1 (rank 1, pid ") {
				t.Errorf("restarts %+v", out.Restarts)
			}
			if out.Generation != 2 || string(out.Reports[2]) != "rank 2 attempt 1" {
				t.Errorf("generation %d, report %q", out.Generation, out.Reports[2])
			}
			checkGone(t, out)
		})
	}
}

func TestWrongRequestIsNotRepeated(t *testing.T) {
	cfg, _ := config(t, "request")
	cfg.Restart.Max = 5
	out, err := Run(t.Context(), cfg)
	failed := victimError(t, err, coord.ProcessExited, "exit status 2", "there is no field stratgy")
	if !failed.Request || len(out.Restarts) != 0 {
		t.Errorf("error %+v, restarts %+v", failed, out.Restarts)
	}
	checkGone(t, out)
}

func TestRankThatNeverJoins(t *testing.T) {
	cfg, _ := config(t, "never")
	cfg.Coordinator.JoinTimeout = 1500 * time.Millisecond
	cfg.Grace = 100 * time.Millisecond
	out, err := Run(t.Context(), cfg)
	failed, ok := errors.AsType[*RankError](err)
	if !ok || failed.Cause.Kind != coord.Missing || !strings.Contains(err.Error(), "did not join within 1.5s") {
		t.Fatalf("got %v", err)
	}
	// On a slow machine others may be late as well.
	if failed.Cause.Rank == victim && !strings.Contains(err.Error(), "last lines of worker 1:\n  I would rather not") {
		t.Errorf("the lines of worker 1 are missing: %v", err)
	}
	if p := out.Processes[victim]; !p.Killed || p.ExitStatus == 0 {
		t.Errorf("it was not killed: %+v", p)
	}
	checkGone(t, out)
}

// TestRankThatReads proves that a rank which has not joined yet hears that the
// generation is over, and may clean up.
func TestRankThatReads(t *testing.T) {
	cfg, _ := config(t, "reads")
	cfg.Coordinator.JoinTimeout = 1500 * time.Millisecond
	out, err := Run(t.Context(), cfg)
	if failed, ok := errors.AsType[*RankError](err); !ok || failed.Cause.Kind != coord.Missing {
		t.Fatalf("got %v", err)
	}
	if p := out.Processes[victim]; p.Killed || p.ExitStatus != 7 {
		t.Errorf("it did not end by itself: %+v", p)
	}
	checkGone(t, out)
}

// TestFailureAfterTheEnd proves that a process that fails when all was done is
// an error, with the reports, and is not repeated.
func TestFailureAfterTheEnd(t *testing.T) {
	cfg, _ := config(t, "late")
	cfg.Restart.Max = 2
	out, err := Run(t.Context(), cfg)
	_ = victimError(t, err, coord.ProcessExited, "exit status 5, after all ranks were done")
	if len(out.Restarts) != 0 || len(out.Reports) != 3 {
		t.Errorf("outcome %+v", out)
	}
}

// TestKilledAfterTheEnd proves that a rank that a signal ends when all was done
// is no failure: it had nothing left to do.
func TestKilledAfterTheEnd(t *testing.T) {
	if !tellsRSS() {
		t.Skip("here a kill looks like an exit")
	}
	cfg, _ := config(t, "shot late")
	out, err := Run(t.Context(), cfg)
	if err != nil || len(out.Reports) != 3 || out.Processes[victim].ExitStatus != -1 {
		t.Errorf("outcome %+v, %v", out, err)
	}
}

// running lets a test wait until all ranks work, and learn their pids.
func running(cfg *Config) <-chan map[int]int {
	all := make(chan map[int]int, 1)
	var mu sync.Mutex
	pids := make(map[int]int)
	cfg.Coordinator.OnProgress = func(rank int, p coord.Progress) {
		mu.Lock()
		defer mu.Unlock()
		pids[rank] = int(p.Step)
		if len(pids) == cfg.World {
			all <- pids
		}
	}
	return all
}

// TestKilled proves that a rank killed from outside is named with its signal,
// and that the others have ended by themselves.
func TestKilled(t *testing.T) {
	cfg, _ := config(t, "work")
	all := running(&cfg)
	go func() {
		p, err := os.FindProcess((<-all)[victim])
		if err == nil {
			err = p.Kill()
		}
		if err != nil {
			t.Error(err)
		}
	}()
	out, err := Run(t.Context(), cfg)
	failed := victimError(t, err, coord.ProcessExited, fmt.Sprintf("worker 1 (rank 1, pid %d)", out.Processes[victim].PID))
	if tellsRSS() && !strings.Contains(failed.Error(), "was killed by signal 9 (killed)") {
		t.Errorf("the signal is not named: %v", failed)
	}
	if len(failed.Also) != 0 || out.Processes[0].Killed || out.Processes[2].ExitStatus != 1 {
		t.Errorf("%+v, %+v", failed, out.Processes)
	}
	checkGone(t, out)
}

// watch calls back when a word has been written n times.
type watch struct {
	safeBuffer
	word string
	n    int
	then func()
	once sync.Once
}

func (w *watch) Write(p []byte) (int, error) {
	n, err := w.safeBuffer.Write(p)
	if strings.Count(w.String(), w.word) >= w.n {
		w.once.Do(w.then)
	}
	return n, err
}

// TestInterrupt proves that the end of the context ends all ranks, those that
// listen and those that do not, and that there is no restart.
func TestInterrupt(t *testing.T) {
	stop := errors.New("signal 2")
	t.Run("listening", func(t *testing.T) {
		cfg, _ := config(t, "work")
		cfg.Restart.Max = 3
		all := running(&cfg)
		ctx, cancel := context.WithCancelCause(t.Context())
		go func() {
			<-all
			cancel(stop)
		}()
		out, err := Run(ctx, cfg)
		if !errors.Is(err, stop) || len(out.Restarts) != 0 {
			t.Errorf("got %v, %+v", err, out.Restarts)
		}
		for _, p := range out.Processes {
			if p.Killed || p.ExitStatus != 1 {
				t.Errorf("%+v should have ended by itself", p)
			}
		}
		checkGone(t, out)
	})
	t.Run("deaf", func(t *testing.T) {
		cfg, _ := config(t, "deaf")
		cfg.Restart.Max, cfg.Grace = 3, 100*time.Millisecond
		ctx, cancel := context.WithCancelCause(t.Context())
		cfg.Stderr = &watch{word: "deaf with pid", n: 3, then: func() { cancel(stop) }}
		out, err := Run(ctx, cfg)
		if !errors.Is(err, stop) || len(out.Restarts) != 0 {
			t.Errorf("got %v, %+v", err, out.Restarts)
		}
		for _, p := range out.Processes {
			if !p.Killed {
				t.Errorf("%+v was not killed", p)
			}
		}
		checkGone(t, out)
	})
	t.Run("before the start", func(t *testing.T) {
		cfg, _ := config(t, "work")
		ctx, cancel := context.WithCancelCause(t.Context())
		cancel(stop)
		if _, err := Run(ctx, cfg); !errors.Is(err, stop) {
			t.Errorf("got %v", err)
		}
	})
}

func TestBadConfig(t *testing.T) {
	good, _ := config(t, "ok")
	for name, change := range map[string]func(*Config){
		"no such program": func(c *Config) { c.Exe = c.Exe + "-that-is-not" },
		"no program":      func(c *Config) { c.Exe = "" },
		"no world":        func(c *Config) { c.World = 0 },
		"endless world":   func(c *Config) { c.World = coord.MaxWorld + 1 },
		"restarts":        func(c *Config) { c.Restart.Max = -1 },
		"address":         func(c *Config) { c.Address = "127.0.0.1:nowhere" },
	} {
		cfg := good
		change(&cfg)
		if out, err := Run(t.Context(), cfg); err == nil || len(out.Reports) > 0 || len(out.Restarts) > 0 {
			t.Errorf("%s: %+v, %v", name, out, err)
		}
	}
}

func TestLines(t *testing.T) {
	var sink bytes.Buffer
	l := newLines(&together{w: &sink}, "w")
	write := func(text string) {
		if n, err := l.Write([]byte(text)); n != len(text) || err != nil {
			t.Fatal(n, err)
		}
	}
	write("a")
	write("b\r\n\nc")
	l.flush()
	if got, want := sink.String(), "[w] ab\n[w] \n[w] c\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	sink.Reset()
	write(strings.Repeat("x", maxLine+5) + "\n")
	if got := strings.Split(sink.String(), "\n"); len(got) != 3 || got[1] != "[w] xxxxx" {
		t.Errorf("a long line came in %d pieces", len(got)-1)
	}
	for i := range 2 * tailLines {
		write(fmt.Sprintf("line %d\n", i))
	}
	last, crash := l.last()
	if crash || len(last) != tailLines || last[tailLines-1] != "line 23" {
		t.Errorf("last %v, crash %t", last, crash)
	}
	write("fatal error: all goroutines are asleep\n" + strings.Repeat("stack\n", 100))
	if last, crash := l.last(); !crash || len(last) != crashLines || !strings.HasPrefix(last[0], "fatal error: ") {
		t.Errorf("last %v, crash %t", last, crash)
	}
}
