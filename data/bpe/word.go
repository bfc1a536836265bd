package bpe

import (
	"bytes"
	"unicode"
	"unicode/utf8"
)

// class is what a character is to the pattern of GPT-2.
type class int

const (
	other class = iota // also a byte that is no UTF-8
	letter
	digit
	space
)

// classOf returns the class of the first character, and its bytes.
func classOf(text []byte) (class, int) {
	if c := text[0]; c < utf8.RuneSelf {
		switch {
		case c|0x20 >= 'a' && c|0x20 <= 'z':
			return letter, 1
		case c >= '0' && c <= '9':
			return digit, 1
		case c == ' ' || c >= '\t' && c <= '\r':
			return space, 1
		}
		return other, 1
	}
	r, n := utf8.DecodeRune(text)
	switch {
	case r == utf8.RuneError && n == 1:
		return other, 1
	case unicode.IsLetter(r):
		return letter, n
	case unicode.IsNumber(r):
		return digit, n
	case unicode.Is(unicode.White_Space, r):
		return space, n
	}
	return other, n
}

// word returns the bytes of the first word of a text, as the pattern
//
//	's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+
//
// has it: an English ending, or characters of one class with the blank before
// them, or white space without the one character that stands before the next
// word.
func word(text []byte) int {
	if n := ending(text); n > 0 {
		return n
	}
	start := 0
	if text[0] == ' ' && len(text) > 1 {
		start = 1
	}
	c, n := classOf(text[start:])
	if c == space {
		return blanks(text)
	}
	end := start + n
	for end < len(text) {
		next, n := classOf(text[end:])
		if next != c {
			break
		}
		end += n
	}
	return end
}

// ending returns the bytes of an English ending at the beginning.
func ending(text []byte) int {
	if text[0] != '\'' {
		return 0
	}
	for _, s := range []string{"'s", "'t", "'re", "'ve", "'m", "'ll", "'d"} {
		if bytes.HasPrefix(text, []byte(s)) {
			return len(s)
		}
	}
	return 0
}

// blanks returns the bytes of white space up to the last character of it, which
// is left for the word that follows unless there is none or it is the only one.
func blanks(text []byte) int {
	end, last := 0, 0
	for end < len(text) {
		c, n := classOf(text[end:])
		if c != space {
			break
		}
		last = end
		end += n
	}
	if end == len(text) || last == 0 {
		return end
	}
	return last
}
