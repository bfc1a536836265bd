package job

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/goccy/go-yaml"

	"github.com/gangline/gangline/collective/cost"
	"github.com/gangline/gangline/graph"
	"github.com/gangline/gangline/internal/nearest"
	"github.com/gangline/gangline/metric"
	"github.com/gangline/gangline/optim"
	"github.com/gangline/gangline/plan"
)

// Limits of a job.
const (
	// MaxRanks bounds workers and servers together.
	MaxRanks = 1024
	// MaxBatch bounds the global batch.
	MaxBatch = 1 << 24
	// MaxMicroBatches bounds the parts of a worker's part of a step.
	MaxMicroBatches = 256
	// MaxThreads bounds the threads of a worker.
	MaxThreads = 1024
)

// groupColumn is what data.group becomes (data.GroupColumn).
const groupColumn = "group"

// complete fills in defaults that depend on other fields.
func (j *Job) complete() {
	s := &j.Strategy
	if s.Workers == 0 {
		s.Workers = 2
		if s.Kind == "serial" {
			s.Workers = 1
		}
	}
	if s.Servers == 0 && s.Kind == "ps" {
		s.Servers = 1
	}
	s.completeAveraging()
	if j.Eval.Batch == 0 {
		j.Eval.Batch = j.Batch
	}
	j.Data.completeIntake()
	j.Data.complete()
	if j.Eval.Group == "" && j.Data.Group != "" && j.Task() == graph.Binary {
		j.Eval.Group = groupColumn
	}
	j.Optimizer.Custom = j.Extensions.Rule(j.Optimizer.Kind)
	if c := &j.Optimizer.Schedule; c.Kind == optim.Cosine && c.Steps == 0 {
		c.Steps = j.Steps
	}
}

// FieldError says which field of a job is wrong and what to change.
type FieldError struct {
	Field string // path.to.field
	Fix   string
}

// Error implements error.
func (e *FieldError) Error() string { return "job: " + e.Field + ": " + e.Fix }

// Validate says what is wrong with the job itself; whether the data and the
// model fit each other is known when they are opened.
func (j *Job) Validate() error {
	checks := []struct {
		bad   bool
		field string
		fix   string
	}{
		{j.Data.Train.Format == "", "data.train.format", "is missing: set " + strings.Join(formats(), ", ")},
		{j.Model.Kind == "", "model.kind", "is missing: set logistic, softmax, linear, mlp, cnn, fm, ctr, deepfm, dlrm or gpt"},
		{j.Batch < 1 || j.Batch > MaxBatch, "batch", fmt.Sprintf("must be 1 to %d, is %d", MaxBatch, j.Batch)},
		{j.MicroBatches < 1 || j.MicroBatches > MaxMicroBatches, "micro_batches", fmt.Sprintf("must be 1 to %d, is %d", MaxMicroBatches, j.MicroBatches)},
		{j.Eval.Batch < 1 || j.Eval.Batch > MaxBatch, "eval.batch", fmt.Sprintf("must be 1 to %d, is %d", MaxBatch, j.Eval.Batch)},
		{j.Epochs < 1, "epochs", fmt.Sprintf("must be at least 1, is %d", j.Epochs)},
		{j.Steps < 0, "steps", "must not be negative"},
		{j.Eval.Every < 0, "eval.every", "must not be negative"},
		{!(j.Eval.Threshold > 0 && j.Eval.Threshold < 1), "eval.threshold", fmt.Sprintf("must be a probability between 0 and 1, is %g", j.Eval.Threshold)},
		{j.Eval.Patience < 0, "eval.patience", "must not be negative"},
		{j.Eval.Patience > 0 && j.Eval.Every == 0, "eval.every", "is missing: say how many steps are between the tests that eval.patience counts"},
		{j.Eval.Patience > 0 && j.Data.Eval.Format == "", "data.eval.format", "is missing: say which rows eval.patience goes by"},
		{!(j.Eval.MinDelta >= 0), "eval.min_delta", fmt.Sprintf("must not be negative, is %g", j.Eval.MinDelta)},
		{j.Checkpoint.Best && j.Checkpoint.Dir == "", "checkpoint.dir", "is missing: say where the best checkpoint goes"},
		{j.Checkpoint.Best && j.Data.Eval.Format == "", "data.eval.format", "is missing: say which rows decide what checkpoint is the best"},
		{j.Checkpoint.Every < 0, "checkpoint.every", "must not be negative"},
		{j.Checkpoint.Every > 0 && j.Checkpoint.Dir == "", "checkpoint.dir", "is missing: say where the checkpoints go"},
		{j.Checkpoint.Resume && j.Checkpoint.Dir == "", "checkpoint.dir", "is missing: say which checkpoints to resume from"},
		{j.Checkpoint.Keep < 1, "checkpoint.keep", "must be at least 1"},
		{len(j.Import.Map) > 0 && j.Import.Path == "", "import.path", "is missing: say which file import.map is of"},
		{j.Threads < 0 || j.Threads > MaxThreads, "threads", fmt.Sprintf("must be 0 to %d, is %d", MaxThreads, j.Threads)},
		{j.Threads > 1 && j.Backend == "ref", "threads", "backend ref has one: set backend=native, or threads 1"},
		{j.Restart.Max < 0, "restart.max", "must not be negative"},
		{j.Network.JoinTimeout <= 0, "network.join_timeout", "must be longer than 0s"},
		{j.Network.TaskTimeout <= 0, "network.task_timeout", "must be longer than 0s"},
	}
	for _, c := range checks {
		if c.bad {
			return &FieldError{c.field, c.fix}
		}
	}
	for _, c := range []struct {
		field, value string
		known        []string
	}{
		{"precision", j.Precision, precisions()},
		{"backend", j.Backend, []string{"native", "ref"}},
		{"strategy.kind", j.Strategy.Kind, j.Extensions.allStrategies()},
		{"strategy.algorithm", j.Strategy.Algorithm, Algorithms()},
		{"strategy.consistency.kind", j.Strategy.Consistency.Kind, []string{"bsp"}},
		{"restart.from", j.Restart.From, []string{"latest"}},
		{"network.kind", j.Network.Kind, []string{"unix", "tcp"}},
		{"network.path", j.Network.Path, NetworkPaths()},
		{"eval.metric", j.Eval.Metric, append([]string{""}, metric.Names()...)},
	} {
		if !slices.Contains(c.known, c.value) {
			return &FieldError{c.field, fmt.Sprintf("%q is not known%s", c.value, nearest.Hint(c.value, slices.DeleteFunc(slices.Clone(c.known), func(s string) bool { return s == "" })))}
		}
	}
	if err := j.Extensions.Check(); err != nil {
		return fmt.Errorf("job: extensions: %w", err)
	}
	for _, check := range []func() error{j.validateOptimizer, j.Data.validateIntake, j.validateFeatures, j.validateStrategy, j.validateCompression} {
		if err := check(); err != nil {
			return err
		}
	}
	return nil
}

// validateOptimizer checks the rule, and that servers can follow it.
func (j *Job) validateOptimizer() error {
	err := j.Optimizer.Validate()
	if err == nil && j.Strategy.Servers > 0 {
		err = j.Optimizer.Separable()
	}
	if err == nil {
		err = j.Optimizer.Try()
	}
	if err != nil {
		return &FieldError{"optimizer", err.Error()}
	}
	return nil
}

// validateStrategy checks the counts of processes against the kind.
func (j *Job) validateStrategy() error {
	s := j.Strategy
	switch {
	case s.Workers < 1:
		return &FieldError{"strategy.workers", fmt.Sprintf("must be at least 1, is %d", s.Workers)}
	case s.Servers < 0:
		return &FieldError{"strategy.servers", "must not be negative"}
	case s.Workers+s.Servers > MaxRanks:
		return &FieldError{"strategy.workers", fmt.Sprintf("%d workers and %d servers are more than %d ranks", s.Workers, s.Servers, MaxRanks)}
	case s.Kind == "serial" && s.Workers != 1:
		return &FieldError{"strategy.workers", fmt.Sprintf("serial has one worker, not %d: set strategy.kind=allreduce or ps, or workers 1", s.Workers)}
	case s.Stage < 1 || s.Stage > 3:
		return &FieldError{"strategy.stage", fmt.Sprintf("must be 1, 2 or 3, is %d", s.Stage)}
	case s.Stage != 1 && s.Kind != "zero":
		return &FieldError{"strategy.stage", fmt.Sprintf("is %d, which %s does not have: set strategy.kind=zero, or leave it out", s.Stage, s.Kind)}
	case s.Servers != 0 && slices.Contains([]string{"serial", "allreduce", "zero", "localsgd", "sma"}, s.Kind):
		return &FieldError{"strategy.servers", fmt.Sprintf("%s has no servers: set strategy.kind=ps, or servers 0", s.Kind)}
	}
	if err := j.validateAveraging(); err != nil {
		return err
	}
	if err := j.validateSlices(); err != nil {
		return err
	}
	if j.Precision == "bf16" || j.Precision == "f16" {
		if s.Kind != "serial" && s.Kind != "allreduce" {
			return &FieldError{"precision", fmt.Sprintf("%s is for strategy.kind serial and allreduce: set one of these, or precision f32", j.Precision)}
		}
	}
	return j.validateHosts()
}

// validateSlices checks that a step can be cut into slices, if the job asks for that.
func (j *Job) validateSlices() error {
	s := &j.Strategy
	switch {
	case j.Slices < 1 || j.Slices > plan.MaxSlices:
		return &FieldError{"slices", fmt.Sprintf("must be 1 to %d, is %d", plan.MaxSlices, j.Slices)}
	case !j.Reproducible:
		return nil
	case s.Kind != "serial" && s.Kind != "allreduce":
		return &FieldError{"reproducible", fmt.Sprintf("is of strategies serial and allreduce: %s sums by worker; set strategy.kind=allreduce, or reproducible false", s.Kind)}
	case j.Slices < s.Workers:
		return &FieldError{"slices", fmt.Sprintf("%d are fewer than %d workers: set %d or more, the same for all runs that should be equal", j.Slices, s.Workers, s.Workers)}
	case j.MicroBatches > 1:
		return &FieldError{"micro_batches", fmt.Sprintf("is %d, and a reproducible step is computed slice by slice: set micro_batches 1, and more slices for less memory", j.MicroBatches)}
	case j.Precision == "bf16" || j.Precision == "f16":
		return &FieldError{"precision", fmt.Sprintf("a reproducible step adds up slices in f32 or f64, not in %s: set precision f32, or reproducible false", j.Precision)}
	case s.Compression.Kind != CompressNone:
		return &FieldError{"strategy.compression.kind", fmt.Sprintf("what %s loses depends on the number of workers: set none, or reproducible false", s.Compression.Kind)}
	case s.Algorithm != AlgorithmAuto:
		return &FieldError{"strategy.algorithm", fmt.Sprintf("%s sums in an order of its own, and a reproducible step in one of all: set auto, or reproducible false", s.Algorithm)}
	}
	return nil
}

// precisions are the types of values and gradients.
func precisions() []string { return []string{"f32", "f64", "bf16", "f16"} }

// validateHosts checks that every worker is on one host.
func (j *Job) validateHosts() error {
	total := 0
	for _, n := range j.Network.Hosts {
		if n < 1 {
			return &FieldError{"network.hosts", fmt.Sprintf("%v: want at least one worker on each host", j.Network.Hosts)}
		}
		total += n
	}
	switch {
	case total > 0 && total != j.Strategy.Workers:
		return &FieldError{"network.hosts", fmt.Sprintf("%v are %d workers, strategy.workers is %d", j.Network.Hosts, total, j.Strategy.Workers)}
	case j.Strategy.Kind == "allreduce" && j.Strategy.Algorithm == plan.ByHosts.String() && len(j.Network.Hosts) < 2:
		return &FieldError{"strategy.algorithm", fmt.Sprintf("%s needs several hosts: say in network.hosts how many workers are on each, or set auto", j.Strategy.Algorithm)}
	case len(j.Network.Hosts) > 1 && j.Network.Kind == "unix":
		return &FieldError{"network.hosts", "unix sockets do not reach from host to host: set network.kind=tcp"}
	}
	return nil
}

// HostsOf lists the workers by host, nil if the job says nothing of hosts.
func (n *Network) HostsOf() (hosts [][]int) {
	rank := 0
	for _, size := range n.Hosts {
		host := make([]int, size)
		for i := range host {
			host[i] = rank
			rank++
		}
		hosts = append(hosts, host)
	}
	return hosts
}

// ReadCosts reads the file that Costs names, from its path, into Table. All ranks
// must read the same: the plans, and so their digest, depend on it.
func (n *Network) ReadCosts(path string) error {
	if n.Costs == "" {
		return nil
	}
	text, err := os.ReadFile(path)
	if err == nil {
		n.Table, err = cost.Parse(text)
	}
	if err != nil {
		return &FieldError{"network.costs", err.Error()}
	}
	return nil
}

// StepSlices is into how many slices a step is cut, 0 if the run is not reproducible.
func (j *Job) StepSlices() int {
	if j.Reproducible {
		return j.Slices
	}
	return 0
}

// fixed is what a checkpoint and the run that resumes from it must share.
type fixed struct {
	Seed      uint64 `yaml:"seed"`
	Model     Model  `yaml:"model"`
	Train     Source `yaml:"train"`
	Batch     int    `yaml:"batch"`
	Optimizer any    `yaml:"optimizer"`
	Precision string `yaml:"precision"`
	Import    Import `yaml:"import"`
	Features  any    `yaml:"features,omitempty"`
	Slices    int    `yaml:"slices,omitempty"` // of a reproducible run
}

// Fixed returns the text of all fields that must not change when a run is
// resumed, one a line, and its digest. How the step is spread, the number of
// epochs, evaluation and checkpointing may change.
func (j *Job) Fixed() (text, digest string, err error) {
	b, err := yaml.Marshal(fixed{j.Seed, j.Model, j.Data.Train, j.Batch, j.Optimizer, j.Precision, j.Import, j.Data.declared(), j.StepSlices()})
	if err != nil {
		return "", "", fmt.Errorf("job: %w", err)
	}
	sum := sha256.Sum256(b)
	return string(b), hex.EncodeToString(sum[:]), nil
}
