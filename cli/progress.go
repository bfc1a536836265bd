package cli

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"text/tabwriter"
	"time"

	"github.com/gangline/gangline/report"

	"golang.org/x/term"

	"github.com/gangline/gangline/cli/live"
	"github.com/gangline/gangline/coord"
	"github.com/gangline/gangline/job"
)

// plainEvery is the least time between two plain lines without a metric.
const plainEvery = 2 * time.Second

// progress shows how far the run is: a table on a terminal, a line now and then
// elsewhere. What others write passes through it, so that the table stays whole.
type progress struct {
	mode  string // tty, plain, none
	name  string
	w     io.Writer
	table *live.Table // tty

	mu    sync.Mutex
	start time.Time
	first int64 // the first step heard of, where the estimate begins
	last  time.Time
}

// newProgress begins to show a run; who calls it calls end.
func newProgress(mode string, w io.Writer, j job.Job) *progress {
	if mode == "auto" {
		mode = "plain"
		if f, ok := w.(*os.File); ok && term.IsTerminal(int(f.Fd())) {
			mode = "tty"
		}
	}
	p := &progress{mode: mode, w: w, name: j.Name, first: -1}
	if mode == "tty" {
		s := j.Strategy
		head := live.Head{Job: j.Name, Strategy: s.Kind + ", " + ranksText(s.Workers, s.Servers), Workers: s.Workers}
		for r := range s.Workers + s.Servers {
			head.Roles = append(head.Roles, rankName(j, r))
		}
		p.table = live.Start(w, head)
	}
	return p
}

// update takes news of a rank. Lines tell of rank 0, which speaks for all.
func (p *progress) update(rank int, n coord.Progress) {
	if p.table != nil {
		p.table.Progress(rank, n)
	}
	if p.mode != "plain" || rank != 0 {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	if p.first < 0 || n.Step < p.first { // a restart begins anew
		p.start, p.first = now, n.Step
	}
	if n.MetricName != "" || now.Sub(p.last) >= plainEvery {
		fmt.Fprintln(p.w, p.line(n, now))
		p.last = now
	}
}

// line is what is said of one message.
func (p *progress) line(n coord.Progress, now time.Time) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s  step %d", p.name, n.Step)
	if n.Total > 0 {
		fmt.Fprintf(&b, "/%d", n.Total)
	}
	if n.Loss > 0 {
		fmt.Fprintf(&b, "  loss %.5f", n.Loss)
	}
	if n.MetricName != "" {
		fmt.Fprintf(&b, "  %s %.5f", n.MetricName, n.Metric)
	}
	if n.ExamplesPerSecond > 0 {
		fmt.Fprintf(&b, "  %.0f examples/s", n.ExamplesPerSecond)
	}
	if done := n.Step - p.first; n.Total > n.Step && done > 0 {
		left := now.Sub(p.start).Seconds() / float64(done) * float64(n.Total-n.Step)
		fmt.Fprintf(&b, "  %s left", (time.Duration(left) * time.Second).Round(time.Second))
	}
	return b.String()
}

// Write passes on lines of others.
func (p *progress) Write(text []byte) (int, error) {
	if p.table != nil {
		return p.table.Write(text)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.w.Write(text)
}

// end gives the terminal back. What went wrong with the table is no error of the
// run.
func (p *progress) end() {
	if p.table == nil {
		return
	}
	if err := p.table.End(); err != nil {
		fmt.Fprintf(p.w, "progress: %v\n", err)
	}
}

// withoutVerdicts drops the last words of ranks, which the launcher's own error
// repeats once for all.
type withoutVerdicts struct {
	w    io.Writer
	last map[string]bool // by rank: its verdict has begun
}

// Write implements io.Writer; it is given whole lines.
func (v *withoutVerdicts) Write(line []byte) (int, error) {
	rank, words, _ := bytes.Cut(line, []byte("] "))
	more := v.last[string(rank)] && bytes.HasPrefix(words, []byte(" ")) // see tidy
	if v.last[string(rank)] = more || bytes.HasPrefix(words, []byte(errorPrefix)); v.last[string(rank)] {
		return len(line), nil
	}
	return v.w.Write(line)
}

// printTable writes the closing table. A script that cannot have it must hear so.
func printTable(w io.Writer, r *report.Report) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	row := func(name, format string, args ...any) { fmt.Fprintf(t, "%s\t%s\n", name, fmt.Sprintf(format, args...)) }
	row("job", "%s, %s, %s", r.Job, r.Strategy.Kind, ranksText(r.Strategy.Workers, r.Strategy.Servers))
	if l := r.LossScale; l != nil {
		row("loss scale", "%g, halved %d times (steps skipped), doubled %d", l.Last, l.Halved, l.Doubled)
	}
	row("steps", "%d (%d skipped), %d examples in %.1f s, %.0f examples/s", r.Steps, r.Skipped, r.Examples, r.Seconds, r.ExamplesPerSecond)
	if r.TrainLoss != nil && r.Objective != nil {
		row("train", "loss %.5f, objective %.5f", *r.TrainLoss, *r.Objective)
	}
	if e := r.Eval; e != nil {
		row("test", "%s", metricsText(e))
		if more := moreMetrics(e); more != "" {
			row("", "%s", more)
		}
		if e.AUCShare != nil {
			row("", "%.2f %% of the best possible AUC, %.5f", 100**e.AUCShare, *e.BestAUC)
		}
	}
	if b := r.Best; b != nil {
		row("best", "%s %.5f, step %d", b.Metric, b.Value, b.Step)
	}
	if r.Stopped != "" {
		row("stopped", "%s", r.Stopped)
	}
	row("parameters", "%d, sha256 %.16s", r.Params, r.ParamsSHA256)
	if p := r.Reproducible; p != nil {
		row("reproducible", "%d slices; adding them took %.1f %% of the time", p.Slices, 100*p.AddingShare)
	}
	row("gradients", "%d pushed = %d applied + %d dropped + %d pending", r.Gradients.Pushed, r.Gradients.Applied, r.Gradients.Dropped, r.Gradients.Pending)
	row("traffic", "%.1f MB in %d messages", float64(r.BytesSent)/1e6, r.MessagesSent)
	if c := r.Compression; c != nil {
		row("compressed", "%.1f MB of gradients in %.1f MB, %.1f times fewer; lost and not made up for: %.2f of a gradient",
			float64(c.Plain)/1e6, float64(c.Moved)/1e6, c.Fewer(), c.Lost)
	}
	for _, s := range r.StepTime {
		row(fmt.Sprintf("worker %d", s.Rank), "compute %.2f s, update %.2f, communication %.2f, input %.2f, idle %.2f (for input %.2f)",
			s.Compute, s.Update, s.Communication, s.Input, s.Wait, s.WaitInput)
	}
	for i, why := range r.Restarts {
		row(fmt.Sprintf("restart %d", i+1), "%s", why)
	}
	if r.BadRowsSkipped > 0 {
		row("bad rows", "%d skipped", r.BadRowsSkipped)
	}
	if r.Checkpoint != "" {
		row("checkpoint", "%s", r.Checkpoint)
	}
	if r.Best != nil && r.Best.Checkpoint != "" {
		row("", "%s (the best)", r.Best.Checkpoint)
	}
	if err := t.Flush(); err != nil {
		return fmt.Errorf("the run is done, but its closing table cannot be written: %w", err)
	}
	return nil
}

// ranksText counts the ranks: 3 workers, 1 server.
func ranksText(workers, servers int) string {
	text := plural(workers, "worker")
	if servers > 0 {
		text += ", " + plural(servers, "server")
	}
	return text
}

func plural(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}
