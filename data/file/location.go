package file

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"gocloud.dev/blob"

	"github.com/gangline/gangline/internal/nearest"
)

// ErrMissing says that there is no file of a name, or none that a pattern matches.
var ErrMissing = errors.New("there is no such file")

// bucketKey is the key in a context of a bucket for a URL.
type bucketKey string

// WithBucket returns a context under which locations that begin with url (scheme
// and bucket, as "mem://clicks") are read from bucket. The caller keeps the
// bucket and closes it.
func WithBucket(ctx context.Context, url string, bucket *blob.Bucket) context.Context {
	return context.WithValue(ctx, bucketKey(strings.TrimSuffix(url, "/")), bucket)
}

// locate finds the store of a location, and the name there.
func locate(ctx context.Context, location string) (store, string, error) {
	if strings.ContainsRune(location, 0) {
		return nil, "", fmt.Errorf("%q: a location has no zero bytes", location)
	}
	scheme, rest, ok := strings.Cut(location, "://")
	if !ok {
		return local{}, filepath.Clean(location), nil
	}
	if scheme == "file" {
		if !strings.HasPrefix(rest, "/") {
			return nil, "", fmt.Errorf("%s: want file:///path with three slashes: local files have no host", location)
		}
		return local{}, filepath.Clean(filepath.FromSlash(rest)), nil
	}
	rest, query, _ := strings.Cut(rest, "?")
	bucket, key, _ := strings.Cut(rest, "/")
	if key == "" {
		return nil, "", fmt.Errorf("%s: want %s://bucket/key: the key is absent", location, scheme)
	}
	s := remote{url: scheme + "://" + bucket, query: query, limits: usualLimits()}
	if b, ok := ctx.Value(bucketKey(s.url)).(*blob.Bucket); ok {
		s.bucket, s.kept = b, true
		return s, key, nil
	}
	if !blob.DefaultURLMux().ValidBucketScheme(scheme) {
		return nil, "", fmt.Errorf("%s: this program knows no object store %s://%s", location, scheme, schemeHint(scheme))
	}
	address := s.url
	if query != "" {
		address += "?" + query
	}
	b, err := blob.OpenBucket(ctx, address)
	if err != nil {
		return nil, "", fmt.Errorf("%s: %w", location, err)
	}
	s.bucket = b
	return s, key, nil
}

// schemeHint says how a program comes to know a scheme.
func schemeHint(scheme string) string {
	known := []string{"s3", "gs", "azblob"}
	if slices.Contains(known, scheme) {
		return ": import data/file/cloud into it"
	}
	return nearest.Hint(scheme, append(known, "file"))
}

// IsURL reports whether a location has a scheme.
func IsURL(location string) bool { return strings.Contains(location, "://") }

// explain adds the location to an error of a store, which it closes, and the
// names nearby to one that says that the file is missing.
func explain(ctx context.Context, s store, name string, err error) error {
	defer s.Close()
	if !errors.Is(err, ErrMissing) {
		return fmt.Errorf("%s: %w", s.location(name), err)
	}
	return fmt.Errorf("%s: %w%s", s.location(name), ErrMissing, hint(ctx, s, name))
}

// hintNames is the number of names that an error lists.
const hintNames = 6

// hint says what stands where name was looked for, the most similar names first.
func hint(ctx context.Context, s store, name string) string {
	names, err := s.beside(ctx, name)
	if err != nil {
		return fmt.Sprintf(" (looked beside it: %v)", err)
	}
	if len(names) == 0 {
		return "; nothing else is there either"
	}
	base := baseOf(name)
	for i, n := range names {
		names[i] = baseOf(n)
	}
	slices.SortStableFunc(names, func(a, b string) int {
		return nearest.Distance(base, a) - nearest.Distance(base, b)
	})
	text := "; near to it " + plural(len(names), "is ", "are ")
	text += strings.Join(names[:min(len(names), hintNames)], ", ")
	if more := len(names) - hintNames; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}

func plural(n int, one, many string) string {
	if n == 1 {
		return one
	}
	return many
}

// baseOf is the last element of a path or key.
func baseOf(name string) string { return name[strings.LastIndexAny(name, `/\`)+1:] }
