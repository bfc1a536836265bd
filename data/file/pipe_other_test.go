//go:build !unix

package file

import "testing"

// makePipe skips a test that needs a named pipe.
func makePipe(t *testing.T, _ string) {
	t.Helper()
	t.Skip("files of this system are no pipes")
}
