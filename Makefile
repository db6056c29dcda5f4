# Everything runs in a virtual environment of its own: .venv, made when it is first needed.
# PYTHON chooses the interpreter (3.11 to 3.13), EXTRAS what is installed beside the core.

PYTHON ?= python3
VENV ?= .venv
BIN = $(VENV)/bin

.DEFAULT_GOAL := help
.PHONY: help demo test lint format bench quality kafka faults planted clean

help:  ## Say what there is to make.
	@grep -E '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z]+):.*## (.*)/make \1\t\2/' | expand -t 14

$(VENV)/.installed: pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(not (3, 11) <= sys.version_info < (3, 14))' \
		|| { echo "textsieve needs Python 3.11, 3.12 or 3.13; choose one: make PYTHON=python3.12 ..."; exit 1; }
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[test]'
	@touch $@

demo: $(VENV)/.installed  ## Judge 35,000 real reviews on an embedded broker and show some duplicates.
	$(BIN)/textsieve demo

test: $(VENV)/.installed  ## Run all tests; those that need Kafka start one (Java 17 and Maven).
	$(BIN)/python -m pytest -n 3 --dist loadfile

lint: $(VENV)/.installed  ## Check style and types.
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy

format: $(VENV)/.installed  ## Bring the code into its style.
	$(BIN)/ruff check --fix
	$(BIN)/ruff format

# MILLIONS of live originals at most: 50 take some hours the first time, and 30 GB of disk.
bench: $(VENV)/.installed  ## Measure text, state and the way through Kafka, and write docs/performance.md.
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[bench]'
	$(BIN)/python -m bench --millions $(or $(MILLIONS),10)

quality: $(VENV)/.installed  ## Measure what is found and missed, beside other libraries, and write docs/quality.md.
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[quality]'
	$(BIN)/python -m bench.quality

# Three runs with a hundred kills each, then failovers, zombies and broker kills: most of two hours. FAULTS chooses others.
SINGLE = --kill 80 --kill-early 10 --stop 5 --lose-state 5
PAIR = --failover 20 --zombie 5 --broker-kill 10 --broker-stop 3 --kill 5
faults: $(VENV)/.installed  ## Inject faults into a real Kafka and its workers, and compare with the offline judge.
	$(BIN)/python -m tests.faults $(or $(FAULTS),--seed 1 --seed 2 --seed 3 --events 200000 $(SINGLE))
	$(if $(FAULTS),,$(BIN)/python -m tests.faults --seed 4 --events 60000 $(PAIR))

planted: $(VENV)/.installed  ## Plant faults in a copy of the source, and see that the fault harness finds each.
	$(BIN)/python -m tests.faults.planted

kafka: $(VENV)/.installed  ## Run an Apache Kafka for development until Ctrl-C.
	$(BIN)/python -m stream.broker

clean:  ## Remove what the other targets have made.
	rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache .hypothesis .quality .bench
