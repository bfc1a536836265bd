package tally

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/gangline/gangline/data"
	"github.com/gangline/gangline/internal/nearest"
	"github.com/gangline/gangline/metric"
)

// weightColumn is the column of the weights of rows, if there is one.
const weightColumn = "weight"

// Sides reads what a test needs of rows beside predictions and labels.
type Sides struct {
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

// NewSides finds the column of weights, and of groups of part i of parts of each batch, unless group is empty: "column",
// or "column.i". It returns nil if there is nothing to read.
func NewSides(src data.Source, o data.Order, part, parts int, group string) (*Sides, error) {
	s := &Sides{src: src, order: o, part: part, parts: parts, columns: src.Columns(), weight: -1, group: -1}
	for i, c := range s.columns {
		if c.Name == weightColumn && c.Kind == data.DenseColumn {
			s.weight = i
		}
	}
	if group != "" {
		if err := s.findGroup(group); err != nil {
			return nil, err
		}
	}
	if s.weight < 0 && s.group < 0 {
		return nil, nil
	}
	return s, nil
}

// findGroup finds "column", or "column.i": number or entry i of it, from 0.
func (s *Sides) findGroup(name string) error {
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

// Read adds weights and groups to the rows of a step.
func (s *Sides) Read(step int64, into *metric.Rows) error {
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
