package comm

import (
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/gangline/gangline/collective/cost"
)

// All ranks fit alike on the times that they share, and every all-reduce is beside its
// model; or they say why they do not fit.
func TestProbeOver(t *testing.T) {
	ps := parties(t, 3)
	done, errs := make([]Probed, len(ps)), make([]error, len(ps))
	var wg sync.WaitGroup
	for i, p := range ps {
		wg.Go(func() {
			done[i].Path = "unix"
			errs[i] = (Probe{Quick: true}).over(t.Context(), p, &done[i])
		})
	}
	wg.Wait()
	for rank, err := range errs {
		if err != nil {
			t.Fatalf("rank %d: %v", rank, err)
		}
		if done[rank].Fitted != done[0].Fitted || done[rank].NoFit != done[0].NoFit {
			t.Errorf("ranks 0 and %d differ: %+v, %+v", rank, done[0], done[rank])
		}
	}
	if d := done[0]; d.NoFit == "" {
		if len(d.Checks) != 4*len((Probe{Quick: true}).buffers()) {
			t.Errorf("%d all-reduces", len(d.Checks))
		}
		for _, c := range d.Checks {
			if !(c.Measured > 0 && c.Modelled > 0) {
				t.Errorf("%+v", c)
			}
		}
	}
}

func TestMembersOf(t *testing.T) {
	for _, c := range []struct {
		path  string
		hosts []string
		want  []int
		on    int
	}{
		{"tcp", []string{"a", "a", "b", "b"}, []int{0, 2}, 2},
		{"tcp", []string{"a", "a"}, []int{0, 1}, 1},
		{"shm", []string{"a", "b", "a"}, []int{0, 2}, 1},
		{"unix", []string{"a", "b"}, []int{0}, 1},
	} {
		got := membersOf(c.path, c.hosts)
		if d := cmp.Diff(c.want, got); d != "" || hostsOf(got, c.hosts) != c.on {
			t.Errorf("%s over %v (-want +got):\n%s", c.path, c.hosts, d)
		}
	}
}

func probed() []Probed {
	return []Probed{
		{Path: "shm", Skipped: "rank 0 is alone on its host"},
		{Path: "unix", Ranks: 2, Hosts: 1, NoFit: "too busy"},
		{
			Path: "tcp", Ranks: 2, Hosts: 2, Fitted: cost.Fitted{Link: cost.Link{Alpha: 5e-5, Beta: 1e-9, Gamma: 1e-10}, Off: .1, OffMost: .3},
			Checks: []Check{
				{Algorithm: "ring", Bytes: 4, Measured: 100, Modelled: 200},
				{Algorithm: "doubling", Bytes: 4, Measured: 50, Modelled: 55},
				{Algorithm: "ring", Bytes: 400, Measured: 300, Modelled: 310},
				{Algorithm: "doubling", Bytes: 400, Measured: 330, Modelled: 300},
			},
		},
	}
}

// The file has the paths that were fitted, and no other.
func TestCostsOfProbe(t *testing.T) {
	text, err := (Probe{}).Costs(probed())
	if err != nil {
		t.Fatal(err)
	}
	got, err := cost.Parse(text)
	want := cost.Default()
	want[cost.TCP] = cost.Link{Alpha: 5e-5, Beta: 1e-9, Gamma: 1e-10}
	if d := cmp.Diff(want, got); d != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, d)
	}
	for _, part := range []string{`"tcp"`, "tcp between 2 ranks on 2 hosts", "core", "messages of 4 to"} {
		if !strings.Contains(string(text), part) {
			t.Errorf("no %s in\n%s", part, text)
		}
	}
	if strings.Contains(string(text), `"unix"`) {
		t.Errorf("costs without a fit in\n%s", text)
	}
	if _, err := (Probe{}).Costs(probed()[:2]); err == nil || !strings.Contains(err.Error(), "unix: too busy") {
		t.Errorf("got %v", err)
	}
}

func TestSayProbe(t *testing.T) {
	text := Say(probed())
	for _, part := range []string{
		"tcp: the model is off by a factor of 1.10 in the middle, 2.00 at most; its choice is the fastest at 1 of 2 sizes, at worst 10 % slower",
		"shm: not measured: rank 0 is alone", "unix: not saved: too busy", "50.00",
	} {
		if !strings.Contains(text, part) {
			t.Errorf("no %q in\n%s", part, text)
		}
	}
}

func TestProbeValidate(t *testing.T) {
	for want, p := range map[string]Probe{
		"1 ranks":            {Ranks: 1},
		`did you mean "shm"`: {Ranks: 2, Paths: []string{"shn"}},
		"stands twice":       {Ranks: 2, Paths: []string{"shm", "shm"}},
	} {
		if err := p.Validate(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
}
