package train

import (
	"time"

	"github.com/gangline/gangline/coord"
	"github.com/gangline/gangline/exec"
	"github.com/gangline/gangline/metric"
)

// progressEvery is the time between two progress messages of rank 0, which speaks
// for all; othersEvery that of other workers, which say that they are there.
const (
	progressEvery = 250 * time.Millisecond
	othersEvery   = time.Second
)

// skipsMax is how many steps in a row may be skipped because a value was not
// finite before the run gives up: it will not recover by itself.
const skipsMax = 10

// recent sums the loss since the last progress message.
type recent struct {
	loss, weight float64
	examples     int64
	since        time.Time
}

// onStep is told of every step, in order.
func (w *worker) onStep(step int64, r exec.Result) {
	_, lo, hi := w.order.At(step)
	w.main.Examples += int64(hi - lo)
	w.recent.examples += int64(hi - lo)
	w.skipped++
	if r.Skipped && len(r.Faulty) == 0 {
		w.skipped-- // no row counts, which says nothing of the steps around it
		w.main.Skipped++
		w.cfg.Logger.Warn("step skipped: the weights of its rows are 0", "step", step)
	} else if w.rescales(step, r) {
		w.skipped-- // which ends at the least scale
		w.main.Skipped++
	} else if r.Skipped {
		w.main.Skipped++
		w.cfg.Logger.Warn("step skipped: values are not finite", "step", step, "ranks", r.Faulty)
		if w.skipped >= skipsMax && w.hopeless == nil {
			w.hopeless = w.giveUp(step + 1)
			w.stop(w.hopeless)
		}
	} else {
		w.skipped = 0
		w.recent.loss += r.Loss
		w.recent.weight += r.Weight
		w.curves.Loss.Add(step+1, r.Loss/r.Weight, r.Weight)
	}
	now := time.Now()
	if w.recent.since.IsZero() {
		w.recent.since = now
	}
	every := progressEvery
	if w.cfg.Rank != 0 {
		every = othersEvery
	}
	if now.Sub(w.recent.since) >= every {
		w.progress(step+1, nil)
	}
}

// progress tells the coordinator how far this worker is: rank 0 with the speed of
// all, others with that of their part.
func (w *worker) progress(done int64, m *metric.Result) {
	p := coord.Progress{Step: done, Total: w.setup.steps(w.order)}
	if w.cfg.Rank != 0 {
		w.recent.loss, w.recent.weight, m = 0, 0, nil
		w.recent.examples /= int64(w.setup.Cluster.Workers)
	}
	if w.recent.weight > 0 {
		p.Loss = w.recent.loss / w.recent.weight
	}
	if s := time.Since(w.recent.since).Seconds(); s > 0 {
		p.ExamplesPerSecond = float64(w.recent.examples) / s
	}
	p.BytesPerSecond = w.bytesPerSecond(time.Now())
	if m != nil {
		p.MetricName, p.Metric = m.Main()
	}
	w.recent = recent{since: time.Now()}
	w.report(p)
}

// tell reports how many steps are applied, every second and at the end.
func (m *member) tell(ended <-chan struct{}, version func() int64) {
	beat := time.NewTicker(othersEvery)
	defer beat.Stop()
	for last := false; ; {
		m.report(coord.Progress{Step: version(), BytesPerSecond: m.bytesPerSecond(time.Now())})
		if last {
			return
		}
		select {
		case <-ended:
			last = true
		case <-beat.C:
		}
	}
}

// traffic is what was sent and received until a moment.
type traffic struct {
	bytes int64
	until time.Time
}

// bytesPerSecond is what this rank sent and received a second since it was last asked,
// 0 at first. It is used by one goroutine.
func (m *member) bytesPerSecond(now time.Time) float64 {
	s, before := m.stats(), m.traffic
	m.traffic = traffic{s.BytesSent + s.BytesReceived, now}
	if took := now.Sub(before.until).Seconds(); took > 0 && !before.until.IsZero() {
		return float64(m.traffic.bytes-before.bytes) / took
	}
	return 0
}
