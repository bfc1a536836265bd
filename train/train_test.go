package train

import (
	"context"
	"encoding/json"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/gangline/gangline/report"

	"github.com/gangline/gangline/coord"
	"github.com/gangline/gangline/job"
)

// sharedData is where the reference data lies beside the project.
const sharedData = "../../shared/data"

// needData skips where the reference data is absent.
func needData(t *testing.T) {
	t.Helper()
	if _, err := os.Stat(filepath.Join(sharedData, "README.md")); err != nil {
		t.Skipf("the shared data is not here: %v", err)
	}
}

// parse makes a job of YAML and settings.
func parse(t *testing.T, text string, set ...string) job.Job {
	t.Helper()
	j, err := job.Parse("test", []byte(text), set)
	if err != nil {
		t.Fatal(err)
	}
	return j
}

// runAll runs every rank of a job in this process, over real sockets and a real
// coordinator, and returns their reports, or the errors by rank.
func runAll(t *testing.T, j job.Job, change func(*Config)) ([]report.Rank, []error) {
	t.Helper()
	return runAllBy(t, j, change, func(ctx context.Context, cfg Config) error {
		_, err := Run(ctx, cfg)
		return err
	})
}

// runAllBy is runAll for ranks with another life.
func runAllBy(t *testing.T, j job.Job, change func(*Config), live func(ctx context.Context, cfg Config) error) ([]report.Rank, []error) {
	t.Helper()
	world := j.Strategy.Workers + j.Strategy.Servers
	server, err := coord.NewServer(coord.ServerConfig{World: world, Token: "a token of this test", JoinTimeout: 30 * time.Second, Generation: 1})
	if err != nil {
		t.Fatal(err)
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var serving sync.WaitGroup
	serving.Go(func() {
		if err := server.Serve(ln); err != nil {
			t.Errorf("coordinator: %v", err)
		}
	})
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	errs := make([]error, world)
	var ranks sync.WaitGroup
	for r := range world {
		ranks.Go(func() {
			cfg := Config{Job: j, DataDir: sharedData, Rank: r, Address: ln.Addr().String(), Token: "a token of this test", Logger: slog.New(slog.DiscardHandler)}
			if change != nil {
				change(&cfg)
			}
			errs[r] = live(ctx, cfg)
		})
	}
	ranks.Wait()
	out, err := server.Wait(ctx)
	if cerr := server.Close(); cerr != nil {
		t.Error(cerr)
	}
	serving.Wait()
	if err != nil {
		return nil, errs
	}
	reports := make([]report.Rank, world)
	for r, text := range out.Reports {
		if err := json.Unmarshal(text, &reports[r]); err != nil {
			t.Fatal(err)
		}
	}
	return reports, errs
}

const adultJob = `
model: {kind: logistic}
data:
  train: {format: libsvm, path: libsvm/a9a, features: 123}
  eval: {format: libsvm, path: libsvm/a9a.t, features: 123}
batch: 512
epochs: 8
optimizer: {kind: adam, lr: 0.01}
`

// Adult trains by all strategies, over sockets, to what scikit-learn reaches.
func TestAdult(t *testing.T) {
	needData(t)
	for _, kind := range []string{"serial", "allreduce", "ps"} {
		t.Run(kind, func(t *testing.T) {
			j := parse(t, adultJob, "strategy.kind="+kind)
			reports, errs := runAll(t, j, nil)
			for r, err := range errs {
				if err != nil {
					t.Fatalf("rank %d: %v", r, err)
				}
			}
			closing, err := report.New(j.Name, StrategyOf(j), "test", reports)
			if err != nil {
				t.Fatal(err)
			}
			text, err := json.MarshalIndent(closing, "", " ")
			if err != nil {
				t.Fatal(err)
			}
			t.Logf("%s", text)
			if auc := *closing.Eval.AUC; auc < .9 {
				t.Errorf("AUC %.4f, want at least .9", auc)
			}
			if g := closing.Gradients; g.Pushed == 0 || g.Pushed != g.Applied || g.Pending != 0 {
				t.Errorf("gradients do not add up: %+v", g)
			}
		})
	}
}

// The batch settles the learning rate before the step is made.
func TestSetupScalesTheRate(t *testing.T) {
	j := parse(t, "model: {kind: logistic}\noptimizer: {kind: sgd, lr: 0.1, scale_with: 64}\nbatch: 128\ndata: {train: {format: generated}}\n")
	s, err := NewSetup(j, writeRows(t, 2).Columns())
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range s.Step.Params {
		if p.Rule.LR != .2 || p.Rule.ScaleWith != 0 {
			t.Errorf("%s is trained with %+v", p.Var.Name, p.Rule)
		}
	}
}
