# Everything a newcomer needs: `make demo` and `make test`. Both work from a fresh clone with Python 3.11 or newer and make.

PYTHON ?= python3
VENV ?= .venv
EVALUATIONS ?= 100
SEED ?= 1
RUNS ?= 20
WORKERS ?= 2

BIN := $(VENV)/bin
# One stamp for each set of extras: reinstalled only when pyproject.toml changes.
PLOT := $(VENV)/.installed-plot
TEST := $(VENV)/.installed-test
DEV := $(VENV)/.installed-dev
DOCS := $(VENV)/.installed-docs
BROWSER := $(VENV)/.installed-browser

.PHONY: help demo test test-slow browser smoke reproduction docs lint format types clean

help:
	@echo "make demo       set up, find a robust arm posture with and without measures, draw them in out/arm-collision.png"
	@echo "make test       set up and run the tests"
	@echo "make test-slow  the tests that take minutes"
	@echo "make browser    set up selenium, so that \`make test\` tries the report in Chromium where that and its driver are installed"
	@echo "make smoke      the paper's experiments in a setting that shows only that they work"
	@echo "make reproduction  the paper's experiments in full (days on one core; RUNS=20 WORKERS=2), and docs/reproduction.md"
	@echo "make docs       the documentation as a site, out/site/index.html; anything doubtful in it is an error"
	@echo "make lint       check style (make format mends it)"
	@echo "make types      check types"
	@echo "make clean      remove what these commands made, the virtual environment included"

demo: $(PLOT)
	$(BIN)/aloq run arm-collision --measured --compare --evaluations $(EVALUATIONS) --seed $(SEED) --figure out/arm-collision.png

test: $(TEST)
	$(BIN)/python -m pytest -n 2 --dist loadfile -m "not slow"

test-slow: $(TEST)
	$(BIN)/python -m pytest -n 2 --dist loadfile -m slow

browser: $(BROWSER)

smoke: $(PLOT)
	$(BIN)/aloq reproduce all --smoke --fresh --workers $(WORKERS) --out out/smoke --docs out/smoke/reproduction.md

reproduction: $(PLOT)
	$(BIN)/aloq reproduce all --runs $(RUNS) --workers $(WORKERS) --out out/reproduction --docs docs/reproduction.md

# The theme advertises its successor on every run; the variable keeps it quiet.
docs: $(DOCS)
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --quiet --strict

lint: $(DEV)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

format: $(DEV)
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

types: $(DEV)
	$(BIN)/mypy

clean:
	rm -rf $(VENV) out build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
		echo "aloq needs Python 3.11 or newer, but '$(PYTHON)' is: $$($(PYTHON) --version 2>&1). Name another one: make PYTHON=python3.12"; \
		exit 1; }
	$(PYTHON) -m venv $(VENV)

$(VENV)/.installed-%: pyproject.toml | $(BIN)/python
	@echo "Installing aloq with its '$*' extras into $(VENV); the first time takes a while."
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[$*]'
	@touch $@
