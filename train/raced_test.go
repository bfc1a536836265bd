//go:build race

package train

// raced says that the race detector watches, under which a number takes ten times as
// long: what is compared for many models and rules elsewhere is then run for a few, since
// a race does not depend on them.
const raced = true
