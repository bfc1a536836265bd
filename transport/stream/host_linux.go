package stream

import (
	"crypto/rand"
	"crypto/sha256"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// thisHost is made of the running system, the user, and the namespaces in which
// processes and sockets are found.
func thisHost() hostID {
	id := fmt.Appendf(nil, "user %d\n", os.Getuid())
	boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return hostID{}
	}
	id = append(id, boot...)
	for _, ns := range []string{"pid", "net"} {
		name, err := os.Readlink("/proc/self/ns/" + ns)
		if err != nil {
			return hostID{}
		}
		id = append(id, name...)
	}
	return sha256.Sum256(id)
}

// theseCPUs are the processors that this process may use.
func theseCPUs() processors {
	var p processors
	var set unix.CPUSet
	if unix.SchedGetaffinity(0, &set) == nil {
		for i := range 8 * len(p) {
			if set.IsSet(i) {
				p[i/8] |= 1 << (i % 8)
			}
		}
	}
	return p
}

// unixAddress is a name that is not in the file system, so that a process that is
// killed leaves nothing. Whoever connects must prove the token.
func unixAddress() string { return "@gangline-" + rand.Text() }
