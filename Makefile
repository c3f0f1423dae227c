# Everything runs in .venv, which is made on demand with nothing but python3 and a package registry.
PYTHON ?= python3
BIN := .venv/bin
DYNOXIDE := .engines/node_modules/@dynoxide/linux-x64/dynoxide
CHROMIUM := .engines/chromium/chromium
CHROMIUM_PACKAGE := .engines/browser/node_modules/@sparticuz/chromium

.PHONY: help demo test lint soak lock clean

help:  ## Show this list
	@grep -E '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*## /\t/'

demo: .venv/installed  ## The whole story on an embedded engine, or one example: make demo EXAMPLE=car-parts
	@$(BIN)/sync-rules demo $(EXAMPLE)

test: .venv/installed engines  ## The whole test suite
	$(BIN)/python -m pytest -n 2 --dist worksteal

lint: .venv/installed  ## ruff and mypy --strict
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

soak: .venv/installed  ## The simulator for 20,000 histories and more: make soak HISTORIES=100000
	$(BIN)/python -m tests.simulation --histories $(or $(HISTORIES),20000)

.PHONY: engines
engines:  ## The second engine of the contract tests, and a browser where none is; without npm their tests are skipped
	@test -x $(DYNOXIDE) || ! command -v npm >/dev/null || \
	  npm install --no-save --no-audit --no-fund --loglevel=error --prefix .engines @dynoxide/linux-x64@1.2.1 || \
	  echo "dynoxide could not be installed: its tests will be skipped"
	@test -n "$$CHROMIUM_BIN" || command -v chromium >/dev/null || command -v chromium-browser >/dev/null || \
	  command -v google-chrome >/dev/null || test -x $(CHROMIUM) || test "$$(uname -sm)" != "Linux x86_64" || \
	  ! command -v npm >/dev/null || \
	  { npm install --no-save --no-audit --no-fund --loglevel=error --prefix .engines/browser @sparticuz/chromium@153.0.0 && \
	    node tests/unpack-chromium.mjs $(CHROMIUM_PACKAGE) .engines/chromium && rm -rf .engines/browser; } || \
	  echo "no browser could be unpacked: its tests will be skipped"

.venv/installed: requirements-dev.txt pyproject.toml
	@$(PYTHON) -c 'import sys; v = sys.version_info[:2]; sys.exit(0 if (3, 11) <= v <= (3, 13) else \
	  "sync-rules needs Python 3.11 to 3.13, and $(PYTHON) is %d.%d: run make PYTHON=python3.13 ..." % v)'
	@$(PYTHON) -m venv .venv || { echo "python3 cannot make virtual environments: install its venv package"; exit 1; }
	@echo "installing into .venv ..."
	@$(BIN)/python -m pip install --quiet --quiet --disable-pip-version-check --require-hashes -r requirements-dev.txt
	@$(BIN)/python -m pip install --quiet --quiet --disable-pip-version-check --no-deps --editable .
	@touch $@

lock:  ## Write requirements-dev.txt anew: hashes, no addresses
	$(BIN)/uv pip compile pyproject.toml --extra dev --generate-hashes --universal --python-version 3.11 \
	  --no-emit-index-url --no-header --quiet --output-file requirements-dev.txt

clean:  ## Remove what was installed and cached
	rm -rf .venv .engines .pytest_cache .mypy_cache .ruff_cache .hypothesis
