package tune

import (
	"fmt"
	"os"
	"runtime"
	"strings"

	"github.com/goccy/go-yaml"

	"github.com/gangline/gangline/job"
)

// Format is what a file of settings says of itself.
const Format = "gangline.tuned/1"

// maxFileBytes bounds a file of settings.
const maxFileBytes = 1 << 16

// Overlay is a file of settings that a search found for a job: YAML, for example
//
//	format: gangline.tuned/1
//	job: 6d0f...
//	ranks: 2
//	note: 1.12 times as fast as the job as it is (7 pairs of 300 steps, 1.08 to 1.15); 2 cores, linux/amd64
//	set:
//	  - strategy.bucket=4MiB
type Overlay struct {
	Format string `yaml:"format"`
	// Job is the digest of what decides the numbers of the job (job.Fixed) and of
	// its strategy's kind, Ranks how many processes it has.
	Job   string `yaml:"job"`
	Ranks int    `yaml:"ranks"`
	Note  string `yaml:"note"`
	// Set are the settings; none: no change.
	Set []string `yaml:"set"`
}

// NewOverlay makes the file of what was found for a job.
func NewOverlay(j *job.Job, r *Result) (*Overlay, error) {
	digest, err := digestOf(j)
	o := &Overlay{
		Format: Format, Job: digest, Ranks: j.Strategy.Workers + j.Strategy.Servers,
		Note: fmt.Sprintf("%s; %d cores, %s/%s", r.Why, runtime.NumCPU(), runtime.GOOS, runtime.GOARCH), Set: []string{},
	}
	if r.Best != nil {
		o.Set = r.Best.Settings
	}
	return o, err
}

// Encode writes the file.
func (o *Overlay) Encode() ([]byte, error) { return yaml.Marshal(o) }

// ReadOverlay reads a file that Encode wrote. An unknown field is an error.
func ReadOverlay(path string) (*Overlay, error) {
	info, err := os.Stat(path)
	if err == nil && (!info.Mode().IsRegular() || info.Size() > maxFileBytes) {
		err = fmt.Errorf("it is no file of at most %d bytes", maxFileBytes)
	}
	var text []byte
	if err == nil {
		text, err = os.ReadFile(path)
	}
	if err != nil {
		return nil, fmt.Errorf("settings of %s: %w", path, err)
	}
	var o Overlay
	if err := yaml.UnmarshalWithOptions(text, &o, yaml.Strict()); err != nil {
		return nil, fmt.Errorf("settings of %s: %w", path, err)
	}
	if o.Format != Format {
		return nil, fmt.Errorf("settings of %s: format is %q, want %q: a file that gangline tune --out has written", path, o.Format, Format)
	}
	return &o, nil
}

// Fits refuses settings that were found for another job or another number of ranks.
func (o *Overlay) Fits(j *job.Job) error {
	digest, err := digestOf(j)
	if err != nil {
		return err
	}
	ranks := j.Strategy.Workers + j.Strategy.Servers
	switch {
	case o.Ranks != ranks:
		return fmt.Errorf("these settings were found for %d ranks, the job has %d: run gangline tune again", o.Ranks, ranks)
	case o.Job != digest:
		return fmt.Errorf("these settings were found for another job (its model, training rows, batch, seed, optimizer, precision or strategy.kind): run gangline tune again")
	}
	return nil
}

// digestOf is of what settings were found for. They may change none of it.
func digestOf(j *job.Job) (string, error) {
	_, digest, err := j.Fixed()
	return strings.Join([]string{j.Strategy.Kind, digest}, "-"), err
}
