// Package checkpoint writes and reads the state of a run: parameters, slots and
// the position in the data, so that a run can go on after any death, on
// another number of ranks or servers.
//
// A checkpoint is a directory that appears whole or not at all: shards in
// safetensors form and a manifest with their checksums, written under another
// name, synced, then renamed.
package checkpoint

import "github.com/gangline/gangline/tensor"

// Piece is a part of one named array: a range of a dense one, or some rows of a
// table. Whoever holds state gives and takes it as pieces, so that a checkpoint
// does not depend on who held what.
type Piece struct {
	// Name is the parameter's name, or parameter/slot.
	Name string
	// Shape is that of the whole array.
	Shape tensor.Shape
	// Lo and Hi bound the elements of a dense piece: [Lo, Hi).
	Lo, Hi int
	// Keys names the rows of a piece of a table, ascending; nil for a dense piece.
	Keys []int64
	// Data is [Hi-Lo], or [len(Keys), dim].
	Data *tensor.Tensor
}
