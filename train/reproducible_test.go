package train

import (
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gangline/gangline/collective/cost"
	"github.com/gangline/gangline/coord"
	"github.com/gangline/gangline/data"
	"github.com/gangline/gangline/job"
	"github.com/gangline/gangline/plan"
	"github.com/gangline/gangline/strategy"
	"github.com/gangline/gangline/train/input"
	"github.com/gangline/gangline/train/resume"
	"github.com/gangline/gangline/transport"
	"github.com/gangline/gangline/transport/mem"
	"github.com/gangline/gangline/transport/stream"
)

// runBits runs some steps of a job on all ranks of this process, and returns all that a run
// has to say of numbers as text: the digest of the parameters, every loss, and a
// test on the training rows.
func runBits(t *testing.T, j job.Job, src data.Source, steps int64) string {
	t.Helper()
	setup, err := NewSetup(j, src.Columns())
	if err != nil {
		t.Fatal(err)
	}
	world := j.Strategy.Workers
	net := mem.NewNetwork(world)
	var ranks sync.WaitGroup
	var bits string
	for r := range world {
		m := &member{
			cfg:   Config{Job: j, Rank: r, Token: "of this test", Logger: slog.New(slog.DiscardHandler)},
			setup: setup, endpoint: net.Endpoint(r), report: func(coord.Progress) {}, rows: &input.Rows{Train: src},
		}
		ranks.Go(func() {
			out, err := liveBits(t, m, steps)
			if err != nil {
				t.Errorf("rank %d: %v", r, err)
				_ = m.endpoint.Close()
			}
			if r == 0 {
				bits = out
			}
		})
	}
	ranks.Wait()
	for _, e := range net.Endpoints() {
		_ = e.Close()
	}
	return bits
}

// openBitStreams opens the streams that the job asks for, without a coordinator.
func openBitStreams(t *testing.T, m *member) error {
	m.newBoard()
	all, n := m.groups()[0], m.cfg.Job.Network
	if n.Path == job.PathMessages || len(all) < 2 {
		return nil
	}
	path, err := stream.ParsePath(n.Path)
	if err != nil {
		return err
	}
	s, err := stream.Open(t.Context(), stream.Config{
		Endpoint: m.endpoint, Tag: streamTag, Rank: m.cfg.Rank, World: len(all), Generation: 1, Token: m.cfg.Token,
		Members: all, Path: path, Timeout: time.Minute,
	})
	if errors.Is(err, errors.ErrUnsupported) && n.Path == job.PathAuto {
		return nil
	}
	m.streams = []transport.Streams{s}
	return err
}

// liveBits is one rank of runBits.
func liveBits(t *testing.T, m *member, steps int64) (string, error) {
	if err := openBitStreams(t, m); err != nil {
		return "", err
	}
	defer func() { _ = m.closeStreams() }()
	w, err := m.newWorker()
	if err != nil {
		return "", err
	}
	defer w.close()
	if err := w.steps.Run(t.Context(), 0, steps); err != nil {
		return "", err
	}
	eval, err := w.evaluate(t.Context(), steps, w.rows.Train, true)
	if err != nil {
		return "", err
	}
	state, err := w.holder.params(t.Context(), steps)
	if err != nil {
		return "", err
	}
	digest, err := state.Digest(m.setup.Step)
	if err != nil {
		return "", err
	}
	text, err := json.Marshal(map[string]any{"params": digest, "loss": w.curves.Loss.Points, "eval": eval})
	return string(text), err
}

// costsFor makes a tree be summed in one way: messages cost nothing, or everything.
func costsFor(way plan.Algorithm) cost.Table {
	var c cost.Table
	for i := range c {
		c[i] = cost.Link{Alpha: 1, Beta: 1e-12}
		if way == plan.ByRing {
			c[i] = cost.Link{Alpha: 1e-12, Beta: 1, Gamma: 1}
		}
	}
	return c
}

// A reproducible job has the same bits on 1, 2, 3, 4 and 5 workers, by both ways of summing,
// with any bucket and number of threads, over messages and streams: parameters, every
// loss and a test. One batch of its epochs is uneven, or has fewer rows than there are
// slices, some of which are empty then; gpt leaves activations out at random. Without, as
// the last case shows, the bits are others on 3 workers than on 2.
func TestReproducible(t *testing.T) {
	paths := []string{job.PathMessages}
	if runtime.GOOS == "linux" {
		paths = append(paths, job.PathShm)
	}
	for _, c := range []struct {
		name, model, rule string
		src               data.Source
		steps             int64
	}{
		{"logistic-table", "{kind: logistic, table: true}", "{kind: momentum, lr: 0.05, clip_norm: 0.2}", writeRows(t, 2), 9},
		{"mlp", "{kind: mlp, hidden: [16, 8], classes: 3}", "{kind: adam, lr: 0.01}", writeRows(t, 3), 9},
		{"gpt", "{kind: gpt, dim: 8, layers: 1, heads: 2, dropout: 0.2}", "{kind: adam, lr: 0.01}", writeText(t), 5},
	} {
		text := fmt.Sprintf("model: %s\noptimizer: %s\nbatch: 30\nepochs: 99\nreproducible: true\ndata: {train: {format: generated}}\n", c.model, c.rule)
		t.Run(c.name, func(t *testing.T) {
			want := runBits(t, parse(t, text, "strategy.kind=serial", "threads=1"), c.src, c.steps)
			if strings.Count(want, `"step"`) < int(c.steps) {
				t.Fatalf("too few losses: %s", want)
			}
			most, buckets := 5, []string{"100B", "1MiB"}
			if raced {
				most, buckets = 3, buckets[:1]
			}
			for workers := 1; workers <= most; workers++ {
				for _, bucket := range buckets {
					for _, way := range []plan.Algorithm{plan.ByRing, plan.ByExchange} {
						for _, threads := range []int{1, 3} {
							for _, path := range paths {
								j := parse(t, text, "strategy.kind=allreduce", fmt.Sprintf("strategy.workers=%d", workers), "strategy.bucket="+bucket,
									fmt.Sprintf("threads=%d", threads), "network.path="+path)
								j.Network.Table = costsFor(way)
								if got := runBits(t, j, c.src, c.steps); got != want {
									t.Fatalf("%d workers, bucket %s, by %v, %d threads, %s:\n%s\nwant\n%s", workers, bucket, way, threads, path, got, want)
								}
							}
						}
					}
				}
			}
			two := runBits(t, parse(t, text, "strategy.kind=allreduce", "strategy.workers=2", "reproducible=false"), c.src, c.steps)
			three := runBits(t, parse(t, text, "strategy.kind=allreduce", "strategy.workers=3", "reproducible=false"), c.src, c.steps)
			if two == three {
				t.Error("the job has the same bits on 2 and 3 workers without being reproducible: it tests nothing")
			}
		})
	}
}

// Both ways of summing are what the costs ask for.
func TestWaysOfSumming(t *testing.T) {
	for _, way := range []plan.Algorithm{plan.ByRing, plan.ByExchange} {
		j := parse(t, "model: {kind: softmax, classes: 3}\nreproducible: true\noptimizer: {kind: sgd, lr: 1}\ndata: {train: {format: generated}}\n", "strategy.kind=allreduce")
		j.Network.Table = costsFor(way)
		setup, err := NewSetup(j, writeRows(t, 3).Columns())
		if err != nil {
			t.Fatal(err)
		}
		for _, task := range setup.Program.Plans[strategy.StepPlan].Ranks[0] {
			if task.Op == plan.AllReduce && (task.Order != plan.Tree || task.Algorithm != way) {
				t.Errorf("%v %v, want a tree by %v", task.Order, task.Algorithm, way)
			}
		}
	}
}

// A reproducible run of two workers that goes on on three, or on one, ends with the bits of
// the run that never stopped.
func TestReproducibleResume(t *testing.T) {
	text := resumeJob + "reproducible: true\nstrategy: {kind: allreduce, workers: 2}\n"
	whole := t.TempDir()
	want := runMem(t, parse(t, text, "checkpoint.dir="+whole), 0)
	middle := checkpointOf(t, whole, 5)
	for _, workers := range []int{1, 3} {
		part := t.TempDir()
		if err := os.CopyFS(filepath.Join(part, filepath.Base(middle)), os.DirFS(middle)); err != nil {
			t.Fatal(err)
		}
		got := runMem(t, parse(t, text, "checkpoint.dir="+part, fmt.Sprintf("strategy.workers=%d", workers)), 1)
		if got.Resumed != 5 || got.ParamsSHA256 != want.ParamsSHA256 || *got.TrainLoss != *want.TrainLoss {
			t.Errorf("on %d workers from step %d: %s with loss %v, want %s with %v", workers, got.Resumed, got.ParamsSHA256, *got.TrainLoss, want.ParamsSHA256, *want.TrainLoss)
		}
		if got.Reproducible == nil || got.Reproducible.Slices != 12 || !(got.Reproducible.AddingShare >= 0) {
			t.Errorf("the report says %+v of the cost", got.Reproducible)
		}
	}
	part := t.TempDir()
	if err := os.CopyFS(filepath.Join(part, filepath.Base(middle)), os.DirFS(middle)); err != nil {
		t.Fatal(err)
	}
	if _, err := resume.Point(parse(t, text, "checkpoint.dir="+part, "slices=6"), 1, nil); err == nil || !strings.Contains(err.Error(), "slices") {
		t.Errorf("resumed with other slices: %v", err)
	}
}
