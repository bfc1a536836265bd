package tune

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"strconv"
	"time"

	"github.com/gangline/gangline/coord"
	"github.com/gangline/gangline/job"
	"github.com/gangline/gangline/launch"
	"github.com/gangline/gangline/report"
)

// trialPatience bounds a trial.
const trialPatience = 10 * time.Minute

// WarmSteps is how many steps of a trial are not timed.
const WarmSteps = 3

// Processes runs trials as a job runs: every rank a process.
type Processes struct {
	Exe string
	// Args train the job, up to the settings of a trial; what it needs besides is added.
	Args []string
	Env  []string
	Job  job.Job
	// Stderr takes what ranks write.
	Stderr io.Writer
}

// Run is a Runner.
func (p *Processes) Run(ctx context.Context, settings []string, steps int) (Trial, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, trialPatience, fmt.Errorf("a trial did not end within %v", trialPatience))
	defer cancel()
	args := append([]string(nil), p.Args...)
	for _, s := range append(p.fixed(steps), settings...) {
		args = append(args, "--set", s)
	}
	args = append(args, "--trial", strconv.Itoa(WarmSteps))
	begin := time.Now()
	out, err := launch.Run(ctx, launch.Config{
		Exe: p.Exe, Args: func(int, int) []string { return args }, Env: p.Env,
		World: p.Job.Strategy.Workers + p.Job.Strategy.Servers, Stderr: p.Stderr,
		Coordinator: coord.ServerConfig{JoinTimeout: time.Duration(p.Job.Network.JoinTimeout)},
	})
	t := Trial{Wall: time.Since(begin).Seconds()}
	if err != nil {
		return t, err
	}
	var r report.Rank
	if err := json.Unmarshal(out.Reports[0], &r); err != nil || r.Main == nil {
		return t, fmt.Errorf("the report of rank 0 says nothing of the training: %w", err)
	}
	t.Step = r.Main.Seconds / float64(r.Main.Steps-WarmSteps)
	t.Loss = lossOf(&r.Main.Summary)
	return t, nil
}

// fixed are the settings of every trial: so many steps, and nothing but steps.
func (p *Processes) fixed(steps int) []string {
	all := []string{
		fmt.Sprintf("steps=%d", steps+WarmSteps), "epochs=1000000", "eval.every=0", "eval.patience=0", `checkpoint.dir=""`,
		"checkpoint.every=0", "checkpoint.best=false", "checkpoint.resume=false", "restart.max=0",
	}
	if n := p.Job.Optimizer.Schedule.Steps; n > 0 { // else it would be that of the trial
		all = append(all, fmt.Sprintf("optimizer.schedule.steps=%d", n))
	}
	return all
}

// lossOf is the mean loss of the last half of a run.
func lossOf(s *report.Summary) float64 {
	for _, c := range s.Curves {
		if c.Name != "loss" || len(c.Points) == 0 {
			continue
		}
		half := c.Points[len(c.Points)/2:]
		sum := 0.
		for _, p := range half {
			sum += p.Value
		}
		return sum / float64(len(half))
	}
	return math.NaN()
}
