//go:build unix

package cache

import (
	"errors"
	"io"
	"os"

	"golang.org/x/sys/unix"
)

// hold marks a file in the making as one whose writer lives, until the result is
// closed or the process ends, however it ends. Where a file system knows no locks,
// nothing is marked.
func hold(name string) (io.Closer, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	for errors.Is(unix.Flock(int(f.Fd()), unix.LOCK_EX), unix.EINTR) {
	}
	return f, nil
}

// removeDead removes a file in the making if its writer has died.
func removeDead(name string) {
	f, err := os.Open(name)
	if err != nil {
		return
	}
	defer f.Close()
	if unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB) == nil {
		_ = os.Remove(name) // if that fails, it lies there a while longer
	}
}
