package train

import (
	"encoding/gob"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"

	"github.com/gangline/gangline/data"
	"github.com/gangline/gangline/graph"
	"github.com/gangline/gangline/internal/nearest"
	"github.com/gangline/gangline/job"
	"github.com/gangline/gangline/metric"
)

// tally collects what a test needs: the model's own loss, and what the metrics of
// its task are worked out from.
type tally struct {
	Loss, Weight float64
	Rows         int
	of           metric.Tally
}

// newTally makes an empty one. threshold is the probability above which a row is
// predicted as positive.
func newTally(task graph.Task, threshold float64) tally {
	switch task {
	case graph.Binary:
		return tally{of: &metric.Binary{Threshold: threshold}}
	case graph.Regression:
		return tally{of: &metric.Regression{}}
	case graph.Multiclass, graph.Tokens:
	}
	return tally{of: &metric.Multiclass{Tokens: task == graph.Tokens}}
}

// encode and decode let a tally travel between ranks.
func (t *tally) encode(w io.Writer) error {
	e := gob.NewEncoder(w)
	if err := e.Encode(t); err != nil {
		return err
	}
	return e.Encode(t.of)
}

func (t *tally) decode(r io.Reader) error {
	d := gob.NewDecoder(r)
	if err := d.Decode(t); err != nil {
		return err
	}
	return d.Decode(t.of)
}

// merge adds the tally of another worker.
func (t *tally) merge(o *tally) {
	t.Loss += o.Loss
	t.Weight += o.Weight
	t.Rows += o.Rows
	t.of.Merge(o.of)
}

// result works out the metrics; without scores, the loss alone.
func (t *tally) result(scored bool) metric.Result {
	var r metric.Result
	if scored {
		t.of.Into(&r)
	}
	r.Rows, r.Loss = t.Rows, metric.Finite(t.Loss/t.Weight)
	return r
}

// weightColumn is the column of the weights of rows, if there is one.
const weightColumn = "weight"

// sides reads what a test needs of rows beside predictions and labels.
type sides struct {
	src         data.Source
	order       data.Order
	part, parts int
	columns     []data.ColumnSpec
	weight      int // column of the weights; -1: none
	group       int // column of the groups; -1: none
	entry       int // which number or entry of it
	rows        []int
	batch       data.Batch
}

// newSides finds the columns, for part i of n of each batch; nil if there is nothing to read.
func (w *worker) newSides(src data.Source, o data.Order, i, n int) (*sides, error) {
	s := &sides{src: src, order: o, part: i, parts: n, columns: src.Columns(), weight: -1, group: -1}
	for i, c := range s.columns {
		if c.Name == weightColumn && c.Kind == data.DenseColumn {
			s.weight = i
		}
	}
	if g := w.setup.Job.Eval.Group; g != "" {
		if w.setup.Step.Model.Task != graph.Binary {
			return nil, &job.FieldError{Field: "eval.group", Fix: fmt.Sprintf("AUC within groups is of models that predict yes or no, not of %s", w.setup.Job.Model.Kind)}
		}
		if err := s.findGroup(g); err != nil {
			return nil, &job.FieldError{Field: "eval.group", Fix: err.Error()}
		}
	}
	if s.weight < 0 && s.group < 0 {
		return nil, nil
	}
	return s, nil
}

// findGroup finds "column", or "column.i": number or entry i of it, from 0.
func (s *sides) findGroup(name string) error {
	column, number, ok := strings.Cut(name, ".")
	if ok {
		i, err := strconv.Atoi(number)
		if err != nil || i < 0 {
			return fmt.Errorf("%q: want a column, or column.i with i from 0", name)
		}
		s.entry = i
	}
	var known []string
	for i, c := range s.columns {
		known = append(known, c.Name)
		size := c.Dim
		if c.Kind == data.RaggedColumn {
			size = c.PerRow
		}
		switch {
		case c.Name != column:
		case size == 0:
			return fmt.Errorf("rows have any number of entries of column %q: there is none to group by", column)
		case s.entry >= size:
			return fmt.Errorf("column %q has %d numbers a row: there is no %d, counted from 0", column, size, s.entry)
		case !ok && size > 1:
			return fmt.Errorf("column %q has %d numbers a row: say which, as %s.0", column, size, column)
		default:
			s.group = i
			return nil
		}
	}
	return fmt.Errorf("there is no column %q%s", column, nearest.Hint(column, known))
}

// read adds weights and groups to the rows of a step.
func (s *sides) read(step int64, into *metric.Rows) error {
	s.rows = s.order.RankRows(step, s.part, s.parts, s.rows)
	if len(s.rows) != len(into.Label) {
		return fmt.Errorf("%d labels of %d rows", len(into.Label), len(s.rows))
	}
	if err := s.src.Read(s.rows, &s.batch); err != nil {
		return err
	}
	if s.weight >= 0 {
		for _, v := range s.batch.Columns[s.weight].Values {
			into.Weight = append(into.Weight, float64(v))
		}
	}
	if s.group < 0 {
		return nil
	}
	c, spec := &s.batch.Columns[s.group], s.columns[s.group]
	for i := range s.rows {
		if spec.Kind == data.RaggedColumn {
			into.Group = append(into.Group, uint64(c.IDs[int(c.Offsets[i])+s.entry]))
		} else {
			into.Group = append(into.Group, uint64(math.Float32bits(c.Values[i*spec.Dim+s.entry])))
		}
	}
	return nil
}
