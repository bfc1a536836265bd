package launch

import (
	"fmt"
	"net"
	"strconv"

	"github.com/gangline/gangline/coord"
	"github.com/gangline/gangline/transport/sock"
)

// The variables of the launch contract.
const (
	EnvRank    = "GANGLINE_RANK"
	EnvWorld   = "GANGLINE_WORLD_SIZE"
	EnvAddress = "GANGLINE_ADDRESS"
	EnvToken   = "GANGLINE_TOKEN"
	// EnvAttempt is how often the job was restarted; Run sets it, 0 if unset.
	EnvAttempt = "GANGLINE_ATTEMPT"
	// EnvParent is the launcher's pid; set only if stdin is its lifeline.
	EnvParent = "GANGLINE_PARENT"
)

// Place is where a process stands in a job that somebody else started.
type Place struct {
	Rank  int
	World int
	// Address is host:port of the coordinator.
	Address string
	Token   string
	// Attempt counts restarts.
	Attempt int
	// Source names who set rank and world: gangline, Open MPI, Slurm, environment.
	Source string
}

// Environ returns the variables that tell a process its place, as KEY=value.
func (p Place) Environ() []string {
	return []string{
		EnvRank + "=" + strconv.Itoa(p.Rank),
		EnvWorld + "=" + strconv.Itoa(p.World),
		EnvAddress + "=" + p.Address,
		EnvToken + "=" + p.Token,
		EnvAttempt + "=" + strconv.Itoa(p.Attempt),
	}
}

// launcher is one that FromEnv knows, by the variables it sets.
type launcher struct {
	source, rank, world string
	// mark, if named, must be set besides for the launcher to be recognised.
	mark string
}

// launchers in the order in which they are asked. Open MPI comes before Slurm:
// in a batch script, mpirun's processes also see the rank of the script.
func launchers() []launcher {
	return []launcher{
		{source: "gangline", rank: EnvRank, world: EnvWorld},
		{source: "Open MPI", rank: "OMPI_COMM_WORLD_RANK", world: "OMPI_COMM_WORLD_SIZE"},
		{source: "Slurm", rank: "SLURM_PROCID", world: "SLURM_NTASKS", mark: "SLURM_JOB_ID"},
		{source: "environment", rank: "RANK", world: "WORLD_SIZE"},
	}
}

// FromEnv returns the place that the environment gives this process; false if it
// gives none. lookup is os.LookupEnv. An empty variable counts as unset.
//
// Address and token always come from GANGLINE_ADDRESS and GANGLINE_TOKEN; only
// RANK and WORLD_SIZE may come with MASTER_ADDR and MASTER_PORT instead of an
// address. To be inside a Slurm or MPI allocation without an address is not to
// join. Whatever is set by half or makes no sense is an error that names the
// variable: a rank that silently trains alone is worse than one that stops.
func FromEnv(lookup func(string) (string, bool)) (Place, bool, error) {
	get := func(name string) string {
		value, _ := lookup(name)
		return value
	}
	l, found := choose(get)
	address, token := get(EnvAddress), get(EnvToken)
	master := get("MASTER_ADDR") != "" || get("MASTER_PORT") != ""
	switch {
	case address != "" && !found:
		return Place{}, false, fmt.Errorf("%s is set, but %s is not, and no launcher has set a rank", EnvAddress, EnvRank)
	case address == "" && token != "" && l.source != "environment":
		return Place{}, false, fmt.Errorf("%s is set, but %s is not", EnvToken, EnvAddress)
	case !found && master:
		return Place{}, false, fmt.Errorf("MASTER_ADDR or MASTER_PORT is set, but RANK is not")
	case !found:
		return Place{}, false, nil
	case address == "" && l.source != "gangline" && l.source != "environment":
		return Place{}, false, nil
	}
	p := Place{Source: l.source, Address: address, Token: token}
	var err error
	if p.Rank, p.World, err = l.numbers(get); err != nil {
		return Place{}, false, err
	}
	if address == "" && l.source == "environment" {
		if p.Address, err = masterAddress(get); err != nil {
			return Place{}, false, err
		}
	} else if err := checkAddress(EnvAddress, address); err != nil {
		return Place{}, false, err
	}
	if token == "" {
		return Place{}, false, fmt.Errorf("%s is not set: rank %d cannot show that it belongs to the job", EnvToken, p.Rank)
	}
	if len(token) < sock.MinToken {
		return Place{}, false, fmt.Errorf("%s has %d bytes, want at least %d: a secret that all ranks share", EnvToken, len(token), sock.MinToken)
	}
	if text := get(EnvAttempt); text != "" {
		if p.Attempt, err = number(EnvAttempt, text, 0, 1<<20); err != nil {
			return Place{}, false, err
		}
	}
	return p, true, nil
}

// choose returns the first launcher that has set something.
func choose(get func(string) string) (launcher, bool) {
	for _, l := range launchers() {
		if l.mark != "" && get(l.mark) == "" {
			continue
		}
		if get(l.rank) != "" || get(l.world) != "" {
			return l, true
		}
	}
	return launcher{}, false
}

// numbers reads rank and world.
func (l launcher) numbers(get func(string) string) (rank, world int, err error) {
	rankText, worldText := get(l.rank), get(l.world)
	switch {
	case rankText == "":
		return 0, 0, fmt.Errorf("%s is set, but %s is not", l.world, l.rank)
	case worldText == "":
		return 0, 0, fmt.Errorf("%s is set, but %s is not", l.rank, l.world)
	}
	if world, err = number(l.world, worldText, 1, coord.MaxWorld); err != nil {
		return 0, 0, err
	}
	rank, err = number(l.rank, rankText, 0, world-1)
	return rank, world, err
}

func number(name, text string, lowest, highest int) (int, error) {
	n, err := strconv.Atoi(text)
	if err != nil || n < lowest || n > highest {
		return 0, fmt.Errorf("%s is %q, it must be a number from %d to %d", name, text, lowest, highest)
	}
	return n, nil
}

func masterAddress(get func(string) string) (string, error) {
	host, port := get("MASTER_ADDR"), get("MASTER_PORT")
	switch {
	case host == "" && port == "":
		return "", fmt.Errorf("RANK or WORLD_SIZE is set, but neither %s nor MASTER_ADDR and MASTER_PORT", EnvAddress)
	case host == "":
		return "", fmt.Errorf("MASTER_PORT is set, but MASTER_ADDR is not")
	case port == "":
		return "", fmt.Errorf("MASTER_ADDR is set, but MASTER_PORT is not")
	}
	if _, err := number("MASTER_PORT", port, 1, 65535); err != nil {
		return "", err
	}
	return net.JoinHostPort(host, port), nil
}

func checkAddress(name, address string) error {
	if address == "" {
		return fmt.Errorf("%s is set, but %s is not", EnvRank, name)
	}
	host, port, err := net.SplitHostPort(address)
	if err != nil || host == "" {
		return fmt.Errorf("%s is %q, it must be host:port", name, address)
	}
	_, err = number(name+"'s port", port, 1, 65535)
	return err
}
