package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
)

// The perceptron of torch_ddp.py, 128 rows a rank: ours on digits that are read and fed,
// theirs on one batch in memory.
const (
	ddpRanks = 2
	ddpJob   = `
model: {kind: mlp, hidden: [512, 512], classes: 10}
data:
  train: {format: idx, path: mnist/train-images-idx3-ubyte.gz, labels: mnist/train-labels-idx1-ubyte.gz}
threads: 1
epochs: 100
steps: 1500
optimizer: {kind: sgd, lr: 0.01}
`
	// smallJob has 200 tensors, of some KB together, beside the first one.
	smallJob = `
model: {kind: mlp, hidden: [%s], classes: 10}
data:
  train: {format: idx, path: mnist/t10k-images-idx3-ubyte.gz, labels: mnist/t10k-labels-idx1-ubyte.gz}
threads: 1
epochs: 100
steps: 2000
batch: 32
optimizer: {kind: sgd, lr: 0.001}
strategy: {kind: allreduce, workers: 2}
`
	smallLayers = 99
)

// ddpRun is one training run of ours.
type ddpRun struct {
	Steps   int64   `json:"steps"`
	Seconds float64 `json:"seconds"`
}

// step is the seconds of a step.
func (r ddpRun) step() float64 { return r.Seconds / float64(r.Steps) }

// dataParallel compares training over two ranks.
func (c *config) dataParallel(ctx context.Context, dir string, out io.Writer) error {
	if _, err := os.Stat(filepath.Join(c.data, "mnist")); err != nil {
		return absentError(err.Error() + " (see -data)")
	}
	mlp, small := filepath.Join(dir, "ddp.yaml"), filepath.Join(dir, "small.yaml")
	layers := strings.TrimSuffix(strings.Repeat("16, ", smallLayers), ", ")
	if err := errors.Join(os.WriteFile(mlp, []byte(ddpJob), 0o600), os.WriteFile(small, fmt.Appendf(nil, smallJob, layers), 0o600)); err != nil {
		return err
	}
	var speed []pair
	var share, peerShare []float64
	for range c.rounds {
		all, err := c.train(ctx, mlp, "batch=256", "strategy.kind=allreduce", "strategy.workers=2")
		if err != nil {
			return err
		}
		alone, err := c.trainAlone(ctx, mlp)
		if err != nil {
			return err
		}
		peer, theirs, err := c.torchDDP(ctx)
		if err != nil {
			return err
		}
		speed = append(speed, pair{all.step(), peer})
		share, peerShare = append(share, 1-alone/all.step()), append(peerShare, theirs)
	}
	fmt.Fprintf(out, "\nPerceptron 784-512-512-10 over %d ranks, 128 rows each:\n\n", ddpRanks)
	fmt.Fprintf(out, "| case | gangline, ms a step | PyTorch DDP (gloo), ms | gangline/peer, %d pairs | median |\n|---|---|---|---|---|\n", c.rounds)
	fmt.Fprintln(out, row("mlp", speed))
	fmt.Fprintf(out, "\nshare of communication: gangline %.3f, PyTorch %.3f (medians; 1 - step without / step with)\n", median(share), median(peerShare))
	fmt.Fprintf(out, "\n200 small tensors over %d ranks, fused beside one by one:\n\n", ddpRanks)
	fmt.Fprintf(out, "| path | fused, ms a step | each by itself, ms | fused/each, %d pairs | median |\n|---|---|---|---|---|\n", c.rounds)
	for _, path := range []string{"shm", "tcp"} {
		var pairs []pair
		for range c.rounds {
			fused, err := c.train(ctx, small, "network.path="+path)
			if err != nil {
				return err
			}
			each, err := c.train(ctx, small, "network.path="+path, "strategy.bucket=0")
			if err != nil {
				return err
			}
			pairs = append(pairs, pair{fused.step(), each.step()})
		}
		fmt.Fprintln(out, row(path, pairs))
	}
	return nil
}

// train runs a job of ours.
func (c *config) train(ctx context.Context, job string, set ...string) (r ddpRun, err error) {
	f, err := os.CreateTemp(filepath.Dir(job), "report-")
	if err != nil {
		return r, err
	}
	name := f.Name()
	if err := f.Close(); err != nil {
		return r, err
	}
	args := []string{c.gangline, "train", job, "--data-dir", c.data, "--report", name}
	for _, s := range set {
		args = append(args, "--set", s)
	}
	if _, err := output(ctx, nil, args...); err != nil {
		return r, err
	}
	text, err := os.ReadFile(name)
	if err != nil {
		return r, err
	}
	if err := json.Unmarshal(text, &r); err != nil {
		return r, fmt.Errorf("report of %s: %w", job, err)
	}
	if r.Steps == 0 || r.Seconds <= 0 {
		return r, fmt.Errorf("report of %s: %d steps in %v s", job, r.Steps, r.Seconds)
	}
	return r, nil
}

// trainAlone runs as many ranks at once, each a job of its own: what a step takes where
// cores and memory are as busy, and nobody talks. It returns the mean seconds of a step.
func (c *config) trainAlone(ctx context.Context, job string) (float64, error) {
	type ended struct {
		run ddpRun
		err error
	}
	results := make(chan ended, ddpRanks)
	for range ddpRanks {
		go func() {
			r, err := c.train(ctx, job, "batch=128", "strategy.kind=serial")
			results <- ended{r, err}
		}()
	}
	var sum float64
	var errs []error
	for range ddpRanks {
		r := <-results
		errs = append(errs, r.err)
		if r.err == nil {
			sum += r.run.step()
		}
	}
	return sum / ddpRanks, errors.Join(errs...)
}

// torchDDP runs the other side: seconds of a step, and the share of communication.
func (c *config) torchDDP(ctx context.Context) (step, share float64, err error) {
	text, err := output(ctx, []string{"OPENBLAS_CORETYPE=" + coreType()}, c.python, filepath.Join(c.dir, "torch_ddp.py"), strconv.Itoa(ddpRanks))
	if err != nil {
		return 0, 0, err
	}
	return parseDDP(string(text))
}

// parseDDP reads what torch_ddp.py prints:
//
//	ddp torch-gloo ranks=2 steps_per_s=77.7 examples_per_s=19898 step_ms(sync)=11.69 step_ms(no_sync)=6.20 comm_share=0.47
func parseDDP(text string) (step, share float64, err error) {
	m := regexp.MustCompile(`(?m)^ddp .*\bsteps_per_s=([0-9.]+) .*\bcomm_share=(-?[0-9.]+)`).FindStringSubmatch(text)
	if m == nil {
		return 0, 0, fmt.Errorf("torch_ddp.py says %q: no steps_per_s and comm_share", text)
	}
	rate, err := strconv.ParseFloat(m[1], 64)
	if err != nil || rate <= 0 {
		return 0, 0, fmt.Errorf("%q: no rate", m[1])
	}
	share, err = strconv.ParseFloat(m[2], 64)
	return 1 / rate, share, err
}
