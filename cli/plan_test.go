package cli

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/gangline/gangline/job"
)

// plan show --explain says of each collective why it is done as it is, by the costs
// that the job names.
func TestExplain(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("costs.json", `{"format": "gangline.costs/1", "paths": {
		"unix": {"alpha": 1e-3, "beta": 1e-6, "gamma": 0}, "tcp": {"alpha": 1e-3, "beta": 1e-4, "gamma": 0}}}`)
	write("job.yaml", "model: {kind: mlp, hidden: [100]}\noptimizer: {kind: sgd, lr: 0.1}\n"+
		"data: {train: {format: libsvm, path: rows.svm, features: 100}}\nnetwork: {costs: costs.json, kind: tcp, path: messages}\n"+
		"strategy: {kind: allreduce, workers: 4, bucket: 1KiB}\n")
	write("rows.svm", "1 1:1\n")
	for _, c := range []struct{ setting, want string }{
		{"network.kind=unix", // three small gradients, and weights of 40,000 bytes
			"costs from costs.json: within a host by unix 1e+03 µs a message, 1e+03 ns a byte, 0 ns a byte added\n" +
				"allreduce b2..b1  4 ranks on 1 host  912 bytes    doubling: doubling 3.824 ms, halving 5.368 ms, ring 7.368 ms, tree 7.648 ms\n" +
				"allreduce w1      4 ranks on 1 host  40000 bytes  halving: halving 64.000 ms, ring 66.000 ms, doubling 82.000 ms, tree 164.000 ms\n" +
				"commit step       4 ranks on 1 host               each to all at once: some bytes\n"},
		{"strategy.compression.kind=int8", // the weights alone are of 16 KiB and more
			"costs from costs.json: within a host by tcp 1e+03 µs a message, 1e+05 ns a byte, 0 ns a byte added\n" +
				"allreduce b2..b1  4 ranks on 1 host  912 bytes    halving: halving 140.800 ms, ring 142.800 ms, doubling 184.400 ms, tree 368.800 ms\n" +
				"allreduce w1      4 ranks on 1 host  40000 bytes  int8(256)+feedback: 10160 bytes, 25.4 %, 1530.100 ms\n" +
				"commit step       4 ranks on 1 host               each to all at once: some bytes\n"},
		{"network.hosts=[2, 2]", // the ring has one way from host to host, and within a host it is tcp too
			"costs from costs.json: within a host by tcp 1e+03 µs a message, 1e+05 ns a byte, 0 ns a byte added; between hosts by tcp 1e+03 µs a message, 1e+05 ns a byte, 0 ns a byte added\n" +
				"allreduce b2..b1  4 ranks on 2 hosts  912 bytes    ring: ring 142.800 ms, halving 232.000 ms, doubling 275.600 ms, hierarchical 277.600 ms, tree 551.200 ms\n" +
				"allreduce w1      4 ranks on 2 hosts  40000 bytes  ring: ring 6006.000 ms, halving 10004.000 ms, doubling 12002.000 ms, hierarchical 12004.000 ms, tree 24004.000 ms\n" +
				"commit step       4 ranks on 2 hosts               each to all at once: some bytes\n"},
	} {
		var out, errs bytes.Buffer
		args := []string{"plan", "show", filepath.Join(dir, "job.yaml"), "--explain", "--set", c.setting}
		if status := run(t.Context(), job.Extensions{}, args, &out, &errs); status != 0 {
			t.Fatalf("status %d: %s", status, errs.String())
		}
		if d := cmp.Diff(c.want, out.String()); d != "" {
			t.Errorf("%s (-want +got):\n%s", c.setting, d)
		}
	}
	// A file that is not there is a wrong request.
	if status := run(t.Context(), job.Extensions{}, []string{"plan", "show", filepath.Join(dir, "job.yaml"), "--set", "network.costs=none"}, io.Discard, io.Discard); status != exitRequest {
		t.Errorf("status %d, want %d", status, exitRequest)
	}
}
