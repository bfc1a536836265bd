package cli

import "testing"

// Whatever way the sums of two workers cross, the run ends with the same bits.
func TestPathsAgree(t *testing.T) {
	sums := map[string]string{}
	for _, path := range []string{"auto", "unix", "tcp", "messages"} {
		r := trained(t, "train", "--set", "strategy.kind=allreduce", "--set", "strategy.servers=0", "--set", "epochs=1", "--set", "network.path="+path)
		sums[path] = r.ParamsSHA256
		if r.ParamsSHA256 == "" || r.ParamsSHA256 != sums["auto"] {
			t.Errorf("by path: %v", sums)
		}
	}
}

// A path that no system has is refused with the nearest there is.
func TestUnknownPath(t *testing.T) {
	if text, status := gangline(t, "train", "--set", "network.path=shn"); status != exitRequest {
		t.Errorf("status %d: %s", status, text)
	}
}
