//go:build unix && !linux

package stream

import (
	"crypto/sha256"
	"fmt"
	"os"
	"runtime"
)

// thisHost is made of the running system and the user.
func thisHost() hostID {
	boot, err := bootID()
	if err != nil || boot == "" {
		return hostID{}
	}
	return sha256.Sum256(fmt.Appendf(nil, "user %d\n%s", os.Getuid(), boot))
}

// theseCPUs are as many as there are.
func theseCPUs() processors {
	var p processors
	for i := range min(runtime.NumCPU(), 8*len(p)) {
		p[i/8] |= 1 << (i % 8)
	}
	return p
}

// unixAddress lets the listener make a socket in a directory of its own.
func unixAddress() string { return "" }
