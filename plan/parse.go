package plan

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/gangline/gangline/tensor"
)

// MaxRanks bounds the ranks that Parse accepts, so that a short text cannot ask
// for endless memory.
const MaxRanks = 4096

// Parse reads the text form back. An error names the line. What it returns is
// well spelt, which does not mean that it is right: that is for Check to say.
func Parse(text string) (*Plan, error) {
	p := parser{plan: &Plan{}}
	for n, line := range strings.Split(text, "\n") {
		if strings.TrimSpace(line) == "" {
			continue
		}
		p.number = n + 1
		if err := p.line(line); err != nil {
			return nil, fmt.Errorf("plan: line %d: %w", p.number, err)
		}
	}
	if p.row == nil {
		return nil, fmt.Errorf("plan: no line begins with \"plan\"")
	}
	if err := p.endSection(); err != nil {
		return nil, fmt.Errorf("plan: line %d: %w", p.number, err)
	}
	return p.plan, nil
}

type parser struct {
	plan   *Plan
	number int                 // of the line
	row    func(*fields) error // reads a line of the section
	names  map[string]int      // values by name; ambiguous where two have it
	copies int                 // ranks after the last that share its list
	later  []later             // of the values section
}

// later is a value that names another, which may stand below it.
type later struct {
	value, line int
	of          string
}

// ambiguous stands for the index of a name that two values have.
const ambiguous = -1

func (p *parser) line(line string) error {
	tokens, err := split(line)
	if err != nil {
		return err
	}
	f := &fields{tokens: tokens}
	if line[0] == ' ' {
		if p.row == nil {
			return fmt.Errorf("want a line that begins with \"plan\" first")
		}
		err = p.row(f)
	} else {
		err = p.header(f)
	}
	if err == nil && f.err == nil && len(f.tokens) > 0 {
		return fmt.Errorf("%q is not understood here", f.tokens[0])
	}
	if f.err != nil {
		return f.err
	}
	return err
}

// header begins a section.
func (p *parser) header(f *fields) error {
	if err := p.endSection(); err != nil {
		return err
	}
	title := f.next("a section")
	if (title == "plan") != (p.row == nil) {
		return fmt.Errorf("%q out of place: the text begins with the one line \"plan\"", title)
	}
	switch title {
	case "plan":
		p.row = func(*fields) error { return fmt.Errorf("want a section, such as \"values\"") }
		p.plan.Name = f.name("name of the plan")
		return f.attrs(map[string]func(string) error{"window": number(&p.plan.Window)})
	case "values":
		p.row = p.value
	case "segments":
		p.row = p.seg
	case "groups":
		p.row = p.group
	case "stores":
		p.row = p.store
	case "holdings":
		p.row = p.holding
	case "rank", "ranks":
		return p.ranks(f)
	default:
		return fmt.Errorf("unknown section %q: want values, segments, groups, stores, holdings, rank or ranks", title)
	}
	return nil
}

// ranks is "rank 3" or "ranks 0-2".
func (p *parser) ranks(f *fields) error {
	lo, hi, both := strings.Cut(f.next("a rank"), "-")
	if !both {
		hi = lo
	}
	first, err := strconv.Atoi(lo)
	if err != nil {
		return fmt.Errorf("rank %q is not a number", lo)
	}
	last, err := strconv.Atoi(hi)
	if err != nil || last < first || last >= MaxRanks {
		return fmt.Errorf("ranks %q to %q: want numbers that ascend, below %d", lo, hi, MaxRanks)
	}
	if first != len(p.plan.Ranks) {
		return fmt.Errorf("rank %d out of place: want rank %d", first, len(p.plan.Ranks))
	}
	p.plan.Ranks = append(p.plan.Ranks, nil)
	p.copies = last - first
	p.row = p.task
	return nil
}

// endSection gives the ranks that share a list their copies of it, and looks
// up what values named.
func (p *parser) endSection() error {
	for range p.copies {
		p.plan.Ranks = append(p.plan.Ranks, CloneTasks(p.plan.Ranks[len(p.plan.Ranks)-1]))
	}
	p.copies = 0
	for _, l := range p.later {
		v, err := p.lookup(l.of)
		if err != nil {
			p.number = l.line
			return err
		}
		p.plan.Values[l.value].State = v
	}
	p.later = nil
	return nil
}

// CloneTasks returns a copy that shares nothing with the list.
func CloneTasks(tasks []Task) []Task {
	c := slices.Clone(tasks)
	for i := range c {
		c[i].In = slices.Clone(c[i].In)
		c[i].Out = slices.Clone(c[i].Out)
		c[i].After = slices.Clone(c[i].After)
	}
	return c
}

func (p *parser) value(f *fields) error {
	i := len(p.plan.Values)
	f.index(i)
	v := Value{State: NoState}
	v.Name = f.name("name of the value")
	parsed(f, "a dtype", &v.DType, tensor.ParseDType)
	parsed(f, "a shape", &v.Shape, parseShape)
	parsed(f, "a class", &v.Class, ParseClass)
	if v.Class == Param {
		v.State = i
	}
	err := f.attrs(map[string]func(string) error{
		"of": func(s string) error {
			p.later = append(p.later, later{i, p.number, s})
			return nil
		},
		"arena": number(&v.Arena), "offset": number(&v.Offset),
	})
	p.plan.Values = append(p.plan.Values, v)
	if p.names == nil {
		p.names = make(map[string]int)
	}
	if _, twice := p.names[v.Name]; twice {
		i = ambiguous
	}
	p.names[v.Name] = i
	return err
}

// lookup finds a value by its name, or by #index.
func (p *parser) lookup(s string) (int, error) {
	if index, ok := strings.CutPrefix(s, "#"); ok {
		return strconv.Atoi(index)
	}
	name, err := unword(s)
	if err != nil {
		return 0, err
	}
	v, ok := p.names[name]
	if !ok {
		return 0, fmt.Errorf("no value is named %q", name)
	}
	if v == ambiguous {
		return 0, fmt.Errorf("two values are named %q: say #index", name)
	}
	return v, nil
}

func (p *parser) seg(f *fields) error {
	f.index(len(p.plan.Segs))
	s := Seg{Name: f.name("name of the segment"), Update: NoState}
	err := f.attrs(map[string]func(string) error{
		"updates": func(text string) (err error) {
			s.Update, err = p.lookup(text)
			return err
		},
		"flops": func(text string) (err error) {
			s.FLOPs, err = strconv.ParseInt(text, 10, 64)
			return err
		},
	})
	p.plan.Segs = append(p.plan.Segs, s)
	return err
}

func (p *parser) group(f *fields) error {
	f.index(len(p.plan.Groups))
	var ranks []int
	for len(f.tokens) > 0 {
		r := 0
		parsed(f, "a rank", &r, strconv.Atoi)
		ranks = append(ranks, r)
	}
	p.plan.Groups = append(p.plan.Groups, ranks)
	return nil
}

func (p *parser) store(f *fields) error {
	f.index(len(p.plan.Stores))
	p.plan.Stores = append(p.plan.Stores, StoreInfo{Name: f.name("name of the store")})
	return nil
}

func (p *parser) holding(f *fields) error {
	f.index(len(p.plan.Holdings))
	h := Holding{Rank: none, Store: none}
	parsed(f, "a value", &h.State, p.lookup)
	lo, hi, ok := strings.Cut(f.next("a range"), "..")
	role := f.next("owner or copy")
	if !ok || role != "owner" && role != "copy" {
		return fmt.Errorf("want a range lo..hi, then owner or copy")
	}
	h.Owner = role == "owner"
	if err := number(&h.Lo)(lo); err != nil {
		return err
	}
	if err := number(&h.Hi)(hi); err != nil {
		return err
	}
	err := f.attrs(map[string]func(string) error{"rank": number(&h.Rank), "store": number(&h.Store)})
	p.plan.Holdings = append(p.plan.Holdings, h)
	return err
}

func (p *parser) task(f *fields) error {
	list := &p.plan.Ranks[len(p.plan.Ranks)-1]
	f.index(len(*list))
	var t Task
	parsed(f, "a lane", &t.Lane, ParseLane)
	verb := f.next("a kind")
	if op, err := ParseOp(verb); err == nil && op != NoOp {
		t.Kind, t.Op = Collective, op
	} else if t.Kind, err = ParseKind(verb); err != nil {
		return err
	}
	t.Name = f.name("name of the task")
	err := f.attrs(map[string]func(string) error{
		"seg": number(&t.Seg), "peer": number(&t.Peer), "group": number(&t.Group), "store": number(&t.Store),
		"op":    func(s string) (err error) { t.Op, err = ParseOp(s); return err },
		"order": func(s string) (err error) { t.Order, err = ParseOrder(s); return err },
		"done":  func(s string) (err error) { t.Done, err = ParseDone(s); return err },
		"tag": func(s string) error {
			n, err := strconv.ParseUint(s, 10, 32)
			t.Tag = uint32(n)
			return err
		},
		"after": func(s string) (err error) { t.After, err = parseAfter(s); return err },
	})
	if err != nil {
		return err
	}
	refs := &t.In
	arrow := false
	for len(f.tokens) > 0 {
		s := f.next("a value")
		if s == "->" && !arrow {
			refs, arrow = &t.Out, true
			continue
		}
		r, err := p.ref(s)
		if err != nil {
			return err
		}
		*refs = append(*refs, r)
	}
	if !arrow {
		return fmt.Errorf("want -> between what a task reads and writes")
	}
	*list = append(*list, t)
	return nil
}

// ref reads name, name@micro or name@micro:use.
func (p *parser) ref(s string) (r Ref, err error) {
	// A quoted name may hold an @: the one meant stands after the quotes.
	name, lives := s, ""
	if at := strings.LastIndexByte(s, '@'); at > strings.LastIndexByte(s, '"') {
		name, lives = s[:at], s[at+1:]
		micro, use, both := strings.Cut(lives, ":")
		if r.Micro, err = strconv.Atoi(micro); err != nil {
			return r, fmt.Errorf("value %q: want a number after @", s)
		}
		if both {
			if r.Use, err = strconv.Atoi(use); err != nil {
				return r, fmt.Errorf("value %q: want a number after the colon", s)
			}
		}
	}
	r.Value, err = p.lookup(name)
	return r, err
}

func parseAfter(s string) ([]Dep, error) {
	var deps []Dep
	for part := range strings.SplitSeq(s, ",") {
		task, lag, lagged := strings.Cut(part, "~")
		var d Dep
		if err := number(&d.Task)(task); err != nil {
			return nil, err
		}
		if lagged {
			if err := number(&d.Lag)(lag); err != nil {
				return nil, err
			}
		}
		deps = append(deps, d)
	}
	return deps, nil
}
