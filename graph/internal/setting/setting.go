// Package setting reads and writes single settings of a struct as text.
package setting

import (
	"fmt"
	"strconv"
	"strings"
)

// Field is one setting of an A. A zero setting has the empty text. What Get
// writes, Set reads.
type Field[A any] struct {
	Key string
	Get func(*A) string
	Set func(*A, string) error
}

// Float writes the shortest text that reads back the same.
func Float[A any](key string, at func(*A) *float64) Field[A] {
	return value(key, at, func(v float64) string { return strconv.FormatFloat(v, 'g', -1, 64) },
		func(s string) (float64, error) { return strconv.ParseFloat(s, 64) })
}

// Int is decimal.
func Int[A any](key string, at func(*A) *int) Field[A] {
	return value(key, at, strconv.Itoa, strconv.Atoi)
}

// Int64 is decimal.
func Int64[A any](key string, at func(*A) *int64) Field[A] {
	return value(key, at, func(v int64) string { return strconv.FormatInt(v, 10) },
		func(s string) (int64, error) { return strconv.ParseInt(s, 10, 64) })
}

// Uint64 is decimal.
func Uint64[A any](key string, at func(*A) *uint64) Field[A] {
	return value(key, at, func(v uint64) string { return strconv.FormatUint(v, 10) },
		func(s string) (uint64, error) { return strconv.ParseUint(s, 10, 64) })
}

// Bool is "true".
func Bool[A any](key string, at func(*A) *bool) Field[A] {
	return value(key, at, strconv.FormatBool, func(s string) (bool, error) {
		if s != "true" {
			return false, fmt.Errorf("%q is not true", s)
		}
		return true, nil
	})
}

// Word is the text itself.
func Word[A any, T ~string](key string, at func(*A) *T) Field[A] {
	return value(key, at, func(v T) string { return string(v) }, func(s string) (T, error) { return T(s), nil })
}

// Ints is numbers with commas between.
func Ints[A any](key string, at func(*A) *[]int) Field[A] {
	return Field[A]{key, func(a *A) string {
		words := make([]string, len(*at(a)))
		for i, p := range *at(a) {
			words[i] = strconv.Itoa(p)
		}
		return strings.Join(words, ",")
	}, func(a *A, s string) error {
		for w := range strings.SplitSeq(s, ",") {
			p, err := strconv.Atoi(w)
			if err != nil {
				return err
			}
			*at(a) = append(*at(a), p)
		}
		return nil
	}}
}

func value[A any, T comparable](key string, at func(*A) *T, format func(T) string, parse func(string) (T, error)) Field[A] {
	var zero T
	return Field[A]{key, func(a *A) string {
		if *at(a) == zero {
			return ""
		}
		return format(*at(a))
	}, func(a *A, s string) (err error) {
		*at(a), err = parse(s)
		return err
	}}
}

// Parse reads settings, key=value each, of the operator of that name, which has fields.
func Parse[A any](a *A, op string, fields []Field[A], words []string) error {
	for _, w := range words {
		key, value, ok := strings.Cut(w, "=")
		if !ok {
			return fmt.Errorf("%q: inputs stand before settings", w)
		}
		known := false
		for _, f := range fields {
			if f.Key != key {
				continue
			}
			known = true
			if err := f.Set(a, value); err != nil {
				return fmt.Errorf("%s: %w", key, err)
			}
		}
		if !known {
			return fmt.Errorf("%s has no setting %q", op, key)
		}
	}
	return nil
}
