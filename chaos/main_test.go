//go:build unix

package chaos

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"go.uber.org/goleak"
)

// program is the one under test; TestMain builds it.
var program string

func TestMain(m *testing.M) {
	if os.Getenv(rankSeed) != "" { // a rank of TestCollectiveFaults
		os.Exit(rankMain())
	}
	dir, err := os.MkdirTemp("", "gangline-chaos-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	end := func(status int) {
		os.RemoveAll(dir)
		os.Exit(status)
	}
	program = filepath.Join(dir, "gangline")
	if err := build(program, "../cmd/gangline"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		end(1)
	}
	goleak.VerifyTestMain(m, goleak.Cleanup(end))
}

// build builds a program as GANGLINE_CHAOS_BUILD says.
func build(file, pkg string) error {
	args := append([]string{"build", "-o", file}, strings.Fields(os.Getenv("GANGLINE_CHAOS_BUILD"))...)
	if out, err := exec.Command("go", append(args, pkg)...).CombinedOutput(); err != nil {
		return fmt.Errorf("build %s: %w\n%s", pkg, err, out)
	}
	return nil
}

// environ is our environment without what would give a process a place in a job.
func environ() []string {
	var out []string
	for _, kv := range os.Environ() {
		name, _, _ := strings.Cut(kv, "=")
		switch {
		case strings.HasPrefix(name, "GANGLINE_"), strings.HasPrefix(name, "OMPI_"), strings.HasPrefix(name, "SLURM_"),
			strings.HasPrefix(name, "MASTER_"), name == "RANK", name == "WORLD_SIZE", name == "TMPDIR":
		default:
			out = append(out, kv)
		}
	}
	return out
}
