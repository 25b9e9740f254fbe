# Each target runs what CI runs. `make test` needs Python 3.10 or later, git and the package index, nothing else.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
READY  := $(VENV)/.ready
# Some images set it; then each of the processes that a test starts compiles the package anew. Empty is as good as unset.
export PYTHONDONTWRITEBYTECODE :=

.PHONY: help setup demo test corpus golden lint type fuzz bench mutants e2e all clean
.DEFAULT_GOAL := help

help: ## print this help
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / {printf "  %-11s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

$(READY): pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 10) and "postrender needs Python 3.10 or later; set PYTHON")'
	$(PYTHON) -m venv $(VENV)
	@# An older pip writes start scripts that import re, and knows no dependency groups.
	$(BIN)/pip install --quiet --disable-pip-version-check --upgrade pip
	$(BIN)/pip install --quiet --disable-pip-version-check --editable . --group dev
	@touch $@

setup: $(READY) ## make the virtual environment

demo: $(READY) ## render a chart with a gang, with Helm if there is one, and show what postrender adds
	@PATH="$(CURDIR)/$(BIN):$$PATH" examples/helm-qwen3/demo

test: $(READY) ## unit tests, golden cases, properties, layers, docs, promises (under a minute)
	$(BIN)/python -m pytest --quiet --promises --numprocesses auto --ignore=tests/oracles --ignore=tests/e2e tests

corpus: $(READY) ## run the filter twice on every manifest of a folder: make corpus DIR=path
	$(BIN)/python tests/corpus/run.py "$(DIR)"

golden: $(READY) ## rewrite the expectations of the golden cases; read the diff before you commit it
	-$(BIN)/python -m pytest --quiet --update tests/test_cases.py
	git --no-pager diff --stat tests/cases

lint: $(READY) ## ruff, the format, and that the planted mistakes apply
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/python tests/mutants/run.py --check

type: $(READY) ## mypy, strict
	$(BIN)/mypy

fuzz: $(READY) ## properties on many documents: make fuzz N=20000 SEED=7 (with the Go readers after make e2e)
	FUZZ_EXAMPLES=$(or $(N),10000) FUZZ_SEED=$(or $(SEED),1) $(BIN)/python -m pytest --quiet tests/properties \
	  $(if $(wildcard .programs/bin/oracle),tests/oracles/test_edits.py tests/oracles/test_durations.py) \
	  $(if $(wildcard .programs/bin/ome-oracle),tests/oracles/test_ome_rules.py)

bench: $(READY) programs ## the speed budgets, as ratios against peers measured in the same run
	@$(BIN)/python -m compileall -q postrender
	$(BIN)/python tests/bench/run.py

mutants: $(READY) ## plant mistakes, one at a time; the suite must catch each
	$(BIN)/python tests/mutants/run.py

.PHONY: programs cluster
programs: $(READY)
	$(BIN)/python tests/e2e/programs/get.py

e2e: $(READY) programs ## bring the real programs and test against them; AGAIN=3: a few that fail get a second try
	$(BIN)/python tests/e2e/run.py --again $(or $(AGAIN),0)

.PHONY: soak
soak: $(READY) programs ## the reconciler with a fault every few seconds: make soak MINUTES=10
	$(BIN)/python -m tests.e2e.soak --minutes $(or $(MINUTES),10)

cluster: $(READY) programs ## a real control plane by hand: make cluster ARGS="--lws"
	@$(BIN)/python -m tests.e2e.cluster $(ARGS)

.PHONY: proof proof-page proof-scale
proof: $(READY) programs ## all or nothing, before your eyes: two gangs and room for one, on a real scheduler
	@$(BIN)/python -m tests.e2e.proof

proof-page: $(READY) programs ## play every scenario, and write docs/proof.md with its numbers
	$(BIN)/python -m tests.e2e.proof all

proof-scale: $(READY) programs ## 200 gangs of 8 on 400 nodes; its numbers go to docs/proof.md: make proof-scale ARGS="--gangs 20 --nodes 40"
	$(BIN)/python -m tests.e2e.proof scale $(ARGS)

all: lint type test e2e mutants ## everything but fuzz and bench

clean: ## remove what make has made
	rm -rf $(VENV) .programs .hypothesis .pytest_cache .mypy_cache .ruff_cache dist
