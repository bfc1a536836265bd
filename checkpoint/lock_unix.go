//go:build unix

package checkpoint

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// ErrInUse says that another run writes its checkpoints to the same directory.
var ErrInUse = errors.New("another run is writing there")

// Lock makes root and keeps it for one run, until the release is called or the
// process ends, however it ends; ErrInUse if another has it. Nothing is left behind:
// it is the directory that is locked. Where a file system cannot do that, nothing
// is locked and no error returned.
func Lock(root string) (release func() error, err error) {
	if err := os.MkdirAll(root, 0o755); err != nil {
		return nil, fmt.Errorf("checkpoint: cannot make %s: %w", root, err)
	}
	dir, err := os.Open(root)
	if err != nil {
		return nil, fmt.Errorf("checkpoint: %w", err)
	}
	if err := unix.Flock(int(dir.Fd()), unix.LOCK_EX|unix.LOCK_NB); errors.Is(err, unix.EWOULDBLOCK) {
		return nil, errors.Join(fmt.Errorf("checkpoint: %s: %w", root, ErrInUse), dir.Close())
	}
	return dir.Close, nil
}
