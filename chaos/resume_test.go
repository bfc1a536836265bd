//go:build unix

package chaos

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/gangline/gangline/metric"
	"github.com/gangline/gangline/train"
)

// near says whether two values of metrics are equal but for the order of sums.
func near(a, b *float64) bool {
	return a == b || a != nil && b != nil && math.Abs(*a-*b) <= 1e-4*math.Max(1, math.Abs(*b))
}

// checkMetrics compares two evaluations.
func checkMetrics(t *testing.T, what string, got, want *metric.Result) {
	t.Helper()
	if got == nil || want == nil || got.Rows != want.Rows || !near(got.Loss, want.Loss) || !near(got.LogLoss, want.LogLoss) ||
		!near(got.AUC, want.AUC) || !near(got.Accuracy, want.Accuracy) || !near(got.RMSE, want.RMSE) {
		t.Errorf("%s: got %s, want %s", what, shown(got), shown(want))
	}
}

// shown is a value as a report has it, or null.
func shown(v any) string {
	text, err := json.Marshal(v)
	if err != nil {
		return err.Error()
	}
	return string(text)
}

// copyDir copies a directory of checkpoints.
func copyDir(t *testing.T, from, to string) {
	t.Helper()
	if err := os.CopyFS(to, os.DirFS(from)); err != nil {
		t.Fatal(err)
	}
}

// TestResumeElsewhere proves that a checkpoint does not depend on who held what:
// half a run on two servers goes on with any number of servers, bit for bit, and
// with other workers and strategies to the same metrics.
func TestResumeElsewhere(t *testing.T) {
	for _, name := range []string{"ctr-ps", "table-ps"} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			writeLines(b)
			s := specOf(name)
			job := s.write(b)
			half, more := b.path("half"), []string{"epochs=2", "steps=90", "eval.every=0", "checkpoint.every=40"}
			if name == "table-ps" {
				more = append(more, "data.eval.path=lines.svm")
			}
			whole := b.train("whole", job, append(more, "checkpoint.dir="+b.path("whole"))...).result()
			first := b.train("first half", job, append(more, "steps=40", "checkpoint.dir="+half)...).result()
			if whole.Steps != 90 || first.Steps != 40 {
				t.Fatalf("runs of %d and %d steps", whole.Steps, first.Steps)
			}
			for _, tc := range []struct {
				name  string
				same  bool
				where []string
			}{
				{"3 servers", true, []string{"strategy.servers=3"}},
				{"1 server", true, []string{"strategy.servers=1"}},
				{"3 workers", false, []string{"strategy.workers=3"}},
				{"1 worker", false, []string{"strategy.workers=1"}},
				{"allreduce", false, []string{"strategy.kind=allreduce", "strategy.servers=0"}},
				{"serial", false, []string{"strategy.kind=serial", "strategy.workers=1", "strategy.servers=0"}},
			} {
				dir := b.path(tc.name)
				copyDir(t, half, dir)
				p := b.train("second half, "+tc.name, job, append(append(slices.Clip(more), "checkpoint.dir="+dir, "--resume"), tc.where...)...)
				got := p.result()
				if got.Steps != 90 || got.Resumed != 40 {
					t.Errorf("%s: %d steps, resumed at %d", tc.name, got.Steps, got.Resumed)
				}
				if tc.same && got.ParamsSHA256 != whole.ParamsSHA256 {
					t.Errorf("%s: parameters %s, without a break %s", tc.name, got.ParamsSHA256, whole.ParamsSHA256)
				}
				checkMetrics(t, tc.name, got.Eval, whole.Eval)
				if !near(got.TrainLoss, whole.TrainLoss) {
					t.Errorf("%s: train loss %s, without a break %s", tc.name, shown(got.TrainLoss), shown(whole.TrainLoss))
				}
			}
		})
	}
}

// TestEvalOfCheckpoint proves that a checkpoint, tested in another process, has
// the metrics that the run reported.
func TestEvalOfCheckpoint(t *testing.T) {
	b := newBench(t)
	writeLines(b)
	for _, name := range []string{"ctr-ps", "logistic-allreduce"} {
		s, dir := specOf(name), b.path("checkpoints-"+name)
		report := b.train(name, s.write(b), "checkpoint.dir="+dir).result()
		for _, from := range []string{dir, report.Checkpoint} {
			p := b.start("eval "+name, nil, "eval", s.write(b), "--set", "checkpoint.dir="+dir, "--checkpoint", from)
			if status := p.wait(); status != 0 {
				t.Fatalf("exit status %d:\n%s", status, p.log)
			}
			var e train.Evaluation
			p.read(&e)
			if e.Step != report.Steps {
				t.Errorf("%s: step %d, want %d", from, e.Step, report.Steps)
			}
			checkMetrics(t, from, &e.Eval, report.Eval)
		}
	}
}

// TestDamagedCheckpoint proves that a run goes on from the newest checkpoint that
// is whole, says which one it passed over, and ends as if nothing had been.
func TestDamagedCheckpoint(t *testing.T) {
	b := newBench(t)
	writeLines(b)
	s, dir := specOf("mlp-ps"), b.path("checkpoints")
	want := b.train("undisturbed", s.write(b), "checkpoint.dir="+b.path("undisturbed"), "checkpoint.every=10").result()
	b.train("first part", s.write(b), "checkpoint.dir="+dir, "checkpoint.every=10", "checkpoint.keep=2", "steps=40").result()
	shards, err := filepath.Glob(filepath.Join(dir, "step-000000000040", "*.safetensors"))
	if err != nil || len(shards) == 0 {
		t.Fatalf("%v, %v", shards, err)
	}
	text, err := os.ReadFile(shards[0])
	if err != nil {
		t.Fatal(err)
	}
	text[len(text)-5] ^= 1
	if err := os.WriteFile(shards[0], text, 0o644); err != nil {
		t.Fatal(err)
	}
	// What is saved before step 40 comes again must not make way for it.
	p := b.train("resumed", s.write(b), "checkpoint.dir="+dir, "checkpoint.keep=1", "steps=35", "--resume")
	between := p.result()
	p.checkSays(`checkpoint passed over.*step-000000000040.*checksum differs`)
	got := b.train("resumed again", s.write(b), "checkpoint.dir="+dir, "checkpoint.every=10", "checkpoint.keep=1", "--resume").result()
	if between.Resumed != 30 || got.Resumed != 35 || got.ParamsSHA256 != want.ParamsSHA256 {
		t.Errorf("resumed at %d and %d, parameters %s, undisturbed %s", between.Resumed, got.Resumed, got.ParamsSHA256, want.ParamsSHA256)
	}
	b.checkCheckpoints(dir, 1)
}

// TestFullDisk proves that a checkpoint that does not fit ends the run with a
// message that names it, and that the ones before it are whole.
func TestFullDisk(t *testing.T) {
	clicks := []string{"data.eval.format=generated", "data.eval.rows=500", "data.eval.first=100000", "data.eval.buckets=4096", "data.eval.seed=7"}
	lines := []string{"data.eval.format=libsvm", "data.eval.path=lines.svm", "data.eval.features=30"}
	for _, tc := range []struct {
		job  string
		eval []string
	}{{"mlp-ps", lines}, {"ctr-ps", clicks}, {"ctr-allreduce", clicks}} {
		t.Run(tc.job, func(t *testing.T) {
			b := newBench(t)
			writeLines(b)
			s, disk := specOf(tc.job), b.path("disk")
			if err := os.Mkdir(disk, 0o755); err != nil {
				t.Fatal(err)
			}
			smallDisk(t, disk, 1<<20)
			want := b.train("undisturbed", s.write(b), "checkpoint.dir="+b.path("undisturbed"), "checkpoint.keep=1").result()
			enlarge(t, disk, 3*size(t, want.Checkpoint)-(4<<10)) // two and most of a third
			job := append(trainArgs(s.write(b), tc.eval...), "--set", "checkpoint.dir="+disk, "--set", "checkpoint.every=1")
			b.start("full", nil, append(job, "--set", "checkpoint.keep=1000")...).checkVerdict(1, `^gangline: .*`+disk+`/\S+.*no space left on device`)
			b.checkCheckpoints(disk, 1000)
			left, err := os.ReadDir(disk)
			if err != nil || len(left) < 2 {
				t.Fatalf("left on the disk: %v, %v", left, err)
			}
			newest, err := strconv.ParseInt(strings.TrimPrefix(left[len(left)-1].Name(), "step-"), 10, 64)
			if err != nil {
				t.Fatal(err)
			}
			eval := append([]string{"eval"}, slices.DeleteFunc(slices.Clone(job[1:]), func(a string) bool { return slices.Contains([]string{"-v", "--progress", "plain"}, a) })...)
			if p := b.start("eval", nil, eval...); p.wait() != 0 {
				t.Errorf("eval failed:\n%s", p.log)
			} else {
				p.checkSays(fmt.Sprintf(`(?m)^step %d: AUC`, newest))
			}
			enlarge(t, disk, 16<<20)
			got := b.start("on a larger disk", nil, append(job, "--set", "checkpoint.keep=1", "--resume")...).result()
			if got.Resumed != newest || got.ParamsSHA256 != want.ParamsSHA256 {
				t.Errorf("resumed at %d, want %d; parameters %s, undisturbed %s", got.Resumed, newest, got.ParamsSHA256, want.ParamsSHA256)
			}
			b.checkCheckpoints(disk, 1)
		})
	}
}

// size is what a checkpoint takes on a disk of pages of 4 KiB.
func size(t *testing.T, dir string) int64 {
	t.Helper()
	files, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var n int64
	for _, f := range files {
		info, err := f.Info()
		if err != nil {
			t.Fatal(err)
		}
		n += (info.Size() + 4095) / 4096 * 4096
	}
	return n
}
