package format

import (
	"bytes"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/gangline/gangline/data/table"
)

// readCSV reads a text as a CSV file.
func readCSV(t testing.TB, content string, spec Spec) (shown, error) {
	t.Helper()
	spec.Format = "csv"
	spec.Paths = []string{tempFile(t, []byte(content))}
	r, err := Open(t.Context(), spec)
	if err != nil {
		return shown{}, errors.New(strings.ReplaceAll(err.Error(), spec.Paths[0], "f"))
	}
	s, err := show(t, r, 2)
	for i := range s.Errors {
		s.Errors[i] = strings.ReplaceAll(s.Errors[i], spec.Paths[0], "f")
	}
	return s, errors.Join(err, r.Close())
}

func TestCSV(t *testing.T) {
	header := Spec{Header: true}
	tests := map[string]struct {
		content string
		spec    Spec
		want    shown
	}{
		"kinds": {"a,b,c,d\n1,x,18446744073709551615,9007199254740993\n2.5,,1,-3\n", header, shown{
			"a number,b text,c text,d integer", []string{"1|x|18446744073709551615|9007199254740993", "2.5|-|1|-3"}, nil,
		}},
		"quotes":             {"a,b\n\"x,\"\"y\"\"\nz\", \" 7 \" \n\"\",w\n", header, shown{"a text,b text", []string{"x,\"y\"\nz| 7 ", "-|w"}, nil}},
		"CRLF, mark, blanks": {"\xef\xbb\xbfa,b\r\n\r\n1,\"2\r\n3\"\r\n  \r\n4,5", header, shown{"a number,b text", []string{"1|2\r\n3", "4|5"}, nil}},
		"adult": {"39, State-gov, <=50K.\n50, ?, >50K\n\n", Spec{Names: []string{"age", "class", "label"}, Suffix: map[string]string{"label": "."}}, shown{
			"age number,class text,label text", []string{"39|State-gov|<=50K", "50|-|>50K"}, nil,
		}},
		"missing":     {"a;b\nNA;?\nnull;\"NaN\"\n 1 ; x \n;\n", header, shown{"a number,b text", []string{"-|-", "-|-", "1|x", "-|-"}, nil}},
		"own missing": {"a,b\n-,1\n2,\n", Spec{Header: true, Missing: []string{"-"}}, shown{"a number,b text", []string{"-|1", "2|"}, nil}},
		"tabs":        {"\t1\t\n\t\t\n", Spec{}, shown{"c1 text,c2 number,c3 text", []string{"-|1|-", "-|-|-"}, nil}},
		"semicolon":   {"1,5;2\n2,5;3\n", Spec{}, shown{"c1 text,c2 number", []string{"1,5|2", "2,5|3"}, nil}},
		"delimiter":   {"1:2\n3:4\n", Spec{Delimiter: ":"}, shown{"c1 number,c2 number", []string{"1|2", "3|4"}, nil}},
		"one column":  {"x\n\"a\"\n\nb\n", header, shown{"x text", []string{"a", "b"}, nil}},
		"select":      {"a,b,c\n1,z,3\n", Spec{Header: true, Select: []string{"c", "a"}}, shown{"c number,a number", []string{"3|1"}, nil}},
		"declared": {"a,b\n1,01\n2,x\n", Spec{Header: true, Columns: map[string]table.Kind{"a": table.Text, "b": table.Integer}}, shown{
			"a text,b integer", []string{"1|1"}, []string{`f:3: column "b": "x" is not a whole number of 64 bits`},
		}},
		"codes":       {"a\n0815\n4711\n", header, shown{"a text", []string{"0815", "4711"}, nil}},
		"no name":     {",b\n1,2\n", header, shown{"c1 number,b number", []string{"1|2"}, nil}},
		"years":       {"2019,2020\n1,2\n", Spec{Header: true, Names: []string{"x", "y"}}, shown{"x number,y number", []string{"1|2"}, nil}},
		"no quotes":   {"a,b\n5\",\"x\n", Spec{Header: true, NoQuotes: true}, shown{"a text,b text", []string{"5\"|\"x"}, nil}},
		"latin1":      {"a,b\nM\xfcller,\xe9\n", Spec{Header: true, Encoding: "latin1"}, shown{"a text,b text", []string{"Müller|é"}, nil}},
		"only header": {"a,b\n", header, shown{"a text,b text", nil, nil}},
		"bad rows": {"a,b\n1,2\n1,2,3\nx,4\n5,6\n7\n", Spec{Header: true, Columns: map[string]table.Kind{"a": table.Number}}, shown{
			"a number,b number",
			[]string{"1|2", "5|6"},
			[]string{
				"f:3: the row has 3 fields, want 2; a field that holds the delimiter has to stand in quotes",
				`f:4: column "a": "x" is not a finite number`, `f:6: the row has 1 fields, want 2 parted by ','`,
			},
		}},
		"infinite": {"a\n1\ninf\n1e999\n", Spec{Header: true, Columns: map[string]table.Kind{"a": table.Number}}, shown{
			"a number", []string{"1"}, []string{`f:3: column "a": "inf" is not a finite number`, `f:4: column "a": "1e999" is not a finite number`},
		}},
		// Numbers stay numbers where one is no finite number: it is not a category.
		"infinite, inferred": {"a,b,c\n1,nan,nan\ninf,2,x\n1e999,-Infinity,y\n4,3,inf\n", header, shown{
			"a number,b number,c text", []string{"4|3|inf"}, []string{
				`f:2: column "b": "nan" is not a finite number; the column was taken for numbers from the first rows: declare it as text, or name what stands for missing values`,
				`f:3: column "a": "inf" is not a finite number; the column was taken for numbers from the first rows: declare it as text, or name what stands for missing values`,
				`f:4: column "a": "1e999" is not a finite number; the column was taken for numbers from the first rows: declare it as text, or name what stands for missing values`,
			},
		}},
		"words like numbers": {"a\nnan\nInfinity\n", header, shown{"a text", []string{"nan", "Infinity"}, nil}},
		"not UTF-8": {"a,b\nx,y\nx,\"1\n caf\xe9\"\n\x81,z\nok,ok\n", header, shown{"a text,b text", []string{"x|y", "ok|ok"}, []string{
			`f:4: column "b": byte 5 of the line is 0xE9, which is not UTF-8; it looks like Latin-1 ('é'): convert the file, or say encoding: latin1`,
			`f:5: column "a": byte 1 of the line is 0x81, which is not UTF-8: convert the file to UTF-8 (it may be Windows-1252: iconv -f cp1252 -t utf-8)`,
		}}},
		"bad quotes": {"a,b\n\"x\"y,1\n5\",2\n3,4\n\"open,5\n6,7\n", header, shown{"a number,b number", []string{"3|4", "6|7"}, []string{
			`f:2: field 1 goes on after its closing quote with "y,1": a quote inside of quotes is doubled`,
			`f:3: field 1 has a quote in its middle ("5\""): a field with quotes stands in quotes and doubles them; if quotes mean nothing in this file say no_quotes: true`,
			`f:5: a quote opens field 1 and nothing closes it in 12 bytes: double a quote inside of quotes; if quotes mean nothing in this file say no_quotes: true`,
		}}},
	}
	for name, test := range tests {
		got, err := readCSV(t, test.content, test.spec)
		if diff := cmp.Diff(test.want, got); err != nil || diff != "" {
			t.Errorf("%s: %v (-want +got):\n%s", name, err, diff)
		}
	}
}

// A value later in the file that the first rows did not announce is an error
// that says so.
func TestCSVInferredLate(t *testing.T) {
	got, err := readCSV(t, "a,b\n"+strings.Repeat("1,2\n", firstRows)+"x,2\n", Spec{Header: true})
	want := `f:1002: column "a": "x" is not a finite number; the column was taken for numbers from the first rows: declare it as text, or name what stands for missing values`
	if err != nil || len(got.Rows) != firstRows || len(got.Errors) != 1 || got.Errors[0] != want {
		t.Errorf("got %d rows, %q, %v", len(got.Rows), got.Errors, err)
	}
}

func TestCSVRefuses(t *testing.T) {
	tests := map[string]struct {
		content string
		spec    Spec
	}{
		"f: the file is empty":                                  {"", Spec{Header: true}},
		`f:1: the header names "a" twice: give the names`:       {"a,a\n1,2\n", Spec{Header: true}},
		"the first line looks like a row, not like names":       {"5.1,3.5,setosa\n4.9,3,setosa\n", Spec{Header: true}},
		"the first line looks like names: say header: true":     {"a,b\n1,2\n3,4\n", Spec{}},
		`the first row has 2 fields parted by ',', 3 names are`: {"1,2\n", Spec{Names: []string{"a", "b", "c"}}},
		`there is no column "lable": did you mean "label"?`:     {"label,x\n1,2\n", Spec{Header: true, Select: []string{"lable"}}},
		`no column "labels": did you mean`:                      {"label,x\n1,2\n", Spec{Header: true, Columns: map[string]table.Kind{"labels": table.Text}}},
		`no column "l" whose suffix`:                            {"label,x\n1,2\n", Spec{Header: true, Suffix: map[string]string{"l": "."}}},
		`kind "entries" is none of number, integer, text`:       {"a\n", Spec{Columns: map[string]table.Kind{"a": table.Entries}}},
		`delimiter ",,": want one character`:                    {"a\n", Spec{Delimiter: ",,"}},
		`encoding "latin-1" is not known: did you mean`:         {"a\n", Spec{Encoding: "latin-1"}},
		"the file is UTF-16":                                    {"\xff\xfea\x00", Spec{}},
		"it looks like npy, so say format: npy":                 {"\x93NUMPY\x01\x00", Spec{}},
		`"a" is named twice`:                                    {"a\n", Spec{Select: []string{"a", "a"}}},
		"f:1: byte 2 of the line is 0xE9":                       {"a\xe9,b\n", Spec{Header: true}},
	}
	for want, test := range tests {
		got, err := readCSV(t, test.content, test.spec)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, %v; want %q", got, err, want)
		}
	}
}

// Files of a data set have the same columns; kinds come from the first.
func TestCSVFiles(t *testing.T) {
	first, second := tempFile(t, []byte("a,b\n1,x\n")), tempFile(t, []byte("a,b\n2,3\n"))
	for _, test := range []struct{ third, want string }{
		{"b,a\n1,2\n", `column 1 is "b", in the files before it "a"`},
		{"a\n1\n", "has 1 columns, the files before it have 2"},
	} {
		r, err := Open(t.Context(), Spec{Format: "csv", Header: true, Paths: []string{first, second, tempFile(t, []byte(test.third))}})
		if err != nil {
			t.Fatal(err)
		}
		got, err := show(t, r, 5)
		if diff := cmp.Diff([]string{"1|x", "2|3"}, got.Rows); diff != "" || err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%v, want %q (-want +got):\n%s", err, test.want, diff)
		}
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	}
}

// endless delivers a byte for ever.
type endless struct{ c byte }

func (e endless) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = e.c
	}
	return len(p), nil
}

// A line without an end costs no more than the limit.
func TestLineLimit(t *testing.T) {
	l := newLines("f", endless{'x'}, io.NopCloser(nil))
	if _, _, err := l.next(); err == nil || !strings.Contains(err.Error(), "f:1: the line is longer than 16777216 bytes") {
		t.Errorf("got %v", err)
	}
	if len(l.buf) > 4*lineMax {
		t.Errorf("%d bytes were taken", len(l.buf))
	}
	r, err := newCSV(newLines("f", io.MultiReader(strings.NewReader("a,b\n1,\""), endless{'\n'}), io.NopCloser(nil)), &Spec{Header: true}, []table.Field{{Name: "a", Kind: table.Text}, {Name: "b", Kind: table.Text}})
	if err != nil {
		t.Fatal(err)
	}
	var b table.Block
	if err := r.Read(&b, 1); err == nil || !strings.Contains(err.Error(), "f:2: a quote opens field 2 and nothing closes it") {
		t.Errorf("got %v", err)
	}
}

// writeCSV writes rows so that any text survives.
func writeCSV(delimiter, end string, rows [][]string) []byte {
	var b bytes.Buffer
	for _, row := range rows {
		for i, s := range row {
			if i > 0 {
				b.WriteString(delimiter)
			}
			fmt.Fprintf(&b, `"%s"`, strings.ReplaceAll(s, `"`, `""`))
		}
		b.WriteString(end)
	}
	return b.Bytes()
}

// What was written is what is read, whatever the block size.
func TestCSVProperty(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		width := rapid.IntRange(1, 4).Draw(rt, "width")
		text := rapid.StringOf(rapid.RuneFrom([]rune("ab,;\t|\"\r\n é0 ")))
		rows := rapid.SliceOfN(rapid.SliceOfN(text, width, width), 1, 20).Draw(rt, "rows")
		spec := Spec{Delimiter: rapid.SampledFrom([]string{",", ";", "tab", "|"}).Draw(rt, "delimiter"), Missing: []string{}, Columns: map[string]table.Kind{}}
		for i := range width {
			spec.Names = append(spec.Names, fmt.Sprint("n", i))
			spec.Columns[spec.Names[i]] = table.Text
		}
		end := rapid.SampledFrom([]string{"\n", "\r\n"}).Draw(rt, "end")
		r, err := newCSV(source(writeCSV(strings.ReplaceAll(spec.Delimiter, "tab", "\t"), end, rows)), &spec, nil)
		if err != nil {
			rt.Fatal(err)
		}
		got, err := show(t, r, rapid.IntRange(1, 5).Draw(rt, "n"))
		var want []string
		for _, row := range rows {
			want = append(want, strings.Join(row, "|"))
		}
		if diff := cmp.Diff(want, got.Rows); err != nil || diff != "" || got.Errors != nil {
			rt.Fatalf("%v, %q (-want +got):\n%s", err, got.Errors, diff)
		}
	})
}

// FuzzCSV: no input breaks a promise of table.Reader, and what the standard
// library reads as a table without a complaint is read alike.
func FuzzCSV(f *testing.F) {
	for _, s := range []string{
		"a,b\n1,2\n", "\"a\"\"\n\",b\r\n1,\"\"\n\n", "a;b\n\"1;2\n", "\xef\xbb\xbfa\tb\n\t\n", "a|b\n1|2|3\n\xe9|x\n", "\"", "a,\"b\"c\n", ",\n,", "0815,1e400\n-1,inf\n",
		"\"x\ny\",1\n\"x\ny,2\n\"z\",3\n",
	} {
		f.Add([]byte(s), uint8(0))
		f.Add([]byte(s), uint8(7))
	}
	f.Fuzz(func(t *testing.T, content []byte, options uint8) {
		spec := Spec{Header: options&1 != 0, NoQuotes: options&2 != 0, Missing: DefaultMissing()}
		if options&4 != 0 {
			spec.Delimiter = ","
		}
		r, err := newCSV(source(content), &spec, nil)
		if err != nil {
			return
		}
		got, err := show(t, r, 1+int(options>>4))
		if err != nil {
			t.Fatalf("a file of %d bytes: %v", len(content), err)
		}
		compareCSV(t, content, got, spec)
	})
}

// compareCSV holds a table against encoding/csv where both mean the same.
func compareCSV(t *testing.T, content []byte, got shown, spec Spec) {
	if spec.Header || spec.NoQuotes || spec.Delimiter != "," || len(got.Errors) > 0 || strings.Contains(got.Fields, " number") ||
		strings.Contains(got.Fields, " integer") || bytes.ContainsAny(content, " \t\r|-\x00") || !utf8.Valid(content) {
		return
	}
	rows, err := csv.NewReader(bytes.NewReader(content)).ReadAll()
	if err != nil {
		t.Fatalf("encoding/csv refuses what was read as %q: %v", got.Rows, err)
	}
	var want []string
	for _, row := range rows {
		for i, s := range row {
			if set := newWordSet(DefaultMissing()); set.has([]byte(s)) {
				row[i] = "-"
			}
		}
		want = append(want, strings.Join(row, "|"))
	}
	if diff := cmp.Diff(want, got.Rows); diff != "" {
		t.Fatalf("(-encoding/csv +got):\n%s", diff)
	}
}

// The real files have the rows, columns and missing cells that their
// description states, or that cut and grep count.
func TestCSVReal(t *testing.T) {
	adult := strings.Fields("age workclass fnlwgt education education-num marital-status occupation relationship race sex capital-gain capital-loss hours-per-week native-country income")
	tests := []struct {
		name                   string
		spec                   Spec
		rows, columns, missing int
		numbers                int // columns of numbers
	}{
		{"tabular/adult-train.csv", Spec{Names: adult}, 32561, 15, 4262, 6},
		{"tabular/adult-test.csv", Spec{Names: adult, Suffix: map[string]string{"income": "."}}, 16281, 15, 2203, 6},
		{"tabular/iris.csv", Spec{}, 150, 5, 0, 4},
		{"tabular/penguins.csv", Spec{Header: true}, 344, 7, 19, 4},
		{"tabular/winequality-white.csv", Spec{}, 4898, 12, 0, 12},
		{"ctr/criteo_sample_200.txt", Spec{Header: true}, 200, 40, 1101, 14},
		{"parquet/delta_binary_packed_expect.csv", Spec{Header: true}, 200, 66, 0, 51},
		{"traces/alibaba/job_1_norm.csv", Spec{Header: true}, 3000, 5, 0, 5},
		{"traces/alibaba/job_2_norm.csv", Spec{Header: true}, 2402, 5, 0, 5},
		{"traces/alibaba/job_3_norm.csv", Spec{Header: true}, 2489, 5, 0, 5},
		{"traces/alibaba/job_4_norm.csv", Spec{Header: true}, 21829, 5, 0, 5},
	}
	for _, test := range tests {
		test.spec.Format, test.spec.Paths = "csv", []string{realData(t, test.name)}
		fields, rows, missing := counts(t, test.spec)
		numbers := 0
		for _, f := range fields {
			if f.Kind == table.Number {
				numbers++
			}
		}
		if rows != test.rows || len(fields) != test.columns || missing != test.missing || numbers != test.numbers {
			t.Errorf("%s: %d rows of %d columns, %d of numbers, %d missing; want %d, %d, %d, %d",
				test.name, rows, len(fields), numbers, missing, test.rows, test.columns, test.numbers, test.missing)
		}
	}
}

func BenchmarkCSV(b *testing.B) {
	path := realData(b, "tabular/adult-train.csv")
	for b.Loop() {
		r, err := Open(b.Context(), Spec{Format: "csv", Paths: []string{path}})
		if err != nil {
			b.Fatal(err)
		}
		var block table.Block
		for err == nil {
			err = r.Read(&block, 1024)
		}
		if !errors.Is(err, io.EOF) {
			b.Fatal(err)
		}
		r.Close()
	}
	b.SetBytes(3974305)
}
