package ps

import "github.com/gangline/gangline/tensor"

// Part is one state's share of a Push or Pull: the elements, or the rows, that
// go to or come from one store.
//
// Guarantees: (1) a dense part has Keys nil and Data is the whole value, of
// which only [Lo, Hi) is read or written; (2) a table part has Keys i64 [K],
// ascending and distinct, each in [0, table rows), and Data [K D], row i
// belonging to Keys[i]; the client picks those keys that the store owns.
type Part struct {
	// State is the plan's value index of the parameter.
	State int
	// Lo and Hi bound the elements of a dense state that the store holds.
	Lo, Hi int
	// Keys names the rows of a table; nil for a dense state.
	Keys *tensor.Tensor
	// Data is the gradient sum (Push) or where the parameter goes (Pull).
	Data *tensor.Tensor
}
