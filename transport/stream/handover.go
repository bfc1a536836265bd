//go:build unix

package stream

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net"

	"golang.org/x/sys/unix"

	"github.com/gangline/gangline/transport"
)

// hello goes with a descriptor: helloSize bytes, of which the first tell that it is one.
type hello struct {
	ring uint64 // bytes; 0 where the descriptor is a socket
}

const (
	helloSize  = 16
	helloMagic = "GLstrm\x00\x01"
	accepted   = 'y'
)

// handOver sends a descriptor to the peer and waits until it has taken it.
func handOver(c net.Conn, h hello, fd int) error {
	u, ok := c.(*net.UnixConn)
	if !ok {
		return fmt.Errorf("hand a descriptor over %T: %w", c, errors.ErrUnsupported)
	}
	msg := binary.LittleEndian.AppendUint64([]byte(helloMagic), h.ring)
	n, _, err := u.WriteMsgUnix(msg, unix.UnixRights(fd), nil)
	if err != nil {
		return fmt.Errorf("hand a descriptor over: %w", err)
	}
	if n != len(msg) {
		return fmt.Errorf("hand a descriptor over: %d of %d bytes", n, len(msg))
	}
	var answer [1]byte
	if _, err := u.Read(answer[:]); err != nil {
		return fmt.Errorf("the peer did not take a descriptor: %w", err)
	}
	if answer[0] != accepted {
		return fmt.Errorf("%w: answer %q to a descriptor", transport.ErrCorrupt, answer[0])
	}
	return nil
}

// accept tells the peer that its descriptor serves.
func accept(c net.Conn) error {
	if _, err := c.Write([]byte{accepted}); err != nil {
		return fmt.Errorf("take a descriptor: %w", err)
	}
	return nil
}

// takeOver receives a descriptor, which is the caller's to close.
func takeOver(c net.Conn) (hello, int, error) {
	h, fd, err := receiveOver(c)
	if err != nil {
		return h, -1, fmt.Errorf("take a descriptor: %w", err)
	}
	return h, fd, nil
}

func receiveOver(c net.Conn) (hello, int, error) {
	u, ok := c.(*net.UnixConn)
	if !ok {
		return hello{}, -1, fmt.Errorf("%T: %w", c, errors.ErrUnsupported)
	}
	var msg [helloSize]byte
	oob := make([]byte, unix.CmsgSpace(4*4)) // room for more than one, so that none is lost unseen
	n, oobn, _, _, err := u.ReadMsgUnix(msg[:], oob)
	if err != nil {
		return hello{}, -1, err
	}
	fds, err := rights(oob[:oobn])
	if err == nil && (n != helloSize || string(msg[:len(helloMagic)]) != helloMagic || len(fds) != 1) {
		err = fmt.Errorf("%w: %d bytes and %d descriptors", transport.ErrCorrupt, n, len(fds))
	}
	if err != nil {
		for _, fd := range fds {
			_ = unix.Close(fd)
		}
		return hello{}, -1, err
	}
	return hello{ring: binary.LittleEndian.Uint64(msg[len(helloMagic):])}, fds[0], nil
}

// rights returns the descriptors of a control message, set so that no program that is
// started inherits them.
func rights(oob []byte) ([]int, error) {
	messages, err := unix.ParseSocketControlMessage(oob)
	if err != nil {
		return nil, err
	}
	var all []int
	for i := range messages {
		fds, err := unix.ParseUnixRights(&messages[i])
		if err != nil {
			return all, err
		}
		for _, fd := range fds {
			unix.CloseOnExec(fd)
		}
		all = append(all, fds...)
	}
	return all, nil
}
