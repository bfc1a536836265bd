package train

import (
	"fmt"
	"log/slog"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/gangline/gangline/checkpoint"
	"github.com/gangline/gangline/coord"
	"github.com/gangline/gangline/data"
	"github.com/gangline/gangline/report"
	"github.com/gangline/gangline/train/input"
	"github.com/gangline/gangline/train/resume"
	"github.com/gangline/gangline/transport/mem"
)

// compressions are all kinds, as a job has them, for gradients that are small.
func compressions() []string {
	return []string{
		"{kind: f16, min: 0}", "{kind: bf16, min: 0}", "{kind: int8, min: 0}", "{kind: int8, feedback: off, min: 0}",
		"{kind: onebit, block: 64, min: 0}", "{kind: topk, ratio: 0.05, min: 0}", "{kind: powersgd, min: 0}",
	}
}

// noisyRows writes rows of three classes, so many features and labels that are wrong now and
// then, so that no loss is near zero.
func noisyRows(t *testing.T, features int) string {
	t.Helper()
	r := rand.New(rand.NewPCG(3, 4))
	truth := make([]float64, 3*features)
	for i := range truth {
		truth[i] = r.NormFloat64()
	}
	var b strings.Builder
	for range 300 {
		var scores [3]float64
		var row strings.Builder
		for id := r.IntN(4); id < features; id += 1 + r.IntN(features/6) {
			x := r.NormFloat64()
			fmt.Fprintf(&row, " %d:%.3f", id+1, x)
			for c := range scores {
				scores[c] += x * truth[c*features+id]
			}
		}
		label := 0
		for c := range scores {
			if scores[c] > scores[label] {
				label = c
			}
		}
		if r.IntN(5) == 0 {
			label = r.IntN(3)
		}
		fmt.Fprintf(&b, "%d%s\n", label, row.String())
	}
	path := filepath.Join(t.TempDir(), "rows.svm")
	if err := os.WriteFile(path, []byte(b.String()), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

// noisySteps is how long they are trained on.
const noisySteps = 400

// noisyJob trains to the one optimum that there is.
func noisyJob(path string, features, workers int, compression string) string {
	return fmt.Sprintf(`
model: {kind: softmax, classes: 3}
optimizer: {kind: momentum, lr: 0.1, l2: 0.01, schedule: {kind: cosine, steps: %d}}
batch: 60
epochs: 9999
steps: %d
data: {train: {format: libsvm, path: %q, features: %d}}
strategy: {kind: allreduce, workers: %d, bucket: 4MiB, compression: %s}
`, noisySteps, noisySteps, path, features, workers, compression)
}

// lives runs a job that must not fail.
func lives(t *testing.T, text string, attempt int, set ...string) []report.Rank {
	t.Helper()
	reports, errs := livesMem(t, parse(t, text, set...), attempt)
	for r, err := range errs {
		if err != nil {
			t.Fatalf("rank %d: %v", r, err)
		}
	}
	return reports
}

// Every kind of compression ends within 1 % of the loss without, on two and three workers, and
// reports what it saved and lost.
func TestCompressedTraining(t *testing.T) {
	const features = 40
	path := noisyRows(t, features)
	for _, workers := range []int{2, 3} {
		want := *lives(t, noisyJob(path, features, workers, "{}"), 0)[0].Main.Objective
		for _, c := range compressions() {
			reports := lives(t, noisyJob(path, features, workers, c), 0)
			got := *reports[0].Main.Objective
			all, err := report.New("j", report.Strategy{}, "", reports)
			if err != nil {
				t.Fatal(err)
			}
			r := all.Compression
			t.Logf("%d workers, %-35s objective %.5f, %+.2f %%; %.1f times fewer bytes, lost %.3g", workers, c, got, 100*(got/want-1), r.Fewer(), r.Lost)
			if math.Abs(got/want-1) > .01 {
				t.Errorf("%d workers, %s: objective %v, without compression %v", workers, c, got, want)
			}
			if len(r.Buckets) != 1 || r.Buckets[0].Sums != noisySteps || r.Fewer() < 1.3 || r.Lost <= 0 || r.Saved <= 0 {
				t.Errorf("%d workers, %s: report %+v", workers, c, r)
			}
		}
	}
}

// One bit moves less than 1/25 of the bytes, all that workers say to each other counted, and
// ends within 1 % of the loss.
func TestOneBitMovesFewBytes(t *testing.T) {
	const features = 8000
	path := noisyRows(t, features)
	for _, workers := range []int{2, 3} {
		plain := lives(t, noisyJob(path, features, workers, "{}"), 0)
		bits := lives(t, noisyJob(path, features, workers, "{kind: onebit}"), 0)
		want, got := *plain[0].Main.Objective, *bits[0].Main.Objective
		t.Logf("%d workers: objective %.5f, without compression %.5f; bytes sent %d and %d", workers, got, want, bits[0].BytesSent, plain[0].BytesSent)
		if math.Abs(got/want-1) > .01 {
			t.Errorf("%d workers: objective %v, without compression %v", workers, got, want)
		}
		for r := range workers {
			if a, b := bits[r].BytesSent, plain[r].BytesSent; 25*a > b {
				t.Errorf("rank %d of %d sent %d bytes, without compression %d: want 1/25 of it", r, workers, a, b)
			}
		}
	}
}

// All workers end with the same bits, however they are compressed, also where a step is cut
// into micro-batches and rows of tables go beside.
func TestCompressedWorkersStayTheSame(t *testing.T) {
	clicks := open(t, data.Spec{Format: "generated", Rows: 300, Buckets: 500, Seed: 5})
	for _, c := range compressions() {
		for _, workers := range []int{2, 3} {
			text := "model: {kind: ctr, hidden: [8], dim: 4}\noptimizer: {kind: adam, lr: 0.01, clip_norm: 0.3}\nbatch: 30\nmicro_batches: 2\nepochs: 99\n" +
				"data: {train: {format: generated}}\nstrategy: {kind: allreduce, bucket: 1KiB, compression: " + c + "}\n"
			got := trainMem(t, parse(t, text, "strategy.workers="+strconv.Itoa(workers)), clicks, sameSteps)
			for r := range got.shared {
				for name, v := range got.shared[0] {
					if string(v.Bytes()) != string(got.shared[r][name].Bytes()) {
						t.Errorf("%s: %s of rank %d is not that of rank 0", c, name, r)
					}
				}
			}
		}
	}
}

// A compressed run that goes on from a checkpoint is the run that was never ended, bit for
// bit, residuals too.
func TestCompressedResume(t *testing.T) {
	for _, c := range compressions() {
		t.Run(c, func(t *testing.T) {
			whole, part := t.TempDir(), t.TempDir()
			text := resumeJob + "strategy: {kind: allreduce, workers: 3, bucket: 100, compression: " + c + "}\n"
			want := lives(t, text, 0, "checkpoint.dir="+whole)[0].Main
			middle := checkpointOf(t, whole, 5)
			if err := os.CopyFS(filepath.Join(part, filepath.Base(middle)), os.DirFS(middle)); err != nil {
				t.Fatal(err)
			}
			got := lives(t, text, 1, "checkpoint.dir="+part)[0].Main
			if got.Resumed != 5 || got.ParamsSHA256 != want.ParamsSHA256 {
				t.Errorf("goes on from step %d to parameters %s, want %s", got.Resumed, got.ParamsSHA256, want.ParamsSHA256)
			}
			sameFiles(t, checkpointOf(t, whole, 12), checkpointOf(t, part, 12))
		})
	}
}

// With another number of workers, other buckets or another codec, what was lost is there in
// full, and the run goes on; without compression a warning says what is given up.
func TestCompressedResumeOnOthers(t *testing.T) {
	for _, was := range []string{"{kind: onebit, block: 64, min: 0}", "{kind: powersgd, min: 0}"} {
		dir := t.TempDir()
		lives(t, resumeJob+"strategy: {kind: allreduce, workers: 3, compression: "+was+"}\n", 0, "checkpoint.dir="+dir)
		if err := os.RemoveAll(checkpointOf(t, dir, 12)); err != nil {
			t.Fatal(err)
		}
		if err := os.RemoveAll(checkpointOf(t, dir, 10)); err != nil {
			t.Fatal(err)
		}
		from, err := checkpoint.Open(checkpointOf(t, dir, 5))
		if err != nil {
			t.Fatal(err)
		}
		want, largest := map[string][]float64{}, 0.
		if err := from.Pieces(func(name string) bool { return strings.Contains(name, "/residual.") }, func(p checkpoint.Piece) error {
			name, _, _ := strings.Cut(p.Name, "/residual.")
			largest = max(largest, addTo(want, name, p.Shape.Elems(), p.Lo, p.Data.F32()))
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		if len(want) < 5 || largest == 0 {
			t.Fatalf("%s: the checkpoint has residuals of %d parameters, the largest %v", was, len(want), largest)
		}
		for _, now := range []string{
			"workers: 1, compression: " + was, "workers: 2, compression: " + was, "workers: 5, bucket: 40, compression: " + was,
			"workers: 2, compression: {kind: topk, min: 0}", "workers: 4, compression: {kind: powersgd, rank: 1, min: 0}", "workers: 2",
		} {
			j := parse(t, resumeJob+"strategy: {kind: allreduce, "+now+"}\n", "checkpoint.dir="+dir)
			got, warned := lostBy(t, Config{Job: j, Attempt: 1})
			if now == "workers: 2" {
				if !strings.Contains(warned, "given up") || !strings.Contains(warned, "b1") {
					t.Errorf("%s to %s: warned of %q", was, now, warned)
				}
				continue
			}
			if len(got) != len(want) || warned != "" {
				t.Errorf("%s to %s: residuals of %d parameters, want %d (%s)", was, now, len(got), len(want), warned)
			}
			for name := range want {
				for i, x := range want[name] {
					if d := math.Abs(got[name][i] - x); !(d <= 1e-6*largest) {
						t.Fatalf("%s to %s: element %d of the residuals of %s adds up to %v, was %v", was, now, i, name, got[name][i], x)
					}
				}
			}
		}
		if got := lives(t, resumeJob+"strategy: {kind: allreduce, workers: 2, compression: "+was+"}\n", 1, "checkpoint.dir="+dir)[0].Main; got.Resumed != 5 || got.Steps != 12 {
			t.Errorf("%s: goes on from %d to %d", was, got.Resumed, got.Steps)
		}
	}
}

// addTo adds elements from lo on to what is known of a name, and returns the largest.
func addTo(all map[string][]float64, name string, n, lo int, v []float32) (largest float64) {
	if all[name] == nil {
		all[name] = make([]float64, n)
	}
	for i, x := range v {
		all[name][lo+i] += float64(x)
		largest = max(largest, math.Abs(float64(x)))
	}
	return largest
}

// lostBy adds up what all workers of a run that goes on have taken over, and returns what rank 0
// logs.
func lostBy(t *testing.T, cfg Config) (map[string][]float64, string) {
	t.Helper()
	columns, err := input.Columns(t.Context(), cfg.Job, "")
	if err != nil {
		t.Fatal(err)
	}
	setup, err := NewSetup(cfg.Job, columns)
	if err != nil {
		t.Fatal(err)
	}
	got := map[string][]float64{}
	var log strings.Builder
	net := mem.NewNetwork(cfg.Job.Strategy.Workers)
	for r := range cfg.Job.Strategy.Workers {
		cfg.Rank, cfg.Logger = r, slog.New(slog.NewTextHandler(&log, nil))
		m := &member{cfg: cfg, setup: setup, endpoint: net.Endpoint(r), report: func(coord.Progress) {}, session: &coord.Session{Generation: 2}}
		if m.from, err = resume.Point(cfg.Job, cfg.Attempt, cfg.Logger); err != nil {
			t.Fatal(err)
		}
		if m.rows, err = input.Open(t.Context(), cfg.Job, "", nil); err != nil {
			t.Fatal(err)
		}
		w, err := m.newWorker()
		if err != nil {
			t.Fatal(err)
		}
		for _, b := range w.steps.Step().Compressed() {
			s := b.State()
			for k, part := range b.Parts {
				lo, hi := b.Range(k)
				addTo(got, part.Name, hi-lo, 0, s.First[lo:hi])
				if from, to := max(lo, s.Lo), min(hi, s.Lo+len(s.Second)); from < to {
					addTo(got, part.Name, hi-lo, from-lo, s.Second[from-s.Lo:to-s.Lo])
				}
			}
		}
		if err := w.close(); err != nil {
			t.Error(err)
		}
		if err := m.endpoint.Close(); err != nil {
			t.Error(err)
		}
	}
	return got, log.String()
}
