# Everything runs inside .venv; `make demo` and `make test` are all that a newcomer needs.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
INSTALLED := $(VENV)/.installed
DEV := $(VENV)/.installed-dev

.PHONY: demo test test-slow test-all check bench clean

demo: $(INSTALLED)
	@$(BIN)/python cli/demo/demo.py

test: $(DEV)
	$(BIN)/python -m pytest -q -n 2 -m "not slow"

test-slow: $(DEV)
	$(BIN)/python -m pytest -q -n 2 -m slow

test-all: $(DEV)
	$(BIN)/python -m pytest -q -n 2 --cov --cov-report=term

check: $(DEV)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	PYTHONPATH=cli $(BIN)/lint-imports
	$(BIN)/codespell

bench: $(DEV)
	$(BIN)/python bench/overhead.py
	$(BIN)/python bench/search.py
	$(BIN)/python bench/embedders.py

$(VENV)/bin/python:
	$(PYTHON) -c 'import sys; assert sys.version_info >= (3, 11), "Python 3.11 or later is needed"'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade "pip>=25.1"

$(INSTALLED): $(VENV)/bin/python pyproject.toml
	@echo "installing lance-memory into $(VENV) ..."
	@$(BIN)/python -m pip install --quiet --editable .
	@touch $@

$(DEV): $(INSTALLED) constraints-dev.txt
	@$(BIN)/python -m pip install --quiet --constraint constraints-dev.txt --group dev
	@touch $@

clean:
	rm -rf $(VENV) .mypy_cache .pytest_cache .ruff_cache .hypothesis .coverage*
