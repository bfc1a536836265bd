// Package train runs one rank of a job: it plans, joins the others, drives the
// executor from boundary to boundary (evaluation, checkpoint, end) and reports.
//
// Reading order: setup.go (job to plan), rank.go (a rank's life), worker.go (the
// loop), progress.go, server.go, holder.go (who holds parameters), save.go
// (checkpoints), evaluate.go, stop.go, predict.go. Package input opens the rows;
// resume, agree, tally and others below this directory have what needs no rank.
package train

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"math"
	"runtime"

	"github.com/gangline/gangline/collective/cost"
	"github.com/gangline/gangline/data"
	"github.com/gangline/gangline/graph"
	"github.com/gangline/gangline/graph/cut"
	"github.com/gangline/gangline/job"
	"github.com/gangline/gangline/model"
	"github.com/gangline/gangline/plan"
	"github.com/gangline/gangline/plan/check"
	"github.com/gangline/gangline/strategy"
	"github.com/gangline/gangline/tensor"
	"github.com/gangline/gangline/train/input"
)

// Setup is what every rank works out from the job alone, and alike.
type Setup struct {
	Job     job.Job
	Cluster strategy.Cluster
	Step    *graph.Step
	Program *plan.Program
	DType   tensor.DType
}

// NewSetup builds the model for the columns, differentiates it and asks the
// strategy for its plans, which it checks. It is pure.
func NewSetup(j job.Job, columns []data.ColumnSpec) (*Setup, error) {
	dtype, err := tensor.ParseDType(j.Precision)
	if err != nil {
		return nil, &job.FieldError{Field: "precision", Fix: err.Error()}
	}
	g, m, err := j.Extensions.Build(modelConfig(j, columns, dtype))
	if err != nil {
		return nil, &job.FieldError{Field: "model", Fix: err.Error()}
	}
	g.LossScale = g.LossScale.ForBatch(terms(&j, m.Task, columns))
	step, err := graph.Train(g, m, j.Optimizer.Scaled(j.Batch))
	if err != nil {
		return nil, fmt.Errorf("model %s: %w", j.Model.Kind, err)
	}
	s := &Setup{
		Job: j, Step: step, DType: dtype,
		Cluster: clusterOf(&j),
	}
	if s.Cluster.Stage == 3 { // parameters are gathered a bucket at a time
		s.Step = cut.Step(step, s.Cluster.Bucket)
	}
	if column := input.WeighedBy(columns); column != "" {
		if err := s.checkWeighed(column); err != nil {
			return nil, err
		}
	}
	if s.Program, err = planned(j, s.Step, s.Cluster); err != nil {
		return nil, err
	}
	return s, nil
}

// clusterOf is what a strategy may know of the machines.
func clusterOf(j *job.Job) strategy.Cluster {
	s := &j.Strategy
	c := strategy.Cluster{Workers: s.Workers, Servers: s.Servers, Bucket: max(int(s.Bucket), 1), Micro: j.MicroBatches, Stage: s.Stage, Costs: j.Network.Table, Slices: j.StepSlices()}
	if s.Algorithm != job.AlgorithmAuto {
		c.Algorithm = s.Algorithm
	}
	c.Local, c.Averaging = localPath(&j.Network), s.Averaging()
	c.Compression, c.CompressFrom = s.Compression.Spec(), int(s.Compression.Min)
	if s.Kind != "serial" { // a run on one worker is on one host, whatever the job says
		c.Hosts = j.Network.HostsOf()
	}
	return c
}

// localPath is what collectives inside a host cross, as far as the job can tell: with
// network.kind=tcp and no hosts given, workers may be anywhere.
func localPath(n *job.Network) cost.Path {
	streams := n.Path != job.PathMessages
	scattered := n.Kind == "tcp" && len(n.Hosts) < 2
	switch {
	case streams && (n.Path == job.PathShm || n.Path == job.PathAuto && !scattered && runtime.GOOS == "linux"):
		return cost.SHM
	case streams && n.Path == job.PathTCP || scattered && n.Path != job.PathUnix || n.Kind == "tcp" && !streams:
		return cost.TCP
	}
	return cost.Unix
}

// planned makes and checks the plans of a strategy.
func planned(j job.Job, step *graph.Step, c strategy.Cluster) (*plan.Program, error) {
	kind := j.Strategy.Kind
	build, err := j.Extensions.Strategy(kind)
	if err != nil {
		return nil, &job.FieldError{Field: "strategy.kind", Fix: err.Error()}
	}
	program, err := build(step, c)
	if err != nil {
		return nil, &job.FieldError{Field: "strategy", Fix: err.Error()}
	}
	for _, name := range []string{strategy.StepPlan, strategy.EvalPlan} {
		if program.Plans[name] == nil {
			return nil, fmt.Errorf("strategy %s makes no plan %q", kind, name)
		}
	}
	if err := check.Program(program); err != nil {
		return nil, fmt.Errorf("strategy %s makes plans that do not hold: %w", kind, err)
	}
	return program, nil
}

// modelConfig says which model the job wants for the columns.
func modelConfig(j job.Job, columns []data.ColumnSpec, dtype tensor.DType) model.Config {
	c := model.Config{
		Kind: j.Model.Kind, Label: input.LabelColumn, Hidden: j.Model.Hidden, Bottom: j.Model.Bottom,
		Filters: j.Model.Filters, Image: j.Model.Image, Dim: j.Model.Dim, Layers: j.Model.Layers, Heads: j.Model.Heads,
		Activation: j.Model.Activation, Slope: j.Model.Slope, NoBias: !j.Model.Bias,
		Dropout: j.Model.Dropout, Classes: j.Model.Classes, Table: j.Model.Table, Seed: j.Seed, Float: dtype,
	}
	c.Weight = input.WeighedBy(columns)
	for _, col := range columns {
		if col.Name != input.LabelColumn && col.Name != data.WeightColumn && col.Name != data.GroupColumn {
			c.Inputs = append(c.Inputs, model.Column{
				Name: col.Name, Dim: col.Dim, Ragged: col.Kind == data.RaggedColumn, PerRow: col.PerRow,
			})
		}
	}
	return c
}

// Digest is what all ranks compare before the first step: the plans, the parts
// of the job that decide numbers and how many steps there are, of training and of
// tests, how ranks talk, and where the run begins.
func (s *Setup) Digest(first int64) (string, error) {
	_, fixed, err := s.Job.Fixed()
	if err != nil {
		return "", err
	}
	j := &s.Job
	sum := sha256.Sum256(fmt.Appendf(nil, "%s\n%s\n%d\n%d %d %+v %+v %s %s\n", plan.ProgramDigest(s.Program), fixed, first,
		j.Epochs, j.Steps, j.Eval, j.Data.Eval, j.Data.Group, j.Network.Kind))
	return hex.EncodeToString(sum[:]), nil
}

// checkWeighed refuses a model of a program's own that would count all rows alike.
func (s *Setup) checkWeighed(column string) error {
	for _, n := range strategy.Inputs(s.Step, strategy.StepPlan) {
		if n.Attr.Column == column {
			return nil
		}
	}
	return &job.FieldError{Field: "model.kind", Fix: fmt.Sprintf(
		"the rows have weights, which model %s does not read: make its loss of the input Config.Weight, or leave the weights out", s.Job.Model.Kind)}
}

// inputSpecs says what a plan's Feed task delivers.
func (s *Setup) inputSpecs(planName string) []data.InputSpec {
	var specs []data.InputSpec
	for _, n := range strategy.Inputs(s.Step, planName) {
		specs = append(specs, data.InputSpec{
			Column: n.Attr.Column, Part: string(n.Attr.Part), DType: n.DType, Dims: len(n.Shape),
		})
	}
	return specs
}

// trainOrder says which rows form which step.
func (s *Setup) trainOrder(src data.Source) data.Order {
	return data.Shuffled(src, s.Job.Seed, s.Job.Batch)
}

// steps is the number of steps of the whole run.
func (s *Setup) steps(o data.Order) int64 {
	per := int64(o.StepsPerEpoch())
	n := per * min(int64(s.Job.Epochs), math.MaxInt64/per)
	if s.Job.Steps > 0 {
		n = min(n, s.Job.Steps)
	}
	return n
}
