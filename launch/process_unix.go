//go:build unix

package launch

import (
	"fmt"
	"os"
	"syscall"
)

// killGroup kills a process group that we started; an empty one is no error.
func killGroup(pid int) { _ = syscall.Kill(-pid, syscall.SIGKILL) }

// ending says how a process ended.
func ending(state *os.ProcessState) string {
	if status, ok := state.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		return fmt.Sprintf("was killed by signal %d (%s)", int(status.Signal()), status.Signal())
	}
	return fmt.Sprintf("ended with exit status %d", state.ExitCode())
}
