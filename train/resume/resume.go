// Package resume finds out whether a run may use a directory of checkpoints, and from
// which of them it goes on.
package resume

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"time"

	"github.com/gangline/gangline/internal/linediff"

	"github.com/gangline/gangline/checkpoint"
	"github.com/gangline/gangline/data"
	"github.com/gangline/gangline/job"
)

// Check refuses a request that cannot go on, before anything is started: a
// directory that holds checkpoints of an earlier run, unless the job says resume,
// so that none is mixed up or lost; or checkpoints that another job wrote. It
// reads one manifest.
func Check(j job.Job) error {
	dir := j.Checkpoint.Dir
	if dir == "" {
		return nil
	}
	found, err := checkpoint.List(dir)
	if err != nil {
		return &job.FieldError{Field: "checkpoint.dir", Fix: err.Error()}
	}
	if len(found) > 0 && !j.Checkpoint.Resume {
		return &job.FieldError{Field: "checkpoint.dir", Fix: fmt.Sprintf(
			"%s already holds %s: set checkpoint.resume=true (--resume) to go on from it, or name another directory", dir, filepath.Base(found[0]))}
	}
	for _, d := range found {
		if c, err := checkpoint.Open(d); err == nil { // a damaged one is passed over later, with its reason
			return sameJob(j, c)
		}
	}
	return nil
}

// claimPatience is how long a run waits for the checkpoint directory: one whose
// launcher was killed gives it up a moment later.
const claimPatience = 5 * time.Second

// Claim keeps a directory of checkpoints for this run; two in one would remove and
// replace what the other wrote.
func Claim(ctx context.Context, dir string) (release func() error, err error) {
	for end := time.Now().Add(claimPatience); ; {
		release, err = checkpoint.Lock(dir)
		switch {
		case err == nil:
			return release, nil
		case !errors.Is(err, checkpoint.ErrInUse) || time.Now().After(end):
			return nil, &job.FieldError{Field: "checkpoint.dir", Fix: err.Error()}
		}
		select {
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// sameJob refuses a checkpoint of another job.
func sameJob(j job.Job, c *checkpoint.Checkpoint) error {
	text, digest, err := j.Fixed()
	if err != nil {
		return err
	}
	if digest != c.Manifest.Job {
		if sum := sha256.Sum256([]byte(c.Manifest.JobText)); hex.EncodeToString(sum[:]) != c.Manifest.Job {
			return fmt.Errorf("checkpoint %s: %w: its job's text and digest do not match; remove it to go on from an older one", c.Dir, checkpoint.ErrCorrupt)
		}
		return &job.FieldError{Field: "checkpoint.resume", Fix: fmt.Sprintf(
			"%s was written by another job; what must not change on resume differs:\n%s", c.Dir, linediff.Of(c.Manifest.JobText, text))}
	}
	return nil
}

// Point finds the checkpoint that the run goes on from; nil if it begins at the
// beginning. A restart, any attempt above 0, always goes on.
func Point(j job.Job, attempt int, log *slog.Logger) (*checkpoint.Checkpoint, error) {
	if attempt > 0 {
		j.Checkpoint.Resume = true
	}
	if err := Check(j); err != nil || j.Checkpoint.Dir == "" || !j.Checkpoint.Resume {
		return nil, err
	}
	c, passedOver, err := checkpoint.Latest(j.Checkpoint.Dir)
	for _, why := range passedOver {
		log.Warn("checkpoint passed over", "reason", why)
	}
	if err != nil || c == nil {
		return nil, err
	}
	return c, sameJob(j, c)
}

// CheckCursor refuses to go on over other data than the checkpoint's.
func CheckCursor(c *checkpoint.Checkpoint, o data.Order, now data.Fingerprint) error {
	var at data.Cursor
	if err := json.Unmarshal(c.Manifest.Data, &at); err != nil {
		return fmt.Errorf("checkpoint %s: position in the data: %w", c.Dir, err)
	}
	step, err := o.StepAt(at, now)
	if err != nil {
		return fmt.Errorf("checkpoint %s: %w", c.Dir, err)
	}
	if step != c.Manifest.Step {
		return fmt.Errorf("checkpoint %s: %w: step %d, but its position in the data is that of step %d",
			c.Dir, checkpoint.ErrCorrupt, c.Manifest.Step, step)
	}
	return nil
}
