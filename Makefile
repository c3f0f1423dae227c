# Everything runs in .venv, which is made on demand with nothing but python3 and a package registry.
PYTHON ?= python3
BIN := .venv/bin
DYNOXIDE := .engines/node_modules/@dynoxide/linux-x64/dynoxide
# The AWS CDK has 500 MB, and only `make night` runs its tests: make engines WITH_CDK=yes
CDK := packages/cdk
DEPLOY_TOOLS := sam ministack lambda $(if $(WITH_CDK),cdk)
VALIDATOR := .engines/asl/node_modules/.bin/asl-validator

.PHONY: help demo test lint wheel soak lock clean

help:  ## Show this list
	@grep -E '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*## /\t/'

demo: .venv/installed  ## Run the whole story on an embedded engine, or one example: make demo EXAMPLE=car-parts
	@$(BIN)/sync-rules demo $(EXAMPLE)

test: .venv/installed engines  ## Run the tests that a change needs; `make night` runs the others
	env -u PYTHONDONTWRITEBYTECODE \
	  $(BIN)/python -m pytest -n 3 --dist worksteal  # on two cores: while one waits for an engine, two compute

lint: .venv/installed  ## Run ruff and mypy --strict
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

wheel: .venv/installed  ## Build the wheel, dist/sync_rules-VERSION-py3-none-any.whl: the same each time
	@$(BIN)/python -m hatchling build -t wheel -d dist

# What the rings of the playground import, at the versions of requirements-dev.txt: the wheels for a browser.
BROWSER := annotated-types jmespath pydantic pydantic-core ruamel-yaml tenacity typing-extensions typing-inspection
BROWSER_TAGS := --python-version 314 --implementation cp --abi cp314 --abi none --platform pyemscripten_2026_0_wasm32 --platform any
PLAYGROUND := packages/playground
.PHONY: playground
playground: .venv/installed  ## Build the playground, one static folder, packages/playground/dist; needs npm
	@echo "installing the packages of $(PLAYGROUND) ..."
	@cd $(PLAYGROUND) && npm ci --ignore-scripts --no-audit --no-fund --loglevel=error
	@rm -rf $(PLAYGROUND)/wheels && mkdir $(PLAYGROUND)/wheels
	@awk -v names=" $(BROWSER) " '/^[a-z]/ {split($$1, one, "=="); chosen = index(names, " " one[1] " ")} chosen' \
	  requirements-dev.txt > $(PLAYGROUND)/wheels/requirements.txt
	@$(BIN)/python -m pip download --quiet --disable-pip-version-check --no-deps --require-hashes --only-binary :all: \
	  $(BROWSER_TAGS) --dest $(PLAYGROUND)/wheels -r $(PLAYGROUND)/wheels/requirements.txt
	@$(BIN)/python -m hatchling build -t wheel -d $(PLAYGROUND)/wheels > /dev/null
	@cd $(PLAYGROUND) && npm run --silent check && node build.mjs wheels
	@du -sh $(PLAYGROUND)/dist
	@echo "Next: $(BIN)/sync-rules playground"

soak: .venv/installed  ## Run the simulator for 100,000 histories, on all cores, or for more: make soak HISTORIES=1000000
	$(BIN)/python -m tests.simulation --histories $(or $(HISTORIES),100000) --seen

.PHONY: mutants
mutants: .venv/installed  ## Edit the core at random, and list the edits that no test notices: make mutants EDITS=300 SEED=1
	$(BIN)/python -m tests.mutation --edits $(or $(EDITS),300) --seed $(or $(SEED),1)

.PHONY: proofs
proofs: .venv/installed  ## Check the models of the protocol with Spin, each also without one of its invariants
	@command -v spin >/dev/null || { echo "make proofs needs spin and gcc: apt install spin gcc"; exit 1; }
	$(BIN)/python -m tests.models

.PHONY: jepsen
jepsen: .venv/installed engines  ## Kill, cut off and check whole processes for ten minutes, or longer: make jepsen MINUTES=60 SEED=7
	$(BIN)/python -m tests.processes --minutes $(or $(MINUTES),10) $(if $(SEED),--seed $(SEED))

.PHONY: facts
facts: .venv/installed  ## Compare the newest botocore with what code and documentation rely on
	@$(BIN)/python -m tests.facts

.PHONY: conformance
conformance: .venv/installed engines  ## Run a clone of nubo-db/dynamodb-conformance on our engines: make conformance SUITE=FOLDER
	@test -n "$(SUITE)" || { echo "which folder has the suite? make conformance SUITE=FOLDER"; exit 2; }
	@$(BIN)/python -m tests.facts.conformance "$(SUITE)"

.PHONY: fresh
fresh:  ## Run demo and tests in a bare Debian, as root: make fresh RELEASE=forky PYTHON=python3.15
	@PYTHON=$(PYTHON) .ci/fresh $(or $(RELEASE),trixie) "make demo && make test"

.PHONY: night
night: facts  ## Run for hours what no change waits for: the newest botocore, new histories, whole processes, random edits, every test in depth, all models, all benchmarks, bare Debians
	@command -v spin >/dev/null || { echo "make night needs spin and gcc: apt install spin gcc"; exit 1; }
	$(MAKE) engines WITH_CDK=yes
	$(MAKE) soak mutants jepsen
	REQUIRE_ENGINES=1 DEEP_TESTS=1 $(BIN)/python -m pytest -m "night or not night"  # every test, with all random examples
	$(BIN)/python -m tests.models --night
	$(BIN)/python -m benchmarks
	$(MAKE) fresh RELEASE=trixie
	$(MAKE) fresh RELEASE=forky
	$(MAKE) fresh RELEASE=forky PYTHON=python3.15
	$(MAKE) counts

.PHONY: counts
counts: .venv/installed  ## Write the figures of docs/proof/tests.md, and measure those of histories again
	$(BIN)/python -m tests.docs.counts --histories 2000

.PHONY: bench
bench: .venv/installed  ## Measure the cost of copies beside a hand-written loop, in minutes: make bench BENCH=--quick
	@$(BIN)/python -m benchmarks $(BENCH)

.PHONY: engines
engines: $(DEPLOY_TOOLS:%=.engines/%/installed) $(if $(WITH_CDK),$(CDK)/dist/index.js)  ## Install what tests need besides .venv: engines and deployment tools; some need npm
	@test -x $(VALIDATOR) || ! command -v npm >/dev/null || \
	  npm install --no-save --no-audit --no-fund --loglevel=error --prefix .engines/asl asl-validator@4.0.0 || \
	  echo "asl-validator could not be installed: its tests will be skipped"
	@test -x $(DYNOXIDE) || ! command -v npm >/dev/null || \
	  npm install --no-save --no-audit --no-fund --loglevel=error --prefix .engines @dynoxide/linux-x64@1.2.1 || \
	  echo "dynoxide could not be installed: its tests will be skipped"

# The construct in TypeScript, with the AWS CDK of npm.
$(CDK)/dist/index.js: $(CDK)/src/index.ts $(CDK)/package-lock.json $(CDK)/tsconfig.json
	@! command -v npm >/dev/null || { cd $(CDK) && npm ci --ignore-scripts --no-audit --no-fund --loglevel=error && \
	  npm run --silent build && touch dist/index.js; } || \
	  echo "$(CDK) could not be built: its tests will be skipped"

# Each deployment tool has its own environment: ministack runs the functions that are deployed to it, and packages
# installed beside it would hide what a bundle lacks.
# --no-config: the override in pyproject.toml is for the lock files. It has no hash, and uv would refuse it.
.engines/%/installed: tests/deploy/requirements-%.txt | .venv/installed
	@echo "installing $* into .engines/$* ..."
	@rm -rf $(@D) && $(BIN)/python -m venv --without-pip $(@D) && \
	  { $(BIN)/uv pip install --no-config --quiet --python $(@D)/bin/python --no-deps --require-hashes -r $< || \
	    $(BIN)/python -m pip --quiet --python $(@D)/bin/python install --no-deps --require-hashes -r $<; } && touch $@ || \
	  echo "$* could not be installed: its tests will be skipped"

.venv/installed: requirements-dev.txt pyproject.toml
	@$(PYTHON) -c 'import sys; v = sys.version_info[:2]; sys.exit(0 if v >= (3, 11) else \
	  "sync-rules needs Python 3.11 or later, and $(PYTHON) is %d.%d: run make PYTHON=python3.13 ..." % v)'
	@$(PYTHON) -m venv .venv || { echo "python3 cannot make virtual environments: install its venv package"; exit 1; }
	@echo "installing into .venv, in a minute or two ..."
	@$(BIN)/python -m pip install --quiet --quiet --disable-pip-version-check --no-deps --require-hashes -r requirements-dev.txt
	@$(BIN)/python -m pip install --quiet --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable .
	@touch $@

LOCK := $(BIN)/uv pip compile --generate-hashes --universal --python-version 3.11 --no-emit-index-url --no-header --quiet
lock:  ## Write the lock files anew: hashes, no addresses
	$(LOCK) pyproject.toml --extra dev --output-file requirements-dev.txt
	echo hatchling | $(LOCK) --constraint requirements-dev.txt --no-annotate --output-file infra/requirements-cli.txt pyproject.toml -
	$(MAKE) requirements
	echo cyclonedx-bom | $(LOCK) --no-annotate --output-file .github/requirements-sbom.txt -
	echo 'aws-sam-cli==1.170.0' | $(LOCK) --output-file tests/deploy/requirements-sam.txt -
	printf 'ministack[full]==1.5.33\nboto3\n' | $(LOCK) --output-file tests/deploy/requirements-ministack.txt -
	$(LOCK) pyproject.toml --extra cdk --constraint requirements-dev.txt --output-file tests/deploy/requirements-cdk.txt
	printf 'awslambdaric==4.2.2\nboto3\n' | $(LOCK) --output-file tests/deploy/requirements-lambda.txt -

# What the functions import, at the versions of requirements-dev.txt; without boto3, which Lambda has.
.PHONY: requirements
requirements: .venv/installed
	printf '%s\n' '# The packages in the functions, locked: `make requirements` writes this file. They are those dependencies in' \
	  '# pyproject.toml that the functions import (python -m tests.support.requirements), with what they need.' \
	  '# boto3 and botocore are not among them: Lambda has them.' > infra/requirements.txt
	$(BIN)/python -m tests.support.requirements | \
	  $(LOCK) --constraint requirements-dev.txt --no-annotate - >> infra/requirements.txt

# Called by `sam build` for each function: the same for all, and with one seed for hashes the same each time.
build-%: .venv/installed
	@PYTHONHASHSEED=0 $(BIN)/python -m sync_rules.deploy.bundle "$(ARTIFACTS_DIR)"

clean:  ## Remove what was installed and cached
	rm -rf .venv .engines dist .pytest_cache .mypy_cache .ruff_cache .hypothesis
