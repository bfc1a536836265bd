package train

import (
	"github.com/gangline/gangline/graph"
	"github.com/gangline/gangline/job"
	"github.com/gangline/gangline/params"
	"github.com/gangline/gangline/train/input"
)

// imported returns the parameters that the job takes from a file; nil if it takes
// none.
func imported(j job.Job, dataDir string, step *graph.Step) (params.State, error) {
	if j.Import.Path == "" {
		return nil, nil
	}
	s := params.New(step).Only(step)
	if err := j.Import.Map.Import(input.Path(dataDir, j.Import.Path), s, j.Import.Unused); err != nil {
		return nil, &job.FieldError{Field: "import", Fix: err.Error()}
	}
	return s, nil
}
