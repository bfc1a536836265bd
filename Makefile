# One target a step of .ci/run; `make all` is what CI runs.

GO      ?= go
LINT     = $(GO) tool -modfile=tools/go.mod golangci-lint
TIME    ?= 1s
SEED    ?=
PEERS   ?= ../shared/bench

.PHONY: help all build tidy lint test fallback race sim fuzz chaos faults bench bench-peers

help: ## list the targets
	@awk -F':.*## ' '/^[a-z-]+:.*## /{printf "  %-11s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

all: build tidy lint test fallback race sim fuzz ## everything CI runs

build: ## compile, and check types for machines that are not this one
	$(GO) build ./...
	$(GO) run ./internal/cmd/crosscheck linux/arm64 darwin/arm64 windows/amd64

tidy: ## go.mod and formatting are as the tools would leave them
	$(GO) mod tidy -diff
	test -z "$$(gofmt -l $$(git ls-files '*.go'))"

lint: ## golangci-lint with .golangci.yml
	$(LINT) run ./...

test: ## what the README says: all tests
	$(GO) test ./...

fallback: ## all tests that compute, without assembly, as on machines that have none
	$(GO) test -tags noasm ./collective/... ./compute/... ./optim/... ./data/parse/... ./exec ./model ./bench ./train

race: ## tests of packages with goroutines or locks under the race detector, shuffled
	$(GO) test -race -shuffle=on -tags nocloud $$(.ci/racy | grep -vE '^./(chaos|cli|compute/native)$$')
	$(GO) test -race -tags nocloud -run 'Thread|Batch' ./compute/native
	GANGLINE_CHAOS_BUILD=-tags=nocloud $(GO) test -race -tags nocloud -run '^TestCollectiveFaults$$' ./chaos

sim: ## simulated clusters with faults; SEED=0x... runs one again
	$(GO) test ./simtest -run TestCluster -count=1 -v $(if $(SEED),-seed=$(SEED),-scenarios=2000)

fuzz: ## every fuzz target for TIME
	$(GO) run ./internal/cmd/fuzzall -time $(TIME)

chaos: ## 100 kills of real processes for each test that kills at random, 1000 ranks of collectives hit; SEED=N draws them again
	GANGLINE_CHAOS_KILLS=100 GANGLINE_CHAOS_ROUNDS=1000 $(if $(SEED),GANGLINE_CHAOS_SEED=$(SEED)) $(GO) test ./chaos -count=1 -timeout 120m -v

faults: ## plant every fault of docs/faults.md and see it caught
	$(GO) run ./internal/cmd/faults

bench: ## time the executor, transports and kernels
	$(GO) test -run '^$$' -bench . -benchmem ./exec ./collective/... ./transport/... ./compute/native ./data ./ps

bench-peers: ## time training steps beside PyTorch, and all-reduce beside Open MPI, in turns; PEERS is where its programs are
	$(GO) run ./internal/cmd/benchpeers -dir $(PEERS)
	$(GO) run ./internal/cmd/benchpeers -collective -dir $(PEERS)
