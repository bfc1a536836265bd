package job

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"

	"github.com/gangline/gangline/checkpoint"
	"github.com/gangline/gangline/internal/nearest"
)

// maxFileBytes bounds a job file.
const maxFileBytes = 1 << 20

// maxDepth bounds how deep values stand within one another; a job needs 3.
const maxDepth = 64

// Read reads a job file, lays the settings ("path.to.field=value") over it,
// fills in defaults that depend on other fields, and validates.
func Read(path string, settings []string) (Job, error) { return Extensions{}.Read(path, settings) }

// Read is the function Read for a program with extensions.
func (e Extensions) Read(path string, settings []string) (Job, error) {
	info, err := os.Stat(path)
	if err != nil {
		return Job{}, fmt.Errorf("job: cannot read the job file: %w", err)
	}
	if info.IsDir() || info.Size() > maxFileBytes {
		return Job{}, fmt.Errorf("job: %s is not a job file (a directory, or over %d bytes)", path, maxFileBytes)
	}
	if !info.Mode().IsRegular() {
		return Job{}, fmt.Errorf("job: %s is a pipe or device; every rank reads the job, so it must be a file", path)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return Job{}, fmt.Errorf("job: cannot read the job file: %w", err)
	}
	j, err := e.Parse(path, text, settings)
	if err == nil && j.Name == "" {
		j.Name = strings.TrimSuffix(filepath.Base(path), filepath.Ext(path))
	}
	return j, err
}

// Parse is Read for text that is at hand; name stands for the file in errors.
func Parse(name string, text []byte, settings []string) (Job, error) {
	return Extensions{}.Parse(name, text, settings)
}

// Parse is the function Parse for a program with extensions.
func (e Extensions) Parse(name string, text []byte, settings []string) (Job, error) {
	j := Default()
	j.Extensions = e
	text = bytes.TrimPrefix(text, []byte("\ufeff")) // some editors begin a file with it
	if line := tooDeep(text); line > 0 {
		return Job{}, fmt.Errorf("job: %s:%d: more than %d levels within one another", name, line, maxDepth)
	}
	file, err := parser.ParseBytes(text, 0)
	if err != nil {
		return Job{}, located(name, err)
	}
	for i, doc := range file.Docs {
		if i > 0 && doc.Body != nil {
			return Job{}, fmt.Errorf("job: %s:%d: a second document; a file holds one job", name, doc.Body.GetToken().Position.Line)
		}
		if err := checkFields(name, "", doc.Body, reflect.TypeFor[Job]()); err != nil {
			return Job{}, err
		}
	}
	if err := yaml.UnmarshalWithOptions(text, &j, yaml.Strict()); err != nil {
		return Job{}, located(name, err)
	}
	for _, s := range settings {
		if err := j.set(s); err != nil {
			return Job{}, err
		}
	}
	j.complete()
	return j, j.Validate()
}

// tooDeep returns the first line in which brackets, or the dashes that begin it,
// stand more than maxDepth deep, 0 if there is none: the memory of the parser
// grows with the square of the depth. Brackets in quotes count, too.
func tooDeep(text []byte) int {
	depth, line := 0, 0
	for row := range bytes.Lines(text) {
		line++
		dashes, begin := 0, true
		for _, c := range row {
			switch c {
			case '[', '{':
				depth++
			case ']', '}':
				depth = max(depth-1, 0)
			case '-', '?':
				if begin {
					dashes++
				}
			}
			begin = begin && bytes.IndexByte([]byte("-? \t"), c) >= 0
			if max(depth, dashes) > maxDepth {
				return line
			}
		}
	}
	return 0
}

// checkFields refuses keys that the type does not have, with line and hint, and
// values that the decoder would change without a word.
func checkFields(file, path string, node ast.Node, t reflect.Type) error {
	switch n := node.(type) {
	case *ast.AnchorNode, *ast.AliasNode:
		return fmt.Errorf("job: %s:%d: %s: anchors and aliases have no meaning in a job; write the value out",
			file, node.GetToken().Position.Line, orJob(path))
	case *ast.FloatNode:
		if (t.Kind() == reflect.Int || t.Kind() == reflect.Int64 || t.Kind() == reflect.Uint64) && n.Value != math.Trunc(n.Value) {
			return fmt.Errorf("job: %s:%d: %s must be a whole number, not %s", file, node.GetToken().Position.Line, path, node)
		}
	case *ast.SequenceNode:
		if t.Kind() == reflect.Slice {
			return checkItems(file, path, n, t.Elem())
		}
	}
	if t.Kind() != reflect.Struct && t.Kind() != reflect.Map {
		return nil
	}
	var entries []*ast.MappingValueNode
	switch n := node.(type) {
	case *ast.MappingNode:
		entries = n.Values
	case *ast.MappingValueNode:
		entries = []*ast.MappingValueNode{n}
	case nil, *ast.NullNode, *ast.CommentGroupNode:
		return nil
	default:
		return fmt.Errorf("job: %s:%d: %s must be a mapping of fields, not %q",
			file, node.GetToken().Position.Line, orJob(path), node.String())
	}
	var errs []error
	for _, e := range entries {
		key := e.Key.GetToken().Value
		if t.Kind() == reflect.Map { // any key will do
			errs = append(errs, checkFields(file, join(path, key), e.Value, t.Elem()))
			continue
		}
		f, ok := fieldByTag(t, key)
		if !ok {
			errs = append(errs, fmt.Errorf("job: %s:%d: unknown field %q in %s%s",
				file, e.Key.GetToken().Position.Line, key, orJob(path), nearest.Hint(key, tags(t))))
			continue
		}
		errs = append(errs, checkFields(file, join(path, key), e.Value, f.Type))
	}
	return errors.Join(errs...)
}

// checkItems is checkFields for the items of a list.
func checkItems(file, path string, list *ast.SequenceNode, t reflect.Type) error {
	for _, item := range list.Values {
		if err := checkFields(file, path, item, t); err != nil {
			return err
		}
	}
	return nil
}

// set lays one setting over the job.
func (j *Job) set(setting string) error {
	path, value, ok := strings.Cut(setting, "=")
	if !ok {
		return fmt.Errorf("job: --set %q: want path.to.field=value, for example strategy.kind=ps", setting)
	}
	at, v := "", reflect.ValueOf(j).Elem()
	for part := range strings.SplitSeq(path, ".") {
		if v.Kind() != reflect.Struct {
			return fmt.Errorf("job: --set %s: %s is a value and has no field %q", setting, at, part)
		}
		f, ok := fieldByTag(v.Type(), part)
		if !ok {
			return fmt.Errorf("job: --set %s: unknown field %q in %s%s", setting, part, orJob(at), nearest.Hint(part, tags(v.Type())))
		}
		v, at = v.FieldByIndex(f.Index), join(at, part)
	}
	if v.Kind() == reflect.Struct {
		return fmt.Errorf("job: --set %s: %s holds fields; set one of %q", setting, at, tags(v.Type()))
	}
	if err := decode(at, []byte(value), v); err != nil {
		return fmt.Errorf("job: --set %s: %q does not fit %s (%s)", setting, value, at, v.Type())
	}
	return nil
}

// ParseMapping reads a mapping as import.map has it:
// {w1: {from: l1.weight, transpose: true}}.
func ParseMapping(text string) (m checkpoint.Mapping, err error) {
	if err := decode("map", []byte(text), reflect.ValueOf(&m).Elem()); err != nil {
		return nil, fmt.Errorf("job: %q is no mapping of parameters, such as {w1: {from: l1.weight, transpose: true}}: %w", text, err)
	}
	return m, nil
}

// noTag is the name of a field that no file sets.
const noTag = "-"

// decode reads the value of one field.
func decode(path string, text []byte, v reflect.Value) error {
	if tooDeep(text) > 0 {
		return fmt.Errorf("more than %d levels", maxDepth)
	}
	file, err := parser.ParseBytes(text, 0)
	if err != nil {
		return err
	}
	for _, doc := range file.Docs {
		if err := checkFields("--set", path, doc.Body, v.Type()); err != nil {
			return err
		}
	}
	return yaml.Unmarshal(text, v.Addr().Interface())
}

// fieldByTag finds a struct field by its name in YAML.
func fieldByTag(t reflect.Type, tag string) (reflect.StructField, bool) {
	for f := range t.Fields() {
		if name(f) == tag && tag != noTag {
			return f, true
		}
	}
	return reflect.StructField{}, false
}

// tags lists the names of a struct's fields in YAML.
func tags(t reflect.Type) []string {
	var out []string
	for f := range t.Fields() {
		if name(f) != noTag {
			out = append(out, name(f))
		}
	}
	return out
}

// name is a field's name in YAML.
func name(f reflect.StructField) string {
	n, _, _ := strings.Cut(f.Tag.Get("yaml"), ",")
	return n
}

func join(path, key string) string {
	if path == "" {
		return key
	}
	return path + "." + key
}

func orJob(path string) string {
	if path == "" {
		return "the job"
	}
	return path
}

// located puts file and line before an error of the YAML reader.
func located(file string, err error) error {
	var at yaml.Error
	if !errors.As(err, &at) || at.GetToken() == nil {
		return fmt.Errorf("job: %s: %w", file, err)
	}
	return fmt.Errorf("job: %s:%d: %s", file, at.GetToken().Position.Line, at.GetMessage())
}
