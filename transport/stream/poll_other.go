//go:build unix && !linux

package stream

import (
	"runtime"

	"golang.org/x/sys/unix"
)

// pollHangup is for systems that can tell of the peer's end while bytes are unread.
const pollHangup = 0

func yield() { runtime.Gosched() }

func readNow(fd int, p []byte) (int, error)  { return unix.Read(fd, p) }
func writeNow(fd int, p []byte) (int, error) { return unix.Write(fd, p) }
func pollNow(fds []unix.PollFd) (int, error) { return unix.Poll(fds, 0) }
