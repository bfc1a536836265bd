// Command faults plants mistakes in the program, one at a time, and sees
// whether the tests notice.
//
//	go run ./internal/cmd/faults [-run REGEXP] [-list] [-doc]
//
// A fault is a piece of text of one file and what to put in its place: a mistake
// that somebody could make. For each, the test that ought to catch it is built
// with the changed file laid over the real one (go test -overlay), so that the
// tree itself is never touched, and run. A fault that its test does not notice
// has survived; one whose text is not found exactly once, or that does not
// compile, is stale. Before that, every such test must pass without a fault,
// or what it says with one would mean nothing.
//
// It prints a line a fault and a count, and ends with status 1 if any survived
// or is stale. -doc writes docs/faults.md from the list; a test keeps the two
// equal. All of it takes some minutes: what costs is building the tests.
package main

import "slices"

// fault is a mistake to plant.
type fault struct {
	// name says what is wrong, in the fewest words; names are distinct.
	name string
	// harm says what it would do to a user, as a sentence.
	harm string
	// file is where, from the module's directory.
	file string
	// old is a text that the file has exactly once, and new what to plant there.
	old, new string
	by       catcher
}

// catcher is the test that is to notice a fault.
type catcher struct {
	pkg  string // directory from the module's
	test string // the function, or a subtest with slashes
}

func (c catcher) String() string { return c.pkg + " " + c.test }

// faults is the list, from plan to wire. It fits on no page: each floor has its
// own.
func faults() []fault {
	return slices.Concat(
		strategyFaults(), builderFaults(), checkFaults(), cursorFaults(), execFaults(), commitFaults(), compressedFaults(),
		gradientFaults(), nativeFaults(), ruleFaults(), flagFaults(), dataFaults(), modelFaults(),
		scheduleFaults(), sparseFaults(), storeFaults(), rowFaults(), clientFaults(),
		wireFaults(), transportFaults(), coordFaults(), checkpointFaults(), trainFaults(), reportFaults(), killedFaults(),
		bucketFaults(), streamFaults(), joinFaults(), verdictFaults(), boundFaults(),
		averagingFaults(), shardFaults(), cutFaults(), mixedFaults(), reproducibleFaults(), resumedFaults(),
	)
}
