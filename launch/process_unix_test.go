//go:build unix

package launch

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

func tellsRSS() bool { return true }

// alive says whether a process runs; a zombie that nobody waits for does not.
func alive(pid int) bool {
	if syscall.Kill(pid, 0) != nil {
		return false
	}
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return runtime.GOOS != "linux"
	}
	_, rest, _ := strings.Cut(string(stat), ") ")
	return !strings.HasPrefix(rest, "Z")
}

// descriptors counts what this process has open, 0 if the system does not tell.
func descriptors(t *testing.T) int {
	t.Helper()
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return 0
	}
	return len(entries)
}

// awaitGone polls until a process has ended.
func awaitGone(t *testing.T, pid int) {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); alive(pid); {
		if time.Now().After(deadline) {
			t.Fatalf("pid %d is left", pid)
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// TestLauncherKilled proves that ranks do not outlive their launcher, although
// these listen to nothing: on Linux the system sees to it.
func TestLauncherKilled(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("only Linux ends a child that does not listen")
	}
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), "LAUNCH_TEST_LAUNCHER=1")
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var pids []int
	lines := bufio.NewScanner(out)
	for len(pids) < 3 && lines.Scan() {
		if _, text, ok := strings.Cut(lines.Text(), "deaf with pid "); ok {
			pid, err := strconv.Atoi(text)
			if err != nil {
				t.Fatal(err)
			}
			pids = append(pids, pid)
		}
	}
	for _, pid := range pids {
		if !alive(pid) {
			t.Errorf("pid %d ended before its launcher", pid)
		}
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait() // it says that it was killed
	if len(pids) != 3 {
		t.Fatalf("%d ranks started", len(pids))
	}
	for _, pid := range pids {
		awaitGone(t, pid)
	}
}

// TestLifeline proves that a rank ends when the pipe to its launcher does, even
// while it waits for a coordinator that is not there.
func TestLifeline(t *testing.T) {
	cmd := exec.Command(os.Args[0], "work")
	place := Place{Rank: 0, World: 1, Address: "127.0.0.1:1", Token: "xxxxxxxx"}
	cmd.Env = append(append(os.Environ(), place.Environ()...), EnvParent+"=7")
	lifeline, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	said := &safeBuffer{}
	cmd.Stderr = said
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if _, err := lifeline.Write([]byte("this is not the end")); err != nil {
		t.Fatal(err)
	}
	if err := lifeline.Close(); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err == nil {
		t.Error("it ended well")
	}
	if !strings.Contains(said.String(), "the launcher is gone (pid 7)") {
		t.Errorf("it said %q", said)
	}
}

// TestWatchParent proves that nothing is watched without a launcher, and that
// stop leaves no goroutine (which goleak sees).
func TestWatchParent(t *testing.T) {
	ctx, stop, err := WatchParent(t.Context(), lookupIn(nil))
	if err != nil || ctx.Err() != nil {
		t.Fatal(err, ctx.Err())
	}
	stop()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	defer r.Close()
	stdin := os.Stdin
	os.Stdin = r
	defer func() { os.Stdin = stdin }()
	ctx, stop, err = WatchParent(t.Context(), lookupIn([]string{EnvParent + "=7"}))
	if err != nil || ctx.Err() != nil {
		t.Fatal(err, ctx.Err())
	}
	stop()
	if ctx.Err() == nil {
		t.Error("stop leaves the context alive")
	}
}

// TestGrandchildren proves that what a rank started and left behind ends with it.
func TestGrandchildren(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("only Linux lets us wait without giving the pid back")
	}
	cfg, _ := config(t, "grandchild")
	out, err := Run(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	for rank, report := range out.Reports {
		pid, err := strconv.Atoi(string(report))
		if err != nil {
			t.Fatalf("report of rank %d: %v", rank, err)
		}
		awaitGone(t, pid)
	}
}
