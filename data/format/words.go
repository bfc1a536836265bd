package format

// wordSet is a set of short words.
type wordSet struct {
	words   map[string]bool
	longest int
}

func newWordSet(words []string) wordSet {
	s := wordSet{words: map[string]bool{}}
	for _, w := range words {
		s.words[w] = true
		s.longest = max(s.longest, len(w))
	}
	return s
}

// has reports whether a text is one of the words. Most are too long to be.
func (s *wordSet) has(text []byte) bool {
	return len(text) <= s.longest && s.words[string(text)]
}
