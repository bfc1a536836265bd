package generate

import (
	"bufio"
	"fmt"
	"io"
	"strconv"
)

// WriteCriteo writes the rows [first, first+n) of a source as tab
// separated Criteo lines. Reading them as criteo with the same Buckets gives the
// same batches. Cost: about 240 bytes and 3 µs a row.
func WriteCriteo(w io.Writer, g *Source, first, n int) error {
	if first < 0 || n < 0 || first > g.rows-n {
		return fmt.Errorf("data: rows [%d,%d) are not in [0,%d)", first, first+n, g.rows)
	}
	bw := bufio.NewWriterSize(w, 256<<10)
	var e example
	line := make([]byte, 0, 512)
	for i := range n {
		g.problem.draw(&e, g.first+first+i)
		line = append(g.problem.appendRow(line[:0], &e), '\n')
		if _, err := bw.Write(line); err != nil {
			return fmt.Errorf("data: write row %d: %w", first+i, err)
		}
	}
	if err := bw.Flush(); err != nil {
		return fmt.Errorf("data: write rows: %w", err)
	}
	return nil
}

// appendRow appends a row as a Criteo line without its line end.
func (p *problem) appendRow(line []byte, e *example) []byte {
	line = append(line, '0'+byte(e.label))
	for _, v := range e.ints {
		line = append(line, '\t')
		if v != absent {
			line = strconv.AppendInt(line, v, 10)
		}
	}
	const hex = "0123456789abcdef"
	for f, c := range e.cats {
		line = append(line, '\t')
		if c == absent {
			continue
		}
		v := p.value(f, c)
		for shift := 28; shift >= 0; shift -= 4 {
			line = append(line, hex[v>>shift&15])
		}
	}
	return line
}
