package input

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/gangline/gangline/internal/linediff"

	"github.com/gangline/gangline/checkpoint"
	"github.com/gangline/gangline/data"
	"github.com/gangline/gangline/data/feature"
	"github.com/gangline/gangline/job"
)

// featuresFile is the file of a checkpoint that holds what features learned.
const featuresFile = "features.json"

// Fit returns the features of the job's rows: those of a checkpoint, or else what
// the training rows teach, or taught when they were converted to a cache file. They
// are nil where rows have no named columns.
func Fit(ctx context.Context, j job.Job, dataDir string, from *checkpoint.Checkpoint) (*feature.Fitted, error) {
	if j.Data.Train.Format == "cache" {
		return fitted(j, dataDir, from)
	}
	if !j.Data.Train.IsTable() {
		return nil, nil
	}
	pipeline := j.Pipeline()
	if from == nil {
		f, err := data.Fit(ctx, Spec(j, j.Data.Train, dataDir, nil), pipeline)
		if err != nil {
			return nil, fmt.Errorf("data.train: %w", job.FeatureError(err))
		}
		return f, nil
	}
	f, err := savedFeatures(from)
	if err != nil {
		return nil, err
	}
	return f, samePipeline(f.Spec, pipeline, from.Dir)
}

// savedFeatures are those beside a checkpoint.
func savedFeatures(from *checkpoint.Checkpoint) (*feature.Fitted, error) {
	text, err := from.File(featuresFile)
	if err != nil {
		return nil, err
	}
	f, err := feature.Decode(text)
	if err != nil {
		return nil, fmt.Errorf("checkpoint %s: %s: %w", from.Dir, featuresFile, err)
	}
	return f, nil
}

// fitted returns the features that made the rows of a cache file. They are nil where
// neither the file nor the checkpoint has any.
func fitted(j job.Job, dataDir string, from *checkpoint.Checkpoint) (*feature.Fitted, error) {
	spec := Spec(j, j.Data.Train, dataDir, nil)
	own, err := data.Features(spec)
	if err != nil {
		return nil, fmt.Errorf("data.train: %w", err)
	}
	if from == nil {
		return own, nil
	}
	saved, err := savedFeatures(from)
	switch {
	case errors.Is(err, checkpoint.ErrNoFile):
		return own, nil
	case err != nil:
		return nil, err
	case own == nil: // converted before a cache kept them
		return saved, nil
	}
	return saved, sameFeatures("data.train.path", spec.Path, own, saved)
}

// suitFeatures tells whether eval rows can be read with the features of the model.
func suitFeatures(j job.Job, spec data.Spec, features *feature.Fitted) error {
	switch {
	case j.Data.Eval.IsTable() && features == nil:
		return &job.FieldError{Field: "data.eval.format", Fix: fmt.Sprintf(
			"%s has named columns, but the cache file of data.train keeps no features to make of them: convert it again from such a file", spec.Format)}
	case spec.Format != "cache" || features == nil:
		return nil
	}
	own, err := data.Features(spec)
	if err != nil {
		return fmt.Errorf("data.eval: %w", err)
	}
	if own == nil {
		return nil
	}
	return sameFeatures("data.eval.path", spec.Path, own, features)
}

// sameFeatures refuses a cache file whose rows were made by other features than those
// the model is of: equal numbers would mean different things.
func sameFeatures(field, path string, own, model *feature.Fitted) error {
	is, err := own.Digest()
	if err != nil {
		return err
	}
	want, err := model.Digest()
	if err != nil || is == want {
		return err
	}
	return &job.FieldError{Field: field, Fix: fmt.Sprintf(
		"%s was converted with features that learned of other rows, or were declared otherwise, than those of the model (digests %.16s and %.16s): convert it again with the job and the training rows of the model",
		path, is, want)}
}

// samePipeline refuses features that were fitted to other declarations.
func samePipeline(was, is feature.Spec, dir string) error {
	a, err := json.MarshalIndent(was, "", " ")
	if err != nil {
		return fmt.Errorf("features: %w", err)
	}
	b, err := json.MarshalIndent(is, "", " ")
	if err != nil {
		return fmt.Errorf("features: %w", err)
	}
	if bytes.Equal(a, b) {
		return nil
	}
	return &job.FieldError{Field: "data.features", Fix: fmt.Sprintf(
		"%s was written with other features; what the job declares now differs:\n%s", dir, linediff.Of(string(a), string(b)))}
}

// SaveFeatures writes the features beside the shards of a checkpoint.
func SaveFeatures(dir string, f *feature.Fitted) ([]checkpoint.File, error) {
	if f == nil {
		return nil, nil
	}
	text, err := f.Encode()
	if err != nil {
		return nil, err
	}
	file, err := checkpoint.WriteFile(dir, featuresFile, text)
	return []checkpoint.File{file}, err
}
