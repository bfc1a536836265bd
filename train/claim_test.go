package train

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/gangline/gangline/checkpoint"
	"github.com/gangline/gangline/job"
)

// A second run in the directory of one that lives is refused by rank 0, before it
// reads or writes there.
func TestClaim(t *testing.T) {
	dir := t.TempDir()
	release, err := checkpoint.Lock(dir)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := checkpoint.Lock(dir); err == nil {
		t.Skip("directories cannot be locked here")
	}
	synctest.Test(t, func(t *testing.T) {
		j := parse(t, resumeJob, "checkpoint.dir="+dir)
		_, err := Run(t.Context(), Config{Job: j})
		if _, ok := errors.AsType[*job.FieldError](err); !ok || !strings.Contains(err.Error(), "checkpoint.dir: ") ||
			!strings.Contains(err.Error(), "another run is writing there") {
			t.Errorf("got %v", err)
		}
	})
	if err := release(); err != nil {
		t.Error(err)
	}
}
