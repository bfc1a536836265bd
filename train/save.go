package train

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/gangline/gangline/internal/linediff"

	"github.com/gangline/gangline/params"

	"github.com/gangline/gangline/checkpoint"
	"github.com/gangline/gangline/data"
	"github.com/gangline/gangline/job"
	"github.com/gangline/gangline/train/input"
)

// CheckResume refuses a request that cannot go on, before anything is started: a
// directory that holds checkpoints of an earlier run, unless the job says resume,
// so that none is mixed up or lost; or checkpoints that another job wrote. It
// reads one manifest.
func CheckResume(j job.Job) error {
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

// claim keeps a directory of checkpoints for this run; two in one would remove and
// replace what the other wrote.
func claim(ctx context.Context, dir string) (release func() error, err error) {
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

// resumePoint finds the checkpoint that the run goes on from; nil if it begins at
// the beginning. A restart always goes on.
func resumePoint(cfg Config) (*checkpoint.Checkpoint, error) {
	j := cfg.Job
	if cfg.Attempt > 0 {
		j.Checkpoint.Resume = true
	}
	if err := CheckResume(j); err != nil || j.Checkpoint.Dir == "" || !j.Checkpoint.Resume {
		return nil, err
	}
	c, passedOver, err := checkpoint.Latest(j.Checkpoint.Dir)
	for _, why := range passedOver {
		cfg.Logger.Warn("checkpoint passed over", "reason", why)
	}
	if err != nil || c == nil {
		return nil, err
	}
	return c, sameJob(j, c)
}

// saveTag carries the directory of a checkpoint from rank 0 and the shards of others
// back to it.
const saveTag = shareTag + 1

// paramsTag carries slices of the parameters to rank 0.
const paramsTag = saveTag + 1

// save writes the checkpoint of a version: rank 0 makes the directory, gathers what
// describes the shards, and publishes. Other workers take part if they hold pieces
// of their own. They need not wait for the end of it: no later step commits without
// rank 0.
func (w *worker) save(ctx context.Context, version int64) error {
	root, keep, first := w.setup.Job.Checkpoint.Dir, w.setup.Job.Checkpoint.Keep, w.cfg.Rank == 0
	switch {
	case root == "" || !first && !w.holder.spread():
		return nil
	case w.savedAt == version && first: // perhaps by a run that died before it tidied up
		return checkpoint.Prune(root, version, keep)
	case w.savedAt == version:
		return nil
	case !first:
		w.savedAt = version
		_, err := w.shards(ctx, version, "")
		return err
	}
	root, err := filepath.Abs(root) // servers and other workers write there too
	if err != nil {
		return fmt.Errorf("checkpoint: %w", err)
	}
	dir, err := checkpoint.Begin(root, version)
	if err != nil {
		return err
	}
	manifest, err := w.manifest(ctx, version, dir)
	if err == nil {
		w.saved, err = checkpoint.Publish(dir, manifest)
	}
	if err != nil {
		return errors.Join(err, checkpoint.Abandon(dir))
	}
	w.savedAt = version
	return checkpoint.Prune(root, version, keep)
}

// manifest has the shards written and describes them.
func (w *worker) manifest(ctx context.Context, version int64, dir string) (checkpoint.Manifest, error) {
	m := checkpoint.Manifest{Step: version, Generation: uint32(w.session.Generation), Params: params.Describe(w.setup.Step), Tests: w.patient}
	var err error
	if m.JobText, m.Job, err = w.setup.Job.Fixed(); err != nil {
		return m, err
	}
	if m.Data, err = json.Marshal(w.order.CursorAt(version, w.fingerprint)); err != nil {
		return m, fmt.Errorf("checkpoint: %w", err)
	}
	if m.Files, err = input.SaveFeatures(dir, w.rows.Features); err != nil {
		return m, err
	}
	m.Shards, err = w.shards(ctx, version, dir)
	return m, err
}

// shards writes those of this rank into the directory that rank 0 made and gives
// rank 0 those of all. All write at the same time; who cannot says so by its failure.
func (w *worker) shards(ctx context.Context, version int64, dir string) ([]checkpoint.Shard, error) {
	others := w.workers()
	if !w.holder.spread() {
		others.Count = 1
	}
	text, err := others.Share(ctx, saveTag, "directory of a checkpoint", []byte(dir))
	if err != nil {
		return nil, err
	}
	if dir = string(text); w.cfg.Rank != 0 {
		if err := there(dir); err != nil {
			return nil, err
		}
	}
	all, err := w.holder.save(ctx, version, dir)
	if err != nil {
		return nil, err
	}
	if text, err = json.Marshal(all); err != nil {
		return nil, fmt.Errorf("checkpoint: %w", err)
	}
	err = others.Gather(ctx, saveTag, "parts of a checkpoint", text, func(rank int, text []byte) error {
		var more []checkpoint.Shard
		if err := json.Unmarshal(text, &more); err != nil {
			return fmt.Errorf("checkpoint: shards of rank %d: %w", rank, err)
		}
		for _, s := range more {
			if err := there(filepath.Join(dir, s.File)); err != nil {
				return fmt.Errorf("checkpoint: rank %d: %w", rank, err)
			}
		}
		all = append(all, more...)
		return nil
	})
	return all, err
}

// there fails unless a directory or file of a checkpoint can be seen here.
func there(path string) error {
	if _, err := os.Stat(path); err != nil {
		return fmt.Errorf("the checkpoint's directory must be shared by all hosts: %w", err)
	}
	return nil
}

// checkCursor refuses to go on over other data than the checkpoint's.
func checkCursor(c *checkpoint.Checkpoint, o data.Order, now data.Fingerprint) error {
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

// snapshotter writes the shard of a server: into the directory that rank 0 made,
// or, without one, into the reply.
func snapshotter(store int) func(step int64, dir string, pieces []checkpoint.Piece) ([]byte, error) {
	name := fmt.Sprintf("server-%d", store)
	return func(_ int64, dir string, pieces []checkpoint.Piece) ([]byte, error) {
		if dir == "" {
			return checkpoint.Encode(name, pieces)
		}
		if err := there(dir); err != nil {
			return nil, err
		}
		s, err := checkpoint.WriteShard(dir, name, pieces)
		if err != nil {
			return nil, err
		}
		return json.Marshal(s)
	}
}
