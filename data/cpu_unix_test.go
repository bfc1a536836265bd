//go:build unix

package data

import (
	"time"

	"golang.org/x/sys/unix"
)

// cpuTime is what this process has used of the processors, in user and system mode.
func cpuTime() time.Duration {
	var r unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &r); err != nil {
		return 0
	}
	return time.Duration(r.Utime.Nano() + r.Stime.Nano())
}
