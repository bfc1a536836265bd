package checkpoint

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/gangline/gangline/metric"
)

// FormatVersion is the version of the directory's form; a reader refuses others.
const FormatVersion = 1

// ManifestName is the file that makes a directory a checkpoint.
const ManifestName = "manifest.json"

// Manifest says what a checkpoint holds and how to know that it is whole.
type Manifest struct {
	Format int `json:"format"`
	// Step is the number of steps that were applied: a resumed run begins with
	// step Step.
	Step int64 `json:"step"`
	// Job is the digest of everything in the job that must not change on
	// resume, JobText the readable form that a refusal shows the difference of.
	Job     string `json:"job"`
	JobText string `json:"job_text"`
	// Data is the position in the data and the fingerprint of its order.
	Data json.RawMessage `json:"data"`
	// Generation is that of the run which wrote it.
	Generation uint32  `json:"generation"`
	Shards     []Shard `json:"shards"`
	// Params are the parameters, without slots, so that they can be read without
	// the job. Checkpoints of old programs have none.
	Params []Param `json:"params,omitempty"`
	// Tests is what early stopping and the best checkpoint go by: the tests so
	// far. nil: nothing does.
	Tests *metric.Patience `json:"tests,omitempty"`
	// Files are those that hold no arrays, such as fitted features.
	Files []File `json:"files,omitempty"`
}

// Param describes one parameter, whole.
type Param struct {
	Name  string `json:"name"`
	DType string `json:"dtype"`
	Shape []int  `json:"shape"`
	// Init says what the rows of a table are that no piece has: the kind of
	// distribution, its scale and its seed.
	Init struct {
		Kind  string  `json:"kind"`
		Scale float64 `json:"scale"`
		Seed  uint64  `json:"seed"`
	} `json:"init"`
}

// Shard is one file of a checkpoint.
type Shard struct {
	File   string  `json:"file"`
	Bytes  int64   `json:"bytes"`
	SHA256 string  `json:"sha256"`
	Pieces []Entry `json:"pieces"`
}

// Entry locates one Piece in its shard.
type Entry struct {
	Name  string `json:"name"`
	Shape []int  `json:"shape"`
	Lo    int    `json:"lo,omitempty"`
	Hi    int    `json:"hi,omitempty"`
	// Tensor is the name in the safetensors file; Keys that of the row numbers
	// of a table, empty for a dense piece.
	Tensor string `json:"tensor"`
	Keys   string `json:"keys,omitempty"`
}

// dirName is the final name of the checkpoint of a step.
func dirName(step int64) string { return fmt.Sprintf("step-%012d", step) }

// parseDirName is the inverse of dirName.
func parseDirName(name string) (int64, bool) {
	digits, ok := strings.CutPrefix(name, "step-")
	if !ok || len(digits) < 12 {
		return 0, false
	}
	n, err := strconv.ParseInt(digits, 10, 64)
	return n, err == nil && n >= 0
}

// List returns the directories below root that are named as checkpoints,
// newest first. A root that does not exist holds none.
func List(root string) ([]string, error) {
	entries, err := os.ReadDir(root)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("checkpoint: cannot list: %w", err)
	}
	type found struct {
		step int64
		dir  string
	}
	var all []found
	for _, e := range entries {
		if step, ok := parseDirName(e.Name()); ok && e.IsDir() {
			all = append(all, found{step, filepath.Join(root, e.Name())})
		}
	}
	slices.SortFunc(all, func(a, b found) int { return int(b.step - a.step) })
	dirs := make([]string, len(all))
	for i, f := range all {
		dirs[i] = f.dir
	}
	return dirs, nil
}
