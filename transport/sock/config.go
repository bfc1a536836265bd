// Package sock is the transport over stream sockets, tcp and unix.
//
// Every rank listens, tells the others its address by some other way (the
// coordinator), and connects:
//
//	l, err := sock.Listen(sock.Config{Network: "tcp", Address: ":0", Rank: r, World: n, Generation: g, Token: token})
//	... exchange l.Addr() ...
//	e, err := l.Connect(ctx, addrs, nil)
//
// Of a pair the higher rank dials the lower, so there is one connection a pair.
// Both sides prove with a challenge that they know the token (see package wire);
// whoever does not, is of another generation, or says nothing at all is refused,
// logged with its address, and disturbs nobody. What follows the handshake is
// neither encrypted nor signed: use it on networks you trust, as one does with
// the machines of one job.
//
// # Data
//
// Post sends a credit: the tag and how many bytes it takes. Send waits for one
// and then writes header, head and body in one system call; credits that are due
// go along in front. The receiver reads the body straight into the posted
// buffer. A message longer than its credit never crosses: the sender tells the
// receiver so, and both fail with ErrLimit.
//
// A Send whose ctx ends before its message is handed to the socket leaves no
// trace. After that it cannot be taken back: if the peer does not take the rest,
// the connection is given up and the peer is lost.
//
// # Goroutines
//
// Each peer has a reader and a writer of credits; an endpoint has one that pings
// peers to which nothing was sent for a while. Close waits for them all.
package sock

import (
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/gangline/gangline/transport"
)

// Limits of this body.
const (
	// MaxWorld bounds the ranks of one generation.
	MaxWorld = 4096
	// MaxStrangers bounds the connections that are in a handshake at one time
	// beyond one for every rank; more wait in the kernel's queue.
	MaxStrangers = 64
	// MinToken is the shortest token in bytes.
	MinToken = 8

	readBuffer  = 64 << 10               // bytes read ahead of a peer
	pingEvery   = 2 * time.Second        // silence before a ping
	cancelCheck = 25 * time.Millisecond  // how often a blocked write looks at its ctx
	byePatience = 500 * time.Millisecond // for a peer to take the bye
	byeLinger   = time.Second            // for a peer to answer it
	retryFirst  = 10 * time.Millisecond  // between two dials, doubled
	retryMost   = time.Second            // up to this
)

// Config says who this rank is and how it is reached.
type Config struct {
	// Network is tcp or unix.
	Network string
	// Address to listen on. For tcp, port 0 picks a free one; for unix, the
	// empty string picks a path in a directory of its own.
	Address string
	// Rank of this process and the number of ranks of its generation.
	Rank, World int
	// Generation is the agreed membership; others are refused.
	Generation uint32
	// Token is the secret of the job, at least MinToken bytes.
	Token string
	// DialTimeout bounds Connect as a whole, redials included; 0 is 30 s.
	DialTimeout time.Duration
	// HandshakeTimeout bounds one handshake; 0 is 5 s.
	HandshakeTimeout time.Duration
	// MaxMessage is the longest message this rank takes or sends, in bytes;
	// 0 is transport.MaxMessage.
	MaxMessage int
	// Logger takes refusals; nil is silent.
	Logger *slog.Logger
	// Checksum adds a CRC-32C to every message this rank sends. It costs both
	// sides one pass over the bytes; a receiver always checks what it gets.
	Checksum bool
}

// Validate says what is wrong with c.
func (c Config) Validate() error {
	switch {
	case c.Network != "tcp" && c.Network != "unix":
		return fmt.Errorf("network %q: want tcp or unix", c.Network)
	case c.World < 1 || c.World > MaxWorld:
		return fmt.Errorf("world of %d ranks: want 1 to %d", c.World, MaxWorld)
	case c.Rank < 0 || c.Rank >= c.World:
		return fmt.Errorf("rank %d of %d", c.Rank, c.World)
	case len(c.Token) < MinToken:
		return fmt.Errorf("token of %d bytes: want at least %d", len(c.Token), MinToken)
	case c.DialTimeout < 0 || c.HandshakeTimeout < 0:
		return errors.New("negative timeout")
	case c.MaxMessage < 0 || c.MaxMessage > transport.MaxMessage:
		return fmt.Errorf("longest message %d: want at most %d", c.MaxMessage, transport.MaxMessage)
	}
	return nil
}

func (c Config) withDefaults() Config {
	if c.DialTimeout == 0 {
		c.DialTimeout = 30 * time.Second
	}
	if c.HandshakeTimeout == 0 {
		c.HandshakeTimeout = 5 * time.Second
	}
	if c.MaxMessage == 0 {
		c.MaxMessage = transport.MaxMessage
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	return c
}
