package measure

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/gangline/gangline/bench/comm"
	"github.com/gangline/gangline/cli/command"
	"github.com/gangline/gangline/launch"
)

// probeFlags are the flags of probe.
type probeFlags struct {
	comm.Probe
	out    string
	asJSON bool
	hosted bool // the ranks are those that probe itself has started
}

// NewProbe returns the command that measures what messages cost.
func NewProbe() *cobra.Command {
	var f probeFlags
	cmd := &cobra.Command{
		Use:   "probe",
		Short: "Measure what messages between ranks cost, for the choice of algorithms",
		Long: `Probe measures, for every path between ranks, the time of a message, of a byte of it, and of adding a
byte, and says how well they foretell all-reduces. --out keeps them in a file for
network.costs. It starts ranks on this machine; where somebody else has started
several (gangline launch, mpirun -n 2 --host a,b gangline probe, srun, or a shell that sets RANK, WORLD_SIZE, MASTER_ADDR
and MASTER_PORT), it is one of them: shm and unix are then measured on the host of
rank 0, and tcp between the hosts. It takes some seconds. Nothing else should run.`,
		Example: `  gangline probe --out costs.json
  gangline probe --ranks 4 --path shm,tcp`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return f.run(cmd) },
	}
	fl := cmd.Flags()
	fl.IntVar(&f.Ranks, "ranks", 2, "how many processes")
	fl.StringSliceVar(&f.Paths, "path", nil, "which paths: "+strings.Join(comm.ProbePaths(), ", ")+" (default: those that this system has)")
	fl.StringVarP(&f.out, "out", "o", "", "write the costs to this file")
	fl.BoolVar(&f.asJSON, "json", false, "print an array of {path, ranks, hosts, alpha, beta, gamma, off, off_most, checks} in place of tables")
	fl.BoolVar(&f.Quick, "quick", false, "take few iterations: to see that it works")
	fl.BoolVar(&f.hosted, "hosted", false, "")
	_ = fl.MarkHidden("hosted") // it is there
	command.Complete(cmd, "path", command.Words(comm.ProbePaths()...))
	return cmd
}

func (f *probeFlags) run(cmd *cobra.Command) error {
	place, joins, err := joined(f.Ranks, cmd.Flags().Changed("ranks"))
	if err != nil {
		return err
	}
	if joins {
		f.Ranks = place.World
	}
	if err := f.Validate(); err != nil {
		return command.RequestError{Err: err}
	}
	if !f.hosted {
		if err := command.CheckOut("--out", f.out); err != nil {
			return err
		}
	}
	if joins {
		return f.rank(cmd, place)
	}
	program, err := itself(cmd, "--hosted")
	if err != nil {
		return err
	}
	all, err := comm.RunProbe(cmd.Context(), f.Probe, program)
	if err != nil {
		return err
	}
	return f.close(cmd.OutOrStdout(), all)
}

// rank is the life of one rank; rank 0 has the results, and closes the probe unless
// who started it does.
func (f *probeFlags) rank(cmd *cobra.Command, place launch.Place) error {
	return asRank(cmd, func(ctx context.Context) error {
		all, err := comm.ProbeRank(ctx, f.Probe, place)
		if err != nil || f.hosted || place.Rank != 0 {
			return err
		}
		return f.close(cmd.OutOrStdout(), all)
	})
}

// close prints and keeps what was measured.
func (f *probeFlags) close(out io.Writer, all []comm.Probed) error {
	if f.asJSON {
		e := json.NewEncoder(out)
		e.SetIndent("", "  ")
		if err := e.Encode(all); err != nil {
			return err
		}
	} else if _, err := fmt.Fprint(out, comm.Say(all)); err != nil {
		return err
	}
	text, err := f.Costs(all)
	if err != nil || f.out == "" {
		return err
	}
	if err := command.WriteWhole(f.out, func(file *os.File) error { _, err := file.Write(text); return err }); err != nil || f.asJSON {
		return err
	}
	_, err = fmt.Fprintf(out, "\nCosts are in %s: set network.costs to it.\n", f.out)
	return err
}
