//go:build unix && !linux

package launch

import (
	"os"
	"runtime"
	"syscall"
)

// attributes gives a process a group of its own. That it ends with us is up to
// its lifeline.
func attributes() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

// awaitEnd returns false: here one cannot wait without taking the pid back.
func awaitEnd(int) bool { return false }

// maxRSS returns the peak resident memory in bytes. Darwin counts in bytes, the
// BSDs in KiB.
func maxRSS(state *os.ProcessState) int64 {
	usage, ok := state.SysUsage().(*syscall.Rusage)
	if !ok {
		return 0
	}
	if runtime.GOOS == "darwin" || runtime.GOOS == "ios" {
		return int64(usage.Maxrss)
	}
	return int64(usage.Maxrss) << 10
}
