package launch

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestFromEnv goes through who may have started us, and through everything that
// can be set by half.
func TestFromEnv(t *testing.T) {
	const ours = "GANGLINE_RANK=1 GANGLINE_WORLD_SIZE=4 GANGLINE_ADDRESS=h:70 GANGLINE_TOKEN=ssssssss"
	place := func(rank, world int, address, source string) Place {
		return Place{Rank: rank, World: world, Address: address, Token: "ssssssss", Source: source}
	}
	private := func(rank, world int, address, source string) Place {
		return Place{Rank: rank, World: world, Address: address, Private: "some", Source: source}
	}
	const slurm = "SLURM_JOB_ID=9 SLURM_STEP_ID=1 SLURM_PROCID=3 SLURM_NTASKS=8"
	for _, tc := range []struct {
		name string
		env  string
		want Place // the zero place: not a join
		err  string
		// alone: what is known is no place.
		alone bool
	}{
		{name: "nothing"},
		{name: "ours", env: ours, want: place(1, 4, "h:70", "gangline")},
		{name: "ours first", env: ours + " SLURM_JOB_ID=9 SLURM_PROCID=3 SLURM_NTASKS=8 RANK=7 WORLD_SIZE=8", want: place(1, 4, "h:70", "gangline")},
		{name: "v6", env: "GANGLINE_RANK=0 GANGLINE_WORLD_SIZE=1 GANGLINE_ADDRESS=[::1]:70 GANGLINE_TOKEN=ssssssss", want: place(0, 1, "[::1]:70", "gangline")},
		{name: "no rank", env: "GANGLINE_WORLD_SIZE=4 GANGLINE_ADDRESS=h:70 GANGLINE_TOKEN=ssssssss", err: "GANGLINE_WORLD_SIZE is set, but GANGLINE_RANK is not"},
		{name: "no world", env: "GANGLINE_RANK=1 GANGLINE_ADDRESS=h:70 GANGLINE_TOKEN=ssssssss", err: "GANGLINE_RANK is set, but GANGLINE_WORLD_SIZE is not"},
		{name: "no address", env: "GANGLINE_RANK=1 GANGLINE_WORLD_SIZE=4", err: "GANGLINE_RANK is set, but GANGLINE_ADDRESS is not"},
		{name: "no address but a token", env: "GANGLINE_RANK=1 GANGLINE_WORLD_SIZE=4 GANGLINE_TOKEN=ssssssss", err: "GANGLINE_TOKEN is set, but GANGLINE_ADDRESS is not"},
		{name: "no token", env: "GANGLINE_RANK=1 GANGLINE_WORLD_SIZE=4 GANGLINE_ADDRESS=h:70", err: "GANGLINE_TOKEN is not set"},
		{name: "empty token", env: "GANGLINE_RANK=1 GANGLINE_WORLD_SIZE=4 GANGLINE_ADDRESS=h:70 GANGLINE_TOKEN=", err: "GANGLINE_TOKEN is not set"},
		{name: "short token", env: "GANGLINE_RANK=1 GANGLINE_WORLD_SIZE=4 GANGLINE_ADDRESS=h:70 GANGLINE_TOKEN=sssssss", err: "GANGLINE_TOKEN has 7 bytes, want at least 8"},
		{name: "only token", env: "GANGLINE_TOKEN=ssssssss", err: "GANGLINE_TOKEN is set, but GANGLINE_ADDRESS is not"},
		{name: "only address", env: "GANGLINE_ADDRESS=h:70 GANGLINE_TOKEN=ssssssss", err: "GANGLINE_ADDRESS is set, but GANGLINE_RANK is not"},
		{name: "rank is no number", env: "GANGLINE_RANK=one GANGLINE_WORLD_SIZE=4 GANGLINE_ADDRESS=h:70 GANGLINE_TOKEN=ssssssss", err: `GANGLINE_RANK is "one", it must be a number from 0 to 3`},
		{name: "rank too high", env: "GANGLINE_RANK=4 GANGLINE_WORLD_SIZE=4 GANGLINE_ADDRESS=h:70 GANGLINE_TOKEN=ssssssss", err: `GANGLINE_RANK is "4", it must be a number from 0 to 3`},
		{name: "negative rank", env: "GANGLINE_RANK=-1 GANGLINE_WORLD_SIZE=4 GANGLINE_ADDRESS=h:70 GANGLINE_TOKEN=ssssssss", err: "GANGLINE_RANK"},
		{name: "no such world", env: "GANGLINE_RANK=0 GANGLINE_WORLD_SIZE=0 GANGLINE_ADDRESS=h:70 GANGLINE_TOKEN=ssssssss", err: `GANGLINE_WORLD_SIZE is "0", it must be a number from 1 to 4096`},
		{name: "no port", env: "GANGLINE_RANK=1 GANGLINE_WORLD_SIZE=4 GANGLINE_ADDRESS=h GANGLINE_TOKEN=ssssssss", err: `GANGLINE_ADDRESS is "h", it must be host:port`},
		{name: "no host", env: "GANGLINE_RANK=1 GANGLINE_WORLD_SIZE=4 GANGLINE_ADDRESS=:70 GANGLINE_TOKEN=ssssssss", err: "GANGLINE_ADDRESS"},
		{name: "port too high", env: "GANGLINE_RANK=1 GANGLINE_WORLD_SIZE=4 GANGLINE_ADDRESS=h:70000 GANGLINE_TOKEN=ssssssss", err: "GANGLINE_ADDRESS's port"},
		{name: "bad attempt", env: ours + " GANGLINE_ATTEMPT=x", err: "GANGLINE_ATTEMPT"},

		{name: "slurm without address", env: "SLURM_JOB_ID=9 SLURM_PROCID=3 SLURM_NTASKS=8"},
		{name: "half slurm without address", env: "SLURM_JOB_ID=9 SLURM_PROCID=3"},
		{name: "slurm", env: "SLURM_JOB_ID=9 SLURM_PROCID=3 SLURM_NTASKS=8 GANGLINE_ADDRESS=h:70 GANGLINE_TOKEN=ssssssss", want: place(3, 8, "h:70", "Slurm")},
		{name: "half slurm", env: "SLURM_JOB_ID=9 SLURM_PROCID=3 GANGLINE_ADDRESS=h:70 GANGLINE_TOKEN=ssssssss", err: "SLURM_PROCID is set, but SLURM_NTASKS is not"},
		{name: "slurm without token", env: "SLURM_JOB_ID=9 SLURM_PROCID=3 SLURM_NTASKS=8 GANGLINE_ADDRESS=h:70", err: "GANGLINE_TOKEN is not set"},
		{name: "not a slurm job", env: "SLURM_PROCID=3 SLURM_NTASKS=8 GANGLINE_ADDRESS=h:70 GANGLINE_TOKEN=ssssssss", err: "GANGLINE_ADDRESS is set, but GANGLINE_RANK is not"},
		{name: "slurm step on one host", env: slurm + " SLURM_STEP_NUM_NODES=1", want: private(3, 8, "", "Slurm")},
		{name: "slurm step on two hosts", env: slurm + " SLURM_STEP_NUM_NODES=2", err: "Slurm has started 8 ranks, not all of them on this host: set MASTER_ADDR and MASTER_PORT (or GANGLINE_ADDRESS=host:port)"},
		{name: "slurm step on two hosts with master", env: slurm + " SLURM_STEP_NUM_NODES=2 MASTER_ADDR=h MASTER_PORT=70 GANGLINE_TOKEN=ssssssss", want: place(3, 8, "h:70", "Slurm")},
		{name: "slurm step on two hosts with master without token", env: slurm + " SLURM_STEP_NUM_NODES=2 MASTER_ADDR=h MASTER_PORT=70", err: "GANGLINE_TOKEN is not set"},
		{name: "slurm step of one", env: "SLURM_JOB_ID=9 SLURM_STEP_ID=1 SLURM_PROCID=0 SLURM_NTASKS=1 SLURM_STEP_NUM_NODES=1", want: Place{World: 1, Source: "Slurm"}, alone: true},
		{name: "mpi on who knows where", env: "OMPI_COMM_WORLD_RANK=2 OMPI_COMM_WORLD_SIZE=3", err: "Open MPI has started 3 ranks, not all of them on this host"},
		{name: "mpi on two hosts", env: "OMPI_COMM_WORLD_RANK=2 OMPI_COMM_WORLD_SIZE=3 OMPI_COMM_WORLD_LOCAL_SIZE=2", err: "set MASTER_ADDR and MASTER_PORT"},
		{name: "mpi on one host", env: "OMPI_COMM_WORLD_RANK=2 OMPI_COMM_WORLD_SIZE=3 OMPI_COMM_WORLD_LOCAL_SIZE=3", want: private(2, 3, "", "Open MPI")},
		{name: "mpi of one", env: "OMPI_COMM_WORLD_RANK=0 OMPI_COMM_WORLD_SIZE=1 OMPI_COMM_WORLD_LOCAL_SIZE=1", want: Place{World: 1, Source: "Open MPI"}, alone: true},
		{name: "mpi with master", env: "OMPI_COMM_WORLD_RANK=2 OMPI_COMM_WORLD_SIZE=3 MASTER_ADDR=h MASTER_PORT=70 GANGLINE_TOKEN=ssssssss", want: place(2, 3, "h:70", "Open MPI")},
		{name: "mpi", env: "OMPI_COMM_WORLD_RANK=2 OMPI_COMM_WORLD_SIZE=3 GANGLINE_ADDRESS=h:70 GANGLINE_TOKEN=ssssssss", want: place(2, 3, "h:70", "Open MPI")},
		{name: "mpi in a slurm script", env: "SLURM_JOB_ID=9 SLURM_PROCID=0 SLURM_NTASKS=3 OMPI_COMM_WORLD_RANK=2 OMPI_COMM_WORLD_SIZE=3 GANGLINE_ADDRESS=h:70 GANGLINE_TOKEN=ssssssss", want: place(2, 3, "h:70", "Open MPI")},
		{name: "mpi rank too high", env: "OMPI_COMM_WORLD_RANK=3 OMPI_COMM_WORLD_SIZE=3 GANGLINE_ADDRESS=h:70 GANGLINE_TOKEN=ssssssss", err: "OMPI_COMM_WORLD_RANK"},

		{name: "plain", env: "RANK=1 WORLD_SIZE=2 MASTER_ADDR=h MASTER_PORT=29500 GANGLINE_TOKEN=ssssssss", want: place(1, 2, "h:29500", "environment")},
		{name: "plain with our address", env: "RANK=1 WORLD_SIZE=2 GANGLINE_ADDRESS=g:70 GANGLINE_TOKEN=ssssssss", want: place(1, 2, "g:70", "environment")},
		{name: "plain on this host", env: "RANK=1 WORLD_SIZE=2 MASTER_ADDR=127.0.0.1 MASTER_PORT=29500", want: private(1, 2, "127.0.0.1:29500", "environment")},
		{name: "plain on localhost", env: "RANK=1 WORLD_SIZE=2 MASTER_ADDR=localhost MASTER_PORT=29500", want: private(1, 2, "localhost:29500", "environment")},
		{name: "plain, all local", env: "RANK=1 WORLD_SIZE=2 LOCAL_WORLD_SIZE=2 MASTER_ADDR=h MASTER_PORT=29500", want: private(1, 2, "h:29500", "environment")},
		{name: "plain, some local", env: "RANK=1 WORLD_SIZE=2 LOCAL_WORLD_SIZE=1 MASTER_ADDR=h MASTER_PORT=29500", err: "GANGLINE_TOKEN is not set"},
		{name: "plain on this host with a token", env: "RANK=1 WORLD_SIZE=2 MASTER_ADDR=127.0.0.1 MASTER_PORT=29500 GANGLINE_TOKEN=ssssssss", want: place(1, 2, "127.0.0.1:29500", "environment")},
		{name: "ours on this host", env: "GANGLINE_RANK=1 GANGLINE_WORLD_SIZE=4 GANGLINE_ADDRESS=127.0.0.1:70", want: private(1, 4, "127.0.0.1:70", "gangline")},
		{name: "launched on this host without token", env: "GANGLINE_RANK=1 GANGLINE_WORLD_SIZE=4 GANGLINE_ADDRESS=127.0.0.1:70 GANGLINE_PARENT=9", err: "GANGLINE_TOKEN is not set"},
		{name: "launched", env: ours + " GANGLINE_PARENT=9", want: Place{Rank: 1, World: 4, Address: "h:70", Token: "ssssssss", Source: "gangline", Hosted: true}},
		{name: "plain without token", env: "RANK=1 WORLD_SIZE=2 MASTER_ADDR=h MASTER_PORT=29500", err: "GANGLINE_TOKEN is not set"},
		{name: "plain without world", env: "RANK=1 MASTER_ADDR=h MASTER_PORT=29500 GANGLINE_TOKEN=ssssssss", err: "RANK is set, but WORLD_SIZE is not"},
		{name: "plain without port", env: "RANK=1 WORLD_SIZE=2 MASTER_ADDR=h GANGLINE_TOKEN=ssssssss", err: "MASTER_ADDR is set, but MASTER_PORT is not"},
		{name: "plain without host", env: "RANK=1 WORLD_SIZE=2 MASTER_PORT=1 GANGLINE_TOKEN=ssssssss", err: "MASTER_PORT is set, but MASTER_ADDR is not"},
		{name: "plain without address", env: "RANK=1 WORLD_SIZE=2", err: "neither GANGLINE_ADDRESS nor MASTER_ADDR"},
		{name: "only master", env: "MASTER_ADDR=h MASTER_PORT=1", err: "RANK is not"},
		{name: "bad master port", env: "RANK=1 WORLD_SIZE=2 MASTER_ADDR=h MASTER_PORT=x GANGLINE_TOKEN=ssssssss", err: `MASTER_PORT is "x"`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got, ok, err := FromEnv(lookupIn(strings.Fields(tc.env)))
			if tc.err != "" {
				if err == nil || !strings.Contains(err.Error(), tc.err) || ok {
					t.Fatalf("got %+v, %t, error %v; want an error with %q", got, ok, err, tc.err)
				}
				return
			}
			if err != nil || ok != (tc.want != Place{} && !tc.alone) {
				t.Fatalf("got %+v, %t, %v", got, ok, err)
			}
			if got.Private != "" {
				got.Private = "some"
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestPrivateName is that ranks of one job meet in one place, and those of others
// elsewhere.
func TestPrivateName(t *testing.T) {
	at := func(env string) string {
		p, ok, err := FromEnv(lookupIn(strings.Fields(env + " TMPDIR=/t OMPI_COMM_WORLD_SIZE=3 OMPI_COMM_WORLD_LOCAL_SIZE=3")))
		if err != nil || !ok {
			t.Fatal(ok, err)
		}
		return p.Private
	}
	zero := at("PMIX_NAMESPACE=1 OMPI_COMM_WORLD_RANK=0")
	if one := at("PMIX_NAMESPACE=1 OMPI_COMM_WORLD_RANK=1"); one != zero {
		t.Errorf("ranks 0 and 1 meet in %s and %s", zero, one)
	}
	if other := at("PMIX_NAMESPACE=2 OMPI_COMM_WORLD_RANK=0"); other == zero {
		t.Errorf("two jobs meet in %s", zero)
	}
	if kept := at("PMIX_NAMESPACE=1 OMPI_COMM_WORLD_RANK=0 OMPI_MCA_orte_jobfam_session_dir=/t/ompi"); !strings.HasPrefix(kept, "/t/ompi/") {
		t.Errorf("the place is %s, not in the launcher's directory", kept)
	}
	if long := at("PMIX_NAMESPACE=1 OMPI_COMM_WORLD_RANK=0 OMPI_MCA_orte_jobfam_session_dir=/t/" + strings.Repeat("x", 90)); !strings.HasPrefix(long, "/t/gangline-") {
		t.Errorf("the place is %s, too long for a socket", long)
	}
}

// TestWorldVariable: who set a wrong world size must hear which variable it is, also
// under a launcher of another name, and where several have set one.
func TestWorldVariable(t *testing.T) {
	for env, want := range map[string]string{
		"GANGLINE_RANK=0 GANGLINE_WORLD_SIZE=2 RANK=0 WORLD_SIZE=3 GANGLINE_ADDRESS=127.0.0.1:70":           EnvWorld,
		"OMPI_COMM_WORLD_RANK=0 OMPI_COMM_WORLD_SIZE=2 RANK=0 WORLD_SIZE=3 GANGLINE_ADDRESS=127.0.0.1:70":   "OMPI_COMM_WORLD_SIZE",
		"SLURM_JOB_ID=9 SLURM_PROCID=0 SLURM_NTASKS=2 SLURM_STEP_NUM_NODES=1 GANGLINE_ADDRESS=127.0.0.1:70": "SLURM_NTASKS",
		"RANK=0 WORLD_SIZE=2 GANGLINE_ADDRESS=127.0.0.1:70":                                                 "WORLD_SIZE",
	} {
		p, joins, err := FromEnv(lookupIn(strings.Fields(env)))
		if err != nil || !joins || p.World != 2 || p.WorldVariable() != want {
			t.Errorf("%s: %+v, %v: the world size is from %q, want %s", env, p, err, p.WorldVariable(), want)
		}
	}
	if v := (Place{}).WorldVariable(); v != "" {
		t.Errorf("of no environment it is %q", v)
	}
}

func TestEnviron(t *testing.T) {
	want := Place{Rank: 2, World: 3, Address: "127.0.0.1:70", Token: "ssssssss", Attempt: 4, Source: "gangline"}
	got, ok, err := FromEnv(lookupIn(want.Environ()))
	if err != nil || !ok {
		t.Fatal(ok, err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func lookupIn(environ []string) func(string) (string, bool) {
	return func(name string) (string, bool) {
		for _, entry := range environ {
			if key, value, _ := strings.Cut(entry, "="); key == name {
				return value, true
			}
		}
		return "", false
	}
}
