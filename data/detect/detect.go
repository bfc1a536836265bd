// Package detect tells the format of a file by what its first bytes hold, whatever
// its name.
package detect

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// HeadBytes is how much of the beginning of a file is enough to look at.
const HeadBytes = 256 << 10

// linesMax is how many lines are looked at.
const linesMax = 1000

// Guess is what a file seems to be.
type Guess struct {
	// Format is a name that data.Formats knows.
	Format string
	// Why is the evidence, as half a sentence.
	Why string
	// Labels are the different labels of the lines that were looked at, ascending
	// (libsvm, libffm, vw, criteo); more than LabelsMax are cut off.
	Labels []float64
	// ZeroBased says that a feature is numbered 0 (libsvm).
	ZeroBased bool
	// Header says that the first line names the columns, Delimiter what parts them
	// (csv).
	Header    bool
	Delimiter string
	// Record is the bytes of a record, of which there are Records (idx); a file of
	// labels has 1.
	Record, Records int
}

// LabelsMax bounds the labels that a Guess lists.
const LabelsMax = 200

// errUnknown says which formats there are.
var errUnknown = errors.New("it is none of libsvm, criteo, csv, vw, libffm, idx, npy, npz, parquet and text")

// Head guesses by the first bytes of a file, compression undone; whole says that
// they are all of it.
func Head(head []byte, whole bool) (Guess, error) {
	if len(head) == 0 {
		return Guess{}, errors.New("the file is empty")
	}
	if g, ok := magic(head); ok {
		return g, nil
	}
	if bytes.IndexByte(head, 0) >= 0 {
		return Guess{}, fmt.Errorf("it holds bytes of 0, as text does not, and begins as no binary format that is known: %w", errUnknown)
	}
	all := lines(head, whole)
	if len(all) == 0 {
		return Guess{}, errors.New("the file holds nothing but space")
	}
	for _, try := range []func(lines []string) (Guess, bool){criteo, vw, libffm, libsvm, csv} {
		if g, ok := try(all); ok {
			return g, nil
		}
	}
	if !whole {
		head = head[:len(head)-cut(head)]
	}
	if !utf8.Valid(head) {
		return Guess{}, fmt.Errorf("it is no UTF-8 text: %w", errUnknown)
	}
	return Guess{Format: "text", Why: "its lines have no columns in common"}, nil
}

// cut is the number of bytes of a character at the end that may be incomplete.
func cut(b []byte) int {
	for i := 1; i <= min(utf8.UTFMax, len(b)); i++ {
		if utf8.RuneStart(b[len(b)-i]) {
			if utf8.FullRune(b[len(b)-i:]) {
				return 0
			}
			return i
		}
	}
	return 0
}

// magic knows binary formats.
func magic(b []byte) (Guess, bool) {
	switch {
	case bytes.HasPrefix(b, []byte("PAR1")):
		return Guess{Format: "parquet", Why: "it begins with PAR1"}, true
	case bytes.HasPrefix(b, []byte("\x93NUMPY")):
		return Guess{Format: "npy", Why: "it begins as NumPy arrays do"}, true
	case bytes.HasPrefix(b, []byte("PK\x03\x04")):
		return Guess{Format: "npz", Why: "it is a zip archive"}, true
	case len(b) >= 8 && b[0] == 0 && b[1] == 0 && b[2] == 8 && b[3] >= 1 && b[3] <= 8:
		g := Guess{Format: "idx", Record: 1, Why: fmt.Sprintf("it begins as idx files of bytes with %s do", dims(int(b[3])))}
		for i := range int(b[3]) {
			if len(b) < 8+4*i {
				break
			}
			size := int(b[4+4*i])<<24 | int(b[5+4*i])<<16 | int(b[6+4*i])<<8 | int(b[7+4*i])
			if i == 0 {
				g.Records = size
			} else {
				g.Record *= size
			}
		}
		return g, true
	}
	return Guess{}, false
}

func dims(n int) string {
	if n == 1 {
		return "1 dim"
	}
	return fmt.Sprintf("%d dims", n)
}

// lines are the first ones that are whole, without line ends and empty ones.
func lines(head []byte, whole bool) []string {
	head = bytes.TrimPrefix(head, []byte("\ufeff"))
	var all []string
	for line := range bytes.Lines(head) {
		if !bytes.HasSuffix(line, []byte("\n")) && !whole && len(all) > 0 {
			break
		}
		if text := strings.TrimRight(string(line), "\r\n"); strings.TrimSpace(text) != "" {
			all = append(all, text)
		}
		if len(all) == linesMax {
			break
		}
	}
	return all
}

// most is the share of lines that a format must explain: some may be malformed.
const most = .9

// agree counts the lines that look right and notes their labels.
func agree(lines []string, label func(line string) (v float64, ok bool)) (labels []float64, share float64) {
	n := 0
	seen := map[float64]bool{}
	for _, line := range lines {
		v, ok := label(line)
		if !ok {
			continue
		}
		if n++; len(seen) < LabelsMax && !math.IsNaN(v) {
			seen[v] = true
		}
	}
	for v := range seen {
		labels = append(labels, v)
	}
	slices.Sort(labels)
	return labels, float64(n) / float64(max(len(lines), 1))
}

// number reads a label.
func number(word string) (float64, bool) {
	v, err := strconv.ParseFloat(word, 64)
	return v, err == nil && !math.IsNaN(v) && !math.IsInf(v, 0)
}

// criteo has a label, 13 integers and 26 categories, tabs between them.
func criteo(lines []string) (Guess, bool) {
	hex := regexp.MustCompile(`^[0-9a-fA-F]{1,16}$`)
	labels, share := agree(lines, func(line string) (float64, bool) {
		f := strings.Split(line, "\t")
		if len(f) != 40 || f[0] != "0" && f[0] != "1" {
			return 0, false
		}
		for i, v := range f[1:] {
			_, err := strconv.ParseInt(v, 10, 64)
			if v != "" && (i < 13 && err != nil || i >= 13 && !hex.MatchString(v)) {
				return 0, false
			}
		}
		return number(f[0])
	})
	return Guess{Format: "criteo", Why: "its lines have a label, 13 integers and 26 categories with tabs between them", Labels: labels}, share >= most
}

// vw has a bar before its features.
func vw(lines []string) (Guess, bool) {
	before := regexp.MustCompile(`^\s*(?:(\S+)(?:\s+[0-9.eE+-]+){0,2})?(?:\s*'\S*)?\s*$`)
	labels, share := agree(lines, func(line string) (float64, bool) {
		head, features, ok := strings.Cut(line, "|")
		m := before.FindStringSubmatch(head)
		if !ok || m == nil || !strings.ContainsAny(features, " \t") {
			return 0, false
		}
		if m[1] == "" {
			return math.NaN(), true // rows without a label
		}
		return number(m[1])
	})
	return Guess{Format: "vw", Why: "its lines have a bar between label and features", Labels: labels}, share >= most
}

// sparse takes lines of a label and words of so many parts with colons between
// them, of which all but the last are digits.
func sparse(lines []string, parts int) (labels []float64, share float64, words int) {
	labels, share = agree(lines, func(line string) (float64, bool) {
		line, _, _ = strings.Cut(line, "#")
		f := strings.Fields(line)
		if len(f) == 0 {
			return 0, false
		}
		for _, w := range f[1:] {
			if !parted(w, parts) {
				return 0, false
			}
		}
		words += len(f) - 1
		return number(f[0])
	})
	return labels, share, words
}

// parted reports whether a word is digits:value, or digits:digits:value.
func parted(word string, parts int) bool {
	for range parts - 1 {
		digits, rest, ok := strings.Cut(word, ":")
		if !ok || digits == "" || strings.TrimLeft(digits, "0123456789") != "" {
			return false
		}
		word = rest
	}
	return word != "" && !strings.Contains(word, ":")
}

// libffm has features field:feature:value.
func libffm(lines []string) (Guess, bool) {
	labels, share, words := sparse(lines, 3)
	return Guess{Format: "libffm", Why: "its features are field:feature:value", Labels: labels}, share >= most && words > 0
}

// libsvm has features index:value.
func libsvm(lines []string) (Guess, bool) {
	labels, share, words := sparse(lines, 2)
	g := Guess{Format: "libsvm", Why: "its lines are a label and index:value", Labels: labels}
	for _, line := range lines {
		g.ZeroBased = g.ZeroBased || strings.Contains(line, " 0:")
	}
	return g, share >= most && words > 0
}
