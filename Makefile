# Two commands: `make demo` shows it at work, `make test` checks it. Both set themselves up.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/pip --disable-pip-version-check --quiet

.PHONY: demo test lint format bench clean

demo: $(VENV)/.installed
	@echo "==> fitting the embedded example"
	@$(BIN)/python -m diffint demo

test: $(VENV)/.installed-test lint
	@echo "==> running the tests"
	@$(BIN)/python -m pytest

lint: $(VENV)/.installed-test
	@echo "==> ruff, mypy and import-linter"
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check --quiet .
	@$(BIN)/mypy
	@$(BIN)/lint-imports --no-logo > /dev/null || $(BIN)/lint-imports --no-logo

format: $(VENV)/.installed-test
	@$(BIN)/ruff check --fix .
	@$(BIN)/ruff format .

# Ratios of speed against the eager version and peers; DIFFINT_ADBENCH names the tables.
bench: $(VENV)/.installed-test
	@$(BIN)/python benchmarks/speed.py
	@$(BIN)/python benchmarks/memory.py

$(VENV)/bin/python:
	@echo "==> creating the virtual environment in $(VENV)"
	@$(PYTHON) -m venv $(VENV)

$(VENV)/.installed: pyproject.toml constraints.txt | $(VENV)/bin/python
	@echo "==> installing diffint (a minute or two the first time)"
	@$(PIP) install --constraint constraints.txt --editable .
	@touch $@

$(VENV)/.installed-test: pyproject.toml constraints.txt | $(VENV)/bin/python
	@echo "==> installing diffint and what the tests need (a few minutes the first time)"
	@$(PIP) install --constraint constraints.txt --editable ".[test]"
	@touch $@ $(VENV)/.installed

clean:
	rm -rf $(VENV) build dist demo .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
	find . -name '*.egg-info' -type d -prune -exec rm -rf {} +
