package cost

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math"

	"github.com/gangline/gangline/internal/nearest"
)

// Format is what a file of costs says of itself.
const Format = "gangline.costs/1"

// maxFileBytes bounds a file of costs.
const maxFileBytes = 1 << 16

// secondsMax bounds every cost: what is above was not in seconds.
const secondsMax = 60

// file is the form of a file of costs: JSON, for example
//
//	{
//	  "format": "gangline.costs/1",
//	  "note": "two hosts, 10 Gbit/s, measured 2026-11-30",
//	  "paths": {
//	    "unix": {"alpha": 2.1e-05, "beta": 4.5e-10, "gamma": 1.2e-10},
//	    "tcp": {"alpha": 6.0e-05, "beta": 8.5e-10, "gamma": 1.2e-10}
//	  }
//	}
//
// with alpha in seconds a message, beta and gamma in seconds a byte. Paths that are
// left out cost what Default says.
type file struct {
	Format string                     `json:"format"`
	Note   string                     `json:"note,omitempty"`
	Paths  map[string]json.RawMessage `json:"paths"`
}

// Parse reads a file of costs. An unknown field or path, a number that is missing or
// none of seconds, and anything after the file's end are errors.
func Parse(text []byte) (Table, error) {
	t := Default()
	if len(text) > maxFileBytes {
		return t, fmt.Errorf("costs: %d bytes: want at most %d", len(text), maxFileBytes)
	}
	var f file
	if err := strict(text, &f); err != nil {
		return t, fmt.Errorf("costs: %w", err)
	}
	if f.Format != Format {
		return t, fmt.Errorf("costs: format is %q: want %q", f.Format, Format)
	}
	if len(f.Paths) == 0 {
		return t, fmt.Errorf("costs: paths is missing or empty: want one of %q", paths())
	}
	for name, text := range f.Paths {
		path := -1
		for i, known := range paths() {
			if known == name {
				path = i
			}
		}
		if path < 0 {
			return t, fmt.Errorf("costs: unknown path %q%s", name, nearest.Hint(name, paths()))
		}
		link, err := parseLink(text)
		if err != nil {
			return t, fmt.Errorf("costs: %s: %w", name, err)
		}
		t[path] = link
	}
	return t, nil
}

func parseLink(text []byte) (Link, error) {
	var l struct{ Alpha, Beta, Gamma *float64 }
	if err := strict(text, &l); err != nil {
		return Link{}, err
	}
	for _, c := range []struct {
		name string
		v    *float64
	}{{"alpha", l.Alpha}, {"beta", l.Beta}, {"gamma", l.Gamma}} {
		if c.v == nil || !(*c.v >= 0 && *c.v < secondsMax) || math.Signbit(*c.v) {
			return Link{}, fmt.Errorf("%s is missing or not from 0 to %d seconds", c.name, secondsMax)
		}
	}
	return Link{*l.Alpha, *l.Beta, *l.Gamma}, nil
}

// strict decodes one JSON value without fields that v does not have.
func strict(text []byte, v any) error {
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(v); err != nil {
		return err
	}
	if _, err := d.Token(); err != io.EOF {
		return fmt.Errorf("something follows after the end")
	}
	return nil
}

// Encode writes the costs of some paths as Parse reads them; note says where and when
// they were measured.
func (t Table) Encode(note string, which ...Path) ([]byte, error) {
	f := file{Format: Format, Note: note, Paths: make(map[string]json.RawMessage)}
	for _, p := range which {
		link, err := json.Marshal(t[p])
		if err != nil {
			return nil, fmt.Errorf("costs: %v: %w", p, err)
		}
		f.Paths[p.String()] = link
	}
	text, err := json.MarshalIndent(f, "", "  ")
	return append(text, '\n'), err
}
