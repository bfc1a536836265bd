package tune

import (
	"fmt"
	"slices"
	"strconv"

	"github.com/gangline/gangline/job"
)

// compression is the field that says by which codec gradients travel.
const compression = "strategy.compression.kind"

// Check refuses a job that trials on this machine tell nothing of.
func Check(j *job.Job) error {
	if len(j.Network.Hosts) > 1 {
		return &job.FieldError{Field: "network.hosts", Fix: fmt.Sprintf(
			"%v: trials run all workers on this machine, which says nothing of a network: leave network.hosts out to tune for one host", j.Network.Hosts)}
	}
	return nil
}

// Candidates are the settings worth a trial for a job on a machine with so many cores:
// sizes of buckets, algorithms, threads and, if losses are allowed (maxError above 0),
// compression of gradients; each by itself. planOf tells the digest of the plans of the
// job with settings laid over it: of candidates with the same plans, and of those that
// have the plans of the job as it is, one is enough; what does not fit the job is left out.
func Candidates(j *job.Job, cores int, maxError float64, planOf func(settings []string) (string, error)) ([]Candidate, error) {
	own, err := planOf(nil)
	if err != nil {
		return nil, err
	}
	seen := []string{own}
	var all []Candidate
	for _, s := range planned(j) {
		digest, err := planOf([]string{s})
		if err != nil || slices.Contains(seen, digest) {
			continue
		}
		seen = append(seen, digest)
		all = append(all, Candidate{Settings: []string{s}})
	}
	for _, n := range threads(j, cores) {
		all = append(all, Candidate{Settings: []string{"threads=" + strconv.Itoa(n)}})
	}
	if maxError > 0 && slices.Contains(job.Paths(), compression) {
		for _, kind := range j.Extensions.Values(compression) {
			s := compression + "=" + kind
			if digest, err := planOf([]string{s}); err == nil && !slices.Contains(seen, digest) {
				seen = append(seen, digest)
				all = append(all, Candidate{Settings: []string{s}, Lossy: true})
			}
		}
	}
	return all, nil
}

// planned are settings that change the plan.
func planned(j *job.Job) (all []string) {
	if j.Strategy.Kind != "allreduce" {
		return nil
	}
	for _, size := range []string{"64KiB", "256KiB", "1MiB", "4MiB", "16MiB"} {
		all = append(all, "strategy.bucket="+size)
	}
	for _, name := range job.Algorithms() {
		all = append(all, "strategy.algorithm="+name)
	}
	return all
}

// threads are the numbers that a worker could compute with, but the one it has.
func threads(j *job.Job, cores int) (all []int) {
	if j.Backend == "ref" {
		return nil
	}
	even := max(1, cores/max(j.Strategy.Workers, 1))
	have := j.Threads
	if have == 0 {
		have = even
	}
	for _, n := range []int{1, even, cores} {
		if n != have && n <= job.MaxThreads && !slices.Contains(all, n) {
			all = append(all, n)
		}
	}
	return all
}
