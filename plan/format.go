package plan

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Format returns the text form of a plan: one value, segment, holding or task
// a line, in columns; ranks that follow each other and do the same share one
// list. docs/plan.md explains it by an example. Equal plans have equal texts,
// Parse reads a text back exactly, and a plan that Check refuses prints too.
func Format(p *Plan) string {
	f := formatter{plan: p, unique: uniqueNames(p)}
	f.line("plan " + word(p.Name) + " window=" + strconv.Itoa(p.Window))
	f.section("values", len(p.Values), f.value)
	f.section("segments", len(p.Segs), f.seg)
	f.section("groups", len(p.Groups), f.group)
	f.section("stores", len(p.Stores), f.store)
	f.section("holdings", len(p.Holdings), f.holding)
	for first := 0; first < len(p.Ranks); {
		rows := f.tasks(p.Ranks[first])
		last := first
		for last+1 < len(p.Ranks) && slices.EqualFunc(rows, f.tasks(p.Ranks[last+1]), slices.Equal[[]string]) {
			last++
		}
		f.line("")
		if first == last {
			f.line("rank " + strconv.Itoa(first))
		} else {
			f.line(fmt.Sprintf("ranks %d-%d", first, last))
		}
		f.table(rows)
		first = last + 1
	}
	return f.text.String()
}

// Digest returns the SHA-256 of the text form in hex: what ranks compare before
// the first step.
func Digest(p *Plan) string { return digest(Format(p)) }

// ProgramDigest returns the digest of all plans of a program, their names in
// it, and its cycle.
func ProgramDigest(p *Program) string {
	var b strings.Builder
	fmt.Fprintf(&b, "program cycle=%q\n", p.Cycle)
	for _, name := range slices.Sorted(maps.Keys(p.Plans)) {
		fmt.Fprintf(&b, "%q %s\n", name, Digest(p.Plans[name]))
	}
	return digest(b.String())
}

func digest(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}

type formatter struct {
	plan   *Plan
	unique map[string]bool // names that one value only has
	text   strings.Builder
}

// uniqueNames tells which names say which value is meant.
func uniqueNames(p *Plan) map[string]bool {
	unique := make(map[string]bool, len(p.Values))
	for i := range p.Values {
		_, twice := unique[p.Values[i].Name]
		unique[p.Values[i].Name] = !twice
	}
	return unique
}

func (f *formatter) line(s string) {
	f.text.WriteString(s)
	f.text.WriteByte('\n')
}

func (f *formatter) section(title string, n int, row func(i int) []string) {
	if n == 0 {
		return
	}
	f.line("")
	f.line(title)
	rows := make([][]string, n)
	for i := range rows {
		rows[i] = row(i)
	}
	f.table(rows)
}

// table writes rows in columns; the last cell of a row is not padded.
func (f *formatter) table(rows [][]string) {
	var width []int
	for _, row := range rows {
		for i, cell := range row {
			if i == len(width) {
				width = append(width, 0)
			}
			width[i] = max(width[i], utf8.RuneCountInString(cell))
		}
	}
	for _, row := range rows {
		var b strings.Builder
		for i, cell := range row {
			b.WriteString("  ")
			if i == 0 {
				b.WriteString(strings.Repeat(" ", width[i]-utf8.RuneCountInString(cell)))
			}
			b.WriteString(cell)
			if i > 0 {
				b.WriteString(strings.Repeat(" ", width[i]-utf8.RuneCountInString(cell)))
			}
		}
		f.line(strings.TrimRight(b.String(), " "))
	}
}

func (f *formatter) value(i int) []string {
	v := &f.plan.Values[i]
	var more attrs
	if own := v.Class == Param && v.State == i; !own && v.State != NoState {
		more.add("of", f.name(v.State))
	} else if v.Class == Param && v.State == NoState {
		more.add("of", "#-1")
	}
	more.number("arena", v.Arena, false)
	more.number("offset", v.Offset, false)
	return []string{strconv.Itoa(i), word(v.Name), v.DType.String(), v.Shape.String(), v.Class.String(), more.String()}
}

func (f *formatter) seg(i int) []string {
	s := &f.plan.Segs[i]
	var more attrs
	if s.Update != NoState {
		more.add("updates", f.name(s.Update))
	}
	if s.FLOPs != 0 {
		more.add("flops", strconv.FormatInt(s.FLOPs, 10))
	}
	return []string{strconv.Itoa(i), word(s.Name), more.String()}
}

func (f *formatter) group(i int) []string {
	ranks := make([]string, len(f.plan.Groups[i]))
	for j, r := range f.plan.Groups[i] {
		ranks[j] = strconv.Itoa(r)
	}
	return []string{strconv.Itoa(i), strings.Join(ranks, " ")}
}

func (f *formatter) store(i int) []string {
	return []string{strconv.Itoa(i), word(f.plan.Stores[i].Name)}
}

func (f *formatter) holding(i int) []string {
	h := &f.plan.Holdings[i]
	var who attrs
	if h.Rank != none {
		who.add("rank", strconv.Itoa(h.Rank))
	}
	if h.Store != none {
		who.add("store", strconv.Itoa(h.Store))
	}
	role := "copy"
	if h.Owner {
		role = "owner"
	}
	return []string{strconv.Itoa(i), f.name(h.State), fmt.Sprintf("%d..%d", h.Lo, h.Hi), role, who.String()}
}

func (f *formatter) tasks(tasks []Task) [][]string {
	rows := make([][]string, len(tasks))
	for i := range tasks {
		t := &tasks[i]
		rows[i] = []string{strconv.Itoa(i), t.Lane.String(), verb(t), word(t.Name), settings(t), after(t.After), f.flow(t)}
	}
	return rows
}

// verb is the kind, or the operation of a collective.
func verb(t *Task) string {
	if t.Kind == Collective && t.Op != NoOp {
		return t.Op.String()
	}
	return t.Kind.String()
}

// settings are the fields that the kind of task reads, and others if set.
func settings(t *Task) string {
	var a attrs
	a.number("seg", t.Seg, t.Kind == Compute)
	a.number("peer", t.Peer, t.Kind == Send || t.Kind == Recv)
	a.number("group", t.Group, t.Kind == Collective || t.Kind == Commit)
	a.number("store", t.Store, t.Kind == Pull || t.Kind == Push)
	if t.Kind != Collective && t.Op != NoOp {
		a.add("op", t.Op.String())
	}
	if t.Tag != 0 {
		a.add("tag", strconv.FormatUint(uint64(t.Tag), 10))
	}
	if t.Order != Any {
		a.add("order", t.Order.String())
	}
	if t.Done != Stored {
		a.add("done", t.Done.String())
	}
	return a.String()
}

// after is "after=3,5~1": task 3, and task 5 of one step before.
func after(deps []Dep) string {
	if len(deps) == 0 {
		return ""
	}
	parts := make([]string, len(deps))
	for i, d := range deps {
		parts[i] = strconv.Itoa(d.Task)
		if d.Lag != 0 {
			parts[i] += "~" + strconv.Itoa(d.Lag)
		}
	}
	return "after=" + strings.Join(parts, ",")
}

func (f *formatter) flow(t *Task) string {
	parts := make([]string, 0, len(t.In)+len(t.Out)+1)
	for _, r := range t.In {
		parts = append(parts, f.ref(r))
	}
	parts = append(parts, "->")
	for _, r := range t.Out {
		parts = append(parts, f.ref(r))
	}
	return strings.Join(parts, " ")
}

// ref is the name of a value, with @micro or @micro:use where they are not 0.
func (f *formatter) ref(r Ref) string {
	s := f.name(r.Value)
	switch {
	case r.Use != 0:
		s += fmt.Sprintf("@%d:%d", r.Micro, r.Use)
	case r.Micro != 0:
		s += fmt.Sprintf("@%d", r.Micro)
	}
	return s
}

// name is the name of a value, or #index where no name tells it.
func (f *formatter) name(value int) string {
	if value >= 0 && value < len(f.plan.Values) && f.unique[f.plan.Values[value].Name] {
		return word(f.plan.Values[value].Name)
	}
	return "#" + strconv.Itoa(value)
}

// attrs are settings of the form key=value.
type attrs []string

func (a *attrs) add(key, value string) { *a = append(*a, key+"="+value) }

func (a *attrs) number(key string, n int, always bool) {
	if n != 0 || always {
		a.add(key, strconv.Itoa(n))
	}
}

func (a attrs) String() string { return strings.Join(a, " ") }

// word is a name as it stands in the text: quoted unless it is plain.
func word(name string) string {
	plain := name != "" && name != "->"
	for i := 0; i < len(name) && plain; i++ {
		c := name[i]
		plain = c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.IndexByte("_./-+:", c) >= 0
	}
	if plain {
		return name
	}
	return strconv.Quote(name)
}
