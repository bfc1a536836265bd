//go:build unix

package chaos

import (
	"errors"
	"os"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"
)

// turnstile is a pipe from which the ranks of rowcount read a byte before each step:
// they take as many steps as they are admitted to.
type turnstile struct {
	b    *bench
	path string
	file *os.File
}

// turnstileRoom is more than any round of a test takes, and less than a pipe holds.
const turnstileRoom = 1 << 15

// newTurnstile makes a closed one for an attempt of a job whose ROWCOUNT_GATE is path.
func newTurnstile(b *bench, path string, attempt int) *turnstile {
	b.t.Helper()
	s := &turnstile{b: b, path: path + strconv.Itoa(attempt)}
	if err := syscall.Mkfifo(s.path, 0o600); err != nil {
		b.t.Fatal(err)
	}
	// For both directions, so that neither side waits for the other to open it.
	f, err := os.OpenFile(s.path, os.O_RDWR, 0)
	if err != nil {
		b.t.Fatal(err)
	}
	s.file = f
	b.t.Cleanup(s.close)
	return s
}

// admit lets n more steps of processes begin.
func (s *turnstile) admit(n int) {
	s.b.t.Helper()
	if _, err := s.file.Write(make([]byte, n)); err != nil {
		s.b.t.Fatal(err)
	}
}

// open lets all begin that a round can have.
func (s *turnstile) open() { s.admit(turnstileRoom) }

// passed reports whether all that was admitted has begun.
func (s *turnstile) passed() bool {
	s.b.t.Helper()
	look := []unix.PollFd{{Fd: int32(s.file.Fd()), Events: unix.POLLIN}}
	n, err := unix.Poll(look, 0)
	if err != nil && !errors.Is(err, unix.EINTR) {
		s.b.t.Fatal(err)
	}
	return err == nil && n == 0
}

// close takes it away. Whoever still waits there is let go, in vain.
func (s *turnstile) close() { _ = s.file.Close() }
