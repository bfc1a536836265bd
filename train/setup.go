// Package train runs one rank of a job: it plans, joins the others, drives the
// executor from boundary to boundary (evaluation, checkpoint, end) and reports.
//
// Reading order: setup.go (job to plan), rank.go (a rank's life), worker.go (the
// loop), server.go, holder.go (who holds parameters), save.go (checkpoints),
// evaluate.go, stop.go, predict.go.
package train

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/gangline/gangline/data"
	"github.com/gangline/gangline/data/feature"
	"github.com/gangline/gangline/data/file"
	"github.com/gangline/gangline/data/format"
	"github.com/gangline/gangline/graph"
	"github.com/gangline/gangline/job"
	"github.com/gangline/gangline/model"
	"github.com/gangline/gangline/plan"
	"github.com/gangline/gangline/plan/check"
	"github.com/gangline/gangline/strategy"
	"github.com/gangline/gangline/tensor"
)

// labelColumn is the column every model predicts.
const labelColumn = "label"

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
	step, err := graph.Train(g, m, j.Optimizer.Scaled(j.Batch))
	if err != nil {
		return nil, fmt.Errorf("model %s: %w", j.Model.Kind, err)
	}
	s := &Setup{
		Job: j, Step: step, DType: dtype,
		Cluster: strategy.Cluster{Workers: j.Strategy.Workers, Servers: j.Strategy.Servers},
	}
	if column := weighedBy(columns); column != "" {
		if err := s.checkWeighed(column); err != nil {
			return nil, err
		}
	}
	if s.Program, err = planned(j, step, s.Cluster); err != nil {
		return nil, err
	}
	return s, nil
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
		if err := check.Plan(program.Plans[name]); err != nil {
			return nil, fmt.Errorf("strategy %s makes a plan %q that does not hold: %w", kind, name, err)
		}
	}
	return program, nil
}

// modelConfig says which model the job wants for the columns.
func modelConfig(j job.Job, columns []data.ColumnSpec, dtype tensor.DType) model.Config {
	c := model.Config{
		Kind: j.Model.Kind, Label: labelColumn, Hidden: j.Model.Hidden, Bottom: j.Model.Bottom,
		Filters: j.Model.Filters, Image: j.Model.Image, Dim: j.Model.Dim, Layers: j.Model.Layers, Heads: j.Model.Heads,
		Activation: j.Model.Activation, Slope: j.Model.Slope, NoBias: !j.Model.Bias,
		Dropout: j.Model.Dropout, Classes: j.Model.Classes, Table: j.Model.Table, Seed: j.Seed, Float: dtype,
	}
	c.Weight = weighedBy(columns)
	for _, col := range columns {
		if col.Name != labelColumn && col.Name != data.WeightColumn && col.Name != data.GroupColumn {
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

// Columns returns what the job's training data has, reading as little as it can:
// of a table that features learn from, all of it.
func Columns(ctx context.Context, j job.Job, dataDir string) ([]data.ColumnSpec, error) {
	features, err := fit(ctx, j, dataDir, nil)
	if err != nil {
		return nil, err
	}
	return columnsOf(ctx, j, dataDir, features)
}

// columnsOf is Columns with the features that a table needs.
func columnsOf(ctx context.Context, j job.Job, dataDir string, features *feature.Fitted) ([]data.ColumnSpec, error) {
	columns, err := data.Columns(ctx, sourceSpec(j, j.Data.Train, dataDir, features))
	if err != nil {
		return nil, fmt.Errorf("data.train: %w", err)
	}
	return columns, nil
}

// openTrain opens the training rows.
func openTrain(ctx context.Context, j job.Job, dataDir string, features *feature.Fitted) (data.Source, error) {
	src, err := data.Open(ctx, sourceSpec(j, j.Data.Train, dataDir, features))
	if err != nil {
		return nil, fmt.Errorf("data.train: %w", job.FeatureError(err))
	}
	return src, nil
}

// openEval opens the rows to test on, which have the training rows' columns;
// nil without any.
func openEval(ctx context.Context, j job.Job, dataDir string, columns []data.ColumnSpec, features *feature.Fitted) (data.Source, error) {
	if j.Data.Eval.Format == "" {
		return nil, nil
	}
	src, err := data.Open(ctx, evalSpec(j, dataDir, columns, features))
	if err != nil {
		return nil, fmt.Errorf("data.eval: %w", job.FeatureError(err))
	}
	if has, want := withoutGroup(src.Columns()), withoutGroup(columns); !slices.Equal(has, want) {
		return nil, errors.Join(fmt.Errorf("data.eval: its columns %+v are not those of data.train, %+v", has, want), src.Close())
	}
	return src, nil
}

// withoutGroup leaves out the column that is for metrics alone.
func withoutGroup(columns []data.ColumnSpec) []data.ColumnSpec {
	return slices.DeleteFunc(slices.Clone(columns), func(c data.ColumnSpec) bool { return c.Name == data.GroupColumn })
}

// evalSpec is the spec of the rows to test on.
func evalSpec(j job.Job, dataDir string, columns []data.ColumnSpec, features *feature.Fitted) data.Spec {
	spec := sourceSpec(j, j.Data.Eval, dataDir, features)
	takeInTests(&spec, columns)
	for _, c := range columns {
		if spec.Format == "libsvm" && spec.Features == 0 && c.Kind == data.RaggedColumn {
			spec.Features = c.Dim
		}
	}
	if spec.Format == "text" {
		spec.Vocabulary = inDir(dataDir, j.Data.Train.Path.First())
	}
	return spec
}

// sourceSpec turns a job's source into the reader's words.
func sourceSpec(j job.Job, s job.Source, dataDir string, features *feature.Fitted) data.Spec {
	spec := data.Spec{
		Format: s.Format, Path: inDir(dataDir, s.Path.First()), Labels: inDir(dataDir, s.Labels),
		UnitNorm: j.Data.UnitNorm() && s.Format == "libsvm", Features: s.Features, ZeroBased: s.ZeroBased, LabelBase: s.LabelBase,
		Buckets: s.Buckets, Context: s.Context, Stride: s.Stride, From: s.From, To: s.To, First: s.First, Seed: s.Seed,
	}
	for _, path := range s.Path[min(1, len(s.Path)):] {
		spec.More = append(spec.More, inDir(dataDir, path))
	}
	takeIn(&spec, &j, &s)
	if s.Format == "generated" {
		spec.Rows = s.Rows
	} else {
		spec.Limit = s.Rows
	}
	binary := j.Task() == graph.Binary
	switch {
	case s.IsTable():
		spec.Fitted, spec.Group, spec.Unlabelled = features, j.Data.Group, s.Unlabelled
		if s.Unlabelled {
			spec.Group = "" // of metrics, for which there are no labels
		}
		spec.Table = format.Spec{
			Header: s.Header, Names: s.Columns, Columns: s.Types, Missing: s.Missing, Suffix: s.Suffix, Delimiter: s.Delimiter,
			NoQuotes: s.NoQuotes, Encoding: s.Encoding, Namespaces: s.Namespaces, NumericIDs: s.NumericIDs,
		}
	case s.Format == "idx" && binary:
		spec.Classes = 2
	case s.Format == "idx":
		spec.Classes = j.Model.Classes
	case s.Format != "libsvm":
	case binary && s.LabelBase == 0:
		spec.LabelMap = "binary"
	case binary:
		spec.Classes = 2
	case j.Model.Kind != "linear":
		spec.Classes = j.Model.Classes
	}
	return spec
}

// inDir resolves a path against the data directory; none stays none.
func inDir(dir, path string) string {
	if path != "" {
		path = file.Resolve(dir, path)
	}
	return path
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

// OpenSource opens the job's training rows, or its eval rows.
func OpenSource(ctx context.Context, j job.Job, dataDir string, eval bool) (data.Source, error) {
	features, err := fit(ctx, j, dataDir, nil)
	if err != nil {
		return nil, err
	}
	if !eval {
		return openTrain(ctx, j, dataDir, features)
	}
	if j.Data.Eval.Format == "" {
		return nil, &job.FieldError{Field: "data.eval.format", Fix: "is missing"}
	}
	columns, err := columnsOf(ctx, j, dataDir, features)
	if err != nil {
		return nil, err
	}
	return openEval(ctx, j, dataDir, columns, features)
}
