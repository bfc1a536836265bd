package train

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/gangline/gangline/report"

	"github.com/gangline/gangline/checkpoint"
	"github.com/gangline/gangline/coord"
	"github.com/gangline/gangline/data"
	"github.com/gangline/gangline/job"
	"github.com/gangline/gangline/train/input"
	"github.com/gangline/gangline/train/resume"
	"github.com/gangline/gangline/transport/mem"
)

// resumeJob is of a model with tables, with a rule that keeps slots, over an
// epoch and a half; the checkpoint in the middle is before the epoch's end.
const resumeJob = `
model: {kind: ctr, hidden: [8], dim: 4}
optimizer: {kind: adam, lr: 0.01}
batch: 30
epochs: 2
steps: 12
data: {train: {format: generated, rows: 211, buckets: 500, seed: 5}}
checkpoint: {every: 5, keep: 9}
`

// runMem is lifeMem of a job that must not fail; it returns the report of rank 0.
func runMem(t *testing.T, j job.Job, attempt int) *report.Main {
	t.Helper()
	report, errs := lifeMem(t, j, attempt)
	for r, err := range errs {
		if err != nil {
			t.Errorf("rank %d: %v", r, err)
		}
	}
	if t.Failed() {
		t.FailNow()
	}
	return report
}

// lifeMem lives the whole life of every rank of a job but its joining, over the
// mem transport; its data must be generated.
func lifeMem(t *testing.T, j job.Job, attempt int) (*report.Main, []error) {
	t.Helper()
	reports, errs := livesMem(t, j, attempt)
	return reports[0].Main, errs
}

// livesMem is lifeMem with the reports of all ranks, and what they sent.
func livesMem(t *testing.T, j job.Job, attempt int) ([]report.Rank, []error) {
	t.Helper()
	columns, err := input.Columns(t.Context(), j, "")
	if err != nil {
		t.Fatal(err)
	}
	setup, err := NewSetup(j, columns)
	if err != nil {
		t.Fatal(err)
	}
	world := j.Strategy.Workers + j.Strategy.Servers
	reports, errs := make([]report.Rank, world), make([]error, world)
	synctest.Test(t, func(t *testing.T) {
		net := mem.NewNetwork(world)
		var ranks sync.WaitGroup
		for r := range world {
			cfg := Config{Job: j, Rank: r, Attempt: attempt, Logger: slog.New(slog.DiscardHandler)}
			m := &member{
				cfg: cfg, setup: setup, endpoint: net.Endpoint(r), report: func(coord.Progress) {},
				session: &coord.Session{Generation: uint64(attempt) + 1},
			}
			if m.from, err = resume.Point(cfg.Job, cfg.Attempt, cfg.Logger); err != nil {
				t.Fatal(err)
			}
			if err := m.takeImport(); err != nil {
				t.Fatal(err)
			}
			do := m.serve
			if cfg.role() == "worker" {
				do = m.train
				if m.rows, err = input.Open(t.Context(), j, "", nil); err != nil {
					t.Fatal(err)
				}
			}
			ranks.Go(func() {
				errs[r] = do(t.Context(), &reports[r])
				reports[r].BytesSent = m.stats().BytesSent
				if errs[r] != nil {
					_ = m.endpoint.Close() // so that the others end, too
				}
			})
		}
		ranks.Wait()
		for _, e := range net.Endpoints() {
			_ = e.Close()
		}
	})
	return reports, errs
}

// A run that was ended after a checkpoint in mid-epoch and goes on from it ends
// with the bits of the run that never was: same rows, same slots, same version.
func TestResumeIsTheSameRun(t *testing.T) {
	for _, s := range []string{
		"{kind: serial}", "{kind: allreduce, workers: 3}", "{kind: ps, workers: 2, servers: 2}",
	} {
		t.Run(s, func(t *testing.T) {
			whole, part := t.TempDir(), t.TempDir()
			text := resumeJob + "strategy: " + s + "\n"
			want := runMem(t, parse(t, text, "checkpoint.dir="+whole), 0)
			if want.Steps != 12 || want.Resumed != 0 || want.Examples != 7*30+1+4*30 {
				t.Fatalf("the whole run: %+v", want.Summary)
			}
			middle := checkpointOf(t, whole, 5)
			if err := os.CopyFS(filepath.Join(part, filepath.Base(middle)), os.DirFS(middle)); err != nil {
				t.Fatal(err)
			}
			got := runMem(t, parse(t, text, "checkpoint.dir="+part), 1)
			if got.Resumed != 5 || got.Steps != 12 || got.Examples != want.Examples-5*30 {
				t.Errorf("the run that went on: %+v", got.Summary)
			}
			if got.ParamsSHA256 != want.ParamsSHA256 {
				t.Errorf("parameters %s, want %s", got.ParamsSHA256, want.ParamsSHA256)
			}
			sameFiles(t, checkpointOf(t, whole, 12), checkpointOf(t, part, 12))
		})
	}
}

// checkpointOf finds the checkpoint of a step.
func checkpointOf(t *testing.T, root string, step int64) string {
	t.Helper()
	dirs, err := checkpoint.List(root)
	if err != nil {
		t.Fatal(err)
	}
	for _, dir := range dirs {
		if c, err := checkpoint.Open(dir); err != nil {
			t.Fatal(err)
		} else if c.Manifest.Step == step {
			return dir
		}
	}
	t.Fatalf("no checkpoint of step %d in %v", step, dirs)
	return ""
}

// sameFiles compares the shards of two checkpoints, which hold the slots too.
func sameFiles(t *testing.T, a, b string) {
	t.Helper()
	names, err := fs.Glob(os.DirFS(a), "*")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		x, err := os.ReadFile(filepath.Join(a, name))
		if err != nil {
			t.Fatal(err)
		}
		y, err := os.ReadFile(filepath.Join(b, name))
		if err != nil || name != checkpoint.ManifestName && string(x) != string(y) {
			t.Errorf("%s differs (%v)", name, err)
		}
	}
}

// A manifest whose digest of the job was damaged is not that of another job.
func TestResumeNamesDamageOfJob(t *testing.T) {
	dir := t.TempDir()
	j := parse(t, resumeJob, "strategy.kind=serial", "checkpoint.dir="+dir)
	runMem(t, j, 0)
	manifest := filepath.Join(checkpointOf(t, dir, 12), checkpoint.ManifestName)
	text, err := os.ReadFile(manifest)
	if err != nil {
		t.Fatal(err)
	}
	_, digest, err := j.Fixed()
	if err != nil {
		t.Fatal(err)
	}
	damaged := strings.Replace(string(text), digest, strings.Repeat("0", len(digest)), 1)
	if err := os.WriteFile(manifest, []byte(damaged), 0o644); err != nil {
		t.Fatal(err)
	}
	_, err = resume.Point(j, 1, slog.New(slog.DiscardHandler))
	if !errors.Is(err, checkpoint.ErrCorrupt) || strings.Contains(err.Error(), "another job") {
		t.Errorf("got %v", err)
	}
}

// What decides the numbers must not change when a run goes on; how long it is,
// and over how many workers, may.
func TestResumeRefusesAnotherJob(t *testing.T) {
	dir := t.TempDir()
	text := resumeJob + "strategy: {kind: serial}\n"
	runMem(t, parse(t, text, "checkpoint.dir="+dir), 0)
	for setting, refused := range map[string]bool{
		"optimizer.lr=0.02": true, "batch=31": true, "seed=2": true, "model.dim=5": true, "data.train.rows=210": true,
		"steps=13": false, "epochs=3": false, "strategy.kind=ps": false,
	} {
		cfg := Config{Job: parse(t, resumeJob, "checkpoint.dir="+dir, setting), Attempt: 1, Logger: slog.New(slog.DiscardHandler)}
		from, err := resume.Point(cfg.Job, cfg.Attempt, cfg.Logger)
		if refused && (err == nil || !strings.Contains(err.Error(), "another job")) || !refused && (err != nil || from == nil) {
			t.Errorf("%s: %v", setting, err)
		}
	}
	cfg := Config{Job: parse(t, text, "checkpoint.dir="+dir), Logger: slog.New(slog.DiscardHandler)}
	if _, err := resume.Point(cfg.Job, cfg.Attempt, cfg.Logger); err == nil || !strings.Contains(err.Error(), "already holds") {
		t.Errorf("a new run over old checkpoints: %v", err)
	}
}

// Ranks that would begin at different steps have different digests, so that
// they never start together.
func TestDigestSaysWhereARunBegins(t *testing.T) {
	src := open(t, data.Spec{Format: "generated", Rows: 211, Buckets: 500, Seed: 5})
	dir, seen := t.TempDir(), map[string]string{}
	for _, setting := range []string{"seed=1", "seed=2", "optimizer.lr=0.02", "strategy.workers=3"} {
		setup, err := NewSetup(parse(t, resumeJob+"strategy: {kind: allreduce}\n", "checkpoint.dir="+dir, setting), src.Columns())
		if err != nil {
			t.Fatal(err)
		}
		for _, first := range []int64{0, 5} {
			d, err := setup.Digest(first)
			if err != nil {
				t.Fatal(err)
			}
			what := fmt.Sprintf("%s from step %d", setting, first)
			if other, taken := seen[d]; taken {
				t.Errorf("%s has the digest of %s", what, other)
			}
			seen[d] = what
		}
	}
}
