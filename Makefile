# Everything runs inside .venv; `make demo` and `make test` are all that a newcomer needs.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
INSTALLED := $(VENV)/.installed
DEV := $(VENV)/.installed-dev
DOCS := $(VENV)/.installed-docs
PEERS := $(VENV)/peers/.installed

# The tests start many processes; modules that were compiled once start them faster.
unexport PYTHONDONTWRITEBYTECODE

# Each worker runs through files of its own, so what a file shares is made once; who is done takes
# over from the others.
WORKERS := -n 3 --dist worksteal

.PHONY: demo test test-slow test-all test-remote soak check audit docs package bench bench-quick results clean

demo: $(INSTALLED)
	@$(BIN)/python cli/demo/demo.py

test: $(DEV)
	$(BIN)/python -m pytest -q $(WORKERS) -m "not slow"

test-slow: $(DEV)
	$(BIN)/python -m pytest -q $(WORKERS) -m slow

test-all: $(DEV)
	$(BIN)/python -m pytest -q -n 2 --cov --cov-report=term

# The tests of the store once more, in a bucket of an S3 server on this machine.
test-remote: $(DEV)
	$(BIN)/python -m pytest -q -n 2 tests/remote
	$(BIN)/python -m pytest -q -n 2 tests/store --store-on s3

# Processes that are killed, and files that are damaged: below ten minutes, or SOAK_SECONDS=60.
# Then what is marked `soak`: more and longer programs, more data, more moments of a power cut.
soak: $(DEV)
	SOAK_SECONDS=$(or $(SOAK_SECONDS),420) $(BIN)/python -m pytest -q -s -p no:randomly \
		tests/proof/test_soak.py tests/proof/test_damage.py
	SOAK_SECONDS=0 $(BIN)/python -m pytest -q -n 2 -m soak

check: $(DEV)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	PYTHONPATH=cli $(BIN)/lint-imports
	$(BIN)/codespell
	$(BIN)/python tools/audit.py

# Asks a public service for known vulnerabilities of what is locked. Where none answers, or knows
# none of it, it says so and ends with 2.
audit: $(DEV)
	$(PYTHON) -m venv $(VENV)/audit
	$(VENV)/audit/bin/python -m pip install --quiet pip-audit
	@rm -f $(VENV)/audit/found.json
	-@$(VENV)/audit/bin/pip-audit --requirement constraints-dev.txt --no-deps --disable-pip \
		--progress-spinner off --format json --output $(VENV)/audit/found.json
	@test -s $(VENV)/audit/found.json || \
		{ echo "no service for vulnerabilities could be reached: nothing was audited"; exit 2; }
	@$(BIN)/python tools/audit.py --advisories $(VENV)/audit/found.json

# Before a release: both files into dist/, and the wheel alone in new environments, with the lowest
# and with the newest versions of what it needs.
package: $(VENV)/bin/python
	$(PYTHON) -m venv $(VENV)/package
	$(VENV)/package/bin/python -m pip install --quiet --upgrade uv
	$(VENV)/package/bin/python tools/package.py dist

# The site into site/, strictly; a server shows it, as its search needs one:
# .venv/bin/python -m http.server --directory site
docs: $(DOCS)
	NO_COLOR=1 $(BIN)/properdocs build --config-file mkdocs.yml --strict

# All measurements, one after the other, some 75 minutes on 2 cores; LANCE_MEMORY_LOCOMO says where LoCoMo's file is.
bench: $(DEV) $(PEERS)
	$(BIN)/python bench/run.py

# Small forms of the same into a new directory, below three minutes; their figures mean little.
bench-quick: $(DEV)
	$(BIN)/python bench/run.py --quick

# bench/RESULTS.md and its pictures once more, from the lines that are recorded.
results: $(PEERS)
	$(VENV)/peers/bin/python -m bench.report

# Other stores need versions of their own.
$(PEERS): $(VENV)/bin/python pyproject.toml
	$(PYTHON) -m venv $(VENV)/peers
	@$(VENV)/peers/bin/python -m pip install --quiet --editable '.[bench]'
	@touch $@

$(VENV)/bin/python:
	$(PYTHON) -c 'import sys; assert sys.version_info >= (3, 11), "Python 3.11 or later is needed"'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade "pip>=25.1"

$(INSTALLED): $(VENV)/bin/python pyproject.toml
	@echo "installing lance-memory into $(VENV) ..."
	@$(BIN)/python -m pip install --quiet --editable .
	@touch $@

$(DEV): $(INSTALLED) constraints-dev.txt
	@$(BIN)/python -m pip install --quiet --constraint constraints-dev.txt --editable . --group dev
	@touch $@

$(DOCS): $(INSTALLED) constraints-dev.txt
	@$(BIN)/python -m pip install --quiet --constraint constraints-dev.txt --group docs
	@touch $@

clean:
	rm -rf $(VENV) .mypy_cache .pytest_cache .ruff_cache .hypothesis .coverage*
