package job_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/gangline/gangline/collective/cost"
	"github.com/gangline/gangline/job"
	"github.com/gangline/gangline/optim"
)

const adult = `
model: {kind: logistic}
data:
  train: {format: libsvm, path: a9a, features: 123}
batch: 128
optimizer: {kind: adam, lr: 0.01}
network:
  task_timeout: 30s
`

func TestParse(t *testing.T) {
	j, err := job.Parse("adult.yaml", []byte(adult), []string{"strategy.kind=ps", "strategy.servers=3", "model.hidden=[4, 5]", "optimizer.lr=0.5"})
	if err != nil {
		t.Fatal(err)
	}
	if j.Batch != 128 || j.Strategy.Workers != 2 || j.Strategy.Servers != 3 || j.Optimizer.LR != .5 ||
		len(j.Model.Hidden) != 2 || time.Duration(j.Network.TaskTimeout) != 30*time.Second || j.Seed != 1 {
		t.Errorf("got %+v", j)
	}
}

// Schedules are read, and a cosine ends with the run if it says nothing else.
func TestSchedule(t *testing.T) {
	text := strings.Replace(adult, "lr: 0.01}", "lr: 0.01, clip_norm: 1, scale_with: 64, schedule: {kind: cosine, warmup: 10, min_lr: 0.001}}", 1)
	for _, c := range []struct {
		set  []string
		want int64
	}{{[]string{"steps=500"}, 500}, {[]string{"steps=500", "optimizer.schedule.steps=300"}, 300}} {
		j, err := job.Parse("adult.yaml", []byte(text), c.set)
		if err != nil {
			t.Fatal(err)
		}
		want := optim.Rule{
			Kind: optim.Adam, LR: .01, ClipNorm: 1, ScaleWith: 64,
			Schedule: optim.Schedule{Kind: optim.Cosine, Warmup: 10, Steps: c.want, MinLR: .001},
		}
		if j.Optimizer != want {
			t.Errorf("%v: got %+v, want %+v", c.set, j.Optimizer, want)
		}
	}
	// A rule without the newer settings has the text, and so the digest, that it always had.
	j, err := job.Parse("adult.yaml", []byte(adult), nil)
	if err != nil {
		t.Fatal(err)
	}
	fixed, _, err := j.Fixed()
	if err != nil {
		t.Fatal(err)
	}
	if want := "optimizer:\n  kind: adam\n  lr: 0.01\nprecision"; !strings.Contains(fixed, want) {
		t.Errorf("%s\nlacks\n%s", fixed, want)
	}
}

// What editors add to a file, and whole numbers however written, are no reason to refuse it.
func TestParseOddFiles(t *testing.T) {
	for _, text := range []string{
		"\ufeff" + strings.TrimLeft(adult, "\n"),
		strings.ReplaceAll(adult, "\n", "\r\n"),
		"---\n" + strings.TrimLeft(adult, "\n") + "---\n",
		strings.Replace(adult, "batch: 128", "batch: 128.0", 1),
	} {
		if j, err := job.Parse("adult.yaml", []byte(text), nil); err != nil || j.Batch != 128 || j.Model.Kind != "logistic" {
			t.Errorf("got %+v, %v of %q", j, err, text)
		}
	}
}

// Every wrong request is refused with the field and the fix.
func TestRefusals(t *testing.T) {
	for _, c := range []struct{ name, add, set, want string }{
		{"unknown field", "stratgy: {kind: ps}", "", `adult.yaml:8: unknown field "stratgy" in the job: did you mean "strategy"?`},
		{"unknown inner field", "strategy:\n  kind: ps\n  worker: 2", "", `adult.yaml:10: unknown field "worker" in strategy: did you mean "workers"?`},
		{"twice", "batch: 3", "", `adult.yaml:8`},
		{"not a mapping", "strategy: ps", "", `adult.yaml:8: strategy must be a mapping`},
		{"wrong type", "epochs: many", "", `adult.yaml:8: cannot unmarshal string`},
		{"broken yaml", "epochs: [", "", `adult.yaml`},
		{"set without value", "", "batch", `want path.to.field=value`},
		{"set unknown", "", "strategy.worker=2", `did you mean "workers"?`},
		{"set below a value", "", "batch.size=2", `batch is a value`},
		{"set of a struct", "", "strategy=ps", `strategy holds fields`},
		{"set of the wrong type", "", "batch=ten", `"ten" does not fit batch (int)`},
		{"serial with workers", "", "strategy.workers=2", `serial has one worker, not 2`},
		{"allreduce with servers", "strategy: {kind: allreduce, servers: 1}", "", `allreduce has no servers`},
		{"kind", "", "strategy.kind=alreduce", `did you mean "allreduce"?`},
		{"batch", "", "batch=0", `batch: must be 1 to`},
		{"rate", "", "optimizer.lr=-1", `optimizer`},
		{"setting of another rule", "", "optimizer.centered=true", `centered is true: want it left out, rule adam does not use it`},
		{"rule", "", "optimizer.kind=adamx", `kind is "adamx": want sgd`},
		{"field of a schedule", "", "optimizer.schedule.warmpu=3", `unknown field "warmpu" in optimizer.schedule: did you mean "warmup"?`},
		{"cosine without an end", "", "optimizer.schedule.kind=cosine", `schedule.steps is 0`},
		{"whole norms on servers", "strategy: {kind: ps}", "optimizer.kind=lamb", `lamb divides by the norm of a whole parameter`},
		{"clipping by norm on servers", "strategy: {kind: ps}", "optimizer.clip_norm=1", `clip_norm needs the norm of the summed gradient`},
		{"hosts of other workers", "strategy: {kind: allreduce}", "network.kind=tcp\x00network.hosts=[2, 1]", `network.hosts: [2 1] are 3 workers, strategy.workers is 2`},
		{"an empty host", "strategy: {kind: allreduce}", "network.kind=tcp\x00network.hosts=[2, 0]", `network.hosts: [2 0]: want at least one`},
		{"unix between hosts", "strategy: {kind: allreduce}", "network.hosts=[1, 1]", `network.hosts: unix sockets do not reach`},
		{"micro-batches", "", "micro_batches=0", `micro_batches: must be 1 to 256, is 0`},
		{"no slices", "", "slices=0", `slices: must be 1 to 256, is 0`},
		{"reproducible servers", "strategy: {kind: ps}", "reproducible=true", `reproducible: is of strategies serial and allreduce: ps sums by worker`},
		{"fewer slices than workers", "strategy: {kind: allreduce, workers: 4}", "reproducible=true\x00slices=3", `slices: 3 are fewer than 4 workers: set 4 or more`},
		{"micro-batches of slices", "", "reproducible=true\x00micro_batches=2", `micro_batches: is 2, and a reproducible step is computed slice by slice`},
		{"compressed slices", "strategy: {kind: allreduce}", "reproducible=true\x00strategy.compression.kind=onebit", `strategy.compression.kind: what onebit loses depends on the number of workers`},
		{"slices of 16 bits", "", "reproducible=true\x00precision=bf16", `precision: a reproducible step adds up slices in f32 or f64`},
		{"slices by an algorithm", "strategy: {kind: allreduce}", "reproducible=true\x00strategy.algorithm=ring", `strategy.algorithm: ring sums in an order of its own`},
		{"bucket", "", "strategy.bucket=-1", `"-1" does not fit strategy.bucket`},
		{"checkpoint without dir", "", "checkpoint.every=5", `checkpoint.dir: is missing`},
		{"timeout", "", "network.task_timeout=0s", `network.task_timeout`},
		{"precision", "", "precision=f8", `precision`},
		{"16 bits on servers", "", "precision=bf16\x00strategy.kind=ps\x00strategy.servers=1", `precision: bf16 is for strategy.kind serial and allreduce`},
		{"two files of text", "", "data.train.format=text\x00data.train.path=[a, b]", `data.train.path: format text reads one file, not 2`},
		{"a file that is a mapping", "", "data.train.path={a: b}", `data.train.path`},
		{"threads of ref", "backend: ref", "threads=2", `threads: backend ref has one`},
		{"cut to a whole number", "epochs: 2.5", "", `adult.yaml:8: epochs must be a whole number, not 2.5`},
		{"cut to whole numbers", "eval: {every: 1.5}", "", `adult.yaml:8: eval.every must be a whole number`},
		{"set cut to a whole number", "", "batch=4.5", `"4.5" does not fit batch (int)`},
		{"set cut in a list", "", "model.hidden=[4.5]", `does not fit model.hidden`},
		{"second job", "---\nbatch: 3", "", `adult.yaml:9: a second document`},
		{"anchor", "eval: &e {every: 3}", "", `adult.yaml:8: eval: anchors and aliases have no meaning`},
		{"too deep", "name: " + strings.Repeat("[", 100_000), "", `adult.yaml:8: more than 64 levels`},
		{"too deep by dashes", strings.Repeat("- ", 100_000), "", `adult.yaml:8: more than 64 levels`},
		{"set too deep", "", "name=" + strings.Repeat("{a: ", 100_000), `does not fit name`},
	} {
		t.Run(c.name, func(t *testing.T) {
			var set []string
			if c.set != "" {
				set = strings.Split(c.set, "\x00")
			}
			_, err := job.Parse("adult.yaml", []byte(strings.TrimLeft(adult, "\n")+c.add), set)
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %q in it", err, c.want)
			}
		})
	}
}

func TestHostsAndBucket(t *testing.T) {
	j, err := job.Parse("adult.yaml", []byte(strings.TrimLeft(adult, "\n")+"strategy: {kind: allreduce, workers: 3, bucket: 64KiB}"), []string{"network.kind=tcp", "network.hosts=[1, 2]"})
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff([][]int{{0}, {1, 2}}, j.Network.HostsOf()); d != "" || j.Strategy.Bucket != 64<<10 {
		t.Errorf("buckets of %d; hosts (-want +got):\n%s", j.Strategy.Bucket, d)
	}
}

func TestReadCosts(t *testing.T) {
	n := job.Network{Costs: "costs.json"}
	path := filepath.Join(t.TempDir(), n.Costs)
	if err := n.ReadCosts(path); err == nil || !strings.Contains(err.Error(), "network.costs") {
		t.Errorf("a missing file: %v", err)
	}
	for text, want := range map[string]string{
		`{"format": "gangline.costs/1", "paths": {"tcp": {"alpha": 1, "beta": 2, "gamma": 3}}}`: "",
		`{"format": "gangline.costs/1", "paths": {"tcp": {"alpha": 1, "beta": 2}}}`:             "gamma is missing",
	} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		err := n.ReadCosts(path)
		if want == "" && (err != nil || n.Table[cost.TCP] != cost.Link{Alpha: 1, Beta: 2, Gamma: 3} || n.Table[cost.Unix] != cost.Default()[cost.Unix]) {
			t.Errorf("%v, %v", n.Table, err)
		}
		if want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}

func TestReadMissing(t *testing.T) {
	if _, err := job.Read(filepath.Join(t.TempDir(), "no.yaml"), nil); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("got %v", err)
	}
	if _, err := job.Read(t.TempDir(), nil); err == nil {
		t.Error("read a directory")
	}
	if _, err := job.Read(os.DevNull, nil); err == nil || !strings.Contains(err.Error(), "must be a file") {
		t.Errorf("got %v of a device, which other ranks cannot read again", err)
	}
}

// The digest changes with what a resumed run must share, and with nothing else.
func TestFixed(t *testing.T) {
	digest := func(set ...string) string {
		j, err := job.Parse("a", []byte(adult), set)
		if err != nil {
			t.Fatal(err)
		}
		_, d, err := j.Fixed()
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	base := digest()
	for _, same := range []string{"epochs=9", "strategy.kind=ps", "checkpoint.keep=3", "backend=ref", "threads=4"} {
		if digest(same) != base {
			t.Errorf("%s changes the digest", same)
		}
	}
	if one, list := digest("data.train.path=b"), digest("data.train.path=[b]"); one != list || one == digest("data.train.path=[b, c]") {
		t.Error("a list of one file is not that file")
	}
	for _, other := range []string{"batch=64", "seed=2", "optimizer.lr=0.1", "precision=f64", "data.train.path=b"} {
		if digest(other) == base {
			t.Errorf("%s leaves the digest alone", other)
		}
	}
}

// FuzzParse: no text panics.
func FuzzParse(f *testing.F) {
	f.Add(adult)
	f.Add("model: [")
	f.Add("? : :")
	f.Fuzz(func(_ *testing.T, text string) {
		_, _ = job.Parse("fuzz", []byte(text), nil)
	})
}
