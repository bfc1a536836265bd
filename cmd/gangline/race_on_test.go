//go:build race

package main

// raceEnabled: kernels run some twenty times slower.
const raceEnabled = true
