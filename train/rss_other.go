//go:build !unix

package train

import "runtime"

// peakRSS is the memory this process has from the system, in bytes: the nearest
// thing to a peak that is known here.
func peakRSS() int64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.Sys)
}
