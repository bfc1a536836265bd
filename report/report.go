// Package report holds what a run says of itself at its end: the JSON object of
// --report, and the parts of it that the ranks give.
package report

import (
	"fmt"
	"slices"
	"strings"

	"github.com/gangline/gangline/metric"
	"github.com/gangline/gangline/optim"
)

// Report is what --report writes: everything a script would want of a run.
type Report struct {
	Job      string   `json:"job"`
	Version  string   `json:"version"`
	Strategy Strategy `json:"strategy"`
	Ranks    int      `json:"ranks"`
	Summary
	Params        int64      `json:"params"` // elements of all parameters
	ParamsSHA256  string     `json:"params_sha256"`
	BytesSent     int64      `json:"bytes_sent"` // payload, all ranks
	BytesReceived int64      `json:"bytes_received"`
	MessagesSent  int64      `json:"messages_sent"`
	PeakRSSBytes  int64      `json:"peak_rss_bytes"` // of the largest rank
	StepTime      []StepTime `json:"step_time"`      // a rank
	Gradients     Gradients  `json:"gradients"`
	// Compression is left out where nothing is compressed.
	Compression    *Compression `json:"compression,omitempty"`
	PerRank        []Rank       `json:"per_rank"`
	Restarts       []string     `json:"restarts,omitempty"` // why, each time
	WallSeconds    float64      `json:"wall_seconds"`       // start of the launcher to its end
	BadRowsSkipped int          `json:"bad_rows_skipped"`
}

// Strategy is how the step was spread.
type Strategy struct {
	Kind        string `json:"kind"`
	Workers     int    `json:"workers"`
	Servers     int    `json:"servers"`
	Consistency string `json:"consistency"`
	// The rest is of localsgd and sma.
	Every int     `json:"every,omitempty"`
	Alpha float64 `json:"alpha,omitempty"`
	Slots string  `json:"slots,omitempty"`
	Outer *Outer  `json:"outer,omitempty"`
}

// Outer is the outer optimizer of localsgd.
type Outer struct {
	Momentum float64 `json:"momentum"`
	LR       float64 `json:"lr"`
	Nesterov bool    `json:"nesterov"`
}

// Summary is what rank 0 knows at the end for all.
type Summary struct {
	// Steps counts from the beginning, Resumed the steps of it that an earlier
	// run had done. Examples and the other counts and times are of this run alone.
	Steps    int64 `json:"steps"`
	Examples int64 `json:"examples"`
	Resumed  int64 `json:"resumed_from_step,omitempty"`
	Skipped  int64 `json:"steps_skipped"`
	// LossScale is what became of the scale of the loss, with precision f16.
	LossScale *LossScale `json:"loss_scale,omitempty"`
	// TrainRows are the rows of an epoch: those that are trained on, without what a
	// split puts aside, a sample leaves out or a limit cuts off.
	TrainRows int `json:"train_rows"`
	// Seconds is the time in training steps of this run, without reading,
	// evaluation and checkpoints; ExamplesPerSecond is over that time.
	Seconds           float64 `json:"seconds"`
	ExamplesPerSecond float64 `json:"examples_per_second"`
	// TrainLoss is the mean loss of the final parameters over all training rows,
	// Objective the same with the penalty that the optimizer's l2 stands for.
	TrainLoss *float64       `json:"train_loss,omitempty"`
	Objective *float64       `json:"objective,omitempty"`
	Eval      *metric.Result `json:"eval,omitempty"`
	// Checkpoint is the last one written.
	Checkpoint string `json:"checkpoint,omitempty"`
	// Best is the best test, if the job asks which; Stopped says why the run
	// ended before its last step.
	Best    *Best  `json:"best,omitempty"`
	Stopped string `json:"stopped,omitempty"`
	// Reproducible is of a reproducible run.
	Reproducible *Reproducible `json:"reproducible,omitempty"`
	// Curves are the course of the loss, of tests and of the learning rate over
	// the steps of this run.
	Curves []metric.Curve `json:"curves,omitempty"`
}

// LossScale is the course of what the loss is multiplied by before its gradients are
// taken: each time that it halved, a step was skipped whose gradients were too large.
type LossScale struct {
	Last    float64 `json:"last"`
	Halved  int64   `json:"halved"`
	Doubled int64   `json:"doubled"`
}

// Note takes down the scale of the next step.
func (l *LossScale) Note(scale float64) {
	switch {
	case scale < l.Last:
		l.Halved++
	case scale > l.Last:
		l.Doubled++
	}
	l.Last = scale
}

// Best says which test of a run was the best.
type Best struct {
	Metric string  `json:"metric"`
	Value  float64 `json:"value"`
	Step   int64   `json:"step"`
	// Checkpoint is that of the best test, if it is kept.
	Checkpoint string `json:"checkpoint,omitempty"`
}

// StepTime says where a rank's time in training steps went, in seconds. The
// parts overlap: communication and input may hide behind compute.
type StepTime struct {
	Rank          int     `json:"rank"`
	Compute       float64 `json:"compute"`
	Communication float64 `json:"communication"`
	Wait          float64 `json:"wait"`       // the device had nothing to do
	WaitInput     float64 `json:"wait_input"` // the part of Wait that a batch ended
	Input         float64 `json:"input"`
	Update        float64 `json:"update"`
	Adding        float64 `json:"adding"` // gradients of micro-batches or slices
}

// Reproducible says what it costs that results do not depend on the number of workers, as
// far as a run can tell by itself.
type Reproducible struct {
	Slices int `json:"slices"`
	// AddingShare is the share of the time in steps in which rank 0 added up the gradients
	// of its slices. That slices are smaller than a worker's part of a batch, and so
	// computed less fast, is not in it.
	AddingShare float64 `json:"adding_share"`
}

// Gradients accounts for contributions: one worker's gradient for one state (on
// servers: one shard of it) in one step. Pushed = Applied + Dropped + Pending.
type Gradients struct {
	Pushed  int64 `json:"pushed"`
	Applied int64 `json:"applied"`
	Dropped int64 `json:"dropped"`
	Pending int64 `json:"pending"`
}

// Add adds the contributions of others.
func (g *Gradients) Add(o Gradients) {
	g.Pushed += o.Pushed
	g.Applied += o.Applied
	g.Dropped += o.Dropped
	g.Pending += o.Pending
}

// Memory is the bytes that a worker has for the state of training, whatever it computes
// besides.
type Memory struct {
	Parameters     int64 `json:"parameters"`
	Gradients      int64 `json:"gradients"`       // that the updates read
	OptimizerState int64 `json:"optimizer_state"` // the slots of the rule
	// Temporary is parameters and gradients that are there for a while only: gathered,
	// not yet scattered, of one micro-batch.
	Temporary int64 `json:"temporary"`
}

// Rank is what one rank says of itself.
type Rank struct {
	Rank             int       `json:"rank"`
	Role             string    `json:"role"` // worker, server
	BytesSent        int64     `json:"bytes_sent"`
	BytesReceived    int64     `json:"bytes_received"`
	MessagesSent     int64     `json:"messages_sent"`
	MessagesReceived int64     `json:"messages_received"`
	PeakRSSBytes     int64     `json:"peak_rss_bytes"`
	StepTime         *StepTime `json:"step_time,omitempty"`
	Gradients        Gradients `json:"gradients"`
	// Compression is of each sum that is compressed.
	Compression []Bucket `json:"compression,omitempty"`
	BadRows     int      `json:"bad_rows"`
	// Skipped counts the steps that changed nothing here; where workers train copies
	// of their own, each has its own.
	Skipped int64 `json:"steps_skipped"`
	// Memory is of workers.
	Memory *Memory `json:"memory,omitempty"`
	// Main is of rank 0 only.
	Main *Main `json:"main,omitempty"`
}

// Main is rank 0's part of the closing report.
type Main struct {
	Summary
	Params       int64  `json:"params"`
	ParamsSHA256 string `json:"params_sha256"`
}

// New puts the reports of all ranks together. It fails if rank 0's is
// not among them.
func New(name string, s Strategy, version string, ranks []Rank) (*Report, error) {
	r := &Report{
		Job: name, Version: version, Ranks: len(ranks), Strategy: s,
		StepTime: []StepTime{},
	}
	for _, k := range ranks {
		r.BytesSent += k.BytesSent
		r.BytesReceived += k.BytesReceived
		r.MessagesSent += k.MessagesSent
		r.PeakRSSBytes = max(r.PeakRSSBytes, k.PeakRSSBytes)
		r.Gradients.Add(k.Gradients)
		r.BadRowsSkipped = max(r.BadRowsSkipped, k.BadRows)
		if k.StepTime != nil {
			r.StepTime = append(r.StepTime, *k.StepTime)
		}
		if k.Main != nil {
			r.Summary, r.Params, r.ParamsSHA256 = k.Main.Summary, k.Main.Params, k.Main.ParamsSHA256
		}
		k.Main = nil
		r.PerRank = append(r.PerRank, k)
	}
	r.Compression = compression(ranks)
	if r.ParamsSHA256 == "" {
		return nil, fmt.Errorf("rank 0 gave no report")
	}
	return r, nil
}

// Curves collects what rank 0 sees of the course of a run.
type Curves struct {
	// Loss takes the mean loss of every step.
	Loss  metric.Curve
	tests []metric.Curve // the loss, and the metric that progress lines show
}

// Test takes the result of a test after so many steps.
func (c *Curves) Test(step int64, r *metric.Result) {
	name, value := r.Main()
	if c.tests == nil {
		c.tests = []metric.Curve{{Name: "test_loss"}, {Name: name}}
	}
	if r.Loss != nil {
		c.tests[0].Add(step, *r.Loss, 1)
	}
	if name == c.tests[1].Name && !strings.HasSuffix(name, "loss") {
		c.tests[1].Add(step, value, 1)
	}
}

// All are the curves that have points, and the learning rate at the steps of the
// loss.
func (c *Curves) All(rule optim.Rule) []metric.Curve {
	c.Loss.Name = "loss"
	rate := metric.Curve{Name: "lr"}
	for _, p := range c.Loss.Points {
		rate.Add(p.Step, rule.Rate(p.Step-1), 1)
	}
	all := append([]metric.Curve{c.Loss}, c.tests...)
	return slices.DeleteFunc(append(all, rate), func(c metric.Curve) bool { return len(c.Points) == 0 })
}
