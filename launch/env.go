package launch

import (
	"fmt"
	"net"
	"strconv"
	"strings"

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
	// Address is host:port of the coordinator, or "unix:" and the path of a socket.
	Address string
	Token   string
	// Private is a directory in which the ranks of one host find address and token:
	// see Meet. It is empty where both are known.
	Private string
	// Attempt counts restarts.
	Attempt int
	// Hosted says that the launcher runs the coordinator; if not, rank 0 does.
	Hosted bool
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

// WorldVariable names the variable that World is from, whoever has set it: under some
// launchers a user may as well. It is "" where FromEnv has not made the place.
func (p Place) WorldVariable() string {
	for _, l := range launchers() {
		if l.source == p.Source {
			return l.world
		}
	}
	return ""
}

// launcher is one that FromEnv knows, by the variables it sets.
type launcher struct {
	source, rank, world string
	// mark, if named, must be set besides for the launcher to be recognised.
	mark string
	// job names variables that together name the job on its host.
	job []string
	// local is the number of ranks on this host, nodes the number of hosts.
	local, nodes string
	// dir is a directory that the launcher keeps for the job on each host.
	dir string
}

// launchers in the order in which they are asked. Open MPI comes before Slurm:
// in a batch script, mpirun's processes also see the rank of the script.
func launchers() []launcher {
	return []launcher{
		{source: "gangline", rank: EnvRank, world: EnvWorld},
		{
			source: "Open MPI", rank: "OMPI_COMM_WORLD_RANK", world: "OMPI_COMM_WORLD_SIZE",
			job: []string{"PMIX_NAMESPACE", "OMPI_MCA_orte_hnp_uri"}, local: "OMPI_COMM_WORLD_LOCAL_SIZE",
			dir: "OMPI_MCA_orte_jobfam_session_dir",
		},
		{
			source: "Slurm", rank: "SLURM_PROCID", world: "SLURM_NTASKS", mark: "SLURM_JOB_ID",
			job: []string{"SLURM_JOB_ID", "SLURM_STEP_ID"}, nodes: "SLURM_STEP_NUM_NODES",
		},
		{source: "environment", rank: "RANK", world: "WORLD_SIZE", local: "LOCAL_WORLD_SIZE"},
	}
}

// FromEnv returns the place that the environment gives this process; false if it
// gives none. lookup is os.LookupEnv. An empty variable counts as unset.
//
// The coordinator is at GANGLINE_ADDRESS, or else at MASTER_ADDR and MASTER_PORT.
// Without either, ranks that Open MPI or srun started on one host meet in a private
// directory; on several hosts that is an error. A batch script of Slurm is no place,
// nor is a single rank without an address: of that, what is known is returned. The token is GANGLINE_TOKEN; where all
// ranks are certainly on this host, it may be missing, since they meet in private.
//
// Whatever is set by half or makes no sense is an error that names the variable: a
// rank that silently trains alone is worse than one that stops.
func FromEnv(lookup func(string) (string, bool)) (Place, bool, error) {
	get := func(name string) string {
		value, _ := lookup(name)
		return value
	}
	l, found := choose(get)
	if !found {
		return Place{}, false, orphaned(get)
	}
	address, err := addressOf(get, l)
	if err != nil {
		return Place{}, false, err
	}
	if address == "" && l.batch(get) {
		return Place{}, false, nil
	}
	p := Place{Source: l.source, Address: address, Token: get(EnvToken), Hosted: l.source == "gangline" && get(EnvParent) != ""}
	if p.Rank, p.World, err = l.numbers(get); err != nil {
		return Place{}, false, err
	}
	if address == "" && p.World == 1 {
		return p, false, nil
	}
	if err := l.meet(get, &p); err != nil {
		return Place{}, false, err
	}
	if text := get(EnvAttempt); text != "" {
		if p.Attempt, err = number(EnvAttempt, text, 0, 1<<20); err != nil {
			return Place{}, false, err
		}
	}
	return p, true, nil
}

// orphaned says what is set in vain where nobody has set a rank.
func orphaned(get func(string) string) error {
	switch {
	case get(EnvAddress) != "":
		return fmt.Errorf("%s is set, but %s is not, and no launcher has set a rank", EnvAddress, EnvRank)
	case get(EnvToken) != "":
		return fmt.Errorf("%s is set, but %s is not", EnvToken, EnvAddress)
	case get("MASTER_ADDR") != "" || get("MASTER_PORT") != "":
		return fmt.Errorf("MASTER_ADDR or MASTER_PORT is set, but RANK is not")
	}
	return nil
}

// addressOf returns where the coordinator is said to be, "" if nowhere.
func addressOf(get func(string) string, l launcher) (string, error) {
	if address := get(EnvAddress); address != "" {
		return address, checkAddress(EnvAddress, address)
	}
	if get("MASTER_ADDR") != "" || get("MASTER_PORT") != "" {
		return masterAddress(get)
	}
	switch {
	case get(EnvToken) != "" && l.source != "environment":
		return "", fmt.Errorf("%s is set, but %s is not", EnvToken, EnvAddress)
	case l.source == "gangline":
		return "", fmt.Errorf("%s is set, but %s is not", EnvRank, EnvAddress)
	case l.source == "environment":
		return masterAddress(get)
	}
	return "", nil
}

// batch says whether this is a batch script of Slurm, which sees a rank like a
// task of srun, and not one: srun alone tells of a step.
func (l launcher) batch(get func(string) string) bool {
	return l.source == "Slurm" && get(l.nodes) == ""
}

// meet finds out how the ranks show each other that they belong together: by a
// token, or in private on one host.
func (l launcher) meet(get func(string) string, p *Place) error {
	one := l.oneHost(get, p)
	switch {
	case p.Token != "" && len(p.Token) < sock.MinToken:
		return fmt.Errorf("%s has %d bytes, want at least %d: a secret that all ranks share", EnvToken, len(p.Token), sock.MinToken)
	case p.Token != "":
		return nil
	case p.Hosted || p.Address != "" && !one:
		return fmt.Errorf("%s is not set: rank %d cannot show that it belongs to the job (only ranks that are all on one host need none)", EnvToken, p.Rank)
	case !one:
		return fmt.Errorf("%s has started %d ranks, not all of them on this host: set MASTER_ADDR and MASTER_PORT (or %s=host:port) to where rank 0 shall coordinate, and %s to a secret",
			l.source, p.World, EnvAddress, EnvToken)
	}
	name := []string{l.source, p.Address}
	for _, variable := range l.job {
		name = append(name, get(variable))
	}
	p.Private = privateDir(get, get(l.dir), strings.Join(name, "\n"))
	return nil
}

// oneHost says whether all ranks are certainly on this host.
func (l launcher) oneHost(get func(string) string, p *Place) bool {
	if p.OneHost() {
		return true
	}
	return l.local != "" && get(l.local) == strconv.Itoa(p.World) || l.nodes != "" && get(l.nodes) == "1"
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
