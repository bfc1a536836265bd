package scores_test

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"errors"
	"math"
	"strconv"
	"strings"
	"testing"

	"github.com/parquet-go/parquet-go"

	"github.com/gangline/gangline/data/scores"
)

func write(t *testing.T, format string, f scores.Form, portions ...[]scores.Row) []byte {
	t.Helper()
	var b bytes.Buffer
	w, err := scores.New(format, &b, f)
	if err != nil {
		t.Fatal(err)
	}
	for _, rows := range portions {
		if err := w.Write(rows); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestText(t *testing.T) {
	rows := []scores.Row{{Row: 0, Value: .25, Class: 2, Label: 1}, {Row: 1, Value: math.NaN(), Class: 0, Label: -1.5}, {Row: 2, Value: 1, Class: 1, Label: math.NaN()}}
	for _, c := range []struct {
		format string
		form   scores.Form
		want   string
	}{
		{"csv", scores.Form{}, "row,prediction\n0,0.25\n1,NaN\n2,1\n"},
		{"csv", scores.Form{Labels: true}, "row,prediction,label\n0,0.25,1\n1,NaN,-1.5\n2,1,\n"},
		{"csv", scores.Form{Classes: true, Labels: true}, "row,prediction,probability,label\n0,2,0.25,1\n1,0,NaN,-1.5\n2,1,1,\n"},
		{"csv", scores.Form{Classes: true, Labels: true, Names: []string{"a", "b, c", `"d"`}}, "row,prediction,probability,label\n0,\"\"\"d\"\"\",0.25,\"b, c\"\n1,a,NaN,-1\n2,\"b, c\",1,\n"},
		{"jsonl", scores.Form{Classes: true, Labels: true, Names: []string{"a", "b, c", `"d"`}}, `{"row":0,"prediction":"\"d\"","probability":0.25,"label":"b, c"}` + "\n" + `{"row":1,"prediction":"a","probability":null,"label":-1}` + "\n" + `{"row":2,"prediction":"b, c","probability":1,"label":null}` + "\n"},
		{"jsonl", scores.Form{}, `{"row":0,"prediction":0.25}` + "\n" + `{"row":1,"prediction":null}` + "\n" + `{"row":2,"prediction":1}` + "\n"},
		{"jsonl", scores.Form{Classes: true, Labels: true}, `{"row":0,"prediction":2,"probability":0.25,"label":1}` + "\n" + `{"row":1,"prediction":0,"probability":null,"label":-1.5}` + "\n" + `{"row":2,"prediction":1,"probability":1,"label":null}` + "\n"},
	} {
		if got := string(write(t, c.format, c.form, rows[:1], rows[1:])); got != c.want {
			t.Errorf("%s %+v: %q, want %q", c.format, c.form, got, c.want)
		}
	}
	said := []scores.Row{{Row: 4, Value: -2.5, Perplexity: 1.25}, {Row: 5, Value: math.Inf(-1), Perplexity: math.Inf(1)}}
	if got := string(write(t, "csv", scores.Form{Text: true}, said)); got != "row,log_likelihood,perplexity\n4,-2.5,1.25\n5,-Inf,+Inf\n" {
		t.Errorf("of a text: %q", got)
	}
	if got := string(write(t, "jsonl", scores.Form{Text: true}, said)); got != `{"row":4,"log_likelihood":-2.5,"perplexity":1.25}`+"\n"+`{"row":5,"log_likelihood":null,"perplexity":null}`+"\n" {
		t.Errorf("of a text: %q", got)
	}
	if got := string(write(t, "csv", scores.Form{Labels: true})); got != "row,prediction,label\n" {
		t.Errorf("without rows: %q", got)
	}
}

// Numbers come back bit by bit, and as many rows as went in, from every format.
func TestNumbersComeBack(t *testing.T) {
	const n = 150_000 // more than a row group
	rows := make([]scores.Row, n)
	for i := range rows {
		rows[i] = scores.Row{Row: int64(i), Value: 1 / (1 + math.Exp(float64(i%41-20)/3)), Class: int64(i % 3), Label: float64(i % 2)}
	}
	back := map[string]func(text []byte) []float64{
		"csv": func(text []byte) (out []float64) {
			records, err := csv.NewReader(bytes.NewReader(text)).ReadAll()
			if err != nil {
				t.Fatal(err)
			}
			for _, r := range records[1:] {
				v, err := strconv.ParseFloat(r[1], 64)
				if err != nil {
					t.Fatal(err)
				}
				out = append(out, v)
			}
			return out
		},
		"jsonl": func(text []byte) (out []float64) {
			for line := range bytes.Lines(text) {
				var r struct{ Prediction float64 }
				if err := json.Unmarshal(line, &r); err != nil {
					t.Fatal(err)
				}
				out = append(out, r.Prediction)
			}
			return out
		},
		"parquet": func(text []byte) (out []float64) {
			read, err := parquet.Read[struct {
				Row        int64    `parquet:"row"`
				Prediction float64  `parquet:"prediction"`
				Label      *float64 `parquet:"label,optional"`
			}](bytes.NewReader(text), int64(len(text)))
			if err != nil {
				t.Fatal(err)
			}
			for i, r := range read {
				if r.Row != int64(i) || *r.Label != float64(i%2) {
					t.Fatalf("row %d is %+v", i, r)
				}
				out = append(out, r.Prediction)
			}
			return out
		},
	}
	for _, format := range scores.Formats() {
		got := back[format](write(t, format, scores.Form{Labels: true}, rows[:1000], rows[1000:140_000], rows[140_000:]))
		if len(got) != n {
			t.Fatalf("%s: %d rows, want %d", format, len(got), n)
		}
		for i := range got {
			if got[i] != rows[i].Value {
				t.Fatalf("%s: row %d is %v, want %v", format, i, got[i], rows[i].Value)
			}
		}
	}
	text := write(t, "parquet", scores.Form{Classes: true}, rows[:3])
	classes, err := parquet.Read[struct {
		Prediction  int64    `parquet:"prediction"`
		Probability float64  `parquet:"probability"`
		Label       *float64 `parquet:"label,optional"`
	}](bytes.NewReader(text), int64(len(text)))
	if err != nil || len(classes) != 3 || classes[2].Prediction != 2 || classes[2].Probability != rows[2].Value || classes[2].Label != nil {
		t.Errorf("%v, %v", classes, err)
	}
	text = write(t, "parquet", scores.Form{Text: true}, []scores.Row{{Row: 7, Value: -2.5, Perplexity: 1.25}})
	said, err := parquet.Read[struct {
		Row           int64   `parquet:"row"`
		LogLikelihood float64 `parquet:"log_likelihood"`
		Perplexity    float64 `parquet:"perplexity"`
	}](bytes.NewReader(text), int64(len(text)))
	if err != nil || len(said) != 1 || said[0].Row != 7 || said[0].LogLikelihood != -2.5 || said[0].Perplexity != 1.25 {
		t.Errorf("%v, %v", said, err)
	}
	text = write(t, "parquet", scores.Form{Classes: true, Labels: true, Names: []string{"a", "b"}}, rows[:3])
	names, err := parquet.Read[struct {
		Prediction string  `parquet:"prediction"`
		Label      *string `parquet:"label,optional"`
	}](bytes.NewReader(text), int64(len(text)))
	if err != nil || len(names) != 3 || names[1].Prediction != "b" || names[2].Prediction != "2" || *names[1].Label != "b" {
		t.Errorf("%v, %v", names, err)
	}
}

func TestFormats(t *testing.T) {
	for path, want := range map[string]string{"a.csv": "csv", "A.CSV": "csv", "a.jsonl": "jsonl", "a.parquet": "parquet", "a": "", "a.txt": ""} {
		if got := scores.FormatOf(path); got != want {
			t.Errorf("%s: %q, want %q", path, got, want)
		}
	}
	if _, err := scores.New("cvs", nil, scores.Form{}); err == nil || !strings.Contains(err.Error(), `did you mean "csv"?`) {
		t.Error(err)
	}
}

// full is a disk that is.
type full struct{}

func (full) Write([]byte) (int, error) { return 0, errors.New("full") }

// An error of the disk is not lost, whatever the format.
func TestErrorsAreKept(t *testing.T) {
	for _, format := range scores.Formats() {
		w, err := scores.New(format, full{}, scores.Form{})
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(w.Write(make([]scores.Row, 10)), w.Close()); err == nil {
			t.Errorf("%s: a full disk is no error", format)
		}
	}
}
