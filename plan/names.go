package plan

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// The words of the text form, by value.
const (
	kindWords  = "- feed compute send recv collective pull push add commit"
	opWords    = "noop allreduce reducescatter allgather broadcast allgatherrows"
	orderWords = "any tree"
	doneWords  = "stored queued verdict"
	// algorithmWords are of an AllReduce.
	algorithmWords = "ring halving doubling tree hierarchical exchange"
	classWords     = "- param slot grad act key scalar"
	laneWords      = "- reader device link group store"
)

// String returns the word used in the text form, as do all String methods here.
func (k Kind) String() string { return wordOf("kind", kindWords, k) }

// String returns the word used in the text form.
func (o Op) String() string { return wordOf("op", opWords, o) }

// String returns the word used in the text form.
func (o Order) String() string { return wordOf("order", orderWords, o) }

// String returns the word used in the text form.
func (d Done) String() string { return wordOf("done", doneWords, d) }

// String returns the word used in the text form.
func (a Algorithm) String() string { return wordOf("algorithm", algorithmWords, a) }

// String returns the word used in the text form.
func (c Class) String() string { return wordOf("class", classWords, c) }

// String returns the word used in the text form.
func (k LaneKind) String() string { return wordOf("lane", laneWords, k) }

// ParseKind is the inverse of Kind.String.
func ParseKind(s string) (Kind, error) { return parseWord[Kind]("kind", kindWords, s) }

// ParseOp is the inverse of Op.String.
func ParseOp(s string) (Op, error) { return parseWord[Op]("op", opWords, s) }

// ParseOrder is the inverse of Order.String.
func ParseOrder(s string) (Order, error) { return parseWord[Order]("order", orderWords, s) }

// ParseDone is the inverse of Done.String.
func ParseDone(s string) (Done, error) { return parseWord[Done]("done", doneWords, s) }

// ParseAlgorithm is the inverse of Algorithm.String.
func ParseAlgorithm(s string) (Algorithm, error) {
	return parseWord[Algorithm]("algorithm", algorithmWords, s)
}

// ParseClass is the inverse of Class.String.
func ParseClass(s string) (Class, error) { return parseWord[Class]("class", classWords, s) }

// ParseLaneKind is the inverse of LaneKind.String.
func ParseLaneKind(s string) (LaneKind, error) { return parseWord[LaneKind]("lane", laneWords, s) }

// wordOf is the v-th word, or "what(v)" for a value that has none ("-").
func wordOf[T ~uint8](what, words string, v T) string {
	if all := strings.Fields(words); int(v) < len(all) && all[v] != "-" {
		return all[v]
	}
	return fmt.Sprintf("%s(%d)", what, uint8(v))
}

func parseWord[T ~uint8](what, words, s string) (T, error) {
	if i := slices.Index(strings.Fields(words), s); i >= 0 && s != "-" {
		return T(i), nil
	}
	return 0, fmt.Errorf("unknown %s %q: want one of %s", what, s, strings.TrimPrefix(words, "- "))
}

// String returns the kind and the ID, as in "group.0"; reader and device leave
// out an ID of 0.
func (l Lane) String() string {
	if l.ID == 0 && (l.Kind == Reader || l.Kind == Device) {
		return l.Kind.String()
	}
	return l.Kind.String() + "." + strconv.Itoa(l.ID)
}

// ParseLane is the inverse of Lane.String.
func ParseLane(s string) (l Lane, err error) {
	kind, id, dotted := strings.Cut(s, ".")
	if l.Kind, err = ParseLaneKind(kind); err == nil && dotted {
		l.ID, err = atoi(id)
	}
	return l, err
}

// LinkLane is the lane of messages to a peer, or from it.
func LinkLane(peer int, receive bool) Lane {
	if receive {
		return Lane{Kind: Link, ID: 2*peer + 1}
	}
	return Lane{Kind: Link, ID: 2 * peer}
}
