//go:build !race

package main

// raceEnabled: kernels run at full speed.
const raceEnabled = false
