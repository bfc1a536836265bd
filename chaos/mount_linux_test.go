package chaos

import (
	"errors"
	"fmt"
	"syscall"
	"testing"
)

// smallDisk makes dir a disk of its own of so many bytes; only root may.
func smallDisk(t *testing.T, dir string, bytes int64) {
	t.Helper()
	err := syscall.Mount("tmpfs", dir, "tmpfs", 0, fmt.Sprintf("size=%d", bytes))
	if errors.Is(err, syscall.EPERM) || errors.Is(err, syscall.ENODEV) {
		t.Skipf("a small disk cannot be mounted here: %v", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(dir, syscall.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
}

// enlarge gives a disk of smallDisk more room.
func enlarge(t *testing.T, dir string, bytes int64) {
	t.Helper()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", syscall.MS_REMOUNT, fmt.Sprintf("size=%d", bytes)); err != nil {
		t.Fatal(err)
	}
}
