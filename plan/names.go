package plan

import (
	"fmt"
	"strconv"
	"strings"
)

// String returns the word used in the text form.
func (k Kind) String() string {
	switch k {
	case Feed:
		return "feed"
	case Compute:
		return "compute"
	case Send:
		return "send"
	case Recv:
		return "recv"
	case Collective:
		return "collective"
	case Pull:
		return "pull"
	case Push:
		return "push"
	case Add:
		return "add"
	case Commit:
		return "commit"
	}
	return fmt.Sprintf("kind(%d)", uint8(k))
}

// ParseKind is the inverse of Kind.String.
func ParseKind(s string) (Kind, error) { return parseName("kind", s, Feed, Commit) }

// String returns the word used in the text form.
func (o Op) String() string {
	switch o {
	case NoOp:
		return "noop"
	case AllReduce:
		return "allreduce"
	case ReduceScatter:
		return "reducescatter"
	case AllGather:
		return "allgather"
	case Broadcast:
		return "broadcast"
	case AllGatherRows:
		return "allgatherrows"
	}
	return fmt.Sprintf("op(%d)", uint8(o))
}

// ParseOp is the inverse of Op.String.
func ParseOp(s string) (Op, error) { return parseName("op", s, NoOp, AllGatherRows) }

// String returns the word used in the text form.
func (o Order) String() string {
	switch o {
	case Any:
		return "any"
	case Tree:
		return "tree"
	}
	return fmt.Sprintf("order(%d)", uint8(o))
}

// ParseOrder is the inverse of Order.String.
func ParseOrder(s string) (Order, error) { return parseName("order", s, Any, Tree) }

// String returns the word used in the text form.
func (d Done) String() string {
	switch d {
	case Stored:
		return "stored"
	case Queued:
		return "queued"
	case Verdict:
		return "verdict"
	}
	return fmt.Sprintf("done(%d)", uint8(d))
}

// ParseDone is the inverse of Done.String.
func ParseDone(s string) (Done, error) { return parseName("done", s, Stored, Verdict) }

// String returns the word used in the text form.
func (c Class) String() string {
	switch c {
	case Param:
		return "param"
	case Slot:
		return "slot"
	case Grad:
		return "grad"
	case Act:
		return "act"
	case Key:
		return "key"
	case Scalar:
		return "scalar"
	}
	return fmt.Sprintf("class(%d)", uint8(c))
}

// ParseClass is the inverse of Class.String.
func ParseClass(s string) (Class, error) { return parseName("class", s, Param, Scalar) }

// String returns the word used in the text form.
func (k LaneKind) String() string {
	switch k {
	case Reader:
		return "reader"
	case Device:
		return "device"
	case Link:
		return "link"
	case Group:
		return "group"
	case Store:
		return "store"
	}
	return fmt.Sprintf("lane(%d)", uint8(k))
}

// ParseLaneKind is the inverse of LaneKind.String.
func ParseLaneKind(s string) (LaneKind, error) { return parseName("lane", s, Reader, Store) }

// String returns the kind and the ID, as in "group.0"; reader and device leave
// out an ID of 0.
func (l Lane) String() string {
	if l.ID == 0 && (l.Kind == Reader || l.Kind == Device) {
		return l.Kind.String()
	}
	return l.Kind.String() + "." + strconv.Itoa(l.ID)
}

// ParseLane is the inverse of Lane.String.
func ParseLane(s string) (Lane, error) {
	word, number, dotted := strings.Cut(s, ".")
	kind, err := ParseLaneKind(word)
	if err != nil {
		return Lane{}, err
	}
	if !dotted {
		return Lane{Kind: kind}, nil
	}
	id, err := strconv.Atoi(number)
	if err != nil {
		return Lane{}, fmt.Errorf("plan: lane %q: want a number after the dot", s)
	}
	return Lane{Kind: kind, ID: id}, nil
}

// LinkLane is the lane of messages to a peer, or from it.
func LinkLane(peer int, receive bool) Lane {
	if receive {
		return Lane{Kind: Link, ID: 2*peer + 1}
	}
	return Lane{Kind: Link, ID: 2 * peer}
}

// parseName finds the value between first and last whose String is s.
func parseName[T interface {
	~uint8
	fmt.Stringer
}](what, s string, first, last T) (T, error) {
	var names []string
	for v := first; v <= last; v++ {
		if v.String() == s {
			return v, nil
		}
		names = append(names, v.String())
	}
	return 0, fmt.Errorf("plan: unknown %s %q: want %s", what, s, strings.Join(names, ", "))
}
