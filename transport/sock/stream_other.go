//go:build !linux

package sock

import "net"

func newStream(c net.Conn) stream { return newNetStream(c) }
