package format

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/compress"
	"pgregory.net/rapid"

	"github.com/gangline/gangline/data/table"
)

// sample is a row of the files that the tests write.
type sample struct {
	ID     int64            `parquet:"id,delta"`
	Price  *float64         `parquet:"price"`
	City   string           `parquet:"city,dict"`
	Words  []string         `parquet:"words,list"`
	Vector []float32        `parquet:"vector,list"`
	Users  []int64          `parquet:"users"`
	Cents  int32            `parquet:"cents,decimal(2:9)"`
	Inner  struct{ Z bool } `parquet:"inner"`
	Tags   map[string]int32 `parquet:"tags"`
}

const sampleFields = "id integer,price number,city text,words texts,vector numbers,users numbers,cents number,inner.Z integer,tags.key_value.key texts,tags.key_value.value numbers"

// shown is how a row reads.
func (s *sample) shown() string {
	price := "-"
	if s.Price != nil {
		price = fmt.Sprint(*s.Price)
	}
	z := 0
	if s.Inner.Z {
		z = 1
	}
	city := s.City
	key, value := "", ""
	for k, v := range s.Tags {
		key, value = k, fmt.Sprint(v)
	}
	return fmt.Sprintf("%d|%s|%s|%v|%v|%v|%v|%d|[%s]|[%s]", s.ID, price, city, s.Words, s.Vector, s.Users, float64(s.Cents)/100, z, key, value)
}

// codecs lists the forms of compression that are read.
func codecs() []compress.Codec {
	return []compress.Codec{&parquet.Uncompressed, &parquet.Snappy, &parquet.Gzip, &parquet.Zstd, &parquet.Lz4Raw}
}

// writeParquet writes rows in small pages and row groups of three.
func writeParquet(t testing.TB, rows []sample, codec compress.Codec, version int) []byte {
	t.Helper()
	var b bytes.Buffer
	w := parquet.NewGenericWriter[sample](&b, parquet.Compression(codec), parquet.DataPageVersion(version), parquet.PageBufferSize(64), parquet.MaxRowsPerRowGroup(3))
	if _, err := w.Write(rows); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func readParquet(t testing.TB, content []byte, spec Spec, n int) (shown, error) {
	t.Helper()
	if spec.Missing == nil {
		spec.Missing = DefaultMissing()
	}
	r, err := newParquet(memory{bytes.NewReader(content)}, &spec, "f", nil)
	if err != nil {
		return shown{}, err
	}
	s, err := show(t, r, n)
	return s, errors.Join(err, r.Close())
}

func samples() []sample {
	price := 1.5
	var rows []sample
	for i := range 8 {
		s := sample{ID: int64(i) << 40, City: []string{"Oslo", "Rome"}[i%2], Vector: []float32{float32(i), .5}, Cents: int32(-i), Words: make([]string, i%3), Users: make([]int64, i%2)}
		if i%2 == 0 {
			s.Price = &price
		}
		rows = append(rows, s)
	}
	return rows
}

// What was written is what is read, whatever the compression, the version of
// pages and the size of blocks.
func TestParquetProperty(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		var rows []sample
		var want []string
		word := rapid.StringOf(rapid.RuneFrom([]rune("aé0")))
		for range rapid.IntRange(0, 10).Draw(rt, "rows") {
			s := sample{
				ID: rapid.Int64().Draw(rt, "id"), City: word.Draw(rt, "city"), Words: rapid.SliceOfN(word, 0, 3).Draw(rt, "words"),
				Vector: rapid.SliceOfN(rapid.SampledFrom([]float32{0, .5, -3}), 0, 3).Draw(rt, "vector"),
				Users:  rapid.SliceOfN(rapid.Int64Range(-9, 9), 0, 3).Draw(rt, "users"), Cents: rapid.Int32Range(-999, 999).Draw(rt, "cents"),
			}
			if rapid.Bool().Draw(rt, "has price") {
				price := rapid.SampledFrom([]float64{0, .25, -7}).Draw(rt, "price")
				s.Price = &price
			}
			if rapid.Bool().Draw(rt, "has tag") {
				s.Tags = map[string]int32{word.Draw(rt, "tag"): rapid.Int32Range(0, 9).Draw(rt, "count")}
			}
			s.Inner.Z = rapid.Bool().Draw(rt, "z")
			rows = append(rows, s)
			want = append(want, s.shown())
		}
		codec := rapid.SampledFrom(codecs()).Draw(rt, "codec")
		got, err := readParquet(t, writeParquet(t, rows, codec, rapid.IntRange(1, 2).Draw(rt, "version")), Spec{}, rapid.IntRange(1, 4).Draw(rt, "n"))
		if diff := cmp.Diff(shown{sampleFields, want, nil}, got); err != nil || diff != "" {
			rt.Fatalf("%v (-want +got):\n%s", err, diff)
		}
	})
}

// What a file claims of itself is not believed.
func TestParquetRefuses(t *testing.T) {
	good := writeParquet(t, samples(), &parquet.Snappy, 2)
	long := bytes.Clone(good)
	binary.LittleEndian.PutUint32(long[len(long)-8:], 1<<30)
	tests := map[string]struct {
		content []byte
		spec    Spec
	}{
		"it has only 4 bytes":                                  {[]byte("PAR1"), Spec{}},
		"or one that was cut off: it ends in":                  {good[:len(good)-1], Spec{}},
		"the file is encrypted":                                {[]byte("PARE00000000PARE"), Spec{}},
		"the footer is damaged: it is said to have":            {long, Spec{}},
		"the footer is damaged":                                {[]byte("PAR1\xff\xff\xff\xff\x04\x00\x00\x00PAR1"), Spec{}},
		`no column "ids": did you mean "id"`:                   {good, Spec{Select: []string{"ids"}}},
		`column "city" is declared as number, the file has te`: {good, Spec{Columns: map[string]table.Kind{"city": table.Number}}},
		`column "words" is declared as entries, the file has `: {good, Spec{Columns: map[string]table.Kind{"words": table.Entries}}},
	}
	for want, test := range tests {
		if got, err := readParquet(t, test.content, test.spec, 4); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, %v; want %q", got, err, want)
		}
	}
	got, err := readParquet(t, good, Spec{Select: []string{"users", "id"}, Columns: map[string]table.Kind{"users": table.Entries, "id": table.Number}}, 4)
	if err != nil || got.Fields != "users entries,id number" || got.Rows[1] != "[0:1]|1.099511627776e+12" {
		t.Errorf("got %v, %v", got, err)
	}
}

// Values that have no place in a column are errors of their rows.
func TestParquetRows(t *testing.T) {
	type row struct {
		F float64  `parquet:"f"`
		U uint64   `parquet:"u"`
		S string   `parquet:"s"`
		L []int64  `parquet:"l,list"`
		V []uint64 `parquet:"v"`
	}
	var b bytes.Buffer
	w := parquet.NewGenericWriter[row](&b)
	nan := math.NaN()
	if _, err := w.Write([]row{
		{F: 1, U: 2, S: "a", L: []int64{1 << 60}}, {F: nan}, {F: math.Inf(1)}, {U: math.MaxUint64}, {S: "\xff"}, {L: []int64{7}, V: []uint64{math.MaxUint64}},
	}); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	got, err := readParquet(t, b.Bytes(), Spec{Columns: map[string]table.Kind{"v": table.Entries}}, 4)
	want := shown{"f number,u integer,s text,l numbers,v entries", []string{"-|0||[]|[]", "0|0||[7]|[18446744073709551615:1]"}, []string{
		`f:1: column "l": element 1: 1152921504606846976 is beyond 2^53, a number would lose digits: declare the column as entries`,
		`f:3: column "f": +Inf is not a finite number`,
		`f:4: column "u": 18446744073709551615 is beyond 2^63-1, the largest whole number that is kept`,
		`f:5: column "s": text "\xff" is not UTF-8, as the schema says it is`,
	}}
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	got, err = readParquet(t, b.Bytes(), Spec{Missing: []string{}, Select: []string{"f"}}, 4)
	if err != nil || len(got.Errors) != 2 || got.Errors[0] != `f:2: column "f": NaN is not a finite number` {
		t.Errorf("got %v, %v", got, err)
	}
}

// The files of apache/parquet-testing, with the values that their descriptions
// state.
func TestParquetReal(t *testing.T) {
	types := "id integer,bool_col integer,tinyint_col integer,smallint_col integer,int_col integer,bigint_col integer,float_col number,double_col number,date_string_col text,string_col text,timestamp_col integer"
	zero, one := "0|0|0|0|0|0", "1|1|1|10|1.100000023841858|10.1"
	for name, want := range map[string]shown{
		"alltypes_dictionary": {types, []string{"0|1|" + zero + "|01/01/09|0|1230768000000000", "1|0|" + one + "|01/01/09|1|1230768060000000"}, nil},
		"alltypes_plain": {types, []string{
			"4|1|" + zero + "|03/01/09|0|1235865600000000", "5|0|" + one + "|03/01/09|1|1235865660000000", "6|1|" + zero + "|04/01/09|0|1238544000000000",
			"7|0|" + one + "|04/01/09|1|1238544060000000", "2|1|" + zero + "|02/01/09|0|1233446400000000", "3|0|" + one + "|02/01/09|1|1233446460000000",
			"0|1|" + zero + "|01/01/09|0|1230768000000000", "1|0|" + one + "|01/01/09|1|1230768060000000",
		}, nil},
		"alltypes_plain.snappy": {types, []string{"6|1|" + zero + "|04/01/09|0|1238544000000000", "7|0|" + one + "|04/01/09|1|1238544060000000"}, nil},
		"datapage_v2.snappy":    {"a text,b integer,c number,d integer,e numbers", []string{"abc|1|2|1|[1 2 3]", "abc|2|3|1|-", "abc|3|4|1|-", "-|4|5|0|[1 2 3]", "abc|5|2|1|[1 2]"}, nil},
		"int96_from_spark":      {"a integer", []string{"1704141296123456", "1704070800000000", "253402225200000000", "1735599600000000", "-", "9089380393200000000"}, nil},
		"list_columns":          {"int64_list numbers,utf8_list texts", []string{"[1 2 3]|[abc efg hij]", "[NaN 1]|-", "[4]|[efg  hij xyz]"}, nil},
		"lz4_raw_compressed":    {"c0 integer,c1 text,v11 number", []string{"1593604800|abc|42", "1593604800|def|7.7", "1593604801|abc|42.125", "1593604801|def|7.7"}, nil},
		"nulls.snappy":          {"b_struct.b_c_int integer", slices.Repeat([]string{"-"}, 8), nil},
	} {
		r, err := Open(t.Context(), Spec{Format: "parquet", Paths: []string{realData(t, "parquet/"+name+".parquet")}})
		if err != nil {
			t.Error(err)
			continue
		}
		got, err := show(t, r, 3)
		if diff := cmp.Diff(want, got); err != nil || r.Close() != nil || diff != "" {
			t.Errorf("%s: %v (-want +got):\n%s", name, err, diff)
		}
	}
	fields, rows, missing := counts(t, Spec{Format: "parquet", Paths: []string{realData(t, "parquet/byte_stream_split.zstd.parquet")}})
	if len(fields) != 2 || rows != 300 || missing != 0 {
		t.Errorf("%v, %d rows, %d missing", fields, rows, missing)
	}
}

// Every file that has its content beside it as CSV agrees with it in every cell.
func TestParquetExpect(t *testing.T) {
	path := realData(t, "parquet/delta_binary_packed.parquet")
	r, err := Open(t.Context(), Spec{Format: "parquet", Paths: []string{path}})
	if err != nil {
		t.Fatal(err)
	}
	got, err := show(t, r, 64)
	if err != nil || r.Close() != nil {
		t.Fatal(err)
	}
	content, err := os.ReadFile(strings.TrimSuffix(path, ".parquet") + "_expect.csv")
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(strings.ReplaceAll(string(content), ",", "|")), "\n")
	if names := strings.ReplaceAll(strings.ReplaceAll(got.Fields, " integer", ""), ",", "|"); names != strings.ReplaceAll(lines[0], "\"", "") {
		t.Errorf("columns %q, want %q", names, lines[0])
	}
	if diff := cmp.Diff(lines[1:], got.Rows); diff != "" || len(got.Rows) != 200 {
		t.Errorf("%d rows (-want +got):\n%s", len(got.Rows), diff)
	}
}
