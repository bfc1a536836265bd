package plan

import (
	"crypto/sha256"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// MaxRanks bounds the ranks that Parse accepts, so that a short text cannot ask
// for endless memory.
const MaxRanks = 4096

// Format returns the text form of a plan: one value, segment, holding or task
// a line, in columns; ranks that follow each other and do the same share one
// list. docs/plan.md explains it by an example. Equal plans have equal texts,
// Parse reads a text back exactly, and a plan that package check refuses prints too.
func Format(p *Plan) string {
	var b strings.Builder
	c := &codec{values: p.Values, names: namesOf(p.Values)}
	fmt.Fprintf(&b, "plan %s window=%d%s%s\n", Quote(p.Name), p.Window, localWord(p), p.sliced())
	for _, s := range sections(p) {
		if s.len() > 0 {
			fmt.Fprintf(&b, "\n%s\n%s", s.title, c.table(s))
		}
	}
	for first := 0; first < len(p.Ranks); {
		list := c.table(tasksOf(p, first))
		last := first
		for last+1 < len(p.Ranks) && c.table(tasksOf(p, last+1)) == list {
			last++
		}
		who := fmt.Sprintf("rank %d", first)
		if last > first {
			who = fmt.Sprintf("ranks %d-%d", first, last)
		}
		fmt.Fprintf(&b, "\n%s\n%s", who, list)
		first = last + 1
	}
	return b.String()
}

// localWord marks a plan whose ranks train copies of their own.
func localWord(p *Plan) string {
	if p.Local {
		return " local=true"
	}
	return ""
}

// sliced says how many slices there are, if there are any.
func (p *Plan) sliced() string {
	if p.Slices == 0 {
		return ""
	}
	return " slices=" + strconv.Itoa(p.Slices)
}

// Parse reads the text form back. An error names the line. What it returns is
// well spelt, which does not mean that it is right: that is for package check to say.
func Parse(text string) (*Plan, error) {
	// A line may name a value that stands below it: a first reading finds the names.
	p, err := parse(text, nil)
	if err != nil {
		return nil, err
	}
	return parse(text, namesOf(p.Values))
}

func parse(text string, names map[string]int) (*Plan, error) {
	p := &parser{plan: &Plan{}, names: names}
	for n, line := range strings.Split(text, "\n") {
		if strings.TrimSpace(line) == "" {
			continue
		}
		if err := p.line(line); err != nil {
			return nil, fmt.Errorf("plan: line %d: %w", n+1, err)
		}
	}
	if p.now.title == "" {
		return nil, fmt.Errorf("plan: no line begins with \"plan\"")
	}
	p.shareList()
	return p.plan, nil
}

// Digest returns the SHA-256 of the text form in hex: what ranks compare before
// the first step.
func Digest(p *Plan) string { return fmt.Sprintf("%x", sha256.Sum256([]byte(Format(p)))) }

// ProgramDigest returns the digest of all plans of a program, their names in
// it, and when they are run.
func ProgramDigest(p *Program) string {
	h := sha256.New()
	fmt.Fprintf(h, "program cycle=%q\n", p.Cycle)
	if p.Init != "" || p.Settle != "" {
		fmt.Fprintf(h, "init=%q settle=%q\n", p.Init, p.Settle)
	}
	for _, name := range slices.Sorted(maps.Keys(p.Plans)) {
		fmt.Fprintf(h, "%q %s\n", name, Digest(p.Plans[name]))
	}
	return fmt.Sprintf("%x", h.Sum(nil))
}

// section is a list of a plan as lines.
type section struct {
	title  string
	len    func() int
	grow   func()
	record func(c *codec, i int)
}

func sectionOf[T any](title string, list *[]T, record func(*codec, int, *T)) section {
	return section{
		title:  title,
		len:    func() int { return len(*list) },
		grow:   func() { *list = append(*list, *new(T)) },
		record: func(c *codec, i int) { record(c, i, &(*list)[i]) },
	}
}

func sections(p *Plan) []section {
	return []section{
		sectionOf("values", &p.Values, (*codec).value),
		sectionOf("segments", &p.Segs, (*codec).seg),
		sectionOf("groups", &p.Groups, (*codec).group),
		sectionOf("hosts", &p.Hosts, (*codec).group),
		sectionOf("stores", &p.Stores, (*codec).store),
		sectionOf("holdings", &p.Holdings, (*codec).holding),
	}
}

func tasksOf(p *Plan, rank int) section { return sectionOf("rank", &p.Ranks[rank], (*codec).task) }

// rows writes the lines of a section as cells.
func (c *codec) rows(s section) [][]string {
	rows := make([][]string, s.len())
	for i := range rows {
		c.cells = nil
		s.record(c, i)
		rows[i] = c.cells
	}
	return rows
}

// table writes a section in columns: numbers to the right, all else to the left.
func (c *codec) table(s section) string {
	rows := c.rows(s)
	var width []int
	for _, row := range rows {
		for i, cell := range row {
			if i == len(width) {
				width = append(width, 0)
			}
			width[i] = max(width[i], utf8.RuneCountInString(cell))
		}
	}
	var b, line strings.Builder
	for _, row := range rows {
		line.Reset()
		for i, cell := range row {
			pad := strings.Repeat(" ", width[i]-utf8.RuneCountInString(cell))
			if i == 0 {
				pad, cell = cell, pad
			}
			line.WriteString("  " + cell + pad)
		}
		b.WriteString(strings.TrimRight(line.String(), " ") + "\n")
	}
	return b.String()
}

// parser reads a text line by line.
type parser struct {
	plan  *Plan
	names map[string]int // nil in the first reading
	now   section        // what lines are read as; without a title before the first
	share int            // ranks after the last that have its list too
}

func (p *parser) line(line string) error {
	cells, err := split(line)
	if err != nil {
		return err
	}
	c := &codec{reading: true, names: p.names, cells: cells}
	switch {
	case line[0] != ' ':
		c.fail(p.header(c))
	case p.now.record == nil:
		return fmt.Errorf("want the line \"plan\", then a section such as \"values\"")
	default:
		p.now.grow()
		p.now.record(c, p.now.len()-1)
	}
	if len(c.cells) > 0 {
		c.fail(fmt.Errorf("%q is not understood here", c.cells[0]))
	}
	return c.err
}

// header begins a section.
func (p *parser) header(c *codec) error {
	p.shareList()
	title := c.take("a section")
	if (title == "plan") != (p.now.title == "") {
		return fmt.Errorf("%q out of place: the text begins with the one line \"plan\"", title)
	}
	switch title {
	case "plan":
		p.now = section{title: title}
		text(c, "a name", &p.plan.Name, Quote, unquote)
		c.number("window", &p.plan.Window, true)
		c.number("slices", &p.plan.Slices, false)
		setting(c, "local", &p.plan.Local, false, strconv.FormatBool, func(s string) (bool, error) {
			if s != "true" {
				return false, fmt.Errorf("local=%s: want local=true, or nothing", s)
			}
			return true, nil
		})
		return nil
	case "rank", "ranks":
		return p.ranks(c.take("a rank"))
	}
	for _, s := range sections(p.plan) {
		if s.title == title {
			p.now = s
			return nil
		}
	}
	return fmt.Errorf("unknown section %q: want values, segments, groups, hosts, stores, holdings, rank or ranks", title)
}

// ranks begins the list of rank "3", or of ranks "0-2".
func (p *parser) ranks(who string) error {
	lo, hi, both := strings.Cut(who, "-")
	if !both {
		hi = lo
	}
	first, err1 := strconv.Atoi(lo)
	last, err2 := strconv.Atoi(hi)
	if err1 != nil || err2 != nil || last < first || last >= MaxRanks {
		return fmt.Errorf("ranks %q: want one number or two that ascend, below %d", who, MaxRanks)
	}
	if first != len(p.plan.Ranks) {
		return fmt.Errorf("rank %d out of place: want rank %d", first, len(p.plan.Ranks))
	}
	p.plan.Ranks = append(p.plan.Ranks, nil)
	p.share = last - first
	p.now = tasksOf(p.plan, first)
	return nil
}

// shareList ends a list by giving its copies to the ranks that share it.
func (p *parser) shareList() {
	for ; p.share > 0; p.share-- {
		p.plan.Ranks = append(p.plan.Ranks, CloneTasks(p.plan.Ranks[len(p.plan.Ranks)-1]))
	}
}
