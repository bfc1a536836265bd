package plan

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/gangline/gangline/tensor"
)

// codec writes a line as cells, or reads one; so what a record writes it reads.
type codec struct {
	reading bool
	cells   []string       // written so far, or left to read
	err     error          // the first of reading
	values  []Value        // for writing
	names   map[string]int // values by name; none where two have it
}

const arrow = "->"

func (c *codec) fail(err error) {
	if c.err == nil {
		c.err = err
	}
}

// take reads a cell; what names it in the error if there is none.
func (c *codec) take(what string) string {
	if len(c.cells) == 0 {
		c.fail(fmt.Errorf("the line ends where %s was expected", what))
		return ""
	}
	s := c.cells[0]
	c.cells = c.cells[1:]
	return s
}

// column begins a cell that more can be written to.
func (c *codec) column() {
	if !c.reading {
		c.cells = append(c.cells, "")
	}
}

// more writes into the cell begun last.
func (c *codec) more(s string) {
	if !c.reading {
		last := &c.cells[len(c.cells)-1]
		*last = strings.TrimLeft(*last+" "+s, " ")
	}
}

// index is the number that a line begins with.
func (c *codec) index(i int) {
	n := i
	if text(c, "a number", &n, strconv.Itoa, atoi); n != i {
		c.fail(fmt.Errorf("the line is numbered %d, want %d", n, i))
	}
}

// text is a cell.
func text[T any](c *codec, what string, v *T, write func(T) string, read func(string) (T, error)) {
	if !c.reading {
		c.cells = append(c.cells, write(*v))
		return
	}
	s := c.take(what)
	if c.err != nil {
		return
	}
	got, err := read(s)
	c.fail(err)
	*v = got
}

// setting is key=value in the cell begun last, written if told to. Reading
// leaves v alone if it is not there.
func setting[T any](c *codec, key string, v *T, told bool, write func(T) string, read func(string) (T, error)) {
	if !c.reading {
		if told {
			c.more(key + "=" + write(*v))
		}
		return
	}
	if len(c.cells) == 0 {
		return
	}
	if s, ok := strings.CutPrefix(c.cells[0], key+"="); ok {
		c.cells[0] = s
		text(c, key, v, write, read)
	}
}

func (c *codec) number(key string, n *int, always bool) {
	setting(c, key, n, *n != 0 || always, strconv.Itoa, atoi)
}

// list is all that follows, up to an arrow.
func list[T any](c *codec, v *[]T, write func(T) string, read func(string) (T, error)) {
	if !c.reading {
		for _, x := range *v {
			c.more(write(x))
		}
		return
	}
	for len(c.cells) > 0 && c.cells[0] != arrow && c.err == nil {
		var x T
		text(c, "", &x, write, read)
		*v = append(*v, x)
	}
}

// name is the name of a value, or #index where no name tells it.
func (c *codec) name(value int) string {
	if value >= 0 && value < len(c.values) {
		if n := c.values[value].Name; c.names[n] == value {
			return Quote(n)
		}
	}
	return "#" + strconv.Itoa(value)
}

// lookup is the inverse of name.
func (c *codec) lookup(s string) (int, error) {
	if index, ok := strings.CutPrefix(s, "#"); ok {
		return atoi(index)
	}
	name, err := unquote(s)
	if err != nil {
		return 0, err
	}
	v, ok := c.names[name]
	switch {
	case ok && v == none:
		err = fmt.Errorf("two values are named %q: say #index", name)
	case !ok && c.names != nil: // in the first reading there are none yet
		err = fmt.Errorf("no value is named %q", name)
	}
	return v, err
}

// namesOf gives the index of each name, or none if two values have it.
func namesOf(values []Value) map[string]int {
	names := make(map[string]int, len(values))
	for i := range values {
		name := values[i].Name
		if _, twice := names[name]; twice {
			i = none
		}
		names[name] = i
	}
	return names
}

// split cuts a line at spaces, but not within "quotes" or [brackets].
func split(line string) ([]string, error) {
	var cells []string
	for line = strings.TrimLeft(line, " "); line != ""; line = strings.TrimLeft(line, " ") {
		n := 0
		for n < len(line) && line[n] != ' ' {
			switch line[n] {
			case '"':
				quoted, err := strconv.QuotedPrefix(line[n:])
				if err != nil {
					return nil, fmt.Errorf("a quote is not closed: %s", line[n:])
				}
				n += len(quoted)
			case '[':
				end := strings.IndexByte(line[n:], ']')
				if end < 0 {
					return nil, fmt.Errorf("a bracket is not closed: %s", line[n:])
				}
				n += end + 1
			default:
				n++
			}
		}
		cells = append(cells, line[:n])
		line = line[n:]
	}
	return cells, nil
}

// Quote returns a name as it stands in the text: quoted unless it is plain.
func Quote(name string) string {
	plain := name != "" && name != arrow
	for _, r := range name {
		plain = plain && (r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("_./-+:'", r))
	}
	if plain {
		return name
	}
	return strconv.Quote(name)
}

// unquote is the inverse of Quote.
func unquote(s string) (string, error) {
	name := s
	if strings.HasPrefix(s, `"`) {
		var err error
		if name, err = strconv.Unquote(s); err != nil {
			return "", fmt.Errorf("%s is not a quoted name", s)
		}
	} else if Quote(s) != s {
		return "", fmt.Errorf("name %q must stand in quotes", s)
	}
	return name, nil
}

// quoteCodec returns a codec as it stands in the text: as a name, of which brackets are part.
func quoteCodec(codec string) string {
	if plain := strings.NewReplacer("(", "", ")", "").Replace(codec); plain != "" && Quote(plain) == plain {
		return codec
	}
	return strconv.Quote(codec)
}

// unquoteCodec is the inverse of quoteCodec.
func unquoteCodec(s string) (string, error) {
	if strings.HasPrefix(s, `"`) {
		return unquote(s)
	}
	if quoteCodec(s) != s {
		return "", fmt.Errorf("codec %q must stand in quotes", s)
	}
	return s, nil
}

// parseShape is the inverse of tensor.Shape.String.
func parseShape(s string) (shape tensor.Shape, err error) {
	ok := len(s) >= 2 && s[0] == '[' && s[len(s)-1] == ']'
	for dim := range strings.FieldsSeq(strings.Trim(s, "[]")) {
		n := tensor.Dynamic
		if dim != "?" {
			n, err = strconv.Atoi(dim)
			ok = ok && err == nil
		}
		shape = append(shape, n)
	}
	if !ok {
		return nil, fmt.Errorf("%q is not a shape such as [? 10]", s)
	}
	return shape, nil
}

func atoi(s string) (int, error) {
	n, err := strconv.Atoi(s)
	if err != nil {
		return 0, fmt.Errorf("%q is not a number", s)
	}
	return n, nil
}
