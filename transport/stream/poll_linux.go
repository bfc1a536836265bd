package stream

import "golang.org/x/sys/unix"

// pollHangup tells of the peer's end while bytes are unread.
const pollHangup = unix.EPOLLRDHUP // POLLRDHUP has the same value on all of Go's systems

// yield lets another process have this processor.
func yield() { _, _, _ = unix.RawSyscall(unix.SYS_SCHED_YIELD, 0, 0, 0) }
