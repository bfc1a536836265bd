package train

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/gangline/gangline/internal/linediff"

	"github.com/gangline/gangline/checkpoint"
	"github.com/gangline/gangline/data"
	"github.com/gangline/gangline/data/feature"
	"github.com/gangline/gangline/job"
)

// featuresFile is the file of a checkpoint that holds what features learned.
const featuresFile = "features.json"

// fit returns the features of the job's rows: those of a checkpoint, or else what
// the training rows teach. They are nil where rows have no named columns.
func fit(j job.Job, dataDir string, from *checkpoint.Checkpoint) (*feature.Fitted, error) {
	if !j.Data.Train.IsTable() {
		return nil, nil
	}
	pipeline := j.Pipeline()
	if from == nil {
		f, err := data.Fit(sourceSpec(j, j.Data.Train, dataDir, nil), pipeline)
		if err != nil {
			return nil, fmt.Errorf("data.train: %w", job.FeatureError(err))
		}
		return f, nil
	}
	text, err := from.File(featuresFile)
	if err != nil {
		return nil, err
	}
	f, err := feature.Decode(text)
	if err != nil {
		return nil, fmt.Errorf("checkpoint %s: %s: %w", from.Dir, featuresFile, err)
	}
	return f, samePipeline(f.Spec, pipeline, from.Dir)
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

// featuresDigest tells features apart; "" where there are none.
func featuresDigest(f *feature.Fitted) (string, error) {
	if f == nil {
		return "", nil
	}
	return f.Digest()
}

// saveFeatures writes the features beside the shards of a checkpoint.
func saveFeatures(dir string, f *feature.Fitted) ([]checkpoint.File, error) {
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
