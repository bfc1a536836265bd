//go:build unix

package file

import (
	"syscall"
	"testing"
)

// makePipe makes a named pipe.
func makePipe(t *testing.T, path string) {
	t.Helper()
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
}
