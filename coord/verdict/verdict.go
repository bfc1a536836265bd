// Package verdict finds out why a call of a group of ranks cannot end, from what
// all ranks say of where they stand. It is pure: package coord collects the
// evidence and gives the verdict to all.
//
// A group's members make the same calls in the same order, and each call needs them
// all. So of a call in trouble it asks, in this order: are its members in the same
// call, and do they do the same there? Who did not come, and where is it instead? If
// it waits in a call of another group, who did not come there? If all came, whose
// connection broke, or for whom does everybody wait?
package verdict

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// NoRank stands where no rank is to blame.
const NoRank = -1

// Call is where a rank stands in one group: ranks that make the same calls in the
// same order, each of which needs them all.
type Call struct {
	// Group is its name, the same on all members; Members are their ranks, ascending.
	Group   string
	Members []int
	// Sequence counts the calls from 1: of the one the rank is in, or of the last
	// one; 0: none yet.
	Sequence uint64
	// Open says that the rank is in that call; Waited, that it waits for the group and
	// does nothing else: a call that was started does not keep it from others.
	Open, Waited bool
	// What members must agree on: operation, name, type, shape.
	What string
	// Since is how long ago the call began or, if it is not open, ended.
	Since time.Duration
	// Waits are ranks that it waits for.
	Waits []int
}

// Absent is a rank that others waited for in vain.
type Absent struct {
	Rank int
	// Silent is how long nothing was heard of it: by the coordinator or, if it
	// lives and answers, in the group that waits for it.
	Silent time.Duration
	// Text says where it stands instead.
	Text string
}

// Kind is what kind of trouble a call is in.
type Kind uint8

// The kinds.
const (
	// Failed: a rank reported an error; with a peer, that a connection broke.
	Failed Kind = iota
	// Overdue: the call did not end by its deadline.
	Overdue
	// Mismatch: ranks do different things.
	Mismatch
)

// Report is what a rank says of its call in trouble.
type Report struct {
	Rank int
	// Peer is whose loss may be the cause, NoRank if nobody's.
	Peer  int
	Kind  Kind
	Group string
	Text  string
}

// Rank is what is known of one.
type Rank struct {
	// Name is for people.
	Name string
	// Answered says that Calls is where it stands; it is silent otherwise.
	Answered bool
	Calls    []Call
	// Done says that it has left in good order, with Calls as they were then.
	Done bool
	// Heard is how long ago it was last heard, Asked how long ago Calls was true.
	Heard, Asked time.Duration
}

// Evidence is what a verdict is made from.
type Evidence struct {
	// First is the first report, Blames how often each rank was an end of a
	// connection that broke.
	First  Report
	Blames map[int]int
	// Ranks are all ranks; Age is how long the generation runs.
	Ranks []Rank
	Age   time.Duration
}

// Verdict says what is wrong.
type Verdict struct {
	// Rank is the one to blame, the first of several.
	Rank int
	Kind Kind
	// Text is a sentence that names the ranks.
	Text string
	// Missing are those that did not come, or do not go on; Differ those that do
	// not do what most do; both ascending.
	Missing []Absent
	Differ  []int
}

// Judge makes the verdict. It costs O(ranks · groups).
func (e *Evidence) Judge() Verdict {
	first := e.First
	reporter := e.Ranks[first.Rank].Name
	call, open := e.stand(first.Rank, first.Group)
	if !open {
		return Verdict{Rank: first.Rank, Kind: first.Kind, Text: fmt.Sprintf("%s failed: %s", reporter, first.Text)}
	}
	if v, differ := e.disagree(call); differ {
		return v
	}
	what := "call " + describe(call)
	if missing := e.absent(call); len(missing) > 0 && first.Kind != Mismatch {
		var parts []string
		for _, m := range missing {
			parts = append(parts, m.Text)
		}
		return Verdict{
			Rank: missing[0].Rank, Kind: Overdue, Missing: missing,
			Text: fmt.Sprintf("%s cannot end (%s: %s): %s", what, reporter, first.Text, strings.Join(parts, "; ")),
		}
	}
	switch {
	case first.Kind == Failed && first.Peer != NoRank:
		worst := e.mostBlamed()
		return Verdict{
			Rank: worst, Kind: Failed,
			Text: fmt.Sprintf("%s cannot end: a connection of %s broke, though all ranks live (%s: %s)", what, e.Ranks[worst].Name, reporter, first.Text),
		}
	case first.Kind != Overdue:
		v := Verdict{Rank: first.Rank, Kind: first.Kind, Text: fmt.Sprintf("%s failed in %s: %s", reporter, what, first.Text)}
		if first.Kind == Mismatch && first.Peer != NoRank { // which has gone on since
			v.Differ = []int{first.Peer}
		}
		return v
	}
	if quiet := e.quiet(); len(quiet) > 0 {
		return Verdict{
			Rank: quiet[0].Rank, Kind: Overdue, Missing: quiet,
			Text: fmt.Sprintf("%s did not end in time (%s: %s): all its ranks came, some late; but %s", what, reporter, first.Text, quiet[0].Text),
		}
	}
	slow := e.slowest(call, first.Rank)
	silent := e.Ranks[slow].Heard
	return Verdict{
		Rank: slow, Kind: Overdue, Missing: []Absent{{Rank: slow, Silent: silent, Text: "came, but does not go on"}},
		Text: fmt.Sprintf("%s cannot end (%s: %s): all ranks came, but the others wait for %s, last heard %s ago",
			what, reporter, first.Text, e.Ranks[slow].Name, rounded(silent)),
	}
}

// quiet are the ranks that do not answer, be they in the call or not. Where all came to a
// call, one was late: held up, perhaps, by a rank that is stopped, elsewhere.
func (e *Evidence) quiet() (quiet []Absent) {
	for rank := range e.Ranks {
		if r := &e.Ranks[rank]; !r.Answered && !r.Done {
			quiet = append(quiet, unanswered(rank, r))
		}
	}
	return quiet
}

// unanswered says of a rank that it does not answer.
func unanswered(rank int, r *Rank) Absent {
	return Absent{rank, r.Heard, fmt.Sprintf("%s does not answer, silent for %s", r.Name, rounded(r.Heard))}
}

// mostBlamed is the rank in most of the broken connections; of equals, the peer of
// the first report.
func (e *Evidence) mostBlamed() int {
	worst := e.First.Peer
	for _, rank := range slices.Sorted(maps.Keys(e.Blames)) {
		if e.Blames[rank] > e.Blames[worst] {
			worst = rank
		}
	}
	return worst
}

// stand returns where a rank stands in a group, and whether it is in a call there.
func (e *Evidence) stand(rank int, group string) (Call, bool) {
	for _, call := range e.Ranks[rank].Calls {
		if call.Group == group {
			return call, call.Open
		}
	}
	return Call{Group: group}, false
}

// elsewhere returns a call of another group that a rank waits for.
func (e *Evidence) elsewhere(rank int, group string) (Call, bool) {
	for _, other := range e.Ranks[rank].Calls {
		if other.Open && other.Waited && other.Group != group {
			return other, true
		}
	}
	return Call{}, false
}

// inside are the members of a call's group that exist.
func (e *Evidence) inside(call Call) []int {
	return slices.DeleteFunc(slices.Clone(call.Members), func(r int) bool { return r < 0 || r >= len(e.Ranks) })
}

// disagree returns the verdict on ranks that are in the same call of a group and
// do different things there.
func (e *Evidence) disagree(call Call) (Verdict, bool) {
	var whats []string
	ranks := make(map[string][]int)
	for _, rank := range e.inside(call) {
		other, _ := e.stand(rank, call.Group)
		if other.Sequence != call.Sequence { // one that has done its part counts, too
			continue
		}
		if ranks[other.What] == nil {
			whats = append(whats, other.What)
		}
		ranks[other.What] = append(ranks[other.What], rank)
	}
	if len(whats) < 2 {
		return Verdict{}, false
	}
	usual := whats[0] // what most do; of equals, what the lowest rank does
	for _, what := range whats {
		if len(ranks[what]) > len(ranks[usual]) {
			usual = what
		}
	}
	var parts []string
	var differ []int
	for _, what := range whats {
		parts = append(parts, fmt.Sprintf("%s %s", are(ranks[what]), what))
		if what != usual {
			differ = append(differ, ranks[what]...)
		}
	}
	slices.Sort(differ)
	return Verdict{
		Rank: differ[0], Kind: Mismatch, Differ: differ,
		Text: fmt.Sprintf("call #%d of group %s differs: %s; all ranks of a group must make the same calls in the same order",
			call.Sequence, call.Group, strings.Join(parts, ", ")),
	}, true
}

// absent returns who did not come to a call. One that did not because it waits in a
// call of another group is not to blame, but who did not come there, and so on. If
// that leads to nobody, ranks wait for each other, and these are named.
func (e *Evidence) absent(call Call) (missing []Absent) {
	var held []Absent // those that wait elsewhere, of the first call
	seen := map[string]bool{call.Group: true}
	for todo := []Call{call}; len(todo) > 0; todo = todo[1:] {
		for _, rank := range e.inside(todo[0]) {
			r := &e.Ranks[rank]
			here, _ := e.stand(rank, todo[0].Group)
			elsewhere, waits := e.elsewhere(rank, todo[0].Group)
			switch {
			case !r.Answered && !r.Done:
				missing = append(missing, unanswered(rank, r))
			case here.Sequence >= todo[0].Sequence: // it is there, or was
			case !waits:
				missing = append(missing, e.never(rank, todo[0], here, ""))
			default:
				if todo[0].Group == call.Group {
					held = append(held, e.never(rank, call, here, fmt.Sprintf(": it is in %s, for %s, and so they wait for each other: "+
						"ranks must begin their calls on groups that share ranks in the same order", describe(elsewhere), rounded(elsewhere.Since+r.Asked))))
				}
				if !seen[elsewhere.Group] {
					seen[elsewhere.Group] = true
					todo = append(todo, elsewhere)
				}
			}
		}
	}
	if len(missing) == 0 {
		return held
	}
	slices.SortStableFunc(missing, func(a, b Absent) int { return a.Rank - b.Rank })
	return slices.CompactFunc(missing, func(a, b Absent) bool { return a.Rank == b.Rank })
}

// never says of a rank that did not come to a call where it is instead: where, or what
// is known of it.
func (e *Evidence) never(rank int, call, here Call, where string) Absent {
	r := &e.Ranks[rank]
	a := Absent{Rank: rank, Silent: e.Age}
	if here.Sequence > 0 {
		a.Silent = here.Since + r.Asked
	}
	switch {
	case where != "":
	case r.Done:
		where = fmt.Sprintf(": it closed its group after call #%d", here.Sequence)
	case here.Open:
		where = fmt.Sprintf(": it is still in %s, for %s", describe(here), rounded(a.Silent))
	case here.Sequence > 0:
		where = fmt.Sprintf(": silent for %s, since it ended call #%d", rounded(a.Silent), here.Sequence)
	default:
		where = fmt.Sprintf(": silent for %s, since the start", rounded(a.Silent))
	}
	a.Text = fmt.Sprintf("%s never arrived at %s%s", r.Name, describe(call), where)
	return a
}

// slowest follows who waits for whom, from a rank on, to one that waits for nobody
// or closes the circle.
func (e *Evidence) slowest(call Call, from int) int {
	seen := map[int]bool{}
	at := from
	for !seen[at] {
		seen[at] = true
		here, open := e.stand(at, call.Group)
		if !open || here.Sequence != call.Sequence || len(here.Waits) == 0 || !slices.Contains(e.inside(call), here.Waits[0]) {
			break
		}
		at = here.Waits[0]
	}
	return at
}

// describe names a call for people.
func describe(call Call) string {
	return fmt.Sprintf("#%d of group %s (%s)", call.Sequence, call.Group, call.What)
}

func rounded(d time.Duration) string { return d.Round(10 * time.Millisecond).String() }

func are(ranks []int) string {
	if len(ranks) == 1 {
		return Ranks(ranks) + " is in"
	}
	return Ranks(ranks) + " are in"
}

// Ranks writes ranks as people do, runs as "2 to 5".
func Ranks(ranks []int) string {
	var parts []string
	for i := 0; i < len(ranks); {
		j := i
		for j+1 < len(ranks) && ranks[j+1] == ranks[j]+1 {
			j++
		}
		if j-i >= 2 {
			parts = append(parts, fmt.Sprintf("%d to %d", ranks[i], ranks[j]))
		} else {
			for _, rank := range ranks[i : j+1] {
				parts = append(parts, fmt.Sprint(rank))
			}
		}
		i = j + 1
	}
	word := "rank "
	if len(ranks) != 1 {
		word = "ranks "
	}
	return word + strings.Join(parts, ", ")
}
