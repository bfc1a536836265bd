package file

import (
	"context"
	"errors"
	"fmt"
	"path"
	"path/filepath"
	"strings"
)

// filesMax is the largest number of files that patterns may name.
const filesMax = 100_000

// Expand lists the locations that patterns name: each is a location, or a glob
// of one ("part-*.csv.gz", "day-[0-6]/*", "s3://bucket/prefix*"), where * stands
// for any characters but a slash, ? (in paths) for one, [a-z] for one of a set.
// Relative paths start at dir. Locations are in the order of the patterns, and
// sorted by bytes within one. A glob leaves out directories, and files whose
// name begins with a dot unless the pattern says the dot.
//
// A pattern that names nothing is an error that says what was looked for and
// what is there; so is a file that two patterns name, because its rows would
// count twice. The first is ErrMissing.
func Expand(ctx context.Context, dir string, patterns []string) ([]string, error) {
	var all []string
	from := map[string]string{}
	for _, pattern := range patterns {
		found, err := expand(ctx, dir, pattern)
		if err != nil {
			return nil, err
		}
		for _, location := range found {
			if earlier, ok := from[location]; ok {
				return nil, fmt.Errorf("%s is named twice, by %q and by %q: its rows would count twice", location, earlier, pattern)
			}
			from[location] = pattern
		}
		if all = append(all, found...); len(all) > filesMax {
			return nil, fmt.Errorf("%q and the patterns before it name %d files, the limit is %d", pattern, len(all), filesMax)
		}
	}
	if len(all) == 0 {
		return nil, errors.New("no file is named")
	}
	return all, nil
}

// expand lists what one pattern names.
func expand(ctx context.Context, dir, pattern string) ([]string, error) {
	if strings.TrimSpace(pattern) == "" {
		return nil, errors.New("the name of a file is empty")
	}
	s, name, err := locate(ctx, Resolve(dir, pattern))
	if err != nil {
		return nil, err
	}
	_, err = s.stat(ctx, name)
	if err == nil {
		return []string{s.location(name)}, s.Close()
	}
	if !errors.Is(err, ErrMissing) || !isGlob(name) {
		return nil, explain(ctx, s, name, err)
	}
	if strings.Contains(name, "**") {
		return nil, fmt.Errorf("%s: ** is not known: * stands for one directory, write dir/*/*", pattern)
	}
	if _, err := path.Match(name, ""); err != nil {
		return nil, fmt.Errorf("%s: the glob is malformed: a [ without its ], or a \\ at the end", pattern)
	}
	names, err := s.match(ctx, name)
	if err != nil {
		return nil, explain(ctx, s, name, err)
	}
	if len(names) == 0 {
		err := noMatchError(fmt.Sprintf("%s: no file matches%s", s.location(name), hint(ctx, s, name)))
		return nil, errors.Join(err, s.Close())
	}
	for i, n := range names {
		names[i] = s.location(n)
	}
	return names, s.Close()
}

// noMatchError is the error of a glob that names nothing: ErrMissing in other words.
type noMatchError string

func (e noMatchError) Error() string { return string(e) }

// Is implements what errors.Is asks for.
func (noMatchError) Is(target error) bool { return target == ErrMissing }

// Resolve puts dir, which may be a URL, before a relative path.
func Resolve(dir, name string) string {
	switch {
	case dir == "" || IsURL(name) || filepath.IsAbs(name):
		return name
	case IsURL(dir):
		address, query, ok := strings.Cut(dir, "?")
		address = strings.TrimSuffix(address, "/") + "/" + filepath.ToSlash(name)
		if ok {
			address += "?" + query
		}
		return address
	}
	return filepath.Join(dir, name)
}

// isGlob reports whether a name has characters that stand for others.
func isGlob(name string) bool { return strings.ContainsAny(name, "*?[") }

// matches reports whether a glob names a file.
func matches(pattern, name string) bool {
	if strings.HasPrefix(baseOf(name), ".") && !strings.HasPrefix(baseOf(pattern), ".") {
		return false
	}
	ok, err := path.Match(pattern, name)
	return ok && err == nil
}
