//go:build unix

package launch

import (
	"os"

	"golang.org/x/sys/unix"
)

// lifeline is our own descriptor of stdin, which Close can interrupt.
type lifeline struct{ *os.File }

func openLifeline() (lifeline, error) {
	fd, err := unix.FcntlInt(os.Stdin.Fd(), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return lifeline{}, os.NewSyscallError("fcntl", err)
	}
	if err := unix.SetNonblock(fd, true); err != nil {
		unix.Close(fd)
		return lifeline{}, os.NewSyscallError("fcntl", err)
	}
	return lifeline{os.NewFile(uintptr(fd), "lifeline")}, nil
}

// interrupt ends a Read; true if that is certain.
func (l lifeline) interrupt() bool { return l.Close() == nil }
