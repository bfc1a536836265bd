package bpe

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// realData opens a file of real data, or skips the test.
func realData(t testing.TB, name string) *os.File {
	t.Helper()
	dir, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(filepath.Join(filepath.Dir(dir), "shared", "data", filepath.FromSlash(name)))
	if err != nil {
		t.Skipf("real data are absent: %v", err)
	}
	t.Cleanup(func() { f.Close() })
	return f
}

func gpt2(t testing.TB) *Tokenizer {
	t.Helper()
	tok, err := New(realData(t, "checkpoints/gpt2_encoder.json"), realData(t, "checkpoints/gpt2_vocab.bpe"))
	if err != nil {
		t.Fatal(err)
	}
	return tok
}

// small is a vocabulary of all bytes and a few pairs, which needs no files.
func small(t testing.TB, merges ...string) *Tokenizer {
	t.Helper()
	vocabulary, all := smallFiles(merges...)
	tok, err := New(strings.NewReader(vocabulary), strings.NewReader(all))
	if err != nil {
		t.Fatal(err)
	}
	return tok
}

func smallFiles(merges ...string) (vocabulary, all string) {
	var b strings.Builder
	letters := make([]rune, 256)
	for r, c := range letterBytes() {
		letters[c] = r
	}
	id := 0
	add := func(word string) {
		word = strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(word)
		b.WriteString(map[bool]string{true: "{", false: ","}[id == 0] + `"` + word + `":` + itoa(id))
		id++
	}
	for _, r := range letters {
		add(string(r))
	}
	for _, m := range merges {
		add(strings.ReplaceAll(m, " ", ""))
	}
	return b.String() + "}", "#version: 0.2\n" + strings.Join(merges, "\n") + "\n"
}

func itoa(i int) string { return strings.TrimSpace(string(appendInt(nil, i))) }

func appendInt(b []byte, i int) []byte {
	if i >= 10 {
		b = appendInt(b, i/10)
	}
	return append(b, byte('0'+i%10))
}

// The tokens that the authors' encoder gives.
func TestGPT2(t *testing.T) {
	tok := gpt2(t)
	if tok.Size() != 50257 || len(tok.merges) != 50000 {
		t.Errorf("%d tokens, %d merges", tok.Size(), len(tok.merges))
	}
	for text, want := range map[string][]int32{
		"hello":         {31373},
		"Hello world":   {15496, 995},
		"Hello, world!": {15496, 11, 995, 0},
		" hello":        {23748},
		"":              nil,
		"\n":            {198},
		"\n\n":          {628},
		"I'm":           {40, 1101},
	} {
		if diff := cmp.Diff(want, tok.Encode(nil, []byte(text))); diff != "" {
			t.Errorf("%q (-want +got):\n%s", text, diff)
		}
	}
	if got, err := tok.Decode(nil, []int32{50256}); err != nil || string(got) != "<|endoftext|>" {
		t.Errorf("got %q, %v", got, err)
	}
	text, err := os.ReadFile(realData(t, "text/tinyshakespeare.txt").Name())
	if err != nil {
		t.Fatal(err)
	}
	ids := tok.Encode(nil, text)
	back, err := tok.Decode(nil, ids)
	if err != nil || !bytes.Equal(back, text) {
		t.Errorf("%d tokens lead to %d bytes of %d: %v", len(ids), len(back), len(text), err)
	}
	// Known from programs that train on this text with this vocabulary: 301,966
	// tokens in the first nine tenths and 36,059 in the rest.
	cut := len(text) * 9 / 10
	if a, b := len(tok.Encode(nil, text[:cut])), len(tok.Encode(nil, text[cut:])); a != 301966 || b != 36059 {
		t.Errorf("%d and %d tokens", a, b)
	}
}

// The scanner finds what the pattern finds. The library of regular expressions
// has no look-ahead, so the test applies it by hand.
func TestWords(t *testing.T) {
	pattern := regexp.MustCompile(`^(?:'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\x{85}\p{Z}\x{0b}\p{L}\p{N}]+)`)
	spaces := regexp.MustCompile(`^[\s\x{85}\p{Z}\x{0b}]+`)
	split := func(text string) (words []string) {
		for text != "" {
			w := pattern.FindString(text)
			if w == "" {
				if w = spaces.FindString(text); w == "" {
					return append(words, "none at "+text)
				}
				if runes := []rune(w); len(w) < len(text) && len(runes) > 1 {
					w = string(runes[:len(runes)-1])
				}
			}
			words = append(words, w)
			text = text[len(w):]
		}
		return words
	}
	scan := func(text string) (words []string) {
		for text != "" {
			n := word([]byte(text))
			words = append(words, text[:n])
			text = text[n:]
		}
		return words
	}
	want := []string{"It", "'s", " a", "  ", " test", ":", " x", "²³", "'", " ''", "ll", "\n\n", "\t", "émigré", " ", "  ", " "}
	if diff := cmp.Diff(want[:14], scan(strings.Join(want[:14], ""))); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	rapid.Check(t, func(rt *rapid.T) {
		text := rapid.StringOf(rapid.OneOf(
			rapid.RuneFrom([]rune("aZ'srtvemld 0九\n\r\t\v.!-é²Ⅷ\u00a0\u0085\u3000_")), rapid.Rune(),
		)).Draw(rt, "text")
		if diff := cmp.Diff(split(text), scan(text)); diff != "" {
			rt.Fatalf("%q (-pattern +scanner):\n%s", text, diff)
		}
	})
}

// Long words are joined as short ones are, which is as the definition says.
func TestLong(t *testing.T) {
	tok := small(t, "a b", "b a", "ab ab", "a a", "aa ab", "abab a", "b b", "bb bb", "c a")
	rapid.Check(t, func(rt *rapid.T) {
		text := []byte(rapid.StringMatching(`[abc]{0,80}`).Draw(rt, "text"))
		var m merger
		for _, b := range text {
			m.ids = append(m.ids, tok.bytes[b])
		}
		want := slices.Clone(m.short(tok))
		var l merger
		for _, b := range text {
			l.ids = append(l.ids, tok.bytes[b])
		}
		got := []int32(nil)
		if len(text) > 0 {
			got = l.long(tok, nil)
		}
		if !slices.Equal(got, want) {
			rt.Fatalf("%q: got %v, want %v", text, got, want)
		}
	})
}

// A long word takes little more than its share of time: the number of steps is
// what the heap sees.
func TestLongLinear(t *testing.T) {
	tok := small(t, "a a", "aa aa", "aaaa aaaa")
	ids := tok.Encode(nil, bytes.Repeat([]byte("a"), 1<<18))
	if len(ids) != 1<<15 {
		t.Errorf("%d tokens", len(ids))
	}
}

func TestNewRefuses(t *testing.T) {
	vocabulary, merges := smallFiles("a b", "ab c")
	for want, files := range map[string][2]string{
		"is no JSON object":                    {"[]", merges},
		"stands for no byte":                   {strings.Replace(vocabulary, `"ab"`, `"鼎"`, 1), merges},
		"want each of 0 to 257 once":           {strings.Replace(vocabulary, ":256", ":3", 1), merges},
		"no token for byte 0x61":               {strings.Replace(vocabulary, `"a"`, `"aa"`, 1), merges},
		"line 2 of the merges is \"ab\"":       {vocabulary, "#version: 0.2\nab\n"},
		"line 1 of the merges joins \"a c\"":   {vocabulary, "a c\n"},
		"line 1 of the merges joins \"ab c\"":  {vocabulary, "ab c\na b\n"},
		"line 3 of the merges joins \"a b\" a": {vocabulary, "a b\nab c\na b\n"},
		"there are no merges":                  {vocabulary, ""},
	} {
		if _, err := New(strings.NewReader(files[0]), strings.NewReader(files[1])); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
	if _, err := small(t, "a b").Decode(nil, []int32{0, 257}); err == nil || !strings.Contains(err.Error(), "token 1 is 257, the vocabulary ends at 256") {
		t.Errorf("got %v", err)
	}
}

// FuzzEncode: tokens of any bytes lead back to them.
func FuzzEncode(f *testing.F) {
	tok := small(f, "a b", "ab ab", "Ġ a", "Ã ©", "' s")
	for _, s := range []string{"", "abab ab's é", "\xff\xfe \x00", "  \n\n ", strings.Repeat("ab", 100), "'ll '", "\u3000x"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		ids := tok.Encode(nil, text)
		if len(ids) > len(text) {
			t.Fatalf("%d tokens of %d bytes", len(ids), len(text))
		}
		if back, err := tok.Decode(nil, ids); err != nil || !bytes.Equal(back, text) {
			t.Fatalf("%q became %v and %q, %v", text, ids, back, err)
		}
	})
}

func BenchmarkEncode(b *testing.B) {
	tok := gpt2(b)
	text, err := os.ReadFile(realData(b, "text/tinyshakespeare.txt").Name())
	if err != nil {
		b.Fatal(err)
	}
	var ids []int32
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		ids = tok.Encode(ids[:0], text)
	}
}
