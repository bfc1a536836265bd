//go:build unix && !linux

package chaos

import "testing"

// smallDisk would make dir a disk of its own.
func smallDisk(t *testing.T, _ string, _ int64) {
	t.Helper()
	t.Skip("a small disk cannot be mounted here")
}

// enlarge would give a disk of smallDisk more room.
func enlarge(*testing.T, string, int64) {}
