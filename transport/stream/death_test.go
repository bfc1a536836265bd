//go:build unix

package stream

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/gangline/gangline/transport"
)

const patience = 60 * time.Second // only a failing test takes as long

func patient(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeoutCause(t.Context(), patience, errors.New("the test's patience ended"))
	t.Cleanup(cancel)
	return ctx
}

// A process that is killed is lost to who reads and to who writes, at once, not
// when a slice of sleep ends. What it had written can still be read, but over tcp,
// where a reset may overtake it.
func TestKilled(t *testing.T) {
	for _, path := range bodies() {
		for _, way := range []string{"read", "write"} {
			t.Run(path.String()+"/"+way, func(t *testing.T) {
				const size = 1000
				s, child := withProcess(t, path, "speak", size)
				defer s.Close()
				s.(*Group).slice = time.Hour
				ctx := patient(t)
				buf := make([]byte, size)
				first, after := s.Park(ctx, s.To(1), nil), func() error { return readFull(ctx, s, 1, buf) }
				if path == TCP {
					first, after = after(), func() error { return nil }
				}
				if first != nil { // else it has written all, in one go
					t.Fatal(first)
				}
				kill(t, child, syscall.SIGKILL)
				if err := after(); err != nil || buf[size-1] != (size-1)&0xff {
					t.Errorf("what it had written: %v", err)
				}
				var err error
				if way == "read" {
					err = readFull(ctx, s, 1, buf)
				} else {
					for err == nil {
						err = writeFull(ctx, s, 1, buf)
					}
				}
				wantLost(t, err)
				_ = child.Wait() // it was killed
			})
		}
	}
}

func wantLost(t *testing.T, err error) {
	t.Helper()
	p, ok := errors.AsType[*transport.PeerError](err)
	if !ok || p.Rank != 0 || p.Peer != 1 || !errors.Is(err, transport.ErrPeerLost) {
		t.Errorf("got %v, want rank 0 to have lost rank 1", err)
	}
}

// A process that is stopped says nothing; the deadline ends the wait, and once it
// goes on nothing was lost.
func TestStopped(t *testing.T) {
	for _, path := range bodies() {
		t.Run(path.String(), func(t *testing.T) {
			s, child := withProcess(t, path, "echo", 8)
			buf := make([]byte, 8)
			if err := errors.Join(writeFull(patient(t), s, 1, buf), readFull(patient(t), s, 1, buf)); err != nil {
				t.Fatal(err)
			}
			kill(t, child, syscall.SIGSTOP)
			if _, err := unix.Wait4(child.Process.Pid, nil, unix.WUNTRACED, nil); err != nil { // until it has stopped
				t.Fatal(err)
			}
			if err := writeFull(patient(t), s, 1, []byte("12345678")); err != nil {
				t.Fatal(err)
			}
			short, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
			defer cancel()
			err := readFull(short, s, 1, buf)
			if !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("got %v, want the deadline", err)
			}
			kill(t, child, syscall.SIGCONT)
			if err := readFull(patient(t), s, 1, buf); err != nil || string(buf) != "12345678" {
				t.Errorf("read %q, %v", buf, err)
			}
			if err := s.Close(); err != nil {
				t.Error(err)
			}
			if err := child.Wait(); err != nil {
				t.Error(err)
			}
		})
	}
}

func kill(t *testing.T, child *exec.Cmd, sig os.Signal) {
	t.Helper()
	if err := child.Process.Signal(sig); err != nil {
		t.Fatal(err)
	}
}
