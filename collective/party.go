package collective

import (
	"errors"
	"fmt"

	"github.com/gangline/gangline/transport"
)

// ErrUsedUp says that a runner failed before and cannot run again.
var ErrUsedUp = errors.New("collective: runner failed before")

// Party is this rank's place in a group.
type Party struct {
	// Endpoint carries Rows and Exchange, and the messages of a Runner that has no
	// Streams.
	Endpoint transport.Endpoint
	// Streams are this rank's with the members of the group, by rank. All Runners on
	// the same streams run in the same order on all ranks, one at a time. Without,
	// a Runner makes streams of its own, of messages under Tag.
	Streams transport.Streams
	// Group lists ranks; Index is this rank's position in it.
	Group []int
	Index int
	// Tag is used by this collective alone, on the Endpoint.
	Tag uint32
}

// Validate reports a group that cannot work: an index outside, a rank twice.
func (p *Party) Validate() error {
	if p.Index < 0 || p.Index >= len(p.Group) {
		return fmt.Errorf("collective: index %d of a group of %d", p.Index, len(p.Group))
	}
	seen := map[int]bool{}
	for _, r := range p.Group {
		if seen[r] || r < 0 {
			return fmt.Errorf("collective: rank %d stands twice in group %v, or is none", r, p.Group)
		}
		seen[r] = true
	}
	if p.Endpoint == nil && p.Streams == nil && len(p.Group) > 1 {
		return fmt.Errorf("collective: no endpoint for a group of %d", len(p.Group))
	}
	return nil
}

// validateEndpoint is Validate for what needs the Endpoint.
func (p *Party) validateEndpoint() error {
	if err := p.Validate(); err != nil {
		return err
	}
	if p.Endpoint == nil && len(p.Group) > 1 {
		return fmt.Errorf("collective: no endpoint for a group of %d", len(p.Group))
	}
	return nil
}

// rank is this rank.
func (p *Party) rank() int { return p.Group[p.Index] }

// fail makes sure that err names this rank and the peer it missed, whatever
// the endpoint said.
func (p *Party) fail(op string, peer int, err error) error {
	if pe, ok := errors.AsType[*transport.PeerError](err); ok {
		if pe.Rank == p.rank() {
			return err
		}
		if pe.Rank < 0 {
			err = pe.Err
		}
	}
	return &transport.PeerError{Rank: p.rank(), Peer: peer, Op: op, Tag: p.Tag, Err: err}
}
