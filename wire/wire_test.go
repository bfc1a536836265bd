package wire

import (
	"bytes"
	"errors"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func headers() *rapid.Generator[Header] {
	return rapid.Custom(func(t *rapid.T) Header {
		h := Header{
			Kind:       Kind(rapid.IntRange(int(Data), int(Ping)).Draw(t, "kind")),
			Generation: rapid.Uint32().Draw(t, "generation"),
		}
		if n := h.Kind.maxLength(); n > 0 {
			h.Length = rapid.Uint32Range(0, n).Draw(t, "length")
			if rapid.Bool().Draw(t, "summed") {
				h.Flags, h.Checksum = FlagChecksum, rapid.Uint32().Draw(t, "sum")
			}
		}
		switch h.Kind {
		case Data:
			h.Tag = rapid.Uint32().Draw(t, "tag")
		case Credit:
			h.Tag = rapid.Uint32().Draw(t, "tag")
			h.Arg = rapid.Uint32Range(0, MaxLength).Draw(t, "arg")
		case Refuse:
			h.Tag = rapid.Uint32().Draw(t, "tag")
			h.Arg = rapid.Uint32().Draw(t, "arg")
		case Hello, Welcome, Bye, Ping: // have neither
		}
		return h
	})
}

// Every header that may be sent arrives as it was.
func TestHeaderRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := headers().Draw(t, "header")
		var b [HeaderSize]byte
		if err := want.Encode(&b); err != nil {
			t.Fatal(err)
		}
		got, err := Decode(&b)
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Fatal(d)
		}
	})
}

// No damage to a single byte goes unseen.
func TestHeaderDamage(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var b [HeaderSize]byte
		if err := headers().Draw(t, "header").Encode(&b); err != nil {
			t.Fatal(err)
		}
		b[rapid.IntRange(0, HeaderSize-1).Draw(t, "where")] ^= byte(rapid.IntRange(1, 255).Draw(t, "bits"))
		if h, err := Decode(&b); err == nil {
			t.Fatalf("damaged header decoded as %+v", h)
		}
	})
}

func TestHeaderBytes(t *testing.T) {
	var b [HeaderSize]byte
	h := Header{Kind: Data, Flags: FlagChecksum, Generation: 0x01020304, Tag: 0x11121314, Length: 0x0a0b0c, Checksum: 0x31323334}
	if err := h.Encode(&b); err != nil {
		t.Fatal(err)
	}
	want := []byte{'G', 'N', 'G', 'L', 1, 1, 1, 0, 4, 3, 2, 1, 0x14, 0x13, 0x12, 0x11, 0x0c, 0x0b, 0x0a, 0, 0x34, 0x33, 0x32, 0x31, 0, 0, 0, 0}
	if d := cmp.Diff(want, b[:28]); d != "" {
		t.Error(d)
	}
	if Sum(0, []byte("123456789")) != 0xe3069283 {
		t.Error("Sum is not CRC-32C")
	}
}

func TestCheck(t *testing.T) {
	for _, tt := range []struct {
		name string
		h    Header
		text string
	}{
		{"zero", Header{}, "kind 0"},
		{"kind", Header{Kind: Ping + 1}, "kind 8"},
		{"flags", Header{Kind: Data, Flags: 6}, "flags 0x6"},
		{"long data", Header{Kind: Data, Length: MaxLength + 1}, "data of 1073741825 bytes"},
		{"long hello", Header{Kind: Hello, Length: MaxControl + 1}, "hello of 257 bytes"},
		{"ping with payload", Header{Kind: Ping, Length: 1}, "ping of 1 bytes, the limit is 0"},
		{"flag without payload", Header{Kind: Credit, Flags: FlagChecksum}, "credit has no payload"},
		{"sum without flag", Header{Kind: Data, Checksum: 7}, "checksum 0x7"},
		{"bye with tag", Header{Kind: Bye, Tag: 3}, "bye with tag 3"},
		{"data with arg", Header{Kind: Data, Arg: 3}, "data with argument 3"},
		{"credit too large", Header{Kind: Credit, Arg: MaxLength + 1}, "credit for"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var b [HeaderSize]byte
			err := tt.h.Encode(&b)
			if !errors.Is(err, ErrImpossible) || !strings.Contains(err.Error(), tt.text) {
				t.Errorf("got %v, want one that says %q", err, tt.text)
			}
		})
	}
}

func TestDecodeNames(t *testing.T) {
	good := func(change func(b *[HeaderSize]byte)) *[HeaderSize]byte {
		var b [HeaderSize]byte
		if err := (Header{Kind: Ping}).Encode(&b); err != nil {
			t.Fatal(err)
		}
		change(&b)
		return &b
	}
	for _, tt := range []struct {
		name string
		b    *[HeaderSize]byte
		want error
	}{
		{"browser", good(func(b *[HeaderSize]byte) { copy(b[:], "GET / HTTP/1.1\r\nHost: localhost\r\n") }), ErrStranger},
		{"version", good(func(b *[HeaderSize]byte) { b[4] = 2 }), ErrVersion},
		{"damage", good(func(b *[HeaderSize]byte) { b[9] ^= 4 }), ErrChecksum},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if _, err := Decode(tt.b); !errors.Is(err, tt.want) {
				t.Errorf("got %v, want %v", err, tt.want)
			}
		})
	}
}

func TestCheckPayload(t *testing.T) {
	a, b := []byte("gang"), []byte("line")
	h := Header{Kind: Data, Flags: FlagChecksum, Length: 8, Checksum: Sum(Sum(0, a), b)}
	if err := h.CheckPayload(Sum(0, []byte("gangline"))); err != nil {
		t.Error(err)
	}
	if err := h.CheckPayload(1); !errors.Is(err, ErrChecksum) {
		t.Errorf("got %v, want %v", err, ErrChecksum)
	}
	h.Flags, h.Checksum = 0, 0
	if err := h.CheckPayload(1); err != nil {
		t.Errorf("without the flag: %v", err)
	}
}

// A proof holds for its token, side, generation, ranks and nonces only.
func TestProof(t *testing.T) {
	g := Greeting{From: 3, To: 1, World: 4, Nonce: Nonce{1}}
	p := Prove("token", Dialer, 7, g, Nonce{2})
	if !p.Equal(Prove("token", Dialer, 7, g, Nonce{2})) {
		t.Error("the same proof differs")
	}
	from, to, world, nonce := g, g, g, g
	from.From, to.To, world.World, nonce.Nonce = 2, 0, 5, Nonce{9}
	for name, q := range map[string]Proof{
		"token":      Prove("tokem", Dialer, 7, g, Nonce{2}),
		"side":       Prove("token", Listener, 7, g, Nonce{2}),
		"generation": Prove("token", Dialer, 8, g, Nonce{2}),
		"challenge":  Prove("token", Dialer, 7, g, Nonce{3}),
		"from":       Prove("token", Dialer, 7, from, Nonce{2}),
		"to":         Prove("token", Dialer, 7, to, Nonce{2}),
		"world":      Prove("token", Dialer, 7, world, Nonce{2}),
		"nonce":      Prove("token", Dialer, 7, nonce, Nonce{2}),
	} {
		if p.Equal(q) {
			t.Errorf("another %s gives the same proof", name)
		}
	}
}

func TestTexts(t *testing.T) {
	long := RefusalText(strings.Repeat("é", MaxControl))
	if len(long) > MaxControl || !utf8.ValidString(long) {
		t.Errorf("cut to %d bytes, valid %v", len(long), utf8.ValidString(long))
	}
	if got := CleanText([]byte("a\x1b[31m\nb\xff")); got != "a [31m b?" {
		t.Errorf("got %q", got)
	}
}

// Whatever decodes encodes to the same bytes; nothing panics.
func FuzzDecode(f *testing.F) {
	for k := Data; k <= Ping; k++ {
		var b [HeaderSize]byte
		if err := (Header{Kind: k, Generation: 1}).Encode(&b); err != nil {
			f.Fatal(err)
		}
		f.Add(b[:])
	}
	f.Add([]byte("GNGL"))
	f.Fuzz(func(t *testing.T, data []byte) {
		var b [HeaderSize]byte
		copy(b[:], data)
		for range 2 { // the second time with a sum that is right
			if h, err := Decode(&b); err == nil {
				var again [HeaderSize]byte
				if err := h.Encode(&again); err != nil {
					t.Fatalf("decoded %+v, which may not be sent: %v", h, err)
				}
				if again != b {
					t.Fatalf("decoded %x, encoded %x", b, again)
				}
			}
			sum := Sum(0, b[:28])
			b[28], b[29], b[30], b[31] = byte(sum), byte(sum>>8), byte(sum>>16), byte(sum>>24)
		}
	})
}

func FuzzGreeting(f *testing.F) {
	f.Add(make([]byte, GreetingSize))
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, data []byte) {
		g, err := DecodeGreeting(data)
		if err != nil {
			return
		}
		var again [GreetingSize]byte
		g.Encode(&again)
		if !bytes.Equal(again[:], data) {
			t.Fatalf("decoded %x, encoded %x", data, again)
		}
		CleanText(data)
	})
}

func BenchmarkHeader(b *testing.B) {
	b.ReportAllocs()
	var buf [HeaderSize]byte
	h := Header{Kind: Data, Tag: 1, Length: 100}
	for b.Loop() {
		if err := h.Encode(&buf); err != nil {
			b.Fatal(err)
		}
		if _, err := Decode(&buf); err != nil {
			b.Fatal(err)
		}
	}
}
