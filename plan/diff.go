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
	was, now := outlineOf(a), outlineOf(b)
	var lines []string
	kept := make([]string, 0, len(was.keys)) // in the order of a
	for _, key := range was.keys {
		if _, ok := now.text[key]; ok {
			kept = append(kept, key)
		} else {
			lines = append(lines, "- "+key+was.text[key])
		}
	}
	order := make([]string, 0, len(kept)) // in the order of b
	for _, key := range now.keys {
		old, ok := was.text[key]
		if !ok {
			lines = append(lines, "+ "+key+now.text[key])
			continue
		}
		order = append(order, key)
		if old != now.text[key] {
			lines = append(lines, "~ "+key+now.text[key]+", was"+old)
		}
	}
	for i := range kept {
		if kept[i] != order[i] {
			lines = append(lines, fmt.Sprintf("~ order: %s comes where %s was", order[i], kept[i]))
			break
		}
	}
	if len(lines) == 0 {
		lines = append(lines, "~ numbering: of segments, groups or stores")
	}
	return lines
}

// outline is a plan as text by keys that last when indexes change.
type outline struct {
	keys []string
	text map[string]string
}

func outlineOf(p *Plan) *outline {
	f := formatter{plan: p, unique: uniqueNames(p)}
	o := &outline{text: make(map[string]string)}
	o.add("plan", "name="+word(p.Name), "window="+strconv.Itoa(p.Window), "ranks="+strconv.Itoa(len(p.Ranks)))
	for i := range p.Values {
		cells := f.value(i)
		o.add("value "+cells[1], cells[2:]...)
	}
	for i := range p.Segs {
		cells := f.seg(i)
		o.add("segment "+cells[1], cells[2:]...)
	}
	for i := range p.Groups {
		o.add("group "+strconv.Itoa(i), f.group(i)[1])
	}
	for i := range p.Stores {
		o.add("store " + f.store(i)[1])
	}
	for i := range p.Holdings {
		cells := f.holding(i)
		o.add("holding "+cells[1]+" "+cells[4], cells[2:4]...)
	}
	for rank, tasks := range p.Ranks {
		keys := make([]string, len(tasks))
		for i := range tasks {
			keys[i] = verb(&tasks[i]) + " " + word(tasks[i].Name)
		}
		for i := range tasks {
			o.add(fmt.Sprintf("rank %d: %s", rank, keys[i]), f.unnumbered(&tasks[i], keys)...)
		}
	}
	return o
}

// unnumbered is a task's text, with the tasks that it waits for by key.
func (f *formatter) unnumbered(t *Task, keys []string) []string {
	cells := []string{t.Lane.String(), settings(t), f.flow(t)}
	for _, d := range t.After {
		on := "#" + strconv.Itoa(d.Task)
		if d.Task >= 0 && d.Task < len(keys) {
			on = keys[d.Task]
		}
		cells = append(cells, fmt.Sprintf("after (%s)~%d", on, d.Lag))
	}
	return cells
}

func (o *outline) add(key string, cells ...string) {
	unique := key
	for n := 2; o.has(unique); n++ {
		unique = fmt.Sprintf("%s (number %d)", key, n)
	}
	o.keys = append(o.keys, unique)
	o.text[unique] = strings.Join(append([]string{""}, slices.DeleteFunc(cells, func(c string) bool { return c == "" })...), " ")
}

func (o *outline) has(key string) bool {
	_, ok := o.text[key]
	return ok
}
