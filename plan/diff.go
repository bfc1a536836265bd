package plan

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Diff says what changed from a to b, one change a line: "- " for what only a
// has, "+ " for what only b has, "~ " for what both have but not alike. Values,
// holdings and tasks are told by name, so that a task put in does not change
// all that follow. There are no lines if and only if the digests are equal.
func Diff(a, b *Plan) []string {
	if Format(a) == Format(b) {
		return nil
	}
	var d differ
	if a.Name != b.Name {
		d.say("~ name: %s, was %s", word(b.Name), word(a.Name))
	}
	if a.Window != b.Window {
		d.say("~ window: %d, was %d", b.Window, a.Window)
	}
	if len(a.Ranks) != len(b.Ranks) {
		d.say("~ ranks: %d, was %d", len(b.Ranks), len(a.Ranks))
	}
	from, to := outlineOf(a), outlineOf(b)
	d.things("value", from.values, to.values)
	d.things("segment", from.segs, to.segs)
	d.things("group", from.groups, to.groups)
	d.things("store", from.stores, to.stores)
	d.things("holding", from.holdings, to.holdings)
	for first := 0; first < max(len(a.Ranks), len(b.Ranks)); {
		x, y := from.rank(first), to.rank(first)
		last := first
		for last+1 < max(len(a.Ranks), len(b.Ranks)) && slices.Equal(from.rank(last+1), x) && slices.Equal(to.rank(last+1), y) {
			last++
		}
		who := "rank " + strconv.Itoa(first)
		if last > first {
			who = fmt.Sprintf("ranks %d-%d", first, last)
		}
		d.things(who+":", x, y)
		first = last + 1
	}
	if len(d.lines) == 0 {
		d.say("~ numbering: the same values, segments and holdings in another order")
	}
	return d.lines
}

// thing is what can be added, removed or changed.
type thing struct{ key, text string }

type outline struct {
	values, segs, groups, stores, holdings []thing
	ranks                                  [][]thing
}

func (o *outline) rank(r int) []thing {
	if r < len(o.ranks) {
		return o.ranks[r]
	}
	return nil
}

// outlineOf gives each part of a plan a key that lasts over renumbering.
func outlineOf(p *Plan) *outline {
	f := formatter{plan: p, unique: uniqueNames(p)}
	o := &outline{ranks: make([][]thing, len(p.Ranks))}
	rows := func(n int, row func(int) []string, keys int) []thing {
		things := make([]thing, n)
		for i := range things {
			cells := row(i)[1:]
			things[i] = thing{strings.Join(cells[:keys], " "), strings.TrimSpace(strings.Join(cells[keys:], " "))}
		}
		return numbered(things)
	}
	o.values = rows(len(p.Values), f.value, 1)
	o.segs = rows(len(p.Segs), f.seg, 1)
	o.groups = rows(len(p.Groups), func(i int) []string { return append([]string{""}, f.group(i)...) }, 1)
	o.stores = rows(len(p.Stores), f.store, 1)
	o.holdings = rows(len(p.Holdings), func(i int) []string {
		c := f.holding(i)
		return []string{"", c[1], c[4], c[2], c[3]}
	}, 2)
	for r, tasks := range p.Ranks {
		things := make([]thing, len(tasks))
		for i := range tasks {
			t := &tasks[i]
			things[i].key = verb(t) + " " + word(t.Name)
		}
		o.ranks[r] = numbered(things)
		for i := range tasks {
			o.ranks[r][i].text = f.outlineTask(&tasks[i], o.ranks[r])
		}
	}
	return o
}

// outlineTask is a task's line with the tasks it waits for by name.
func (f *formatter) outlineTask(t *Task, names []thing) string {
	parts := []string{t.Lane.String(), settings(t), f.flow(t)}
	for _, d := range t.After {
		on := "#" + strconv.Itoa(d.Task)
		if d.Task >= 0 && d.Task < len(names) {
			on = "(" + names[d.Task].key + ")"
		}
		if d.Lag != 0 {
			on += "~" + strconv.Itoa(d.Lag)
		}
		parts = append(parts, "after "+on)
	}
	return strings.Join(slices.DeleteFunc(parts, func(s string) bool { return s == "" }), " ")
}

// numbered makes keys distinct.
func numbered(things []thing) []thing {
	seen := make(map[string]int)
	for i := range things {
		key := things[i].key
		seen[key]++
		if n := seen[key]; n > 1 {
			things[i].key = fmt.Sprintf("%s (number %d)", key, n)
		}
	}
	return things
}

type differ struct{ lines []string }

func (d *differ) say(format string, args ...any) {
	d.lines = append(d.lines, fmt.Sprintf(format, args...))
}

// things compares two lists by their keys, then the order of what both have.
func (d *differ) things(what string, a, b []thing) {
	was, now := index(a), index(b)
	var kept, order []string
	for _, t := range a {
		if _, ok := now[t.key]; ok {
			kept = append(kept, t.key)
		} else {
			d.say("- %s %s  %s", what, t.key, t.text)
		}
	}
	for _, t := range b {
		i, ok := was[t.key]
		switch {
		case !ok:
			d.say("+ %s %s  %s", what, t.key, t.text)
			continue
		case a[i].text != t.text:
			d.say("~ %s %s  %s, was %s", what, t.key, t.text, a[i].text)
		}
		order = append(order, t.key)
	}
	for i := range kept {
		if kept[i] != order[i] {
			d.say("~ %s order: %s comes where %s was", what, order[i], kept[i])
			return
		}
	}
}

func index(things []thing) map[string]int {
	m := make(map[string]int, len(things))
	for i, t := range things {
		m[t.key] = i
	}
	return m
}
