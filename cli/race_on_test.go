//go:build race

package cli

// raceEnabled: kernels run some twenty times slower.
const raceEnabled = true
