package check

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/gangline/gangline/plan"
)

// agreement proves that the members of a group see the same collectives, alike
// and in one order: the n-th of one member meets the n-th of every other; and
// that tags tell messages apart.
func (c *checker) agreement() {
	for rank := range c.p.Ranks {
		c.tags(rank)
	}
	for g, members := range c.p.Groups {
		lead := members[0]
		want := c.collectives(lead, g)
		for _, rank := range members[1:] {
			c.sameOrder(g, lead, want, rank, c.collectives(rank, g))
		}
	}
}

// collectives lists the tasks of a rank on a group.
func (c *checker) collectives(rank, group int) []int {
	var list []int
	for i := range c.p.Ranks[rank] {
		if t := &c.p.Ranks[rank][i]; (t.Kind == plan.Collective || t.Kind == plan.Commit) && t.Group == group {
			list = append(list, i)
		}
	}
	return list
}

// sameOrder compares the collectives of a member with those of the first.
func (c *checker) sameOrder(group, lead int, want []int, rank int, got []int) {
	for n := range max(len(want), len(got)) {
		there, here := c.signature(lead, want, n), c.signature(rank, got, n)
		switch {
		case here == there:
			continue
		case here == "" || len(got) < len(want) && here == c.signature(lead, want, n+1):
			c.task(rank, none, "takes no part in %s of rank %d on group %d: all members must", c.there(lead, want[n]), lead, group)
		case there == "" || len(want) < len(got) && there == c.signature(rank, got, n+1):
			c.task(rank, got[n], "rank %d takes no part in it: all members of group %d must", lead, group)
		default:
			c.task(rank, got[n], "comes as number %d on group %d as (%s), where rank %d has %s as (%s): "+
				"members must do the same in the same order", n+1, group, here, lead, c.there(lead, want[n]), there)
		}
		return
	}
}

// signature is what members must agree on for the n-th of their collectives;
// empty if there is none.
func (c *checker) signature(rank int, list []int, n int) string {
	if n >= len(list) {
		return ""
	}
	t := &c.p.Ranks[rank][list[n]]
	var s strings.Builder
	fmt.Fprintf(&s, "%s tag %d %v", t.Verb(), t.Tag, t.Order)
	if t.Algorithm != plan.ByRing {
		fmt.Fprintf(&s, " by %v", t.Algorithm)
	}
	if t.Codec != "" {
		fmt.Fprintf(&s, " as %s", t.Codec)
	}
	in := t.In
	if t.Kind == plan.Commit || t.Order == plan.Tree {
		in = in[:len(t.Out)] // which gradients a rank checks is its own affair, and how many slices it has
	}
	for _, r := range slices.Concat(in, t.Out) {
		v := &c.p.Values[r.Value]
		fmt.Fprintf(&s, " %v%v", v.DType, v.Shape)
		if t.Kind == plan.Collective && len(in) > 1 && v.Arena != 0 { // gaps are summed too
			fmt.Fprintf(&s, "+%d", v.Offset-c.p.Values[in[0].Value].Offset)
		}
	}
	return s.String()
}

// place is a task of a rank.
type place struct{ rank, task int }

// message is what a send and a receive have in common: from, to, tag.
type message [3]int

// progress runs the cursors of all ranks against each other for Window+2 steps,
// in no time and without data, and reports who is stuck if they do not all
// finish. It returns what ended together, in order, for one step.
//
// Any order of events will do. A lane's tasks come in a fixed order, and what
// one task is waiting for is never undone by another: if two tasks may both
// end, each still may after the other has. So all maximal runs end the same
// tasks, and if this one comes through, every run does, however slow a rank or
// a link is. Steps beyond Window+1 repeat the picture of those before.
func (c *checker) progress() [][]place {
	r := &runner{checker: c, alone: make(map[message]place), arrived: make([][]place, len(c.p.Groups))}
	for rank, tasks := range c.p.Ranks {
		r.ended = append(r.ended, make([]int64, len(tasks)))
		r.cursors = append(r.cursors, plan.NewCursor(tasks, c.p.Window, 0, int64(c.p.Window)+2))
		r.give(rank, r.cursors[rank].Start(nil))
	}
	for len(r.queue) > 0 {
		next := r.queue[0]
		r.queue = r.queue[1:]
		r.meet(next)
	}
	stuck := false
	for rank, cursor := range r.cursors {
		if !cursor.Finished() {
			stuck = true
			r.report(rank)
		}
	}
	if stuck {
		return nil
	}
	return r.done
}

// runner runs all ranks at once.
type runner struct {
	*checker
	cursors []*plan.Cursor
	ended   [][]int64 // steps of each task that have ended
	queue   []place
	alone   map[message]place // one side, while the other is not there
	arrived [][]place         // by group
	done    [][]place         // of step 0
}

func (r *runner) give(rank int, ready []plan.Ready) {
	for _, t := range ready {
		r.queue = append(r.queue, place{rank, t.Task})
	}
}

// meet lets a task end if nothing is missing, and wait for its partners if not.
func (r *runner) meet(at place) {
	t := r.at(at)
	switch t.Kind {
	case plan.Feed, plan.Compute, plan.Add, plan.Pull, plan.Push:
		r.end(at)
	case plan.Send, plan.Recv:
		m := message{at.rank, t.Peer, int(t.Tag)}
		if t.Kind == plan.Recv {
			m[0], m[1] = m[1], m[0]
		}
		other, ok := r.alone[m]
		switch {
		case !ok:
			r.alone[m] = at
			return
		case t.Kind == plan.Send:
			r.end(at, other)
		default:
			r.end(other, at)
		}
		delete(r.alone, m)
	case plan.Collective, plan.Commit:
		all := append(r.arrived[t.Group], at)
		r.arrived[t.Group] = all
		if len(all) == len(r.p.Groups[t.Group]) {
			r.arrived[t.Group] = nil
			slices.SortFunc(all, func(a, b place) int { return a.rank - b.rank })
			r.end(all...)
		}
	}
}

// end ends tasks together. They are of one step, as both lanes began at 0.
func (r *runner) end(all ...place) {
	var step int64
	for _, at := range all {
		step = r.ended[at.rank][at.task]
		r.ended[at.rank][at.task]++
		r.give(at.rank, r.cursors[at.rank].Done(at.task, step, nil))
	}
	if step == 0 {
		r.done = append(r.done, all)
	}
}

// report says what a stuck rank waits in, and for whom.
func (r *runner) report(rank int) {
	for _, ready := range r.cursors[rank].Running(nil) {
		t := &r.p.Ranks[rank][ready.Task]
		why := ""
		switch t.Kind {
		case plan.Send:
			why = fmt.Sprintf("rank %d to receive tag %d; %s", t.Peer, t.Tag, r.partner(rank, t, plan.Recv))
		case plan.Recv:
			why = fmt.Sprintf("rank %d to send tag %d; %s", t.Peer, t.Tag, r.partner(rank, t, plan.Send))
		case plan.Collective, plan.Commit:
			var absent, doing []string
			for _, m := range r.p.Groups[t.Group] {
				if !slices.ContainsFunc(r.arrived[t.Group], func(at place) bool { return at.rank == m }) {
					absent = append(absent, strconv.Itoa(m))
					doing = append(doing, r.doing(m))
				}
			}
			why = fmt.Sprintf("%s in group %d; %s", ranksText(absent), t.Group, doing[0])
		case plan.Feed, plan.Compute, plan.Add, plan.Pull, plan.Push: // never wait for others
		}
		r.task(rank, ready.Task, "hangs in step %d: waits for %s", ready.Step, why)
	}
}

// partner says what a peer does instead of its side of a message.
func (r *runner) partner(rank int, t *plan.Task, want plan.Kind) string {
	for i := range r.p.Ranks[t.Peer] {
		if o := &r.p.Ranks[t.Peer][i]; o.Kind == want && o.Peer == rank && o.Tag == t.Tag {
			return r.doing(t.Peer) + ": change the order of its messages or of these"
		}
	}
	return fmt.Sprintf("rank %d has no such %v: add it", t.Peer, want)
}

// doing says what a rank waits in.
func (r *runner) doing(rank int) string {
	var waits []string
	for _, t := range r.cursors[rank].Running(nil) {
		waits = append(waits, r.there(rank, t.Task))
	}
	if len(waits) == 0 {
		return fmt.Sprintf("rank %d has ended", rank)
	}
	return fmt.Sprintf("rank %d waits in %s", rank, strings.Join(waits, " and "))
}
