# pgveil: what a developer types. `make` alone lists it. CI runs the same targets (.ci/run).

SHELL       := bash
.SHELLFLAGS := -euo pipefail -c
MAKEFLAGS   += --no-print-directory
.DEFAULT_GOAL := help

# The profile of the runner: `make test PROFILE=ci`.
PROFILE ?= default
# What the runner is given besides: `make test ARGS='-E "test(slot)"'`.
ARGS ?=
# libtest prints two lines for each crate without tests; of the rest, failures and results stay.
SUMMARY = | { grep -Ev '^(running [0-9]+ tests?|[.i]+( [0-9]+/[0-9]+)?|)$$' | grep -v ' 0 passed; 0 failed; 0 ignored' || true; }
GUESTS := --manifest-path guests/Cargo.toml

# On a terminal cargo shows how far it is; in a log its hundreds of lines would hide what matters.
export CARGO_TERM_QUIET := $(shell [ -t 2 ] && echo false || echo true)
# Snapshots that differ are failures here, never files to be accepted later.
export INSTA_UPDATE ?= no

.PHONY: help
help: ## this list
	@echo 'pgveil: copy PostgreSQL tables and keep them in step, every row masked by sandboxed WebAssembly'
	@echo
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  make \1|\2/p' $(MAKEFILE_LIST) | column -t -s '|'
	@echo
	@echo '  PGVEIL_TEST_PG=15,18 make test     only these PostgreSQL versions (default: 15,16,17,18)'
	@echo '  make demo KEEP=1                   leaves the demo running'

.PHONY: setup
setup: ## install what is missing: WebAssembly targets, PostgreSQL, the test runner
	@scripts/setup-wasm.sh
	@scripts/setup-postgres.sh
	@scripts/setup-tools.sh nextest component

.PHONY: demo
demo: ## two throwaway servers, a shop with personal data, masked on the way
	@KEEP=$(KEEP) scripts/demo/demo.sh

.PHONY: test
test: setup ## all tests: host and harness on real servers, documentation, guests
	@cargo nextest run --workspace --no-run
	@echo 'guests, natively:' && cargo test --quiet $(GUESTS) --workspace $(SUMMARY)
	@echo 'documentation:' && cargo test --quiet --doc --workspace $(SUMMARY)
	@cargo nextest run --workspace --profile $(PROFILE) $(ARGS)

.PHONY: soak
soak: setup ## the fault loops in their long form (hours)
	@PGVEIL_SOAK=1 cargo nextest run --package pgveil-tests --profile soak -E 'test(/^(faults|feedback)::/)' $(ARGS)

.PHONY: bench
bench: setup ## measure throughput and memory (minutes), in release
	@scripts/bench.sh

.PHONY: memory
memory: setup ## measure peak memory: snapshot of 1 GB, a million changes, ten million rows in one transaction
	@scripts/memory.sh

.PHONY: bench-quick
bench-quick: setup ## the same with a tenth of the rows
	@scripts/bench.sh --quick

.PHONY: lint
lint: ## format, clippy, dependencies, shell scripts; warnings are errors
	@cargo fmt --all --check
	@cargo clippy --workspace --all-targets -- --deny warnings
	@cargo fmt $(GUESTS) --all --check
	@cargo clippy $(GUESTS) --workspace --all-targets -- --deny warnings
	@for script in .ci/run scripts/*.sh scripts/demo/*.sh; do bash -n "$$script"; done
	@scripts/deny.sh

.PHONY: verify
verify: lint test ## what CI runs
