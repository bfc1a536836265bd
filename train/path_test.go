package train

import (
	"runtime"
	"testing"

	"github.com/gangline/gangline/collective/cost"
	"github.com/gangline/gangline/job"
)

// What crosses inside a host follows from the job alone, so that all ranks plan alike.
func TestLocalPath(t *testing.T) {
	auto := cost.Unix
	if runtime.GOOS == "linux" {
		auto = cost.SHM
	}
	for _, c := range []struct {
		n    job.Network
		want cost.Path
	}{
		{job.Network{Kind: "unix", Path: job.PathAuto}, auto},
		{job.Network{Kind: "unix", Path: job.PathShm}, cost.SHM},
		{job.Network{Kind: "unix", Path: job.PathUnix}, cost.Unix},
		{job.Network{Kind: "unix", Path: job.PathTCP}, cost.TCP},
		{job.Network{Kind: "unix", Path: job.PathMessages}, cost.Unix},
		{job.Network{Kind: "unix", Path: job.PathAuto, Checksum: true}, auto},
		{job.Network{Kind: "tcp", Path: job.PathAuto}, cost.TCP},
		{job.Network{Kind: "tcp", Path: job.PathMessages, Hosts: []int{2, 2}}, cost.TCP},
	} {
		if got := localPath(&c.n); got != c.want {
			t.Errorf("%+v: %v, want %v", c.n, got, c.want)
		}
	}
	hosts := job.Network{Kind: "tcp", Path: job.PathAuto, Hosts: []int{2, 2}}
	if got := localPath(&hosts); runtime.GOOS == "linux" && got != cost.SHM {
		t.Errorf("inside hosts: %v", got)
	}
}
