//go:build !race

package cli

// raceEnabled: kernels run at full speed.
const raceEnabled = false
