package stream

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// pollHangup tells of the peer's end while bytes are unread.
const pollHangup = unix.EPOLLRDHUP // POLLRDHUP has the same value on all of Go's systems

// Calls that do not block go past Go's scheduler. From a goroutine that makes one call after
// the other for longer than 10 ms, its monitor takes the processor away in every one of them,
// for others to run, of whom there are none, and never sleeps for more than 20 us then: an
// eighth of the core.

// yield lets another process have this processor.
func yield() { _, _, _ = unix.RawSyscall(unix.SYS_SCHED_YIELD, 0, 0, 0) }

// readNow reads from a descriptor that does not block.
func readNow(fd int, p []byte) (int, error) {
	return callNow(unix.SYS_READ, fd, p)
}

// writeNow writes to a descriptor that does not block.
func writeNow(fd int, p []byte) (int, error) {
	return callNow(unix.SYS_WRITE, fd, p)
}

func callNow(call uintptr, fd int, p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	n, _, e := unix.RawSyscall(call, uintptr(fd), uintptr(unsafe.Pointer(unsafe.SliceData(p))), uintptr(len(p)))
	if e != 0 {
		return -1, e
	}
	return int(n), nil
}

// pollNow polls and returns at once.
func pollNow(fds []unix.PollFd) (int, error) {
	var zero unix.Timespec
	n, _, e := unix.RawSyscall6(unix.SYS_PPOLL, uintptr(unsafe.Pointer(unsafe.SliceData(fds))), uintptr(len(fds)), uintptr(unsafe.Pointer(&zero)), 0, 0, 0)
	if e != 0 {
		return -1, e
	}
	return int(n), nil
}
