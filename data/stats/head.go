package stats

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"text/tabwriter"

	"github.com/gangline/gangline/data"
)

// Head prints the columns of a source and its first n rows, for people. Ids are
// printed as they are in memory: from 0.
func Head(w io.Writer, src data.Source, n int) error {
	n = max(0, min(n, src.Rows()))
	rows := make([]int, n)
	for i := range rows {
		rows[i] = i
	}
	var b data.Batch
	if err := src.Read(rows, &b); err != nil {
		return fmt.Errorf("data: head: %w", err)
	}
	// A tabwriter keeps everything until Flush, so only that can fail.
	tw := tabwriter.NewWriter(w, 0, 8, 2, ' ', 0)
	fmt.Fprintf(tw, "%d rows%s\n\ncolumn\tkind\tdim\tentries a row\n", src.Rows(), skipped(src))
	columns := src.Columns()
	for _, c := range columns {
		entries := "-"
		if c.Kind == data.RaggedColumn {
			entries = "any"
			if c.PerRow > 0 {
				entries = strconv.Itoa(c.PerRow)
			}
		}
		fmt.Fprintf(tw, "%s\t%s\t%d\t%s\n", c.Name, c.Kind, c.Dim, entries)
	}
	for i := range rows {
		fmt.Fprintf(tw, "\nrow %d\n", i)
		for j, c := range columns {
			fmt.Fprintf(tw, "  %s\t%s\n", c.Name, show(&b.Columns[j], c, i))
		}
	}
	if err := tw.Flush(); err != nil {
		return fmt.Errorf("data: head: %w", err)
	}
	return nil
}

// skipped tells how many rows of the file are not in the source, and why the
// first few are not.
func skipped(src data.Source) string {
	r, ok := src.(data.Reporter)
	if !ok || r.BadRows() == 0 {
		return ""
	}
	var s strings.Builder
	fmt.Fprintf(&s, ", %d malformed ones skipped", r.BadRows())
	for _, e := range r.BadSamples() {
		s.WriteString("\n  " + e.Error())
	}
	return s.String()
}

// show prints one row of a column, cut to a readable length.
func show(c *data.Column, spec data.ColumnSpec, row int) string {
	const most = 16
	lo, hi := row*spec.Dim, (row+1)*spec.Dim
	if spec.Kind == data.RaggedColumn {
		lo, hi = int(c.Offsets[row]), int(c.Offsets[row+1])
	}
	var words []string
	for i := lo; i < min(hi, lo+most); i++ {
		v := strconv.FormatFloat(float64(c.Values[i]), 'g', -1, 32)
		if spec.Kind == data.RaggedColumn {
			v = strconv.FormatInt(c.IDs[i], 10) + ":" + v
		}
		words = append(words, v)
	}
	if more := hi - lo - most; more > 0 {
		words = append(words, fmt.Sprintf("... %d more", more))
	}
	if words == nil {
		return "(none)"
	}
	return strings.Join(words, " ")
}
