package plan

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/gangline/gangline/tensor"
)

// A record says once, field by field, what a line holds; a codec writes by it,
// or reads.

func (c *codec) value(i int, v *Value) {
	c.index(i)
	text(c, "a name", &v.Name, Quote, unquote)
	text(c, "a dtype", &v.DType, tensor.DType.String, tensor.ParseDType)
	text(c, "a shape", &v.Shape, tensor.Shape.String, parseShape)
	text(c, "a class", &v.Class, Class.String, ParseClass)
	c.column()
	own := NoState
	if v.Class == Param {
		own = i
	}
	if c.reading {
		v.State = own
	}
	setting(c, "of", &v.State, v.State != own, c.name, c.lookup)
	c.number("arena", &v.Arena, false)
	c.number("offset", &v.Offset, false)
	c.flag("sharded", &v.Sharded)
	c.flag("once", &v.Once)
}

// flag is a setting that is there if it is true.
func (c *codec) flag(key string, v *bool) {
	setting(c, key, v, *v, strconv.FormatBool, func(s string) (bool, error) {
		if s != "true" {
			return false, fmt.Errorf("%s=%s: want true, or nothing", key, s)
		}
		return true, nil
	})
}

func (c *codec) seg(i int, s *Seg) {
	c.index(i)
	text(c, "a name", &s.Name, Quote, unquote)
	c.column()
	if c.reading {
		s.Update = NoState
	}
	setting(c, "updates", &s.Update, s.Update != NoState, c.name, c.lookup)
	setting(c, "flops", &s.FLOPs, s.FLOPs != 0,
		func(n int64) string { return strconv.FormatInt(n, 10) },
		func(s string) (int64, error) { return strconv.ParseInt(s, 10, 64) })
}

func (c *codec) group(i int, ranks *[]int) {
	c.index(i)
	c.column()
	list(c, ranks, strconv.Itoa, strconv.Atoi)
}

func (c *codec) store(i int, s *StoreInfo) {
	c.index(i)
	text(c, "a name", &s.Name, Quote, unquote)
}

func (c *codec) holding(i int, h *Holding) {
	c.index(i)
	text(c, "a value", &h.State, c.name, c.lookup)
	bounds := [2]int{h.Lo, h.Hi}
	text(c, "a range", &bounds,
		func(b [2]int) string { return fmt.Sprintf("%d..%d", b[0], b[1]) },
		func(s string) (b [2]int, err error) {
			lo, hi, _ := strings.Cut(s, "..")
			if b[0], err = atoi(lo); err == nil {
				b[1], err = atoi(hi)
			}
			if err != nil {
				err = fmt.Errorf("%q is not a range lo..hi", s)
			}
			return b, err
		})
	h.Lo, h.Hi = bounds[0], bounds[1]
	text(c, "owner or copy", &h.Owner,
		func(owner bool) string { return map[bool]string{true: "owner", false: "copy"}[owner] },
		func(s string) (bool, error) {
			role, err := parseWord[uint8]("role", "copy owner", s)
			return role == 1, err
		})
	c.column()
	if c.reading {
		h.Rank, h.Store = none, none
	}
	setting(c, "rank", &h.Rank, h.Rank != none, strconv.Itoa, atoi)
	setting(c, "store", &h.Store, h.Store != none, strconv.Itoa, atoi)
}

func (c *codec) task(i int, t *Task) {
	c.index(i)
	text(c, "a lane", &t.Lane, Lane.String, ParseLane)
	kind := *t
	text(c, "a kind", &kind, func(t Task) string { return t.Verb() }, parseVerb)
	t.Kind, t.Op = kind.Kind, kind.Op
	text(c, "a name", &t.Name, Quote, unquote)
	c.column()
	c.number("seg", &t.Seg, t.Kind == Compute)
	c.number("peer", &t.Peer, t.Kind == Send || t.Kind == Recv)
	c.number("group", &t.Group, t.Kind == Collective || t.Kind == Commit)
	c.number("store", &t.Store, t.Kind == Pull || t.Kind == Push)
	if t.Kind != Collective {
		setting(c, "op", &t.Op, t.Op != NoOp, Op.String, ParseOp)
	}
	setting(c, "factors", &t.Factors, len(t.Factors) > 0, formatFactors, parseFactors)
	setting(c, "tag", &t.Tag, t.Tag != 0,
		func(tag uint32) string { return strconv.FormatUint(uint64(tag), 10) },
		func(s string) (uint32, error) {
			n, err := strconv.ParseUint(s, 10, 32)
			return uint32(n), err
		})
	setting(c, "order", &t.Order, t.Order != Any, Order.String, ParseOrder)
	setting(c, "algorithm", &t.Algorithm, t.Algorithm != ByRing, Algorithm.String, ParseAlgorithm)
	setting(c, "codec", &t.Codec, t.Codec != "", quoteCodec, unquoteCodec)
	setting(c, "done", &t.Done, t.Done != Stored, Done.String, ParseDone)
	c.column()
	setting(c, "after", &t.After, len(t.After) > 0, formatAfter, parseAfter)
	c.column()
	list(c, &t.In, c.ref, c.parseRef)
	if c.reading && (len(c.cells) == 0 || c.cells[0] != arrow) {
		c.fail(fmt.Errorf("want -> between what a task reads and writes"))
		return
	}
	if c.reading {
		c.cells = c.cells[1:]
	}
	c.more(arrow)
	list(c, &t.Out, c.ref, c.parseRef)
}

// Verb is the word for what a task does: its kind, or the operation of a
// collective.
func (t *Task) Verb() string {
	if t.Kind == Collective && t.Op != NoOp {
		return t.Op.String()
	}
	return t.Kind.String()
}

func parseVerb(s string) (t Task, err error) {
	if op, err := ParseOp(s); err == nil && op != NoOp {
		return Task{Kind: Collective, Op: op}, nil
	}
	t.Kind, err = ParseKind(s)
	return t, err
}

// String returns "3" for task 3, and "5~1" for task 5 of one step before.
func (d Dep) String() string {
	if d.Lag == 0 {
		return strconv.Itoa(d.Task)
	}
	return strconv.Itoa(d.Task) + "~" + strconv.Itoa(d.Lag)
}

// formatAfter is "3,5~1".
func formatAfter(deps []Dep) string {
	parts := make([]string, len(deps))
	for i, d := range deps {
		parts[i] = d.String()
	}
	return strings.Join(parts, ",")
}

func parseAfter(s string) ([]Dep, error) {
	var deps []Dep
	for part := range strings.SplitSeq(s, ",") {
		task, lag, lagged := strings.Cut(part, "~")
		var d Dep
		var err error
		if d.Task, err = atoi(task); err == nil && lagged {
			d.Lag, err = atoi(lag)
		}
		if err != nil {
			return nil, err
		}
		deps = append(deps, d)
	}
	return deps, nil
}

// formatFactors is "0.5,-1".
func formatFactors(factors []float64) string {
	parts := make([]string, len(factors))
	for i, f := range factors {
		parts[i] = strconv.FormatFloat(f, 'g', -1, 64)
	}
	return strings.Join(parts, ",")
}

func parseFactors(s string) (factors []float64, err error) {
	for part := range strings.SplitSeq(s, ",") {
		f, err := strconv.ParseFloat(part, 64)
		if err != nil || math.IsNaN(f) || math.IsInf(f, 0) {
			return nil, fmt.Errorf("%q is not a finite number", part)
		}
		factors = append(factors, f)
	}
	return factors, nil
}

// ref is the name of a value, with @micro or @micro:use where they are not 0.
func (c *codec) ref(r Ref) string {
	switch {
	case r.Use != 0:
		return fmt.Sprintf("%s@%d:%d", c.name(r.Value), r.Micro, r.Use)
	case r.Micro != 0:
		return fmt.Sprintf("%s@%d", c.name(r.Value), r.Micro)
	}
	return c.name(r.Value)
}

func (c *codec) parseRef(s string) (r Ref, err error) {
	// A quoted name may hold an @: the one meant stands after the quotes.
	if at := strings.LastIndexByte(s, '@'); at > strings.LastIndexByte(s, '"') {
		micro, use, both := strings.Cut(s[at+1:], ":")
		if r.Micro, err = atoi(micro); err == nil && both {
			r.Use, err = atoi(use)
		}
		s = s[:at]
	}
	if err == nil {
		r.Value, err = c.lookup(s)
	}
	return r, err
}
