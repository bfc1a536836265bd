package format

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/gangline/gangline/data/table"
)

// readRows reads a text by a parser.
func readRows(t testing.TB, content []byte, p lineParser, n int) (shown, error) {
	t.Helper()
	r := &lineRows{lines: source(content), fields: p.fields(), parser: p}
	return show(t, r, n)
}

// id is the id of a feature of Vowpal Wabbit.
func id(namespace, name string) string {
	return fmt.Sprint(fnv(fnvStart, []byte(namespace+"^"+name)))
}

func TestVW(t *testing.T) {
	const fields = "label number,weight number,tag text,"
	tests := map[string]struct {
		content string
		spec    Spec
		want    shown
	}{
		"all parts": {"1 2.5 'tag|a:2 x:3 y |b x\n-1 0 tag2| x\r\n\n| y:-1\n'only |a\n1|a y", Spec{}, shown{fields + "x entries", []string{
			"1|2.5|tag|[" + id("a", "x") + ":6 " + id("a", "y") + ":2 " + id("b", "x") + ":1]",
			"-1|0|tag2|[" + id("", "x") + ":1]",
			"-|1|-|[" + id("", "y") + ":-1]",
			"-|1|only|[]",
			"-|1|1|[" + id("a", "y") + ":1]", // what touches the bar is a tag
		}, nil}},
		"numbers": {"1 |f 7:.5 18446744073709551615 |f 7\n1 |f 18446744073709551616\n1 |f x:1\n1 |g 7\n", Spec{NumericIDs: true}, shown{
			fields + "x entries", []string{"1|1|-|[7:0.5 18446744073709551615:1 7:1]"}, []string{
				`f:2: column "f": feature "18446744073709551616" is not a whole number below 2^64, and numeric_ids says that names are numbers`,
				`f:3: column "f": feature "x" is not a whole number below 2^64, and numeric_ids says that names are numbers`,
				`f:4: namespaces "f" and "g" have numbers as names that mean different features: declare the namespaces`,
			},
		}},
		"namespaces": {"1 |a 1:2 |b 3\n0 |b 4\n0 |c 1\n0 |c\n", Spec{NumericIDs: true, Namespaces: []string{"a", "b"}}, shown{
			fields + "a entries,b entries",
			[]string{"1|1|-|[1:2]|[3:1]", "0|1|-|[]|[4:1]", "0|1|-|[]|[]"},
			[]string{`f:3: namespace "c" is not declared: did you mean "a"? There are a, b`},
		}},
		"malformed": {"1\nx | a\n1 y | a\n1 -1 | a\n1 1 0 | a\n1 2 3 4 5 | a\n1 |a:z b\n1 | b:nan\n1 | :1\n1 | a:\n1 'é\xe9| a\n1 | ok\n", Spec{}, shown{
			fields + "x entries", []string{"1|1|-|[" + id("", "ok") + ":1]"}, []string{
				"f:1: the line has no |, want label weight tag|namespace feature:value ...",
				`f:2: column "label": label "x" is not a finite number`,
				`f:3: column "weight": weight "y" is not a finite number`,
				`f:4: column "weight": weight -1 is negative`,
				`f:5: "0" stands before the bar after label and weight: initial predictions and labels of several parts are not read`,
				`f:6: "3" stands before the bar after label and weight: initial predictions and labels of several parts are not read`,
				`f:7: column "a": factor of the namespace "z" is not a finite number`,
				`f:8: value "nan" is not a finite number (feature "b")`,
				`f:9: feature ":1" has no name`,
				`f:10: value "" is not a finite number (feature "a")`,
				`f:11: column "tag": byte 3 of the line is 0xE9, which is not UTF-8; it looks like Latin-1 ('é'): convert the file, or say encoding: latin1`,
			},
		}},
	}
	for name, test := range tests {
		got, err := readRows(t, []byte(test.content), newVW(&test.spec, "f"), 2)
		if diff := cmp.Diff(test.want, got); err != nil || diff != "" {
			t.Errorf("%s: %v (-want +got):\n%s", name, err, diff)
		}
	}
}

// The hash is the published one: the empty text and "a" have these values in the
// reference of Fowler, Noll and Vo.
func TestFNV(t *testing.T) {
	if got := fnv(fnvStart, nil); got != 0xcbf29ce484222325 {
		t.Errorf("the empty text: %x", got)
	}
	if got := fnv(fnvStart, []byte("foobar")); got != 0x85944171f73967e8 {
		t.Errorf("foobar: %x", got)
	}
}

func TestLibffm(t *testing.T) {
	tests := map[string]struct {
		content string
		spec    Spec
		want    shown
	}{
		"plain": {"1 0:5:.5 3:18446744073709551615:1\n\n0\n", Spec{}, shown{
			"label number,x entries,field numbers", []string{"1|[5:0.5 18446744073709551615:1]|[0 3]", "0|[]|[]"}, nil,
		}},
		"fields": {"1 0:5:1 3:6:1 0:7:2\n0 4:1:1\n", Spec{Namespaces: []string{"3", "0"}}, shown{
			"label number,3 entries,0 entries", []string{"1|[6:1]|[5:1 7:2]"}, []string{`f:2: field 4 is not declared: did you mean "3"? There are 3, 0`},
		}},
		"malformed": {"x\n1 1:2\n1 1:18446744073709551616:1\n1 a:1:1\n1 1:2:inf\n1 1:2:3:4\n0 1:1:1\n", Spec{}, shown{
			"label number,x entries,field numbers", []string{"0|[1:1]|[1]"}, []string{
				`f:1: column "label": label "x" is not a finite number`,
				`f:2: entry "1:2" has not two colons, want field:feature:value`,
				`f:3: feature "18446744073709551616" is not a whole number below 2^64`,
				`f:4: field "a" is not a whole number below 2^53`,
				`f:5: value "inf" is not a finite number (entry "1:2:inf")`,
				`f:6: value "3:4" is not a finite number (entry "1:2:3:4")`,
			},
		}},
	}
	for name, test := range tests {
		p, err := newLibffm(&test.spec)
		if err != nil {
			t.Fatal(err)
		}
		got, err := readRows(t, []byte(test.content), p, 2)
		if diff := cmp.Diff(test.want, got); err != nil || diff != "" {
			t.Errorf("%s: %v (-want +got):\n%s", name, err, diff)
		}
	}
	if _, err := newLibffm(&Spec{Namespaces: []string{"a"}}); err == nil {
		t.Error("a field without a number was declared")
	}
}

// Select takes columns in any order, block after block, and later files follow.
func TestSelect(t *testing.T) {
	path, other := tempFile(t, []byte("1 2 a| x:2\n0 | y\n3 b| z\n")), tempFile(t, []byte("5 6 | x\n"))
	r, err := Open(t.Context(), Spec{Format: "vw", Paths: []string{path, other}, Select: []string{"tag", "label"}, Columns: map[string]table.Kind{"label": table.Number}})
	if err != nil {
		t.Fatal(err)
	}
	got, err := show(t, r, 2)
	want := shown{"tag text,label number", []string{"a|1", "-|0", "b|3", "-|5"}, nil}
	if diff := cmp.Diff(want, got); err != nil || r.Close() != nil || diff != "" {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	for want, spec := range map[string]Spec{
		`no column "lable": did you mean "label"`:                {Select: []string{"lable"}},
		`column "label" is declared as text, the file has numbe`: {Columns: map[string]table.Kind{"label": table.Text}},
		`format "libfm" is not known: did you mean "libffm"`:     {Format: "libfm"},
		"no file is named": {Format: "vw", Paths: []string{}},
	} {
		if spec.Format == "" {
			spec.Format = "vw"
		}
		if spec.Paths == nil {
			spec.Paths = []string{path}
		}
		if _, err := Open(t.Context(), spec); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
}

// writeVW writes what was shown of Vowpal Wabbit text with numeric ids.
func writeVW(rows []string) []byte {
	var b bytes.Buffer
	for _, row := range rows {
		cells := strings.SplitN(row, "|", 4)
		label, tag := cells[0], "'"+cells[2]
		if label == "-" {
			fmt.Fprintf(&b, " %s", "")
		} else {
			fmt.Fprintf(&b, "%s %s ", label, cells[1])
		}
		if tag != "'-" {
			fmt.Fprintf(&b, "%s", tag)
		}
		fmt.Fprintf(&b, "| %s\n", strings.Trim(cells[3], "[]"))
	}
	return b.Bytes()
}

// What was decoded, encoded and decoded again is the same.
func TestVWProperty(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		var rows []string
		for range rapid.IntRange(1, 10).Draw(rt, "rows") {
			label, weight := "-", "1"
			if rapid.Bool().Draw(rt, "labelled") {
				label = fmt.Sprint(rapid.Float64Range(-1e9, 1e9).Draw(rt, "label"))
				weight = fmt.Sprint(rapid.Float64Range(0, 1e3).Draw(rt, "weight"))
			}
			tag := rapid.SampledFrom([]string{"-", "t", "é1"}).Draw(rt, "tag")
			var entries []string
			for range rapid.IntRange(0, 5).Draw(rt, "entries") {
				entries = append(entries, fmt.Sprintf("%d:%v", rapid.Uint64().Draw(rt, "id"), rapid.Float64Range(-9, 9).Draw(rt, "value")))
			}
			rows = append(rows, fmt.Sprintf("%s|%s|%s|[%s]", label, weight, tag, strings.Join(entries, " ")))
		}
		got, err := readRows(t, writeVW(rows), newVW(&Spec{NumericIDs: true}, "f"), 3)
		if err != nil || len(got.Errors) > 0 || len(got.Rows) != len(rows) {
			rt.Fatalf("%v %q", err, got.Errors)
		}
		again, err := readRows(t, writeVW(got.Rows), newVW(&Spec{NumericIDs: true}, "f"), 1)
		if diff := cmp.Diff(got, again); err != nil || diff != "" {
			rt.Fatalf("%v (-want +got):\n%s", err, diff)
		}
		if strings.ReplaceAll(strings.Join(got.Rows, "\n"), "+", "") != strings.ReplaceAll(strings.Join(rows, "\n"), "+", "") {
			rt.Fatalf("got %q, want %q", got.Rows, rows)
		}
	})
}

func FuzzVW(f *testing.F) {
	for _, s := range []string{"1 2 'a|b:2 c:3 d |e f\n", "|\n||||\n| a:1:2\n", "1 1|18446744073709551616 1\n", "'|'|'\n", "\x00| \xff:1\r\n\r"} {
		f.Add([]byte(s), false, false)
		f.Add([]byte(s), true, true)
	}
	f.Fuzz(func(t *testing.T, content []byte, numeric, namespaces bool) {
		spec := Spec{NumericIDs: numeric}
		if namespaces {
			spec.Namespaces = []string{"a", "b"}
		}
		got, err := readRows(t, content, newVW(&spec, "f"), 2)
		if err != nil {
			t.Fatal(err)
		}
		if !numeric || namespaces || len(got.Errors) > 0 {
			return
		}
		for _, row := range got.Rows {
			if strings.HasPrefix(row, "-|") || strings.Count(row, "|") != 3 || strings.ContainsAny(row, "'") || strings.Contains(row, "|-|[") {
				return // what writeVW cannot write
			}
		}
		again, err := readRows(t, writeVW(got.Rows), newVW(&spec, "f"), 2)
		if diff := cmp.Diff(got, again); err != nil || diff != "" {
			t.Fatalf("%v (-first +again):\n%s", err, diff)
		}
	})
}

func FuzzLibffm(f *testing.F) {
	for _, s := range []string{"1 0:5:.5 3:7:1\n\n0\n", "1 1:2\n", "x 1:1:1", "1 :::\n", "1 18446744073709551615:1:1\r\n", "nan 1:1:1e400\n"} {
		f.Add([]byte(s), false)
		f.Add([]byte(s), true)
	}
	f.Fuzz(func(t *testing.T, content []byte, namespaces bool) {
		spec := Spec{}
		if namespaces {
			spec.Namespaces = []string{"0", "3"}
		}
		p, err := newLibffm(&spec)
		if err != nil {
			t.Fatal(err)
		}
		got, err := readRows(t, content, p, 2)
		if err != nil {
			t.Fatal(err)
		}
		if namespaces {
			return
		}
		var b bytes.Buffer
		for _, row := range got.Rows {
			cells := strings.Split(row, "|")
			spaces := strings.Fields(strings.Trim(cells[2], "[]"))
			fmt.Fprint(&b, cells[0])
			for i, entry := range strings.Fields(strings.Trim(cells[1], "[]")) {
				var space float64
				if _, err := fmt.Sscan(spaces[i], &space); err != nil {
					t.Fatal(err)
				}
				fmt.Fprintf(&b, " %.0f:%s", space, entry)
			}
			fmt.Fprintln(&b)
		}
		again, err := readRows(t, b.Bytes(), p, 2)
		if diff := cmp.Diff(got.Rows, again.Rows); err != nil || diff != "" || again.Errors != nil {
			t.Fatalf("%v %q (-first +again):\n%s", err, again.Errors, diff)
		}
	})
}

// The real files: rows, and entries as tr and wc count them.
func TestRowsReal(t *testing.T) {
	tests := []struct {
		name          string
		spec          Spec
		rows, entries int
	}{
		{"libsvm/rcv1_small.vw", Spec{Format: "vw", NumericIDs: true}, 1000, 77739},
		{"libsvm/rcv1_small_test.vw", Spec{Format: "vw"}, 500, 39448},
		{"ctr/libffm_bigdata.tr.txt", Spec{Format: "libffm"}, 200, 3508},
		{"ctr/libffm_bigdata.te.txt", Spec{Format: "libffm"}, 200, 3500},
	}
	for _, test := range tests {
		test.spec.Paths = []string{realData(t, test.name)}
		r, err := Open(t.Context(), test.spec)
		if err != nil {
			t.Fatal(err)
		}
		rows, entries := 0, 0
		var b table.Block
		for err == nil {
			err = r.Read(&b, 300)
			rows += b.Rows
			for i, f := range r.Fields() {
				if f.Kind == table.Entries {
					entries += len(b.Columns[i].Integers)
				}
				for _, id := range b.Columns[i].Integers {
					if test.spec.NumericIDs && id > 47236 {
						t.Errorf("%s: id %d", test.name, id)
					}
				}
			}
		}
		if rows != test.rows || entries != test.entries || r.Close() != nil {
			t.Errorf("%s: %d rows, %d entries, want %d, %d: %v", test.name, rows, entries, test.rows, test.entries, err)
		}
	}
}
