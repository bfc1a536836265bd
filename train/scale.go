package train

import (
	"github.com/gangline/gangline/data"
	"github.com/gangline/gangline/exec"
	"github.com/gangline/gangline/graph"
	"github.com/gangline/gangline/job"
	"github.com/gangline/gangline/optim"
	"github.com/gangline/gangline/report"
)

// terms is how many terms the loss of a step is the sum of.
func terms(j *job.Job, task graph.Task, columns []data.ColumnSpec) int {
	n := j.Batch
	for _, c := range columns {
		if task == graph.Tokens && c.PerRow > 0 {
			n *= c.PerRow
		}
	}
	return n
}

// rescales notes what becomes of the loss scale, and reports whether a step was skipped
// for nothing but a scale that is too large: the next one is smaller.
func (w *worker) rescales(step int64, r exec.Result) bool {
	if r.Scale == 0 {
		return false
	}
	if w.main.LossScale == nil {
		w.main.LossScale = &report.LossScale{Last: r.Scale}
	}
	w.main.LossScale.Note(r.Scale)
	if !r.Skipped || !r.Overflow || r.Scale <= optim.ScaleMin {
		return false
	}
	w.cfg.Logger.Info("step skipped: gradients are too large for f16, the loss scale is halved", "step", step, "scale", r.Scale, "ranks", r.Faulty)
	return true
}

// lastScale notes the scale that the last step left.
func (w *worker) lastScale(l *report.LossScale) {
	if s := w.setup.Step.Scaling; l != nil && s != nil {
		l.Note(w.holder.shared()[s.Var.Name].Scalar())
	}
}
