//go:build !race

package train

// raced says that the race detector watches.
const raced = false
