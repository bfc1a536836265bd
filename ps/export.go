package ps

import (
	"fmt"

	"github.com/gangline/gangline/checkpoint"
)

// Export returns copies of all that the shard holds: for each state the
// parameter and then its slots; dense ranges, and the rows of tables that were
// ever updated by ascending key. It takes as much memory as the state.
func (s *Shard) Export() []checkpoint.Piece {
	var pieces []checkpoint.Piece
	for _, c := range s.cells {
		pieces = c.export(pieces)
	}
	return pieces
}

// Import replaces the state by what the pieces say of it. The pieces may come
// from any number of servers or ranks, in any order: the shard takes what falls
// into its ranges and what hashes to it, and passes over names it does not
// hold. It fails, with the shard unfit for use, if shapes or dtypes differ, if
// something of a dense state is missing or comes twice, or if a row comes
// without one of its slots. Rows that no piece names start anew.
func (s *Shard) Import(pieces []checkpoint.Piece) error {
	arrays := make(map[string][2]int)
	for i := range s.layout.States {
		st := &s.layout.States[i]
		s.cells[i] = newCell(st, &s.layout)
		for a := range 1 + len(st.Slots) {
			arrays[st.arrayName(a)] = [2]int{i, a}
		}
	}
	for _, p := range pieces {
		to, ok := arrays[p.Name]
		if !ok {
			continue
		}
		st := &s.layout.States[to[0]]
		if !p.Shape.Equal(st.Shape) {
			return fmt.Errorf("ps: store %d: import: %s has shape %v, want %v", s.layout.Store, p.Name, p.Shape, st.Shape)
		}
		if p.Data.DType() != st.DType {
			return fmt.Errorf("ps: store %d: import: %s has dtype %v, want %v", s.layout.Store, p.Name, p.Data.DType(), st.DType)
		}
		if err := s.cells[to[0]].load(p, to[1]); err != nil {
			return fmt.Errorf("ps: store %d: import: %w", s.layout.Store, err)
		}
	}
	for _, c := range s.cells {
		if err := c.loaded(); err != nil {
			return fmt.Errorf("ps: store %d: import: %w", s.layout.Store, err)
		}
	}
	return nil
}
