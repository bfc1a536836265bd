package cli

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/gangline/gangline/cli/command"
	"github.com/gangline/gangline/params"

	"github.com/spf13/cobra"

	"github.com/gangline/gangline/checkpoint"
	"github.com/gangline/gangline/job"
)

func newExport(ext job.Extensions) *cobra.Command {
	var mapping string
	cmd := &cobra.Command{
		Use:   "export CHECKPOINT OUT.safetensors",
		Short: "Write the parameters of a checkpoint as one safetensors file",
		Long: `Export writes all parameters, whole and without the optimizer's slots, for other
programs. CHECKPOINT is a checkpoint, or a directory of them, of which the newest
whole one is meant; the job is not needed.

Parameters keep their names unless --map says otherwise, in the form of
import.map: with that map in a job, the file is read back.`,
		Example: `  gangline export ckpt model.safetensors
  gangline export ckpt/step-000000000500 model.safetensors --map '{w1: {from: l1.weight, transpose: true}}'
  gangline export ckpt model.safetensors --map examples/mnist-import.yaml`,
		Args: cobra.ExactArgs(2),

		ValidArgsFunction: exportArgs,
		RunE: func(c *cobra.Command, args []string) error {
			m, err := readMapping(ext, mapping)
			if err != nil {
				return requestError{err}
			}
			if err := command.CheckOut("OUT", args[1]); err != nil {
				return err
			}
			return export(c, args[0], args[1], m)
		},
	}
	cmd.Flags().StringVar(&mapping, "map", "", "names in the file: a mapping in braces, or a job file whose import.map is meant")
	return cmd
}

// readMapping reads what --map says.
func readMapping(ext job.Extensions, text string) (checkpoint.Mapping, error) {
	switch {
	case text == "":
		return nil, nil
	case strings.HasPrefix(strings.TrimSpace(text), "{"):
		return job.ParseMapping(text)
	}
	j, err := ext.Read(text, nil)
	if err == nil && len(j.Import.Map) == 0 {
		err = fmt.Errorf("--map %s: the job has no import.map", text)
	}
	return j.Import.Map, err
}

func export(c *cobra.Command, from, to string, m checkpoint.Mapping) error {
	at, _, err := checkpoint.Resolve(from)
	if err != nil {
		return err
	}
	if sameFile(filepath.Dir(to), at.Dir) {
		return requestError{fmt.Errorf("OUT %s is in the checkpoint, whose files must stay as they are: name one elsewhere", to)}
	}
	params, err := params.Read(at)
	if err != nil {
		return err
	}
	tensors, err := m.Export(params)
	if err != nil {
		return requestError{err}
	}
	err = command.WriteWhole(to, func(f *os.File) error {
		return checkpoint.WriteSafetensors(f, tensors, map[string]string{"producer": "gangline " + version, "step": strconv.FormatInt(at.Manifest.Step, 10)})
	})
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(c.OutOrStdout(), "step %d: %s in %s\n", at.Manifest.Step, plural(len(tensors), "tensor"), to)
	return err
}
