// Package stream opens the streams of a group: the bodies of transport.Streams
// between processes.
//
//	s, err := stream.Open(ctx, stream.Config{Endpoint: e, Rank: r, World: n, Members: group, Tag: tag, ...})
//
// Every member calls Open. They tell each other over the endpoint where they
// listen and on which host they are, connect with the handshake of package sock
// (both sides prove the job's token; a stale generation is refused), and choose
// for each pair how its bytes cross, see [Path].
//
// # Shared memory
//
// The lower rank of a pair makes an anonymous file (memfd), seals its size and
// hands it over the authenticated unix socket; both map it and close it. So
// there is no name that a killed process could leave behind. The file is a page of
// counters and a ring for each direction:
//
//	offset  field
//	     0  head: bytes that the lower rank wrote so far
//	   128  tail: bytes that the higher rank read so far
//	   256  head, 384 tail of the other direction
//	   512  lower rank: sleeping   640 bye
//	   768  higher rank: sleeping  896 bye
//	  4096  ring from lower to higher, then from higher to lower
//
// Only one side writes a counter (but sleeping, which who wakes the other clears),
// and each has 128 bytes of its own, as processors fetch lines in pairs. What the
// peer wrote is not trusted: a counter that is impossible is
// transport.ErrCorrupt, and no access is beyond the mapping, whose size cannot
// change. The socket stays: its end is the peer's death, and a byte on it
// wakes a peer that sleeps. A rank that goes to sleep says so in sleeping and
// then looks a last time; a rank that has moved a counter then looks at sleeping.
// All are sequentially consistent, so one of the two sees the other.
//
// # Sockets
//
// The descriptor is taken out of Go's poller and read and written by the
// goroutine that wants the bytes. Nothing is added to the bytes, so what follows
// the handshake is neither encrypted nor signed; use it on networks you trust. A
// bye is an end of file, on tcp; a socket that the system closes for a process that
// died says reset instead, since it is told not to linger. A pair on a unix socket has
// another one, for the bye alone. With [Config.Checksum] what goes over tcp travels in
// blocks of at most 64 KiB, each with a CRC-32C that is compared before a byte of it is
// read; what stays on one host needs none.
//
// # Costs and duties
//
// No call allocates in a run without errors, and none starts a goroutine. One
// goroutine drives a group. Close is for that goroutine, or for another after the
// last call has returned: what Peek and Room gave is memory that Close takes back. Only Park
// may be under way; it then returns ErrClosed, and Close waits for it.
package stream

import (
	"errors"
	"fmt"
	"log/slog"
	"math/bits"
	"slices"
	"time"

	"github.com/gangline/gangline/transport"
	"github.com/gangline/gangline/transport/sock"
)

// Path is how the bytes of a pair of ranks cross.
type Path uint8

// Paths. Auto is a choice, the others are also answers.
const (
	// Auto is shared memory between ranks of one host, where the system has it,
	// else a unix socket; and tcp between hosts.
	Auto Path = iota
	// Shm is shared memory. Linux only.
	Shm
	// Unix is a unix socket.
	Unix
	// TCP is a tcp socket, on one host too.
	TCP
)

// String returns the name of p.
func (p Path) String() string {
	switch p {
	case Auto:
		return "auto"
	case Shm:
		return "shm"
	case Unix:
		return "unix"
	case TCP:
		return "tcp"
	}
	return fmt.Sprintf("path %d", uint8(p))
}

// ParsePath is the inverse of Path.String.
func ParsePath(name string) (Path, error) {
	for p := Auto; p <= TCP; p++ {
		if p.String() == name {
			return p, nil
		}
	}
	return 0, fmt.Errorf("streams: there is no path %q: want auto, shm, unix or tcp", name)
}

// Limits.
const (
	// MinRing and MaxRing bound Config.Ring in bytes.
	MinRing = 4 << 10
	MaxRing = 64 << 20
	// DefaultRing is the ring of a pair in a small group in bytes. Smaller ones are
	// slower: what one core has just read costs the other more to overwrite (4 KiB take
	// 1.3 us through 256 KiB and 1 MiB, 1.9 us through 64 KiB).
	DefaultRing = 1 << 20

	allRings     = 32 << 20              // of one rank in a large group, in bytes, while a ring is not below smallRing
	smallRing    = 64 << 10              // see allRings
	sliceDefault = 20 * time.Millisecond // how long Park sleeps without a look at its ctx
)

// Config says who opens streams with whom.
type Config struct {
	// Endpoint carries the exchange of addresses, under Tag, which nothing else
	// may use meanwhile. It may be nil in a group of one.
	Endpoint transport.Endpoint
	Tag      uint32
	// Rank of this process, and the number of ranks of its generation.
	Rank, World int
	// Generation is the agreed membership; others are refused.
	Generation uint32
	// Token is the secret of the job, at least sock.MinToken bytes.
	Token string
	// Members are the ranks of the group, this one among them, in the same order on
	// all of them.
	Members []int
	// Path allows one way for all pairs; Auto chooses for each. It is the same on
	// all members.
	Path Path
	// Address is where this rank listens for tcp, and by what the others reach it:
	// a host or address that they can dial, with port 0 for a free one. Empty is the
	// loopback, for groups within one host.
	Address string
	// Ring is the size of a ring in bytes, a power of two: what can be on its way
	// from one rank to another. 0 is DefaultRing, or less in groups of more
	// than 17. The lower rank of a pair says.
	Ring int
	// Timeout bounds Open as a whole; 0 is 30 s.
	Timeout time.Duration
	// Spin is how long Park looks before it sleeps. 0 is the default: some
	// microseconds where the host has a core for each of its members, else
	// nothing; less than 0 is never.
	Spin time.Duration
	// Checksum proves what goes over tcp; a byte that changed on the way ends the stream
	// with transport.ErrCorrupt. Both sides copy and sum each byte once more. It is the
	// same on all members.
	Checksum bool
	// Logger takes refused connections and the paths that were chosen; nil is silent.
	Logger *slog.Logger
}

// Validate says what is wrong with c.
func (c *Config) Validate() error {
	seen := map[int]bool{}
	for _, r := range c.Members {
		if r < 0 || r >= c.World || seen[r] {
			return fmt.Errorf("streams: members %v of a world of %d: rank %d is none, or stands there twice", c.Members, c.World, r)
		}
		seen[r] = true
	}
	switch {
	case c.World < 1 || c.World > sock.MaxWorld:
		return fmt.Errorf("streams: world of %d ranks: want 1 to %d", c.World, sock.MaxWorld)
	case !seen[c.Rank]:
		return fmt.Errorf("streams: rank %d is not among the members %v", c.Rank, c.Members)
	case c.Endpoint == nil && len(c.Members) > 1:
		return errors.New("streams: no endpoint to exchange addresses")
	case len(c.Token) < sock.MinToken:
		return fmt.Errorf("streams: token of %d bytes: want at least %d", len(c.Token), sock.MinToken)
	case c.Path > TCP:
		return fmt.Errorf("streams: unknown %v", c.Path)
	case c.Ring != 0 && (c.Ring < MinRing || c.Ring > MaxRing || c.Ring&(c.Ring-1) != 0):
		return fmt.Errorf("streams: ring of %d bytes: want a power of two from %d to %d", c.Ring, MinRing, MaxRing)
	case c.Timeout < 0:
		return errors.New("streams: negative timeout")
	}
	return nil
}

func (c Config) withDefaults() Config {
	if c.Timeout == 0 {
		c.Timeout = 30 * time.Second
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	if c.Address == "" {
		c.Address = "127.0.0.1:0"
	}
	if c.Ring == 0 {
		c.Ring = DefaultRing
		if share := allRings / (2 * max(1, len(c.Members)-1)); share < DefaultRing {
			c.Ring = max(smallRing, 1<<(bits.Len(uint(share))-1))
		}
	}
	c.Members = slices.Clone(c.Members)
	return c
}
