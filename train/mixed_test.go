package train

import (
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gangline/gangline/collective/cost"
	"github.com/gangline/gangline/data"
)

// mixedFile writes a file for a test and returns its path.
func mixedFile(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "rows")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// blobs are rows of three classes around three points.
func blobs(rows int) string {
	rng := rand.New(rand.NewPCG(8, 9))
	var b strings.Builder
	for i := range rows {
		c := i % 3
		fmt.Fprintf(&b, "%d 1:%.4f 2:%.4f 3:%.4f\n", c, rng.NormFloat64()+float64(c), rng.NormFloat64()-float64(c%2), rng.NormFloat64())
	}
	return b.String()
}

// Mixed precision trains as f32 does: after as many steps that count, the loss over all
// rows is within 3 % of it, on one worker and on two, with and without micro-batches. (The
// models are small and their loss falls fast: a step more or less is some percent.)
func TestMixedTrains(t *testing.T) {
	words := strings.Repeat("to be or not to be that is the question whether tis nobler ", 12)
	for _, c := range []struct{ name, text string }{
		{"mlp", "model: {kind: mlp, hidden: [16, 8], classes: 3}\noptimizer: {kind: momentum, lr: 0.05, clip_norm: 1}\nbatch: 30\nsteps: 60\n" +
			"data: {train: {format: libsvm, features: 3, path: " + mixedFile(t, blobs(300)) + "}}\n"},
		// Of the rules here only this one sees how long gradients are.
		{"sgd", "model: {kind: mlp, hidden: [16, 8], classes: 3}\noptimizer: {kind: sgd, lr: 0.05}\nbatch: 30\nsteps: 60\n" +
			"data: {train: {format: libsvm, features: 3, path: " + mixedFile(t, blobs(300)) + "}}\n"},
		{"dlrm", "model: {kind: dlrm, bottom: [5], hidden: [8], dim: 4}\noptimizer: {kind: adagrad, lr: 0.02}\nbatch: 100\nsteps: 40\n" +
			"data: {train: {format: generated, rows: 4000, buckets: 500, seed: 5}}\n"},
		{"fm", "model: {kind: fm, dim: 3}\noptimizer: {kind: adam, lr: 0.003}\nbatch: 100\nsteps: 40\n" +
			"data: {train: {format: generated, rows: 4000, buckets: 500, seed: 5}}\n"},
		{"gpt", "model: {kind: gpt, dim: 8, layers: 2, heads: 2}\noptimizer: {kind: adam, lr: 0.01}\nbatch: 8\nsteps: 60\n" +
			"data: {train: {format: text, context: 8, path: " + mixedFile(t, words) + "}}\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			full := runMem(t, parse(t, c.text+"epochs: 99\nstrategy: {kind: serial}\n"), 0)
			for _, precision := range []string{"bf16", "f16"} {
				for _, s := range []string{"{kind: serial}\n", "{kind: allreduce, workers: 2}\n", "{kind: allreduce, workers: 2}\nmicro_batches: 3\n"} {
					text := c.text + "epochs: 99\nprecision: " + precision + "\nstrategy: " + s
					got := runMem(t, parse(t, text), 0)
					if got.Skipped > 0 { // as many steps more, so that as many count
						got = runMem(t, parse(t, text, fmt.Sprintf("steps=%d", got.Steps+got.Skipped)), 0)
					}
					apart := math.Abs(*got.TrainLoss-*full.TrainLoss) / *full.TrainLoss
					t.Logf("%s %q: loss %.6f, %.2e off %.6f, scale %+v", precision, s, *got.TrainLoss, apart, *full.TrainLoss, got.LossScale)
					if !(apart <= 0.03) {
						t.Errorf("%s, %q: loss %v, of f32 %v", precision, s, *got.TrainLoss, *full.TrainLoss)
					}
					if (got.LossScale != nil) != (precision == "f16") {
						t.Errorf("%s: loss scale %v", precision, got.LossScale)
					}
				}
			}
		})
	}
}

// What workers send of dense gradients is exactly half of it in f32.
func TestMixedBytes(t *testing.T) {
	const text = "model: {kind: mlp, hidden: [32, 32], classes: 32}\noptimizer: {kind: sgd, lr: 0.1}\nbatch: 30\nepochs: 99\n" +
		"data: {train: {format: generated}}\nstrategy: {kind: allreduce, workers: 2}\n"
	src := writeRows(t, 32)
	sent := func(precision string) int64 {
		j := parse(t, text, "precision="+precision)
		j.Network.Table = cost.Table{cost.Unix: {Beta: 1}}                            // by which a ring is the best
		return trainMem(t, j, src, sameSteps).stats[0].BytesSent - sameSteps*(17+128) // the commit, and the opening
	}
	full := sent("f32")
	if full != sameSteps*4*(40*32+32+2*(32*32+32)) {
		t.Errorf("f32 sends %d bytes", full)
	}
	for _, precision := range []string{"bf16", "f16"} {
		if got := sent(precision); 2*got != full {
			t.Errorf("%s sends %d bytes, f32 %d", precision, got, full)
		}
	}
}

// overflowJob has labels whose gradients are too large for f16 with the loss scale that
// a run begins with.
func overflowJob(t *testing.T) string {
	rng := rand.New(rand.NewPCG(4, 4))
	var b strings.Builder
	for range 120 {
		x, y := rng.Float64(), rng.Float64()
		fmt.Fprintf(&b, "%.4f 1:%.4f 2:%.4f\n", 300*x-200*y+100, x, y)
	}
	return "model: {kind: linear}\noptimizer: {kind: adam, lr: 20}\nprecision: f16\nbatch: 30\nepochs: 99\nsteps: 24\n" +
		"data: {train: {format: libsvm, features: 2, path: " + mixedFile(t, b.String()) + "}}\n"
}

// Gradients that overflow halve the scale, and the step is skipped and counted with why;
// then the run goes on, and learns. The run on two workers has the same scales; and so has
// one that goes on from a checkpoint between, bit for bit.
func TestOverflow(t *testing.T) {
	text := overflowJob(t)
	var halved []int64
	for _, s := range []string{"{kind: serial}", "{kind: allreduce, workers: 2}"} {
		whole, part := t.TempDir(), t.TempDir()
		text := text + "strategy: " + s + "\ncheckpoint: {every: 8, keep: 9}\n"
		want := runMem(t, parse(t, text, "checkpoint.dir="+whole), 0)
		l := want.LossScale
		if l == nil || l.Halved < 3 || l.Halved != want.Skipped || l.Doubled != 0 || l.Last != math.Ldexp(1, 16-4-int(l.Halved)) {
			t.Fatalf("%s: %d steps skipped, scale %+v", s, want.Skipped, l)
		}
		if !(*want.TrainLoss < 5000) { // a third of that of the first parameters
			t.Errorf("%s: loss %v", s, *want.TrainLoss)
		}
		halved = append(halved, l.Halved)
		middle := checkpointOf(t, whole, 16)
		if err := os.CopyFS(filepath.Join(part, filepath.Base(middle)), os.DirFS(middle)); err != nil {
			t.Fatal(err)
		}
		got := runMem(t, parse(t, text, "checkpoint.dir="+part), 1)
		if got.Resumed != 16 || got.ParamsSHA256 != want.ParamsSHA256 || got.LossScale.Last != l.Last || got.Skipped != 0 {
			t.Errorf("%s: the run that went on: %+v, scale %+v", s, got.Summary, got.LossScale)
		}
		sameFiles(t, checkpointOf(t, whole, 24), checkpointOf(t, part, 24))
	}
	if halved[0] != halved[1] {
		t.Errorf("the scale halved %v times", halved)
	}
}

// The number of threads changes no bit.
func TestMixedThreads(t *testing.T) {
	src := open(t, data.Spec{Format: "generated", Rows: 300, Buckets: 500, Seed: 5})
	for _, precision := range []string{"bf16", "f16"} {
		text := "model: {kind: dlrm, bottom: [64], hidden: [256, 64], dim: 16}\noptimizer: {kind: adam, lr: 0.01}\nbatch: 150\nepochs: 99\n" +
			"precision: " + precision + "\ndata: {train: {format: generated}}\nstrategy: {kind: serial}\n"
		one := trainMem(t, parse(t, text, "threads=1"), src, 5)
		for _, threads := range []string{"threads=2", "threads=3"} {
			if d, _ := difference(one.params, trainMem(t, parse(t, text, threads), src, 5).params); d != 0 {
				t.Errorf("%s, %s: parameters differ by %g", precision, threads, d)
			}
		}
	}
}

// The backends agree: their sums have another order, so that some 16-bit results are the
// neighbour of the other's.
func TestMixedBackends(t *testing.T) {
	src := writeRows(t, 3)
	for precision, bound := range map[string]float64{"bf16": 0x1p-8, "f16": 0x1p-11} {
		text := "model: {kind: mlp, hidden: [16, 8], classes: 3}\noptimizer: {kind: sgd, lr: 0.1}\nbatch: 30\nepochs: 99\n" +
			"precision: " + precision + "\ndata: {train: {format: generated}}\nstrategy: {kind: serial}\n"
		ref := trainMem(t, parse(t, text, "backend=ref"), src, sameSteps)
		native := trainMem(t, parse(t, text), src, sameSteps)
		d, _ := difference(ref.params, native.params)
		t.Logf("%s: %.3g", precision, d)
		if !(d <= bound) {
			t.Errorf("%s: native is %.3g off ref, more than the unit roundoff %.3g", precision, d, bound)
		}
	}
}
