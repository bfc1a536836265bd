//go:build unix && !linux

package stream

import (
	"errors"
	"fmt"
	"net"
)

// canShare: anonymous files whose size is sealed are Linux's.
func canShare() bool { return false }

func openShm(Config, int, net.Conn) (body, error) {
	return nil, fmt.Errorf("shared memory on this system: %w", errors.ErrUnsupported)
}
