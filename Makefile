# `make demo` shows it at work, `make test` checks it. Every target sets itself up.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/pip --disable-pip-version-check --quiet

.DEFAULT_GOAL := help
.PHONY: help demo test lint format docs test-all dist speed clean

help:  ## show this list
	@grep -E '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 12

demo: $(VENV)/.installed  ## fit the embedded example and show its anomalies with their reasons
	@echo "==> fitting the embedded example"
	@$(BIN)/python -m diffint demo

test: $(VENV)/.installed-test lint  ## lint, then run every test
	@echo "==> running the tests"
	@$(BIN)/python -m pytest

lint: $(VENV)/.installed-test  ## check style and types (ruff, mypy, import-linter)
	@echo "==> ruff, mypy and import-linter"
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check --quiet .
	@$(BIN)/mypy
	@$(BIN)/lint-imports --no-logo > /dev/null || $(BIN)/lint-imports --no-logo

format: $(VENV)/.installed-test  ## fix what ruff can fix
	@$(BIN)/ruff check --fix .
	@$(BIN)/ruff format .

docs: $(VENV)/.installed-docs  ## build the site from docs/ into site/; a warning is an error
	@echo "==> building the site"
	@NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet
	@echo "Open site/index.html"

test-all: $(VENV)/.installed-dev  ## run every test on each supported Python that is here
	@$(BIN)/nox --session test

# The environment that builds takes its pins from PIP_CONSTRAINT, as no option reaches it.
dist: $(VENV)/.installed-dev  ## build sdist and wheel, install each elsewhere and try it
	@echo "==> building"
	@rm -rf dist
	@PIP_CONSTRAINT=$(CURDIR)/constraints.txt $(BIN)/python -m build > dist.log 2>&1 \
	  || (cat dist.log; exit 1)
	@rm dist.log
	@$(BIN)/nox --session dist

# DIFFINT_ADBENCH names the folder of tables.
speed: $(VENV)/.installed-test  ## measure speed and memory against the eager version and peers
	@$(BIN)/python benchmarks/speed.py
	@$(BIN)/python benchmarks/scoring_speed.py
	@$(BIN)/python benchmarks/first_fit.py
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

$(VENV)/.installed-docs: pyproject.toml constraints.txt | $(VENV)/bin/python
	@echo "==> installing what the site needs"
	@$(PIP) install --constraint constraints.txt --editable ".[docs]"
	@touch $@

$(VENV)/.installed-dev: pyproject.toml constraints.txt | $(VENV)/bin/python
	@echo "==> installing what builds packages and tries other Pythons"
	@$(PIP) install --constraint constraints.txt --editable ".[dev]"
	@touch $@

clean:  ## remove everything that the other targets made
	rm -rf $(VENV) build dist dist.log site demo .nox .pytest_cache .mypy_cache .ruff_cache \
	  .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
	find . -name '*.egg-info' -type d -prune -exec rm -rf {} +
