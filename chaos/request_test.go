//go:build unix

package chaos

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
)

// quietly runs a command as a user would, without the log of decisions, and
// returns its exit status and all it wrote.
func quietly(b *bench, args ...string) (int, string) {
	b.t.Helper()
	cmd := exec.Command(b.exe, args...)
	cmd.Dir, cmd.Env = b.dir, append(environ(), "TMPDIR="+b.tmp)
	out, err := cmd.CombinedOutput()
	if cmd.ProcessState == nil {
		b.t.Fatal(err)
	}
	return cmd.ProcessState.ExitCode(), string(out)
}

// checkRefused runs a command that must fail, with one message and nothing else.
func checkRefused(b *bench, status int, says string, args ...string) {
	b.t.Helper()
	before := listing(b)
	got, out := quietly(b, args...)
	if got != status || !regexp.MustCompile("^gangline: "+says).MatchString(out) || strings.Count(out, "gangline: ") != 1 {
		b.t.Errorf("%s: exit status %d, want %d and only %q:\n%s", strings.Join(args, " "), got, status, says, out)
	}
	if after := listing(b); after != before {
		b.t.Errorf("%s: files before:\n%s\nafter:\n%s", strings.Join(args, " "), before, after)
	}
	b.checkClean()
}

// listing is all files of a bench.
func listing(b *bench) string {
	b.t.Helper()
	var names []string
	err := filepath.WalkDir(b.dir, func(path string, _ os.DirEntry, err error) error {
		names = append(names, path)
		return err
	})
	if err != nil {
		b.t.Fatal(err)
	}
	return strings.Join(names, "\n")
}

// TestWrongRequests proves that a request that makes no sense ends with status 2
// and one message that says what is wrong, and a run that cannot be with status 1.
func TestWrongRequests(t *testing.T) {
	b := newBench(t)
	writeLines(b)
	good := specOf("logistic-allreduce").write(b)
	ps := specOf("table-ps").write(b)
	misspelt := b.write("misspelt.yaml", strings.Replace(specOf("ctr-ps").text, "optimizer:", "optimiser:", 1))
	broken := b.write("broken.yaml", "model: {kind: logistic\nbatch: 5\n")
	lines := strings.SplitAfter(linesText(1), "\n")
	lines[1233] = "+1 3:1 2:nope\n"
	b.write("bad.svm", strings.Join(lines, ""))
	b.write("empty.svm", "")
	if err := os.Mkdir(b.path("folder"), 0o755); err != nil {
		t.Fatal(err)
	}
	none := "checkpoint.every=0"
	for _, tc := range []struct {
		name   string
		status int
		says   string
		args   []string
	}{
		{"no job file", 2, `job: cannot read the job file: .*nothing.yaml: no such file`, []string{"train", b.path("nothing.yaml")}},
		{"a folder for a job", 2, `job: \S*folder is not a job file`, []string{"train", b.path("folder")}},
		{"broken yaml", 2, `job: \S*broken.yaml:\d+: `, []string{"train", broken}},
		{"unknown field", 2, `job: \S*misspelt.yaml:5: unknown field "optimiser" in the job: did you mean "optimizer"`, []string{"train", misspelt}},
		{"no data file", 2, `job: data.train.path: \S*none.svm: there is no such file; near to it are .*; check --data-dir`, []string{"train", good, "--set", none, "--set", "data.train.path=none.svm"}},
		{"no data directory", 2, `--data-dir \S*none is not a directory`, []string{"train", good, "--data-dir", b.path("none"), "--set", none}},
		{"set: unknown field", 2, `job: --set strategy.workrs=3: unknown field "workrs" in strategy: did you mean "workers"`, []string{"train", good, "--set", "strategy.workrs=3"}},
		{"set: no value", 2, `job: --set "batch": want path.to.field=value`, []string{"train", good, "--set", "batch"}},
		{"set: wrong type", 2, `job: --set batch=many: "many" does not fit batch \(int\)`, []string{"train", good, "--set", "batch=many"}},
		{"set: wrong word", 2, `job: strategy.kind: "alreduce" is not known: did you mean "allreduce"`, []string{"train", good, "--set", none, "--set", "strategy.kind=alreduce"}},
		{"set: out of range", 2, `job: batch: must be 1 to \d+, is 0`, []string{"train", good, "--set", none, "--set", "batch=0"}},
		{"contradiction", 2, `job: strategy.servers: allreduce has no servers`, []string{"train", good, "--set", none, "--set", "strategy.servers=1"}},
		{"checkpoints without a place", 2, `job: checkpoint.dir: is missing`, []string{"train", good}},
		{"checkpoints in a file", 2, `job: checkpoint.dir: .*lines.svm`, []string{"train", good, "--set", "checkpoint.dir=lines.svm"}},
		{"resume without a place", 2, `job: checkpoint.dir: is missing`, []string{"train", good, "--set", none, "--resume"}},
		{"model that does not fit", 2, `job: model: .*hidden.* is missing`, []string{"train", good, "--set", none, "--set", "model.kind=mlp"}},
		{"unknown flag", 2, `unknown flag: --workers`, []string{"train", good, "--workers", "3"}},
		{"unknown command", 2, `unknown command "tran"`, []string{"tran", good}},
		{"two jobs", 2, `accepts at most 1 arg`, []string{"train", good, ps}},
		{"progress", 2, `--progress "loud": want auto, tty, plain or none`, []string{"train", good, "--set", none, "--progress", "loud"}},
		{"report without a directory", 2, `--report \S+: there is no directory \S*none`, []string{"train", good, "--set", none, "--report", b.path("none/report.json")}},
		{"report is a directory", 2, `--report \S*folder is a directory`, []string{"train", good, "--set", none, "--report", b.path("folder")}},
		{"trace without a directory", 2, `--trace \S+: there is no directory`, []string{"train", good, "--set", none, "--trace", b.path("none/trace.json")}},
		{"eval without a checkpoint", 2, `job: checkpoint.dir: is missing`, []string{"eval", good, "--set", none}},
		{"eval of nothing", 1, `checkpoint: no usable checkpoint in \S*folder`, []string{"eval", good, "--set", none, "--checkpoint", b.path("folder")}},
		{"bad row", 1, `worker [01]: data.train: data: \S*bad.svm:1234: column "entry 2": value "nope" of index 2 is not a finite number\n$`, []string{"train", good, "--set", none, "--set", "data.train.path=bad.svm"}},
		{"bad row, servers", 1, `worker [01]: data.train: data: \S*bad.svm:1234: `, []string{"train", ps, "--set", none, "--set", "data.train.path=bad.svm"}},
		{"bad row, eval", 1, `worker [01]: data.eval: data: \S*bad.svm:1234: `, []string{"train", ps, "--set", none, "--set", "data.eval.path=bad.svm"}},
		{"no rows", 1, `worker [01]: data.train: .*empty.svm.*no rows`, []string{"train", ps, "--set", none, "--set", "data.train.path=empty.svm"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			here := *b
			here.t = t
			checkRefused(&here, tc.status, tc.says, tc.args...)
		})
	}
}

// TestUnwritablePlaces proves that a place where nothing can be written is found
// before the work, not after it.
func TestUnwritablePlaces(t *testing.T) {
	b := newBench(t)
	writeLines(b)
	place := b.path("locked")
	if err := os.Mkdir(place, 0o555); err != nil {
		t.Fatal(err)
	}
	if os.Geteuid() == 0 { // who may write everywhere, but not where nobody may
		place = "/proc"
		if _, err := os.Stat("/proc/self/exe"); err != nil {
			t.Skip("every directory is writable here")
		}
	}
	job := specOf("logistic-allreduce").write(b)
	checkRefused(b, 2, `--report \S+report.json: cannot write there: `, "train", job, "--set", "checkpoint.every=0", "--report", filepath.Join(place, "report.json"))
	checkRefused(b, 2, `--trace \S+trace.json: cannot write there: `, "train", job, "--set", "checkpoint.every=0", "--trace", filepath.Join(place, "trace.json"))
	checkRefused(b, 2, `job: checkpoint.dir: checkpoint: cannot write below \S+checkpoints: `, "train", job, "--set", "checkpoint.dir="+filepath.Join(place, "checkpoints"))
}

// TestWrongResume proves that checkpoints of another run, another job or other
// data are neither continued nor touched.
func TestWrongResume(t *testing.T) {
	b := newBench(t)
	writeLines(b)
	job := specOf("mlp-ps").write(b)
	dir := b.path("checkpoints")
	at := []string{"train", job, "--progress", "none", "--set", "checkpoint.dir=" + dir}
	if status, out := quietly(b, at...); status != 0 {
		t.Fatalf("exit status %d:\n%s", status, out)
	}
	with := func(more ...string) []string { return append(slices.Clip(at), more...) }
	checkRefused(b, 2, `job: checkpoint.dir: \S+ already holds step-000000000060: `+
		`set checkpoint.resume=true \(--resume\) to go on from it, or name another directory\n$`, at...)
	checkRefused(b, 2, `job: checkpoint.resume: \S*step-000000000060 was written by another job; what must not change on resume differs:\n`+
		`  was batch: 50\n  is  batch: 25\n$`, with("--resume", "--set", "batch=25")...)
	b.write("lines.svm", linesText(5))
	checkRefused(b, 1, `worker [01]: .*step-000000000060: .*the cursor belongs to other data`, with("--resume", "--set", "epochs=2")...)
	writeLines(b)
	if status, out := quietly(b, with("--resume", "--set", "epochs=2")...); status != 0 {
		t.Errorf("exit status %d:\n%s", status, out)
	}
}

// TestMessagesOfRestarts proves that what a restart was for is told, and that a
// job whose restarts are used up ends with the last error.
func TestMessagesOfRestarts(t *testing.T) {
	b := newBench(t)
	writeLines(b)
	p, pids := underWay(b, specOf("ctr-ps"), "restart.max=1")
	if err := syscall.Kill(pids[3], syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	p.await(`starting all ranks again.*server 1 \(rank 3, pid \d+\) was killed by signal 9.*restart=1 of=1`)
	p.await(`generation 2 starts`)
	if err := syscall.Kill(p.pids(1)[0], syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	p.checkVerdict(1, `^gangline: worker 0 \(rank 0, pid \d+\) was killed by signal 9`)
}
