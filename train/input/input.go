package train

import (
	"errors"

	"github.com/gangline/gangline/checkpoint"
	"github.com/gangline/gangline/data"
	"github.com/gangline/gangline/data/feature"
	"github.com/gangline/gangline/job"
)

// rows are a worker's sources.
type rows struct {
	train data.Source // nil: only tests are made
	eval  data.Source // nil: nothing to test on
	// features make both of the columns of a table; nil: there is none.
	features *feature.Fitted
}

// openRows opens what the job names, with the features of a checkpoint if there is
// one.
func openRows(j job.Job, dataDir string, from *checkpoint.Checkpoint) (*rows, error) {
	features, err := fit(j, dataDir, from)
	if err != nil {
		return nil, err
	}
	train, err := openTrain(j, dataDir, features)
	if err != nil {
		return nil, err
	}
	eval, err := openEval(j, dataDir, train.Columns(), features)
	if err != nil {
		return nil, errors.Join(err, train.Close())
	}
	return &rows{train: train, eval: eval, features: features}, nil
}

// bad counts the malformed rows that were skipped.
func (r *rows) bad() int {
	n := 0
	for _, src := range []data.Source{r.train, r.eval} {
		if b, ok := src.(data.Reporter); ok {
			n += b.BadRows()
		}
	}
	return n
}

func (r *rows) close() error {
	var errs []error
	for _, src := range []data.Source{r.train, r.eval} {
		if src != nil {
			errs = append(errs, src.Close())
		}
	}
	return errors.Join(errs...)
}
