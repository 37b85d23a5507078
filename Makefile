# `make demo` runs an example, `make test` all checks. Every target creates what it needs.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# Files of tests that are run at the same time; many tests use two threads, or wait for processes.
TEST_JOBS ?= 2
PIP := $(BIN)/pip --disable-pip-version-check --quiet

.DEFAULT_GOAL := help
.PHONY: help demo test lint format docs test-all dist speed clean

help:  ## show this list
	@grep -E '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 12

demo: $(VENV)/.installed  ## fit the embedded example and print its anomalies with reasons
	@echo "==> fitting the embedded example"
	@$(BIN)/python -m diffint demo

test: $(VENV)/.installed-test lint  ## lint, then run all tests
	@echo "==> running the tests"
	@$(BIN)/python -m pytest --numprocesses $(TEST_JOBS) --dist loadfile

lint: $(VENV)/.installed-test  ## check style and types (ruff, mypy, import-linter)
	@echo "==> ruff, mypy and import-linter"
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check --quiet .
	@$(BIN)/mypy
	@$(BIN)/lint-imports --no-logo > /dev/null || $(BIN)/lint-imports --no-logo

format: $(VENV)/.installed-test  ## format, and fix what ruff can fix
	@$(BIN)/ruff check --fix .
	@$(BIN)/ruff format .

docs: $(VENV)/.installed-docs  ## build the documentation site into site/; warnings are errors
	@echo "==> building the site"
	@NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet
	@echo "Open site/index.html"

test-all: $(VENV)/.installed-dev  ## run all tests on each installed Python version that is supported
	@$(BIN)/nox --session test

# PIP_CONSTRAINT pins the packages of the isolated build environment; no option does.
dist: $(VENV)/.installed-dev  ## build sdist and wheel, and test each in an empty environment
	@echo "==> building"
	@rm -rf dist
	@PIP_CONSTRAINT=$(CURDIR)/constraints.txt $(BIN)/python -m build > dist.log 2>&1 \
	  || (cat dist.log; exit 1)
	@rm dist.log
	@$(BIN)/nox --session dist

# DIFFINT_ADBENCH must be the folder of ADBench tables.
speed: $(VENV)/.installed-test  ## measure speed and memory, relative to plain torch and other detectors
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
	@echo "==> installing diffint and the packages of the tests (a few minutes the first time)"
	@$(PIP) install --constraint constraints.txt --editable ".[test]"
	@touch $@ $(VENV)/.installed

$(VENV)/.installed-docs: pyproject.toml constraints.txt | $(VENV)/bin/python
	@echo "==> installing the packages of the documentation site"
	@$(PIP) install --constraint constraints.txt --editable ".[docs]"
	@touch $@

$(VENV)/.installed-dev: pyproject.toml constraints.txt | $(VENV)/bin/python
	@echo "==> installing the packages that build and test distributions"
	@$(PIP) install --constraint constraints.txt --editable ".[dev]"
	@touch $@

clean:  ## remove everything that other targets created
	rm -rf $(VENV) build dist dist.log site demo .nox .pytest_cache .mypy_cache .ruff_cache \
	  .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
	find . -name '*.egg-info' -type d -prune -exec rm -rf {} +
