package stream

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/gangline/gangline/transport/mem"
)

func someRecord(rank int, path Path, host byte) record {
	return record{rank: rank, path: path, shm: true, host: hostID{host}, tcp: "10.0.0.1:5", unix: "@some"}
}

// The path of a pair follows from what both can and are allowed; one that cannot be
// names the ranks and the hosts.
func TestChoose(t *testing.T) {
	noShm := func(r record) record { r.shm = false; return r }
	noUnix := func(r record) record { r.unix = ""; return r }
	noHost := func(r record) record { r.host = hostID{}; return r }
	for _, tt := range []struct {
		name string
		a, b record
		want Path
		err  string
	}{
		{"one host", someRecord(0, Auto, 1), someRecord(1, Auto, 1), Shm, ""},
		{"two hosts", someRecord(0, Auto, 1), someRecord(1, Auto, 2), TCP, ""},
		{"unknown hosts", noHost(someRecord(0, Auto, 1)), noHost(someRecord(1, Auto, 1)), TCP, ""},
		{"no shared memory", someRecord(0, Auto, 1), noShm(someRecord(1, Auto, 1)), Unix, ""},
		{"no unix sockets", noUnix(someRecord(0, Auto, 1)), someRecord(1, Auto, 1), TCP, ""},
		{"unix", someRecord(0, Unix, 1), someRecord(1, Unix, 1), Unix, ""},
		{"tcp on one host", someRecord(0, TCP, 1), someRecord(1, TCP, 1), TCP, ""},
		{"shm between hosts", someRecord(0, Shm, 1), someRecord(1, Shm, 2), 0, "ranks 0 (host 01000000) and 1 (host 02000000) cannot use path shm: they are on different hosts"},
		{"shm without", someRecord(3, Shm, 1), noShm(someRecord(1, Shm, 1)), 0, "ranks 3 (host 01000000) and 1 (host 01000000) cannot use path shm: a system of theirs does not have it"},
		{"unlike", someRecord(0, Shm, 1), someRecord(1, TCP, 1), 0, "rank 0 allows path shm, rank 1 tcp"},
	} {
		got, err := choose(&tt.a, &tt.b)
		back, _ := choose(&tt.b, &tt.a)
		if got != tt.want || back != tt.want || (err == nil) != (tt.err == "") || err != nil && !strings.Contains(err.Error(), tt.err) {
			t.Errorf("%s: got %v, %v back, %v; want %v, %s", tt.name, got, back, err, tt.want, tt.err)
		}
	}
}

// A pair that cannot be fails all members, whichever it is.
func TestCheckAll(t *testing.T) {
	for odd := range 3 {
		all := []record{someRecord(0, Shm, 1), someRecord(1, Shm, 1), someRecord(2, Shm, 1)}
		if err := checkAll(all); err != nil {
			t.Fatal(err)
		}
		all[odd].host = hostID{9}
		if checkAll(all) == nil {
			t.Errorf("rank %d alone on its host: no error", odd)
		}
	}
}

// A group has a socket if any of its pairs has, whoever asks.
func TestAnySocket(t *testing.T) {
	for odd := range 3 {
		all := []record{someRecord(0, Auto, 1), someRecord(1, Auto, 1), someRecord(2, Auto, 1)}
		if anySocket(all) {
			t.Fatal("a group of one host has a socket")
		}
		all[odd].shm = false
		if !anySocket(all) {
			t.Errorf("rank %d shares no memory: no socket", odd)
		}
	}
}

// There is a core for each if the members of a host may use as many together.
func TestRoom(t *testing.T) {
	all := []record{someRecord(0, Auto, 1), someRecord(1, Auto, 1), someRecord(2, Auto, 2)}
	all[0].cpus[0], all[1].cpus[0], all[2].cpus[0] = 1, 1, 1
	if room(all, 0) || room(all, 1) {
		t.Error("two ranks that share a core have room")
	}
	if !room(all, 2) {
		t.Error("a rank with a core of its own has no room")
	}
	all[1].cpus[0] = 2
	if !room(all, 0) || !room(all, 1) {
		t.Error("two ranks with a core each have no room")
	}
}

// What encode makes decodes to the same; what does not decode is no panic.
func FuzzRecord(f *testing.F) {
	r := someRecord(3, TCP, 7)
	b, err := r.encode()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(b)
	f.Add(make([]byte, recordSize))
	bad := append([]byte{}, b...)
	bad[unixAt] = 255
	f.Add(bad)
	f.Fuzz(func(t *testing.T, b []byte) {
		if len(b) == 0 {
			return // an exchange gives recordSize bytes always
		}
		r, err := decodeRecord(b)
		if err != nil {
			if !errors.Is(err, errRecord) {
				t.Error(err)
			}
			return
		}
		again, err := r.encode()
		if err != nil {
			t.Fatal(err)
		}
		back, err := decodeRecord(again)
		if diff := cmp.Diff(r, back, cmp.AllowUnexported(record{})); err != nil || diff != "" {
			t.Errorf("%v, %s", err, diff)
		}
	})
}

func TestRecordAddressTooLong(t *testing.T) {
	r := someRecord(0, TCP, 1)
	r.tcp = strings.Repeat("a", 160)
	if _, err := r.encode(); err == nil {
		t.Error("no error")
	}
}

// A config that cannot work says what is wrong.
func TestValidate(t *testing.T) {
	good := func() Config {
		return Config{
			Rank: 1, World: 4, Token: "token of a test", Members: []int{3, 1}, Endpoint: mem.NewNetwork(1).Endpoint(0),
		}
	}
	c := good()
	if err := c.Validate(); err != nil {
		t.Fatal(err)
	}
	for want, change := range map[string]func(*Config){
		"rank 4 is none":        func(c *Config) { c.Members = []int{1, 4} },
		"stands there twice":    func(c *Config) { c.Members = []int{1, 1} },
		"not among the members": func(c *Config) { c.Rank = 0 },
		"world of 5000 ranks":   func(c *Config) { c.World = 5000 },
		"no endpoint":           func(c *Config) { c.Endpoint = nil },
		"token of 3 bytes":      func(c *Config) { c.Token = "abc" },
		"unknown path 9":        func(c *Config) { c.Path = 9 },
		"ring of 5000 bytes":    func(c *Config) { c.Ring = 5000 },
		"ring of 1024 bytes":    func(c *Config) { c.Ring = 1024 },
		"negative timeout":      func(c *Config) { c.Timeout = -1 },
	} {
		c := good()
		change(&c)
		if err := c.Validate(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
}

// A rank's rings do not grow without bound with the group.
func TestDefaultRing(t *testing.T) {
	for n, want := range map[int]int{1: DefaultRing, 2: DefaultRing, 17: DefaultRing, 18: DefaultRing / 2, 64: 256 << 10, 4096: smallRing} {
		c := Config{Members: make([]int, n)}
		if got := c.withDefaults().Ring; got != want {
			t.Errorf("%d members: ring of %d bytes, want %d", n, got, want)
		}
	}
}
