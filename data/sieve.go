package data

import (
	"slices"

	"github.com/gangline/gangline/data/rows"
	"github.com/gangline/gangline/data/split"
)

// sieve lets pass the rows of one part, with the weights of a sample.
type sieve struct {
	in, out   []ColumnSpec
	split     *split.Splitter // nil: all rows are meant
	negatives split.Negatives
	label     int // column
	weight    int // column of out, -1: none
	number    int // of the next row
}

// newSieve returns nil if all rows pass as they are.
func newSieve(n *Intake, in []ColumnSpec, s *split.Splitter) *sieve {
	out := n.columns(in)
	if s == nil && n.Negatives.Keep == 0 && len(out) == len(in) {
		return nil
	}
	return &sieve{
		in: in, out: out, split: s, negatives: n.Negatives,
		label: slices.IndexFunc(in, isLabel), weight: slices.IndexFunc(out, isWeight),
	}
}

func isLabel(c ColumnSpec) bool { return c.Name == "label" }

// pass adds the rows of a block, which are of a file, to another.
func (s *sieve) pass(raw *rows.Block, file string, into *rows.Block) error {
	first := 0 // of the rows that pass and are not added yet
	flush := func(end int) {
		if end > first {
			into.Append(s.in, raw, first, end)
		}
	}
	for i := range raw.Rows {
		weight, err := s.weigh(raw, i, file)
		if err != nil {
			return err
		}
		if weight == 0 {
			flush(i)
			first = i + 1
			continue
		}
		if s.weight >= 0 && s.weight < len(s.in) {
			raw.Columns[s.weight].Values[i] *= weight
		} else if s.weight >= 0 {
			c := &into.Columns[s.weight]
			c.Values = append(c.Values, weight)
		}
	}
	flush(raw.Rows)
	return nil
}

// weigh returns what the next row counts, 0 if it does not pass.
func (s *sieve) weigh(raw *rows.Block, i int, file string) (float32, error) {
	number := s.number
	s.number++
	if s.split != nil {
		meant, err := s.split.Meant(number, file, "")
		if err != nil || !meant {
			return 0, err
		}
	}
	negative := s.label >= 0 && raw.Columns[s.label].Values[i*s.in[s.label].Dim] == 0
	return s.negatives.Weight(number, negative), nil
}
