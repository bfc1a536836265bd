package plan

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/gangline/gangline/tensor"
)

// fields are the tokens left of one line. The first error stays.
type fields struct {
	tokens []string
	err    error
}

// split cuts a line at spaces, but not within "quotes" or [brackets].
func split(line string) ([]string, error) {
	var tokens []string
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
		tokens = append(tokens, line[:n])
		line = line[n:]
	}
	return tokens, nil
}

// next takes a token; what names it in the error if there is none.
func (f *fields) next(what string) string {
	if len(f.tokens) == 0 {
		f.fail(fmt.Errorf("the line ends where %s was expected", what))
		return ""
	}
	s := f.tokens[0]
	f.tokens = f.tokens[1:]
	return s
}

func (f *fields) fail(err error) {
	if f.err == nil {
		f.err = err
	}
}

// name takes a plain or quoted name.
func (f *fields) name(what string) string {
	name := ""
	parsed(f, what, &name, unword)
	return name
}

// index takes the number that a line begins with, which must be the next one.
func (f *fields) index(want int) {
	if s := f.next("a number"); s != strconv.Itoa(want) {
		f.fail(fmt.Errorf("the line is numbered %q, want %d", s, want))
	}
}

// attrs takes all key=value tokens up to one that is none. Each key may come once.
func (f *fields) attrs(known map[string]func(string) error) error {
	for len(f.tokens) > 0 {
		key, value, ok := strings.Cut(f.tokens[0], "=")
		if !ok || strings.HasPrefix(key, `"`) {
			return nil
		}
		set := known[key]
		if set == nil {
			return fmt.Errorf("setting %q is unknown here, or stands twice", key)
		}
		if err := set(value); err != nil {
			return fmt.Errorf("setting %s: %w", f.tokens[0], err)
		}
		delete(known, key)
		f.tokens = f.tokens[1:]
	}
	return nil
}

// parsed takes a token and reads it into to.
func parsed[T any](f *fields, what string, to *T, parse func(string) (T, error)) {
	s := f.next(what)
	if f.err != nil {
		return
	}
	v, err := parse(s)
	if err != nil {
		f.fail(err)
		return
	}
	*to = v
}

// number reads an integer into to.
func number(to *int) func(string) error {
	return func(s string) error {
		n, err := strconv.Atoi(s)
		if err != nil {
			return fmt.Errorf("%q is not a number", s)
		}
		*to = n
		return nil
	}
}

// unword is the inverse of word.
func unword(s string) (string, error) {
	if strings.HasPrefix(s, `"`) {
		name, err := strconv.Unquote(s)
		if err != nil {
			return "", fmt.Errorf("%s is not a quoted name", s)
		}
		return name, nil
	}
	if word(s) != s {
		return "", fmt.Errorf("name %q must stand in quotes", s)
	}
	return s, nil
}

// parseShape is the inverse of tensor.Shape.String.
func parseShape(s string) (tensor.Shape, error) {
	if len(s) < 2 || s[0] != '[' || s[len(s)-1] != ']' {
		return nil, fmt.Errorf("%q is not a shape such as [? 10]", s)
	}
	var shape tensor.Shape
	for dim := range strings.FieldsSeq(s[1 : len(s)-1]) {
		n := tensor.Dynamic
		if dim != "?" {
			var err error
			if n, err = strconv.Atoi(dim); err != nil {
				return nil, fmt.Errorf("%q is not a shape such as [? 10]", s)
			}
		}
		shape = append(shape, n)
	}
	return shape, nil
}
