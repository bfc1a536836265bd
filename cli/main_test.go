package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gangline/gangline/report"

	"github.com/gangline/gangline/coord"
	"github.com/gangline/gangline/job"
	"github.com/gangline/gangline/launch"
)

const (
	root       = ".."
	sharedData = root + "/../shared/data"
)

// beMain makes the test binary run as gangline: launchers start themselves again.
const beMain = "GANGLINE_TEST_BE_MAIN"

func TestMain(m *testing.M) {
	if _, started := os.LookupEnv(launch.EnvParent); started || os.Getenv(beMain) != "" {
		os.Exit(Main())
	}
	os.Exit(m.Run())
}

// gangline runs the command as a process and returns its last words and status.
func gangline(t *testing.T, args ...string) (stderr string, status int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, os.Args[0], args...)
	cmd.Env = append(os.Environ(), beMain+"=1")
	cmd.Dir = root
	var errs bytes.Buffer
	cmd.Stderr = &errs
	err := cmd.Run()
	if _, exited := errors.AsType[*exec.ExitError](err); err != nil && !exited {
		t.Fatal(err)
	}
	return errs.String(), cmd.ProcessState.ExitCode()
}

// trained runs a training and returns its report.
func trained(t *testing.T, args ...string) report.Report {
	t.Helper()
	path := filepath.Join(t.TempDir(), "out.json")
	stderr, status := gangline(t, append(args, "--report", path, "--progress", "none")...)
	if status != 0 {
		t.Fatalf("exit status %d: %s", status, stderr)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var r report.Report
	if err := json.Unmarshal(text, &r); err != nil {
		t.Fatal(err)
	}
	return r
}

func needData(t *testing.T) {
	t.Helper()
	if _, err := os.Stat(sharedData); err != nil {
		t.Skipf("the shared data is not here: %v", err)
	}
}

// Without arguments, an embedding model trains on two servers and two workers
// to nearly the best possible AUC.
func TestBuiltin(t *testing.T) {
	r := trained(t, "train")
	if r.Strategy.Kind != "ps" || r.Strategy.Workers != 2 || r.Strategy.Servers != 2 || r.Ranks != 4 {
		t.Errorf("it ran as %+v on %d ranks", r.Strategy, r.Ranks)
	}
	if share := *r.Eval.AUCShare; share < .97 {
		t.Errorf("it reached %.4f of the best AUC", share)
	}
	if g := r.Gradients; g.Pushed == 0 || g.Pushed != g.Applied {
		t.Errorf("gradients do not add up: %+v", g)
	}
}

// The built-in job and examples/ctr.yaml are one.
func TestBuiltinIsExample(t *testing.T) {
	example, err := os.ReadFile(root + "/examples/ctr.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(example, builtin) {
		t.Error("cli/builtin.yaml differs from examples/ctr.yaml: copy one over the other")
	}
}

// Adult reaches the reference by every strategy.
func TestAdultExample(t *testing.T) {
	needData(t)
	for _, kind := range []string{"serial", "allreduce", "ps"} {
		r := trained(t, "train", "examples/adult.yaml", "--data-dir", "../shared/data", "--set", "strategy.kind="+kind)
		if *r.Eval.AUC < .9015 || *r.Eval.LogLoss > .3255 {
			t.Errorf("%s: AUC %.4f, log loss %.4f, want at least .9015 and at most .3255", kind, *r.Eval.AUC, *r.Eval.LogLoss)
		}
	}
}

// A tenth of the mnist example gets most digits right. (The whole takes minutes.)
func TestMnistExample(t *testing.T) {
	if raceEnabled {
		t.Skip("dense kernels under the race detector take minutes; other tests race the same code")
	}
	needData(t)
	r := trained(t, "train", "examples/mnist.yaml", "--data-dir", "../shared/data", "--set", "steps=120")
	if *r.Eval.Accuracy < .9 {
		t.Errorf("accuracy %.4f after 120 steps, want at least .9", *r.Eval.Accuracy)
	}
}

// Its form with one bit an element moves less than 1/25 of the bytes, and its losses end at most
// 1 % above those without, here after two epochs.
func TestMnistOneBitExample(t *testing.T) {
	if raceEnabled {
		t.Skip("as above")
	}
	needData(t)
	args := []string{"train", "examples/mnist-onebit.yaml", "--data-dir", "../shared/data", "--set", "epochs=2", "--set", "optimizer.schedule.steps=938", "--set", "eval.every=0"}
	bits := trained(t, args...)
	plain := trained(t, append(args, "--set", "strategy.compression.kind=none")...)
	if 25*bits.BytesSent > plain.BytesSent {
		t.Errorf("%d bytes sent, without compression %d: want 1/25 of it", bits.BytesSent, plain.BytesSent)
	}
	for _, c := range []struct {
		name      string
		got, want float64
	}{
		{"objective", *bits.Objective, *plain.Objective},
		{"training loss", *bits.TrainLoss, *plain.TrainLoss},
		{"test loss", *bits.Eval.Loss, *plain.Eval.Loss},
	} {
		t.Logf("%s %.5f, without compression %.5f", c.name, c.got, c.want)
		if !(c.got <= 1.01*c.want) {
			t.Errorf("%s %v, without compression %v: want at most 1 %% more", c.name, c.got, c.want)
		}
	}
	if c := bits.Compression; c == nil || c.Fewer() < 25 || len(c.Buckets) != 3 || c.Moved > bits.BytesSent {
		t.Errorf("compression %+v of %d bytes sent", c, bits.BytesSent)
	}
}

// A trace of all ranks is written, and nothing else is left.
func TestTrace(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "trace.json")
	stderr, status := gangline(t, "train", "--set", "data.train.rows=3000", "--set", "data.eval.rows=1000", "--trace", path, "--progress", "none")
	if status != 0 {
		t.Fatal(stderr)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var events any
	if err := json.Unmarshal(text, &events); err != nil {
		t.Fatalf("the trace is no JSON: %v", err)
	}
	for _, want := range []string{`"pull`, `"commit`, `forward/`} {
		if !bytes.Contains(text, []byte(strings.Trim(want, `"`))) {
			t.Errorf("the trace has no %s", want)
		}
	}
	left, err := os.ReadDir(dir)
	if err != nil || len(left) != 1 {
		t.Errorf("left in the directory: %v, %v", left, err)
	}
}

// The commands of the README run. go test is what this is.
func TestReadmeCommands(t *testing.T) {
	text, err := os.ReadFile(root + "/README.md")
	if err != nil {
		t.Fatal(err)
	}
	blocks := regexp.MustCompile("(?s)```sh\n(.*?)```").FindAllStringSubmatch(string(text), -1)
	commands := 0
	for _, b := range blocks {
		for line := range strings.Lines(b[1]) {
			line = strings.TrimSpace(line)
			commands++
			if line == "go test ./..." {
				continue
			}
			if strings.HasPrefix(line, "go run ./examples/") {
				t.Run(line, func(t *testing.T) { readmeProgram(t, strings.Fields(line)) })
				continue
			}
			args, ok := strings.CutPrefix(line, "go run ./cmd/gangline ")
			if !ok {
				t.Errorf("the README runs %q, which this test does not know", line)
				continue
			}
			t.Run(args, func(t *testing.T) { readmeCommand(t, args) })
		}
	}
	if commands < 5 {
		t.Errorf("found %d commands in the README", commands)
	}
}

// readmeProgram runs a program that brings something of its own.
func readmeProgram(t *testing.T, words []string) {
	if slices.Contains(words, "train") {
		words = append(words, "--progress", "none")
	}
	cmd := exec.CommandContext(t.Context(), words[0], words[1:]...)
	cmd.Dir = root
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v: %s", err, out)
	}
}

func readmeCommand(t *testing.T, args string) {
	if args == "train" {
		return // TestBuiltin
	}
	if strings.Contains(args, "DIR") {
		needData(t)
		args = strings.ReplaceAll(args, "DIR", "../shared/data")
	}
	dir := t.TempDir()
	words := strings.Fields(args)
	for i, w := range words {
		if strings.HasSuffix(w, ".json") {
			words[i] = filepath.Join(dir, w)
		}
	}
	if stderr, status := gangline(t, words...); status != 0 {
		t.Errorf("exit status %d: %s", status, stderr)
	}
}

// The plan that the README shows is the plan of its example.
func TestReadmePlan(t *testing.T) {
	var out bytes.Buffer
	dir := t.TempDir()
	for _, name := range []string{"a9a", "a9a.t"} { // never read: the job declares its features
		if err := os.MkdirAll(filepath.Join(dir, "libsvm"), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, "libsvm", name), nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	status := run(t.Context(), job.Extensions{}, []string{"plan", "show", root + "/examples/adult.yaml", "--data-dir", dir, "--set", "strategy.kind=ps"}, &out, io.Discard)
	_, ranks, found := strings.Cut(out.String(), "ranks 0-1\n")
	if status != 0 || !found {
		t.Fatalf("status %d: %s", status, out.String())
	}
	readme, err := os.ReadFile(root + "/README.md")
	if err != nil {
		t.Fatal(err)
	}
	trim := func(s string) string { // space at the ends of lines does not count
		return regexp.MustCompile(`(?m)[ ]+$`).ReplaceAllString(s, "")
	}
	if !strings.Contains(trim(string(readme)), trim("ranks 0-1\n"+strings.TrimRight(ranks, "\n"))) {
		t.Errorf("the README does not show this plan:\n%s", ranks)
	}
}

// Every example is a job that can be read.
func TestExamplesParse(t *testing.T) {
	paths, err := filepath.Glob(root + "/examples/*.yaml")
	if err != nil || len(paths) < 3 {
		t.Fatalf("%v, %v", paths, err)
	}
	for _, p := range paths {
		if _, err := job.Read(p, nil); err != nil {
			t.Error(err)
		}
	}
}

// Wrong requests end with status 2 and say what to change.
func TestWrongRequests(t *testing.T) {
	device := filepath.Join(t.TempDir(), "null") // a link: who fails this test shall not replace the device
	if err := os.Symlink(os.DevNull, device); err != nil {
		t.Skip(err)
	}
	own := filepath.Join(t.TempDir(), "own.yaml")
	if err := os.WriteFile(own, builtin, 0o644); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"trian"}, `unknown command "trian"`},
		{[]string{"train", "--reprot", "x"}, "unknown flag"},
		{[]string{"train", "no.yaml"}, "no.yaml"},
		{[]string{"train", "a", "b"}, "at most 1"},
		{[]string{"train", "--progress", "loud"}, "want auto, tty, plain or none"},
		{[]string{"train", "--set", "modle.kind=x"}, `did you mean "model"?`},
		{[]string{"train", "--set", "model.kind=ctrr"}, `did you mean "ctr"?`},
		{[]string{"train", "--report", "/nowhere/out.json"}, "no directory /nowhere"},
		{[]string{"train", "--report", "-"}, "want the name of a file"},
		{[]string{"train", "--report", device}, "is not a regular file"},
		{[]string{"train", "--trace", device}, "is not a regular file"},
		{[]string{"train", own, "--report", own}, "is the job file"},
		{[]string{"train", own, "--trace", own}, "is the job file"},
		{[]string{"train", "--report", own, "--trace", own}, "name two files"},
		{[]string{"plan", "show", "--report", "x"}, "unknown flag: --report"},
		{[]string{"train", root + "/examples/adult.yaml", "--data-dir", "/nowhere"}, "/nowhere is not a directory"},
		{[]string{"train", root + "/examples/adult.yaml", "--data-dir", t.TempDir()}, "data.train.path"},
		{[]string{"eval", "--checkpoint", ""}, "checkpoint.dir: is missing"},
		{[]string{"plan", "show", "--plan", "stop"}, `want step or eval`},
		{[]string{"plan", "chekc"}, "chekc"},
		{[]string{"data", "head", "-n", "0"}, "at least 1"},
	} {
		t.Run(strings.Join(c.args, " "), func(t *testing.T) {
			var out, errs bytes.Buffer
			status := run(t.Context(), job.Extensions{}, c.args, &out, &errs)
			if status != exitRequest || !strings.Contains(errs.String(), c.want) || strings.Count(errs.String(), "\n") != 1 {
				t.Errorf("status %d, stderr %q; want 2 and one line with %q", status, errs.String(), c.want)
			}
		})
	}
}

// Lines tell of rank 0, at tests and now and then; others pass through.
func TestProgressLine(t *testing.T) {
	var b bytes.Buffer
	p := newProgress("plain", &b, job.Job{Name: "j"})
	p.update(0, progressAt(10, 100))
	p.update(1, progressAt(15, 100))
	p.update(0, progressAt(16, 100)) // too soon
	p.update(0, coord.Progress{Step: 20, Total: 100, MetricName: "auc", Metric: .5})
	fmt.Fprint(p, "a log line\n")
	p.end()
	got := b.String()
	if !strings.HasPrefix(got, "j  step 10/100\nj  step 20/100  auc 0.50000") || !strings.HasSuffix(got, "left\na log line\n") || strings.Count(got, "\n") != 3 {
		t.Errorf("%q", got)
	}
}

// Quiet is quiet: nothing is printed of a run that ends well.
func TestQuiet(t *testing.T) {
	cmd := exec.CommandContext(t.Context(), os.Args[0], "train", "--quiet", "--set", "data.train.rows=3000", "--set", "data.eval.rows=1000")
	cmd.Env = append(os.Environ(), beMain+"=1")
	if out, err := cmd.CombinedOutput(); err != nil || len(out) > 0 {
		t.Errorf("%v: %s", err, out)
	}
}

// A closing table that cannot be written is an error, whatever the run did.
func TestClosingTableLost(t *testing.T) {
	var f trainFlags
	f.plots = "none"
	full := errors.New("no space left on device")
	err := f.close(job.Default(), map[int][]byte{0: []byte(`{"role": "worker", "main": {"params_sha256": "1"}}`)}, nil, 0, failing{full})
	if !errors.Is(err, full) {
		t.Errorf("got %v", err)
	}
}

// failing is a writer that cannot write.
type failing struct{ err error }

func (f failing) Write([]byte) (int, error) { return 0, f.err }

// A rate that is scaled with the batch is said, and none is said otherwise.
func TestScaledRateIsSaid(t *testing.T) {
	j := job.Default()
	j.Batch, j.Optimizer.LR = 512, .1
	var b bytes.Buffer
	sayScaled(&b, j)
	j.Optimizer.ScaleWith = 256
	sayScaled(&b, j)
	if want := "optimizer.lr 0.1 is meant for batches of 256: with batch 512 the learning rate is 0.2\n"; b.String() != want {
		t.Errorf("got %q, want %q", b.String(), want)
	}
}

func progressAt(step, total int64) coord.Progress { return coord.Progress{Step: step, Total: total} }

// A report through a link fills the file that the link leads to.
func TestWriteWholeFollowsLinks(t *testing.T) {
	dir := t.TempDir()
	file, link := filepath.Join(dir, "file"), filepath.Join(dir, "link")
	if err := os.WriteFile(file, []byte("old"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("file", link); err != nil {
		t.Skip(err)
	}
	if err := writeJSON(link, 7); err != nil {
		t.Fatal(err)
	}
	if text, err := os.ReadFile(file); err != nil || string(text) != "7\n" {
		t.Errorf("the file holds %q, %v", text, err)
	}
	if at, err := os.Readlink(link); err != nil || at != "file" {
		t.Errorf("the link leads to %q, %v", at, err)
	}
}
