package parse

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/gangline/gangline/data/rows"
	"github.com/gangline/gangline/data/table"
	"github.com/gangline/gangline/internal/number"
)

// careful is a parser that takes no line in stride.
type careful struct{ parser }

func (careful) scan(_ *rows.Block, _ []byte, at, _, _ int) (next, appended int) { return at, 0 }

// outcome is all that a reader says of a text.
type outcome struct {
	Rows    *rows.Block
	Columns []rows.ColumnSpec
	Faults  []string
	Lines   int
}

// readAll reads to the end, n rows at a time.
func readAll(t interface{ Fatal(...any) }, r *Reader, n int) outcome {
	var b rows.Block
	b.Reset(r.Columns())
	var o outcome
	for {
		before := b.Rows
		err := r.Read(&b, n)
		if errors.Is(err, io.EOF) {
			break
		}
		if bad, ok := errors.AsType[*table.RowError](err); ok {
			o.Faults = append(o.Faults, fmt.Sprintf("%v | %q", bad, r.Raw()))
		} else if err != nil {
			t.Fatal(err)
		} else if b.Rows != before+n {
			t.Fatal("a Read without an error gave another number of rows")
		}
	}
	o.Columns, o.Lines = r.Columns(), r.Lines()
	o.Rows = b.Slice(o.Columns, 0, b.Rows)
	return o
}

// same holds the quick reading, in pieces of any size, against the careful one.
func same(t interface {
	Fatal(...any)
	Fatalf(string, ...any)
}, content []byte, open func(io.Reader) *Reader,
) outcome {
	buffered := func(r *Reader, size int) *Reader {
		r.buf = make([]byte, size+number.Pad)
		return r
	}
	slow := open(bytes.NewReader(content))
	slow.parser = careful{slow.parser}
	want := readAll(t, slow, 1000)
	for _, in := range []io.Reader{
		bytes.NewReader(content), iotest.OneByteReader(bytes.NewReader(content)), iotest.DataErrReader(bytes.NewReader(content)),
	} {
		// In a small buffer lines reach over its end.
		if diff := cmp.Diff(want, readAll(t, buffered(open(in), 200), 3), cmpopts.EquateEmpty()); diff != "" {
			t.Fatalf("%q: careful (-) and quick (+):\n%s", content, diff)
		}
	}
	if diff := cmp.Diff(want, readAll(t, buffered(open(bytes.NewReader(content)), 1<<14), 7), cmpopts.EquateEmpty()); diff != "" {
		t.Fatalf("%q: careful (-) and quick (+):\n%s", content, diff)
	}
	return want
}

func openLibsvm(o LibsvmOptions) func(io.Reader) *Reader {
	return func(in io.Reader) *Reader { return Libsvm("f", in, o) }
}

func openCriteo(buckets int) func(io.Reader) *Reader {
	return func(in io.Reader) *Reader { return Criteo("f", in, buckets) }
}

// sameCriteo is same of lines of Criteo, and of the same among others: there the assembly
// reads them if there is some.
func sameCriteo(t interface {
	Fatal(...any)
	Fatalf(string, ...any)
}, content []byte, buckets int,
) outcome {
	around := strings.Repeat("1"+strings.Repeat("\t7", CriteoNums)+strings.Repeat("\t05db9164", CriteoCats)+"\n", 3)
	same(t, []byte(around+string(content)+"\n"+around), openCriteo(buckets))
	return same(t, content, openCriteo(buckets))
}

// Lines with a little of everything that may and may not stand in a file.
func TestLibsvmSame(t *testing.T) {
	token := rapid.SampledFrom([]string{
		"1:1", "2:0.5", "3:-1.25", "10:1e-3", "7:1.", "8:.5", "123456:0.123456789", "99999999:3", "4294967296:1", "18446744073709551615:1",
		"0:1", "5:", ":5", "5", "5:x", "5:1:1", "5:nan", "-1:1", "+2:1", "#", "# 1:1", "6:1\t", "9:1 ", "11:16777217", "12:1\x00", "3:+1",
		"00000000000000000000004:1", "13:0.368189", "14:1234567.5", "15:12345678", "16:-0", "17:1.0000000000000000000001",
	})
	label := rapid.SampledFrom([]string{"1", "-1", "+1", "0", "0.5", "+-1", "-+1", "2", "x", "", " 1", "3", "1e2", "1\t", "+", "1.0", "16777217.5"})
	rapid.Check(t, func(t *rapid.T) {
		var text strings.Builder
		for range rapid.IntRange(0, 6).Draw(t, "lines") {
			text.WriteString(label.Draw(t, "label"))
			for range rapid.IntRange(0, 5).Draw(t, "entries") {
				text.WriteString(rapid.SampledFrom([]string{" ", " ", " ", "  ", "\t"}).Draw(t, "gap") + token.Draw(t, "entry"))
			}
			text.WriteString(rapid.SampledFrom([]string{"\n", "\n", "\n", "\r\n", " \n", "\n\n", ""}).Draw(t, "end"))
		}
		same(t, []byte(text.String()), openLibsvm(LibsvmOptions{
			Features: rapid.SampledFrom([]int{0, 0, 20}).Draw(t, "features"), ZeroBased: rapid.Bool().Draw(t, "zero"),
			Binary: rapid.Bool().Draw(t, "binary"), Classes: rapid.SampledFrom([]int{0, 3}).Draw(t, "classes"),
		}))
	})
}

func TestCriteoSame(t *testing.T) {
	integer := rapid.SampledFrom([]string{"", "", "0", "1", "-1", "12", "32767", "32768", "1234567", "12345678", "123456789012345", "1234567890123456789", "+3", "1.5", "x", "-"})
	category := rapid.SampledFrom([]string{"", "05db9164", "FFFFFFFF", "a", "0123456789abcdef", "00000000000000001", "0123456g", "05db916", "\x80\x80\x80\x80\x80\x80\x80\x80"})
	rapid.Check(t, func(t *rapid.T) {
		var text strings.Builder
		rare := rapid.IntRange(0, 3).Draw(t, "rare")
		pick := func(from *rapid.Generator[string], usual string) string {
			if rapid.IntRange(0, 40).Draw(t, "pick") <= rare {
				return from.Draw(t, "value")
			}
			return usual
		}
		for range rapid.IntRange(0, 4).Draw(t, "lines") {
			text.WriteString(rapid.SampledFrom([]string{"0", "1", "0", "1", "2", ""}).Draw(t, "label"))
			for range CriteoNums {
				text.WriteString("\t" + pick(integer, "37"))
			}
			for range CriteoCats - rapid.SampledFrom([]int{0, 0, 0, 0, 1, -1}).Draw(t, "cut") {
				text.WriteString("\t" + pick(category, "68fd1e64"))
			}
			text.WriteString(rapid.SampledFrom([]string{"\n", "\n", "\r\n", "\n\n", "\t\n", ""}).Draw(t, "end"))
		}
		sameCriteo(t, []byte(text.String()), rapid.SampledFrom([]int{97, 1 << 20}).Draw(t, "buckets"))
	})
}

// The common form is taken in stride, all of it.
func TestStride(t *testing.T) {
	lines := map[string]func(io.Reader) *Reader{
		"-1 3:1 11:0.25 14:-2.5e-07 123456789:1 \n": openLibsvm(LibsvmOptions{Binary: true}),
		"+1 11:1 3:0.123456789\r\n":                 openLibsvm(LibsvmOptions{}),
		"7\n":                                       openLibsvm(LibsvmOptions{Classes: 8}),
		"1" + strings.Repeat("\t", CriteoNums) + strings.Repeat("\t", CriteoCats) + "\n":           openCriteo(7),
		"0" + strings.Repeat("\t-1", CriteoNums) + strings.Repeat("\t05db9164", CriteoCats) + "\n": openCriteo(7),
	}
	for line, open := range lines {
		r := open(strings.NewReader(line))
		var b rows.Block
		b.Reset(r.Columns())
		if err := r.fill(); err != nil {
			t.Fatal(err)
		}
		if next, n := r.scan(&b, r.buf, r.at, r.full, 5); n != 1 || next != len(line) {
			t.Errorf("%q: %d rows to %d", line, n, next)
		}
	}
}

// A warm reader allocates nothing a row.
func TestNoAlloc(t *testing.T) {
	for name, open := range map[string]func(io.Reader) *Reader{
		"1 1:0.5 7:0.12345678 9:1\n": openLibsvm(LibsvmOptions{}),
		"0" + strings.Repeat("\t12", CriteoNums) + strings.Repeat("\t05db9164", CriteoCats) + "\n": openCriteo(100),
	} {
		r := open(strings.NewReader(strings.Repeat(name, 40_000)))
		var b rows.Block
		read := func() {
			b.Reset(r.columnsOf())
			if err := r.Read(&b, 100); err != nil {
				t.Fatal(err)
			}
		}
		read()
		if n := testing.AllocsPerRun(300, read); n != 0 {
			t.Errorf("%.10q: %v allocations in 100 rows", name, n)
		}
	}
}

// columnsOf is Columns without a new slice.
func (r *Reader) columnsOf() []rows.ColumnSpec {
	switch p := r.parser.(type) {
	case *libsvm:
		return p.columns
	case *criteo:
		return p.columns
	}
	return nil
}

// A file that ends with an error gives its rows first, and the line it broke at.
func TestBroken(t *testing.T) {
	broken := errors.New("the archive is cut off")
	in := io.MultiReader(strings.NewReader("1 1:1\n1 2:1\n1 3:"), iotest.ErrReader(broken))
	r := Libsvm("f", in, LibsvmOptions{})
	var b rows.Block
	b.Reset(r.Columns())
	err := r.Read(&b, 10)
	if !errors.Is(err, broken) || b.Rows != 2 || !strings.Contains(err.Error(), "f:3: ") {
		t.Errorf("%d rows, %v", b.Rows, err)
	}
	if again := r.Read(&b, 10); !errors.Is(again, broken) || b.Rows != 2 {
		t.Errorf("then %v", again)
	}
}

func FuzzLibsvm(f *testing.F) {
	for _, s := range []string{
		"1 1:1 2:.5\n-1 7:3e2 # x\n", "+1\n", "1 1:1 1:1\n", "1 2147483647:1\n", "0 0:1\n", "\r\n\t#", "1 3:1 2:1 1:1", "1 1:", "nan 1:1", "1 :",
	} {
		f.Add([]byte(s), false, 0)
	}
	f.Add([]byte("1 0:1\n"), true, 5)
	f.Fuzz(func(t *testing.T, content []byte, zeroBased bool, features int) {
		if len(content) > 1<<12 {
			return
		}
		o := same(t, content, openLibsvm(LibsvmOptions{ZeroBased: zeroBased, Features: features & 0xffff}))
		writeBack(t, o)
	})
}

// writeBack writes rows as libsvm and reads them again: they must be the same.
func writeBack(t *testing.T, o outcome) {
	var text strings.Builder
	x := o.Rows.Columns[1]
	for r := range o.Rows.Rows {
		fmt.Fprint(&text, o.Rows.Columns[0].Values[r])
		for e := x.Offsets[r]; e < x.Offsets[r+1]; e++ {
			v := float32(1)
			if x.Values != nil {
				v = x.Values[e]
			}
			fmt.Fprintf(&text, " %d:%v", x.IDs[e], v)
		}
		text.WriteByte('\n')
	}
	again := readAll(t, openLibsvm(LibsvmOptions{ZeroBased: true, Features: o.Columns[1].Dim})(strings.NewReader(text.String())), 10)
	if diff := cmp.Diff(o.Rows, again.Rows, cmpopts.EquateEmpty()); diff != "" || again.Faults != nil {
		t.Fatalf("%q: read (-) and written (+), %v:\n%s", text.String(), again.Faults, diff)
	}
}

func FuzzCriteo(f *testing.F) {
	line := func(label, num, cat string) string {
		return label + strings.Repeat("\t"+num, CriteoNums) + strings.Repeat("\t"+cat, CriteoCats)
	}
	f.Add([]byte(line("1", "2", "05db9164") + "\n" + line("0", "", "") + "\n"))
	f.Add([]byte(line("1", "x", "") + "\n" + line("0", "-1", "0123456789abcdef")))
	f.Add([]byte("\t\n\n" + strings.Repeat("\t", 39)))
	f.Fuzz(func(t *testing.T, content []byte) {
		if len(content) > 1<<12 {
			return
		}
		for _, id := range sameCriteo(t, content, 97).Rows.Columns[2].IDs {
			if id < 0 || id >= 97 {
				t.Fatalf("id %d", id)
			}
		}
	})
}

// A byte order mark is no part of the first line; a file of UTF-16 is named.
func TestMarks(t *testing.T) {
	criteo := "1" + strings.Repeat("\t2", CriteoNums) + strings.Repeat("\t05db9164", CriteoCats) + "\n"
	for text, open := range map[string]func(io.Reader) *Reader{"1 1:1\n-1 2:1\n": openLibsvm(LibsvmOptions{}), criteo + criteo: openCriteo(97)} {
		want := same(t, []byte(text), open)
		if diff := cmp.Diff(want, same(t, []byte("\xef\xbb\xbf"+text), open)); diff != "" || want.Rows.Rows != 2 {
			t.Errorf("%.10q without a mark (-) and with one (+):\n%s", text, diff)
		}
		if o := same(t, []byte("\xff\xfe1\x00 \x00\n\x00"), open); len(o.Faults) == 0 || !strings.Contains(o.Faults[0], "the file is UTF-16: convert it to UTF-8") {
			t.Errorf("%.10q: %q", text, o.Faults)
		}
	}
	if o := same(t, []byte("\xef\xbb\xbf"), openLibsvm(LibsvmOptions{})); o.Rows.Rows != 0 || o.Faults != nil {
		t.Errorf("a mark alone: %d rows, %q", o.Rows.Rows, o.Faults)
	}
	if o := same(t, []byte("1 1:1\n\xef\xbb\xbf1 1:1\n"), openLibsvm(LibsvmOptions{})); len(o.Faults) != 1 {
		t.Errorf("a mark in the middle: %q", o.Faults)
	}
}

// A large index is a declared one, or an error of its row.
func TestUndeclaredIndexes(t *testing.T) {
	text := []byte("1 1:1\n1 134217729:1\n1 134217728:1\n1 2147483648:1\n")
	o := same(t, text, openLibsvm(LibsvmOptions{}))
	if o.Columns[1].Dim != UndeclaredMax || o.Rows.Rows != 2 || len(o.Faults) != 2 || !strings.Contains(o.Faults[0], `f:2: column "entry 1": index 134217729 makes a model of more than`) {
		t.Errorf("%d features, %d rows, %q", o.Columns[1].Dim, o.Rows.Rows, o.Faults)
	}
	if o = same(t, text, openLibsvm(LibsvmOptions{Features: rows.MaxID})); o.Rows.Rows != 3 || len(o.Faults) != 1 {
		t.Errorf("declared: %d rows, %q", o.Rows.Rows, o.Faults)
	}
}
