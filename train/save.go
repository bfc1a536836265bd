package train

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/gangline/gangline/params"

	"github.com/gangline/gangline/checkpoint"
	"github.com/gangline/gangline/job"
	"github.com/gangline/gangline/train/input"
	"github.com/gangline/gangline/train/resume"
)

// CheckResume refuses a request that cannot go on, before anything is started: a
// directory that holds checkpoints of an earlier run, unless the job says resume,
// so that none is mixed up or lost; or checkpoints that another job wrote. It
// reads one manifest.
func CheckResume(j job.Job) error { return resume.Check(j) }

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
