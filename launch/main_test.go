package launch

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/gangline/gangline/coord"
)

// TestMain makes the test binary its own children: a rank if Run started it, a
// launcher if a test started it as one.
func TestMain(m *testing.M) {
	switch {
	case os.Getenv("LAUNCH_TEST_LAUNCHER") != "":
		os.Exit(launcherMain())
	case os.Getenv(EnvParent) != "":
		os.Exit(rankMain(os.Args[1]))
	}
	goleak.VerifyTestMain(m)
}

// victim is the rank that things happen to.
const victim = 1

// rankMain is one rank. What it does is the same for all modes but for the
// victim; everybody else works until the generation is over.
func rankMain(mode string) int {
	ctx, stop, err := WatchParent(context.Background(), os.LookupEnv)
	if err != nil {
		return complain(err)
	}
	defer stop()
	place, ok, err := FromEnv(os.LookupEnv)
	if err != nil || !ok {
		return complain(fmt.Errorf("no place: %w", err))
	}
	if mode == "deaf" { // nothing but a kill ends this one
		fmt.Fprintln(os.Stderr, "deaf with pid", os.Getpid())
		select {}
	}
	hit := place.Rank == victim
	if hit && mode == "never" {
		fmt.Fprintln(os.Stderr, "I would rather not")
		time.Sleep(time.Hour)
	}
	if hit && mode == "reads" { // what never ends, unless somebody says that it should
		<-ctx.Done()
		return 7
	}
	if hit && mode == "request" {
		fmt.Fprintln(os.Stderr, "job.yaml: there is no field stratgy")
		return ExitRequest
	}
	s, err := coord.Join(ctx, coord.JoinConfig{
		Address: place.Address, Token: place.Token, Rank: place.Rank, World: place.World,
		Role: "worker", Digest: digest(mode, place.Rank),
	})
	if err != nil {
		return complain(err)
	}
	defer s.Close()
	if hit && place.Attempt == 0 {
		switch mode {
		case "crash", "flaky":
			fmt.Fprint(os.Stderr, "first line\nsecond line\nthe end")
			return 3
		case "panic":
			panic("out of cheese")
		case "fail":
			return complain(s.Fail(errors.New("loss is NaN")))
		case "quit":
			return 0
		}
	}
	switch mode {
	case "work": // until somebody ends it
		s.Progress(coord.Progress{Step: int64(os.Getpid())})
		<-s.Context().Done()
		return complain(context.Cause(s.Context()))
	case "grandchild":
		pid, err := startGrandchild()
		if err != nil {
			return complain(s.Fail(err))
		}
		if err := s.Done(ctx, []byte(fmt.Sprint(pid))); err != nil {
			return complain(err)
		}
		return 0
	case "fail", "crash", "panic", "quit":
		if place.Attempt == 0 {
			<-s.Context().Done()
			return complain(context.Cause(s.Context()))
		}
	}
	if err := s.Done(ctx, []byte(fmt.Sprintf("rank %d attempt %d", place.Rank, place.Attempt))); err != nil {
		return complain(err)
	}
	if hit && mode == "late" {
		return 5
	}
	if hit && mode == "shot late" {
		self, err := os.FindProcess(os.Getpid())
		if err == nil {
			err = self.Kill()
		}
		if err == nil {
			select {} // until the signal is here
		}
		return complain(err)
	}
	return 0
}

func digest(mode string, rank int) string {
	if mode == "mismatch" {
		return fmt.Sprint("plan of ", rank)
	}
	return "plan"
}

func complain(err error) int {
	fmt.Fprintln(os.Stderr, "gangline:", err)
	return 1
}

// startGrandchild starts what outlives its parent and holds its pipes, and
// returns its pid.
func startGrandchild() (int, error) {
	cmd := exec.Command(os.Args[0], "deaf")
	cmd.Env = os.Environ()
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	if err := cmd.Start(); err != nil {
		return 0, err
	}
	return cmd.Process.Pid, nil
}

// launcherMain runs deaf ranks until it is killed.
func launcherMain() int {
	exe, err := os.Executable()
	if err != nil {
		return complain(err)
	}
	environ := os.Environ()
	for i, entry := range environ {
		if strings.HasPrefix(entry, "LAUNCH_TEST_LAUNCHER=") {
			environ[i] = "LAUNCH_TEST_LAUNCHER="
		}
	}
	_, err = Run(context.Background(), Config{
		Exe: exe, World: 3, Env: environ, Stderr: os.Stdout,
		Args: func(int, int) []string { return []string{"deaf"} },
	})
	return complain(err)
}
