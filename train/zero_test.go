package train

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gangline/gangline/checkpoint"
	"github.com/gangline/gangline/collective/cost"
	"github.com/gangline/gangline/data"
	"github.com/gangline/gangline/plan"
	"github.com/gangline/gangline/strategy"
	"github.com/gangline/gangline/train/input"
	"github.com/gangline/gangline/transport"
)

// zeroJob is a small GPT with Adam. Its dims are such that parameters fill cache lines
// but for some, and most buckets are not a multiple of the ranks.
const zeroJob = `
model: {kind: gpt, dim: 16, layers: 2, heads: 2}
optimizer: {kind: adam, lr: 0.01, eps: 0.001, clip_norm: 1}
batch: 30
epochs: 99
data: {train: {format: generated}}
`

// zeroText is text for it: of 16 letters, so that every parameter fills cache lines.
func zeroText(t *testing.T) data.Source {
	t.Helper()
	path := filepath.Join(t.TempDir(), "text.txt")
	if err := os.WriteFile(path, []byte(strings.Repeat("the ring sums what the ranks send. ", 90)), 0o644); err != nil {
		t.Fatal(err)
	}
	j := parse(t, textJob, "data.train.path="+path, "data.eval.path="+path, "checkpoint.dir="+t.TempDir())
	rows, err := input.Open(t.Context(), j, "", nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = rows.Close() })
	return rows.Train
}

// All stages on any number of ranks end where allreduce ends, with the memory and the
// bytes of the paper: of P bytes of parameters 2P + 2P slots, gradients and parameters,
// of which a rank has 1/N where they are cut, and 2(N-1)/N P or 3(N-1)/N P sent.
func TestZero(t *testing.T) {
	src := zeroText(t)
	table := cost.Table{cost.Unix: {Beta: 1}}
	for _, n := range []int{1, 2, 3} {
		plain := parse(t, zeroJob, "strategy.kind=allreduce", fmt.Sprintf("strategy.workers=%d", n))
		plain.Network.Table = table
		want := trainMem(t, plain, src, sameSteps)
		var p int64
		for _, x := range want.params {
			p += int64(len(x.Bytes()))
		}
		for stage := 1; stage <= 3; stage++ {
			j := parse(t, zeroJob, "strategy.kind=zero", fmt.Sprintf("strategy.workers=%d", n), fmt.Sprintf("strategy.stage=%d", stage), "strategy.bucket=8KiB")
			got := trainMem(t, j, src, sameSteps)
			if t.Failed() {
				return
			}
			if global, _ := difference(want.params, got.params); !(global <= 1e-5) {
				t.Errorf("stage %d, %d ranks: parameters differ by %.3g", stage, n, global)
			}
			setup, err := NewSetup(j, src.Columns())
			if err != nil {
				t.Fatal(err)
			}
			buckets := strings.Count(planText(setup), "reducescatter")
			sent := sentBy(got.stats)
			for r := range got.stats {
				m := got.report[r].Memory
				parts := []struct {
					name      string
					got, want float64
				}{
					{"parameters", float64(m.Parameters), float64(p)},
					{"gradients", float64(m.Gradients), float64(p)},
					{"slots", float64(m.OptimizerState), 2 * float64(p)},
				}
				for i, cut := range []bool{stage == 3, stage >= 2, true} {
					if cut {
						parts[i].want /= float64(n)
					}
					if c := parts[i]; math.Abs(c.got-c.want) > .05*c.want {
						t.Errorf("stage %d, %d ranks: rank %d has %v bytes of %s, want %v", stage, n, r, c.got, c.name, c.want)
					}
				}
				if room := map[int]int64{1: 0, 2: 2 * 9 << 10, 3: 6 * 9 << 10}[stage]; m.Temporary > room {
					t.Errorf("stage %d, %d ranks: rank %d has %d bytes for a while, want %d or less", stage, n, r, m.Temporary, room)
				}
			}
			times := int64(2)
			if stage == 3 {
				times = 3
			}
			// A commit sends 25 bytes to each other rank, a collective opens with a frame of 128.
			step := times*int64(n-1)*p + int64(n*(n-1))*25 + int64(n*min(n-1, 1))*times*int64(buckets)*128
			// After the steps of stage 3, rank 0 takes what others have of the parameters: the
			// same bytes however many steps there were.
			few := trainMem(t, j, src, sameSteps/2)
			if rest, want := sent-sentBy(few.stats), step*(sameSteps-sameSteps/2); rest != want {
				t.Errorf("stage %d, %d ranks: all sent %d bytes in the last steps, want %d", stage, n, rest, want)
			}
			if rest := sent - step*sameSteps; stage < 3 && rest != 0 || rest < 0 {
				t.Errorf("stage %d, %d ranks: all sent %d bytes, of which %d not in steps", stage, n, sent, rest)
			}
			t.Logf("stage %d, %d ranks: %d bytes of parameters in %d buckets, sent %d, formula %d a step, memory of rank 0 %+v", stage, n, p, buckets, sent, step, *got.report[0].Memory)
		}
	}
}

// sentBy is what all ranks sent.
func sentBy(ranks []transport.Stats) (bytes int64) {
	for _, s := range ranks {
		bytes += s.BytesSent
	}
	return bytes
}

// A checkpoint goes on with another stage, number of ranks and strategy, and ends where
// a run that was not interrupted ends.
func TestZeroResumes(t *testing.T) {
	const text = `
model: {kind: mlp, hidden: [13, 7]}
optimizer: {kind: adam, lr: 0.01}
precision: f64
backend: ref
batch: 30
epochs: 3
steps: 9
data: {train: {format: generated, rows: 211, buckets: 50, seed: 5}, eval: {format: generated, first: 211, rows: 40, buckets: 50, seed: 5}}
`
	whole := runMem(t, parse(t, text+"strategy: {kind: allreduce, workers: 2}\n", "checkpoint.dir="+t.TempDir()), 0)
	dir := t.TempDir()
	for i, s := range []string{
		"{kind: zero, workers: 3, stage: 1}", "{kind: zero, workers: 2, stage: 3}", "{kind: zero, workers: 3, stage: 2}", "{kind: allreduce, workers: 2}",
		"{kind: zero, workers: 2, stage: 1}", "{kind: zero, workers: 1, stage: 3}", "{kind: serial}", "{kind: zero, workers: 4, stage: 3, bucket: 1KiB}",
	} {
		j := parse(t, text+"strategy: "+s+"\n", "checkpoint.dir="+dir, fmt.Sprintf("steps=%d", i+2))
		main := runMem(t, j, min(i, 1))
		c, err := checkpoint.Open(main.Checkpoint)
		if err != nil {
			t.Fatal(err)
		}
		if want := map[bool]int{true: j.Strategy.Workers, false: 1}[j.Strategy.Kind == "zero"]; len(c.Manifest.Shards) != want {
			t.Errorf("%s: %d shards", s, len(c.Manifest.Shards))
		}
		alone, err := Evaluate(t.Context(), j, "", dir)
		if err != nil {
			t.Fatal(err)
		}
		if a, b := *alone.Eval.Loss, *main.Eval.Loss; math.Abs(a-b) > 1e-12 {
			t.Errorf("%s: loss %v, alone %v", s, b, a)
		}
		if i == 7 {
			if a, b := *main.TrainLoss, *whole.TrainLoss; main.Resumed != 8 || math.Abs(a-b) > 1e-12 {
				t.Errorf("went on from %d; loss %v, want %v", main.Resumed, a, b)
			}
		}
	}
}

func planText(s *Setup) string { return plan.Format(s.Program.Plans[strategy.StepPlan]) }
