// Package bpe cuts text into the tokens of a byte-level byte-pair encoding, that
// of GPT-2 (Radford and others, "Language Models are Unsupervised Multitask
// Learners", 2019; Sennrich, Haddow and Birch, 2016): text is cut into words by
// classes of characters, and the bytes of a word are joined pair by pair, the
// pair that was learned first before the others. Every sequence of bytes has
// tokens, and they lead back to it.
package bpe

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"
)

// Tokenizer holds a vocabulary. It does not change and is used by any number of
// goroutines.
type Tokenizer struct {
	tokens [][]byte // by id
	bytes  [256]int32
	merges map[uint64]merge // by pair
}

// merge says what becomes of a pair of tokens.
type merge struct {
	rank  int32 // lower ones come first
	token int32
}

// Limits of the files.
const (
	tokensMax = 1 << 24
	fileMax   = 256 << 20
)

// New reads a vocabulary: vocabulary is a JSON object from tokens to ids
// (encoder.json), merges has a pair of tokens on each line in the order they were
// learned (vocab.bpe). Both write a byte as the character that GPT-2 has for it.
func New(vocabulary, merges io.Reader) (*Tokenizer, error) {
	var ids map[string]int32
	if err := json.NewDecoder(io.LimitReader(vocabulary, fileMax)).Decode(&ids); err != nil {
		return nil, fmt.Errorf("bpe: the vocabulary is no JSON object from tokens to ids: %w", err)
	}
	if len(ids) > tokensMax {
		return nil, fmt.Errorf("bpe: the vocabulary has %d tokens, the limit is %d", len(ids), tokensMax)
	}
	t := &Tokenizer{tokens: make([][]byte, len(ids)), merges: map[uint64]merge{}}
	known := make(map[string]int32, len(ids)) // by bytes
	letters := letterBytes()
	for word, id := range ids {
		raw, ok := unletter(letters, word)
		if !ok {
			return nil, fmt.Errorf("bpe: token %q of the vocabulary has a character that stands for no byte", word)
		}
		if id < 0 || int(id) >= len(ids) || t.tokens[id] != nil {
			return nil, fmt.Errorf("bpe: token %q has id %d: want each of 0 to %d once", word, id, len(ids)-1)
		}
		t.tokens[id] = raw
		known[string(raw)] = id
	}
	for b := range t.bytes {
		id, ok := known[string([]byte{byte(b)})]
		if !ok {
			return nil, fmt.Errorf("bpe: the vocabulary has no token for byte 0x%02x", b)
		}
		t.bytes[b] = id
	}
	return t, t.readMerges(merges, known)
}

// readMerges reads the pairs. The parts of a pair are bytes or were made by an
// earlier line, so that joining never makes a pair that comes before.
func (t *Tokenizer) readMerges(r io.Reader, known map[string]int32) error {
	made := map[int32]bool{}
	for _, id := range t.bytes {
		made[id] = true
	}
	letters := letterBytes()
	lines := bufio.NewScanner(io.LimitReader(r, fileMax))
	for line := 1; lines.Scan(); line++ {
		text := strings.TrimSuffix(lines.Text(), "\r")
		if text == "" || line == 1 && strings.HasPrefix(text, "#version") {
			continue
		}
		first, second, ok := strings.Cut(text, " ")
		a, okA := unletter(letters, first)
		b, okB := unletter(letters, second)
		if !ok || !okA || !okB {
			return fmt.Errorf("bpe: line %d of the merges is %q, want two tokens and a space", line, text)
		}
		left, okA := known[string(a)]
		right, okB := known[string(b)]
		token, ok := known[string(a)+string(b)]
		if !ok || !okA || !okB || !made[left] || !made[right] {
			return fmt.Errorf("bpe: line %d of the merges joins %q: a part or the whole is not in the vocabulary, or no line before makes a part", line, text)
		}
		if _, ok := t.merges[pair(left, right)]; ok {
			return fmt.Errorf("bpe: line %d of the merges joins %q a second time", line, text)
		}
		t.merges[pair(left, right)] = merge{rank: int32(len(t.merges)), token: token}
		made[token] = true
	}
	if err := lines.Err(); err != nil {
		return fmt.Errorf("bpe: the merges: %w", err)
	}
	if len(t.merges) == 0 {
		return errors.New("bpe: there are no merges")
	}
	return nil
}

func pair(left, right int32) uint64 { return uint64(left)<<32 | uint64(uint32(right)) }

// letterBytes maps the characters of vocabulary files to bytes. Printable
// characters of Latin-1 are themselves, all other bytes the characters from 256
// on.
func letterBytes() map[rune]byte {
	letters := map[rune]byte{}
	next := rune(256)
	for b := range 256 {
		r := rune(b)
		if r < '!' || r > '~' && r < '¡' || r == 0xad {
			r = next
			next++
		}
		letters[r] = byte(b)
	}
	return letters
}

// unletter returns the bytes that a token of a vocabulary file stands for.
func unletter(letters map[rune]byte, word string) ([]byte, bool) {
	raw := make([]byte, 0, len(word))
	for _, r := range word {
		b, ok := letters[r]
		if !ok {
			return nil, false
		}
		raw = append(raw, b)
	}
	return raw, len(raw) > 0 && utf8.ValidString(word)
}

// Size is the number of tokens: ids are below it.
func (t *Tokenizer) Size() int { return len(t.tokens) }

// Encode appends the tokens of a text. It takes the time of about ten look-ups in
// a map for each byte, of m*log(m) for a word of m bytes, whatever the text is;
// memory of some words beside the result.
func (t *Tokenizer) Encode(to []int32, text []byte) []int32 {
	var m merger
	for len(text) > 0 {
		n := word(text)
		to = m.join(t, to, text[:n])
		text = text[n:]
	}
	return to
}

// Decode appends the bytes that tokens stand for. An id beyond the vocabulary is
// an error.
func (t *Tokenizer) Decode(to []byte, ids []int32) ([]byte, error) {
	for i, id := range ids {
		if id < 0 || int(id) >= len(t.tokens) {
			return to, fmt.Errorf("bpe: token %d is %d, the vocabulary ends at %d", i, id, len(t.tokens)-1)
		}
		to = append(to, t.tokens[id]...)
	}
	return to, nil
}
