//go:build unix

// Package rss tells how much memory this process needs.
package rss

import (
	"runtime"
	"syscall"
)

// Peak is the most memory this process had resident, in bytes.
func Peak() int64 {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	if runtime.GOOS == "darwin" {
		return int64(u.Maxrss) //nolint:unconvert // int32 on some systems; bytes here, KiB elsewhere
	}
	return int64(u.Maxrss) * 1024 //nolint:unconvert // as above
}
