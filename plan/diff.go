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
	kept := slices.DeleteFunc(slices.Clone(was.keys), func(key string) bool { return now.text[key] == "" })
	order := slices.DeleteFunc(slices.Clone(now.keys), func(key string) bool { return was.text[key] == "" })
	var lines []string
	for _, key := range was.keys {
		if now.text[key] == "" {
			lines = append(lines, "- "+key+was.text[key])
		}
	}
	for _, key := range now.keys {
		switch was.text[key] {
		case now.text[key]:
		case "":
			lines = append(lines, "+ "+key+now.text[key])
		default:
			lines = append(lines, "~ "+key+now.text[key]+", was"+was.text[key])
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
	c := &codec{values: p.Values, names: namesOf(p.Values)}
	o := &outline{text: make(map[string]string)}
	o.add("plan", "name="+Quote(p.Name), "window="+strconv.Itoa(p.Window)+localWord(p), "ranks="+strconv.Itoa(len(p.Ranks)), strings.TrimSpace(p.sliced()))
	for _, s := range sections(p) {
		for _, cells := range c.rows(s) {
			if s.title == "holdings" { // a state may be cut: who has a part tells it
				cells[1], cells[4] = cells[1]+" "+cells[4], ""
			}
			o.add(strings.TrimSuffix(s.title, "s")+" "+cells[1], cells[2:]...)
		}
	}
	for rank, tasks := range p.Ranks {
		rows := c.rows(tasksOf(p, rank))
		for i, cells := range rows {
			waits := make([]string, len(tasks[i].After))
			for j, d := range tasks[i].After {
				on := "#" + strconv.Itoa(d.Task)
				if d.Task >= 0 && d.Task < len(rows) {
					on = rows[d.Task][2] + " " + rows[d.Task][3]
				}
				waits[j] = fmt.Sprintf("after (%s)~%d", on, d.Lag)
			}
			cells[5] = strings.Join(waits, " ")
		}
		for _, cells := range rows {
			o.add(fmt.Sprintf("rank %d: %s %s", rank, cells[2], cells[3]), cells[1], cells[4], cells[6], cells[5])
		}
	}
	return o
}

func (o *outline) add(key string, cells ...string) {
	unique := key
	for n := 2; o.text[unique] != ""; n++ {
		unique = fmt.Sprintf("%s (number %d)", key, n)
	}
	o.keys = append(o.keys, unique)
	o.text[unique] = " " + strings.Join(slices.DeleteFunc(cells, func(c string) bool { return c == "" }), " ")
}
