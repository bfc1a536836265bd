package stream

import (
	"fmt"
	"net"

	"golang.org/x/sys/unix"

	"github.com/gangline/gangline/transport"
)

// seals keep the size as it is: an access to memory beyond the end of a file that
// has been cut ends the process.
const seals = unix.F_SEAL_SHRINK | unix.F_SEAL_GROW | unix.F_SEAL_SEAL

// anonymous makes a file without a name, of a size that cannot change.
func anonymous(size int) (int, error) {
	const flags = unix.MFD_CLOEXEC | unix.MFD_ALLOW_SEALING
	fd, err := unix.MemfdCreate("gangline", flags|unix.MFD_NOEXEC_SEAL)
	if err != nil { // before Linux 6.3
		fd, err = unix.MemfdCreate("gangline", flags)
	}
	if err != nil {
		return -1, fmt.Errorf("memfd_create: %w", err)
	}
	if err = unix.Ftruncate(fd, int64(size)); err != nil {
		err = fmt.Errorf("%d bytes of shared memory: %w", size, err)
	} else if _, err = unix.FcntlInt(uintptr(fd), unix.F_ADD_SEALS, seals); err != nil {
		err = fmt.Errorf("seal shared memory: %w", err)
	}
	if err != nil {
		_ = unix.Close(fd)
		return -1, err
	}
	return fd, nil
}

// canShare reports whether this system lets processes share memory this way.
func canShare() bool {
	fd, err := anonymous(pageSize)
	if err != nil {
		return false
	}
	return unix.Close(fd) == nil
}

// attach maps the file of a pair, if it is one, and closes it.
func attach(fd int, ring uint64) ([]byte, error) {
	defer unix.Close(fd)
	if ring < MinRing || ring > MaxRing || ring&(ring-1) != 0 {
		return nil, fmt.Errorf("%w: shared ring of %d bytes", transport.ErrCorrupt, ring)
	}
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return nil, fmt.Errorf("shared memory: %w", err)
	}
	size := mappedSize(int(ring))
	if has, err := unix.FcntlInt(uintptr(fd), unix.F_GET_SEALS, 0); err != nil {
		return nil, fmt.Errorf("shared memory: seals: %w", err)
	} else if has&seals != seals || st.Size != int64(size) {
		return nil, fmt.Errorf("%w: shared memory of %d bytes with seals %#x", transport.ErrCorrupt, st.Size, has)
	}
	mem, err := unix.Mmap(fd, 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return nil, fmt.Errorf("map %d bytes of shared memory: %w", size, err)
	}
	return mem, nil
}

// openShm makes the memory of a pair, or takes it from the lower rank.
func openShm(cfg Config, peer int, c net.Conn) (body, error) {
	var mem []byte
	var err error
	ring, side := cfg.Ring, 0
	if cfg.Rank < peer {
		mem, err = makeMemory(c, ring)
	} else {
		side = 1
		mem, ring, err = takeMemory(c)
	}
	if err != nil {
		return nil, err
	}
	fd, err := detach(c)
	if err != nil {
		_ = unix.Munmap(mem)
		return nil, err
	}
	return newShm(peer, fd, mem, ring, side), nil
}

func makeMemory(c net.Conn, ring int) ([]byte, error) {
	fd, err := anonymous(mappedSize(ring))
	if err != nil {
		return nil, err
	}
	if err := handOver(c, hello{ring: uint64(ring)}, fd); err != nil {
		_ = unix.Close(fd)
		return nil, err
	}
	return attach(fd, uint64(ring))
}

func takeMemory(c net.Conn) ([]byte, int, error) {
	h, fd, err := takeOver(c)
	if err != nil {
		return nil, 0, err
	}
	mem, err := attach(fd, h.ring)
	if err != nil {
		return nil, 0, err
	}
	if err := accept(c); err != nil {
		_ = unix.Munmap(mem)
		return nil, 0, err
	}
	return mem, int(h.ring), nil
}
