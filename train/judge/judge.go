// Package judge finds out what judges the tests of a run, and goes on from what a
// checkpoint has of earlier ones.
package judge

import (
	"fmt"
	"slices"
	"strings"

	"github.com/gangline/gangline/checkpoint"
	"github.com/gangline/gangline/graph"
	"github.com/gangline/gangline/job"
	"github.com/gangline/gangline/metric"
)

// defined lists the metrics that a job's tests have; the first is what progress
// lines show.
func defined(task graph.Task, e job.Eval) []string {
	switch task {
	case graph.Binary:
		names := []string{"auc", "loss", "logloss", "accuracy", "precision", "recall", "f1"}
		if e.Group != "" {
			names = append(names, "gauc")
		}
		return names
	case graph.Regression:
		return []string{"rmse", "loss"}
	case graph.Tokens:
		return []string{"loss", "logloss", "perplexity", "accuracy"}
	case graph.Multiclass:
	}
	return []string{"accuracy", "loss", "logloss"}
}

// New makes what judges the tests of a run of a job whose model has this task, which goes
// on from what the checkpoint from, unless it is nil, has of them; nil if the job asks for
// no judgement. All workers have the same.
func New(j *job.Job, task graph.Task, from *checkpoint.Checkpoint) (*metric.Patience, error) {
	e := j.Eval
	names := defined(task, e)
	switch {
	case e.Metric == "":
		e.Metric = names[0]
	case !slices.Contains(names, e.Metric):
		return nil, &job.FieldError{Field: "eval.metric", Fix: fmt.Sprintf("tests of model %s have no %s; they have %s", j.Model.Kind, e.Metric, strings.Join(names, ", "))}
	}
	if e.Patience == 0 && !j.Checkpoint.Best {
		return nil, nil
	}
	p := &metric.Patience{Metric: e.Metric, MinDelta: e.MinDelta, Limit: e.Patience}
	if from == nil || !p.Goes(from.Manifest.Tests) {
		return p, nil
	}
	saved := *from.Manifest.Tests
	saved.Limit = e.Patience
	return &saved, nil
}

// FindBest finds the checkpoint of the best test, that of a step, in the directory that
// the run which goes on from a checkpoint has them in; "" if it is not there. A run that
// died between writing it and keeping it apart left it as its newest.
func FindBest(root string, step int64, from *checkpoint.Checkpoint) (string, error) {
	dirs, err := checkpoint.List(checkpoint.BestDir(root))
	if err != nil {
		return "", err
	}
	for _, d := range dirs {
		if c, err := checkpoint.Open(d); err == nil && c.Manifest.Step == step {
			return d, nil
		}
	}
	if step != from.Manifest.Step {
		return "", nil
	}
	return checkpoint.KeepBest(root, from.Dir)
}
