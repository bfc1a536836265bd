package launch_test

import (
	"fmt"

	"github.com/gangline/gangline/launch"
)

// A rank that Slurm started learns its place.
func ExampleFromEnv() {
	environment := map[string]string{
		"SLURM_JOB_ID": "4711", "SLURM_PROCID": "3", "SLURM_NTASKS": "8",
		"GANGLINE_ADDRESS": "node17:7070", "GANGLINE_TOKEN": "a secret",
	}
	place, joins, err := launch.FromEnv(func(name string) (string, bool) {
		value, ok := environment[name]
		return value, ok
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(joins, place.Source, place.Rank, place.World, place.Address)
	// Output: true Slurm 3 8 node17:7070
}
