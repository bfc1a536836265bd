package stream

import "golang.org/x/sys/unix"

// window is how much of a peer's may be on its way: more than a block, or both ends write and
// read by turns.
const window = 2 << 20

// widen opens the receive window at once. The system would from its default (64 KiB) as bytes
// come, in a hundred round trips. A buffer that is set (SO_RCVBUF) is limited to rmem_max,
// which is less; a low-water mark grows it as well, and the buffer stays when the mark goes.
func widen(fd int) error {
	if err := unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVLOWAT, window); err != nil {
		return err
	}
	return unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVLOWAT, 1)
}
