package launch

import (
	"fmt"
	"os"
	"syscall"
)

// attributes gives a process a group of its own, so that Ctrl-C reaches the
// launcher only. That it ends with us is up to its lifeline.
func attributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{CreationFlags: syscall.CREATE_NEW_PROCESS_GROUP}
}

// awaitEnd returns false: here one cannot wait without giving the pid back.
func awaitEnd(int) bool { return false }

// killGroup does nothing: the process itself is killed by its handle.
func killGroup(int) {}

// ending says how a process ended.
func ending(state *os.ProcessState) string {
	return fmt.Sprintf("ended with exit status %d", state.ExitCode())
}

// maxRSS returns 0: the usage that Windows keeps for a process says times only.
func maxRSS(*os.ProcessState) int64 { return 0 }
