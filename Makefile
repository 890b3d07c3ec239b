# Every command sets up what it needs; `make help` lists them.
PYTHON ?= python3
VENV := .venv
TRACE_VENV := .venv-trace
AGENTS := .venv-agents
SERVERS_VENV := .venv-servers
PEERS := .venv-peers
DOCS_VENV := .venv-docs
CONSOLE_TOOLS := .venv-console
BIN := $(VENV)/bin
PIP := $(BIN)/pip install -q --disable-pip-version-check
RUN_STAMP := $(VENV)/.run-stamp
DEV_STAMP := $(VENV)/.dev-stamp
BROWSER_STAMP := $(VENV)/.browser-stamp
WORKERS ?= 3
STORE_TESTS := tests/contract/chassis tests/contract/orchestrator tests/contract/pipeline tests/contract/router tests/contract/workflow
# Tests and benchmarks start hundreds of processes: without bytecode each would compile the sources again (0.7 s).
unexport PYTHONDONTWRITEBYTECODE
TASK ?= write the functions of the shop

.PHONY: help run up test check bench bench-servers bench-peers pipeline-campaign workflow-campaign router-campaign faults tutorial landing-campaign cheats clients trace-acceptance agents-acceptance acp-conformance ecosystems hook-recordings simulate abuse overload sbom image setup proto seeds lock screenshots docs release mcp-acceptance limit-recordings check-console console-soak runners portable conformance cluster-acceptance
.DEFAULT_GOAL := help

help: ## list the commands
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 18

$(VENV)/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "Pointsman needs Python 3.11 or newer; set PYTHON=/path/to/python3.11"; exit 1; }
	$(PYTHON) -m venv $(VENV)

$(RUN_STAMP): requirements.lock requirements-build.lock pyproject.toml | $(VENV)/bin/python
	@echo "installing locked dependencies into $(VENV) (once, about a minute)"
	@$(PIP) --require-hashes -r requirements.lock -r requirements-build.lock
	@$(PIP) --no-deps --no-build-isolation -e .
	@touch $@

$(DEV_STAMP): requirements-dev.lock pyproject.toml | $(VENV)/bin/python
	@echo "installing locked dependencies and tools into $(VENV) (once, about a minute)"
	@$(PIP) --require-hashes -r requirements-dev.lock
	@$(PIP) --no-deps --no-build-isolation -e .
	@touch $@ $(RUN_STAMP)

$(BROWSER_STAMP): | $(DEV_STAMP)
	@$(BIN)/python -m tests.e2e.install
	@touch $@

run: $(RUN_STAMP) ## start an embedded control plane and watch a crew of scripts take three tasks to COMPLETE (TASK="…")
	@$(BIN)/python -m pointsman.cli demo "$(TASK)"

up: $(RUN_STAMP) ## start all services in one process, on SQLite
	@$(BIN)/python -m pointsman.cli up

test: $(DEV_STAMP) $(BROWSER_STAMP) ## all tests, on SQLite and a real PostgreSQL from the package index
	@$(BIN)/pytest -q -n $(WORKERS) --dist loadgroup tests

check: $(DEV_STAMP) check-console ## format, lint, types, import rules, protos, generated code, dependencies
	$(BIN)/ruff format --check --quiet .
	$(BIN)/ruff check --quiet .
	$(BIN)/mypy -p pointsman
	$(BIN)/mypy tests
	$(BIN)/mypy examples integrations/claude-code .ci
	cd deploy && ../$(BIN)/mypy --config-file ../pyproject.toml .
	cd protos && ../$(BIN)/mypy --config-file ../pyproject.toml .
	$(BIN)/lint-imports --no-logo
	$(BIN)/buf lint protos
	$(BIN)/buf format --diff --exit-code protos --path protos/pointsman
	$(BIN)/python protos/check.py
	PYTHONPATH=. $(BIN)/python protos/openapi.py --check
	$(BIN)/deptry .
	cd docs && ../$(BIN)/mypy --config-file ../pyproject.toml .
	$(BIN)/python docs/pages.py check

check-console: ## types, lint and format of the console's JavaScript, where npm is there
	@if command -v npm > /dev/null; then $(MAKE) --no-print-directory $(CONSOLE_TOOLS)/.stamp && \
		$(CONSOLE_TOOLS)/node_modules/.bin/tsc -p tests/unit/console/jsconfig.json && \
		$(CONSOLE_TOOLS)/node_modules/.bin/biome ci --colors=off --config-path=tests/unit/console services/gateway/console/js services/gateway/console/early.js; \
	else echo "NPM IS MISSING: types, lint and format of the console's JavaScript were NOT checked"; fi

$(CONSOLE_TOOLS)/.stamp: tests/unit/console/package.json tests/unit/console/package-lock.json
	@echo "installing what checks the console into $(CONSOLE_TOOLS) (once, some seconds)"
	@mkdir -p $(CONSOLE_TOOLS) && cp $^ $(CONSOLE_TOOLS)
	@cd $(CONSOLE_TOOLS) && npm ci --silent --no-audit --no-fund --ignore-scripts
	@touch $@

console-soak: $(DEV_STAMP) $(BROWSER_STAMP) ## update pages of the console for a long time, and end with 1 where they have grown (MINUTES=30)
	@$(BIN)/python -m tests.e2e.soak --minutes $(or $(MINUTES),30)

bench: $(DEV_STAMP) ## measure us against the floors of this machine, as JSON lines (BENCH="chassis" for one)
	@$(BIN)/python -m tests.bench $(BENCH)

bench-servers: $(DEV_STAMP) $(SERVERS_VENV)/.stamp ## measure our servicers behind another gRPC server for Python, beside ours, as JSON lines
	@PYTHONPATH=.:$$($(BIN)/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))') $(SERVERS_VENV)/bin/python -m tests.bench.grpc_servers

$(SERVERS_VENV)/.stamp: tests/bench/grpc_servers/requirements.lock
	@echo "installing another gRPC server into $(SERVERS_VENV) (once, about a minute)"
	@$(PYTHON) -m venv $(SERVERS_VENV)
	@$(SERVERS_VENV)/bin/pip install -q --disable-pip-version-check --require-hashes -r $<
	@touch $@

bench-peers: $(DEV_STAMP) $(PEERS)/.stamp ## a chain of durable steps with DBOS, LangGraph and Restate beside ours, as a table (needs npm)
	@$(BIN)/python -m tests.bench.peers $(PEERS)

$(PEERS)/.stamp: tests/bench/peers/dbos.lock tests/bench/peers/langgraph.lock tests/bench/peers/restate.lock
	@echo "installing the peers into $(PEERS) (once, about two minutes)"
	@set -e; for peer in dbos langgraph restate; do \
		$(PYTHON) -m venv $(PEERS)/$$peer; \
		$(PEERS)/$$peer/bin/pip install -q --disable-pip-version-check --require-hashes -r tests/bench/peers/$$peer.lock; \
	done
	@npm install --silent --no-audit --no-fund --prefix $(PEERS) @restatedev/restate-server@1.7.12
	@touch $@

pipeline-campaign: $(DEV_STAMP) ## read a million damaged transcripts, race 10,000 barriers round their timeouts, and hold random pipelines against a model, on both databases
	@$(BIN)/python -m tests.bench.pipeline_fuzz $(or $(TRANSCRIPTS),1000000) $(or $(SEED),1)
	@POINTSMAN_RACE_BARRIERS=$(or $(BARRIERS),10000) $(BIN)/pytest -q --timeout 3600 tests/contract/pipeline/test_races.py
	@POINTSMAN_RANDOM_PIPELINES=$(or $(PIPELINES),1000) $(BIN)/pytest -q --timeout 3600 tests/contract/pipeline/test_random.py

workflow-campaign: $(DEV_STAMP) ## give random commands to the service on both databases and to its rules written down a second time, then race for its tasks (WALKS=5000 FIRST=1 TASKS=10000)
	@POINTSMAN_WORKFLOW_WALKS=$(or $(WALKS),5000) POINTSMAN_WORKFLOW_FIRST_WALK=$(or $(FIRST),1) $(BIN)/pytest -q tests/contract/workflow/test_walks.py
	@POINTSMAN_WORKFLOW_EXAMPLES=$(or $(WALKS),5000) $(BIN)/pytest -q --timeout 3600 tests/unit/workflow/test_model.py
	@POINTSMAN_CLAIMED_TASKS=$(or $(TASKS),10000) $(BIN)/pytest -q tests/contract/workflow/test_claims.py

router-campaign: $(DEV_STAMP) ## decide a million random, hostile and rule-made texts twice each (TEXTS=1000000 SEED=1)
	@$(BIN)/python -m tests.bench.router_fuzz $(or $(TEXTS),1000000) $(or $(SEED),1)

faults: $(DEV_STAMP) ## break real processes under load and prove that nothing is lost (FAULT_SECONDS=150 FAULT_RUNS=64 FAULT_DATABASES=sqlite,postgresql)
	@$(BIN)/python -m tests.robustness.faults

portable: $(DEV_STAMP) ## the tests of the stores without LISTEN, advisory locks and SKIP LOCKED, at SERIALIZABLE with injected conflicts; a rolling update and faults too
	@POINTSMAN_DATABASE_FEATURES=portable $(BIN)/pytest -q -n $(WORKERS) -k postgresql $(STORE_TESTS)
	@POINTSMAN_DATABASE_FEATURES=portable $(BIN)/pytest -q tests/robustness/test_rolling.py
	@POINTSMAN_DATABASE_FEATURES=portable FAULT_SECONDS=$(or $(FAULT_SECONDS),60) FAULT_RUNS=$(or $(FAULT_RUNS),8) FAULT_DATABASES=postgresql $(BIN)/python -m tests.robustness.faults

conformance: $(DEV_STAMP) ## the tests of the stores on a server of yours, portable (POINTSMAN_TEST_DATABASE_URL=postgresql://user@host/name, whose user may create databases)
	@test -n "$$POINTSMAN_TEST_DATABASE_URL" || { echo "set POINTSMAN_TEST_DATABASE_URL to the address of a server on which the user may create databases"; exit 2; }
	@POINTSMAN_DATABASE_FEATURES=$(or $(FEATURES),portable) $(BIN)/pytest -n 1 -k postgresql $(STORE_TESTS)

landing-campaign: $(DEV_STAMP) ## land fifty branches, three in ten of which overlap, through real services with kills (BRANCHES=50 SECONDS_OF_WORK=60)
	@$(BIN)/python -m tests.robustness.landing --branches $(or $(BRANCHES),50) --seconds $(or $(SECONDS_OF_WORK),60)

tutorial: $(DEV_STAMP) ## play every command of the tutorial as a new user, with an audit of all stores after each
	@POINTSMAN_WHOLE_TUTORIAL=1 $(BIN)/pytest -q tests/scenarios/test_tutorial.py

cheats: $(DEV_STAMP) ## prove honest and cheating deliveries of a corpus in five ecosystems, and print what was paid (EACH=1, 0 for all; DEFENCES=1 says what each is worth; REPEAT=1 RESULTS=file to take up again, MINUTES=n, WORKERS=n)
	@$(BIN)/python -m tests.robustness.cheats --each $(or $(EACH),1) --repeat $(or $(REPEAT),1) $(if $(DEFENCES),--defences) $(if $(RESULTS),--results $(RESULTS)) $(if $(MINUTES),--minutes $(MINUTES)) $(if $(WORKERS),--workers $(WORKERS))

runners: $(DEV_STAMP) ## try the adapters with the real jest, vitest, mocha, tape, bats, nextest and Maven, from package indexes (RUNNER="jest maven")
	@$(BIN)/python -m tests.acceptance.runners $(AGENTS)/runners $(RUNNER)

guide: $(DEV_STAMP) ## type the guide for another language into an empty folder, in Rust, build it with an empty cache and play it (FOLDER=… keeps it)
	@$(BIN)/python -m tests.acceptance.guide $(FOLDER)

cluster-acceptance: $(DEV_STAMP) ## apply deploy/ to a real Kubernetes control plane with simulated nodes, upgrade, roll back, and plant faults; needs Go
	@$(BIN)/python -m tests.acceptance.cluster .venv-cluster

container: $(DEV_STAMP) ## try every attack at the level `container` with a real podman, where one is installed
	@$(BIN)/python -m tests.acceptance.container

clients: $(DEV_STAMP) ## build the example clients (Go, Java, TypeScript) where their toolchains are, and play the scenario with each
	@POINTSMAN_BUILD_CLIENTS=1 $(BIN)/pytest -q -rs tests/scenarios/test_clients.py

trace-acceptance: $(DEV_STAMP) $(TRACE_VENV)/.stamp ## send runs that are hard on a trace to a real back end, and ask it what arrived
	@$(BIN)/python -m tests.acceptance.trace $(TRACE_VENV)

$(TRACE_VENV)/.stamp: tests/acceptance/requirements.lock
	@echo "installing a trace back end into $(TRACE_VENV) (once, about a minute)"
	@$(PYTHON) -m venv $(TRACE_VENV)
	@$(TRACE_VENV)/bin/pip install -q --disable-pip-version-check --require-hashes -r $<
	@touch $@

hook-recordings: $(DEV_STAMP) ## record what the real Claude Code sends to our hooks, for the tests that play it
	@$(BIN)/python -m tests.acceptance.claude_hooks $(AGENTS)

agents-acceptance: $(DEV_STAMP) ## play a run with each real agent that can be installed, by its command line and by ACP, and a scripted model (AGENT="codex gemini-acp")
	@$(BIN)/python -m tests.acceptance.agents $(AGENTS) $(AGENT)

acp-conformance: $(DEV_STAMP) ## every real agent by ACP through the same steps (prompt, tool, usage, permission, cancel, resume, crash), as a table (AGENT="qwen-acp")
	@$(BIN)/python -m tests.acceptance.acp_conformance $(AGENTS) $(AGENT)

ecosystems: $(DEV_STAMP) ## bring real projects of the registries, each with a bug, to a proven branch as a new user would (PROJECT="uuid semver")
	@$(BIN)/python -m tests.acceptance.ecosystems .venv-ecosystems $(PROJECT)

mcp-acceptance: $(DEV_STAMP) ## play the MCP server with the MCP Inspector and the real Claude Code, and a scripted model
	@$(BIN)/python -m tests.acceptance.mcp_clients $(AGENTS)

limit-recordings: $(DEV_STAMP) ## record what the real agents print when a scripted server refuses them for a limit (AGENT="codex aider")
	@$(BIN)/python -m tests.acceptance.limit_recordings $(AGENTS) $(AGENT)

simulate: $(DEV_STAMP) ## live through many seeds of fake time, lost calls and deaths (SEEDS=100000 FIRST=0 JOBS=2)
	@$(BIN)/python -m tests.robustness.simulation --seeds $(or $(SEEDS),100000) --first $(or $(FIRST),0) --jobs $(or $(JOBS),2)

abuse: $(DEV_STAMP) ## send bad input to every field of every RPC, and through the gateway (REQUESTS=100000)
	@$(BIN)/python -m tests.robustness.abuse --requests $(or $(REQUESTS),100000)

overload: $(DEV_STAMP) ## ask for ten times what can be done, and let watchers stand still (SECONDS=60 WATCHERS=5000 FLOOD=all, or runs)
	@$(BIN)/python -m tests.robustness.overload --seconds $(or $(SECONDS),60) --watchers $(or $(WATCHERS),5000) --flood $(or $(FLOOD),all)

sbom: $(DEV_STAMP) ## list what is installed with us: docs/licences.md, and dist/sbom.cdx.json (CycloneDX)
	@$(BIN)/python deploy/supply.py licences
	@mkdir -p dist && $(BIN)/python deploy/supply.py sbom > dist/sbom.cdx.json

image: $(DEV_STAMP) ## run the steps of the image's build without a container engine, and start what comes out as its user
	@POINTSMAN_BUILD_IMAGE=1 $(BIN)/pytest -q tests/unit/deploy/test_image_build.py

setup: $(DEV_STAMP) ## virtual environment with everything, from the lock files

proto: $(DEV_STAMP) ## generate pointsman/api from protos/
	@$(BIN)/python protos/generate.py
	@PYTHONPATH=. $(BIN)/python protos/openapi.py

seeds: $(DEV_STAMP) ## print docs/seeds.md: the rules of the specifications and the tests that show them
	@$(BIN)/python -m tests.seeds.table

lock: ## resolve the dependencies anew into the lock files (needs uv)
	uv lock --upgrade
	uv export -q --format requirements.txt --no-emit-project --no-header --no-annotate --no-default-groups -o requirements.lock
	uv export -q --format requirements.txt --no-emit-project --no-header --no-annotate --only-group build -o requirements-build.lock
	uv export -q --format requirements.txt --no-emit-project --no-header --no-annotate --group dev --all-extras -o requirements-dev.lock
	uv export -q --format requirements.txt --no-emit-project --no-header --no-annotate --only-group docs -o requirements-docs.lock
	uv pip compile -q --upgrade --universal --no-strip-extras --python-version 3.11 --generate-hashes --no-header --no-annotate -o tests/acceptance/requirements.lock tests/acceptance/requirements.in
	uv pip compile -q --upgrade --universal --no-strip-extras --python-version 3.11 --generate-hashes --no-header --no-annotate -o tests/bench/grpc_servers/requirements.lock tests/bench/grpc_servers/requirements.in
	for peer in dbos langgraph restate; do uv pip compile -q --upgrade --universal --no-strip-extras --python-version 3.11 --generate-hashes --no-header --no-annotate -o tests/bench/peers/$$peer.lock tests/bench/peers/$$peer.in; done

docs: $(DEV_STAMP) $(DOCS_VENV)/.stamp ## build the documentation as a site in dist/site, with an API reference from protos and docstrings; every link is tried
	@$(BIN)/python docs/pages.py check
	@$(BIN)/python docs/pages.py stage build/docs
	@PYTHONPATH=. $(BIN)/python protos/reference.py build/docs/api
	@NO_MKDOCS_2_WARNING=1 $(DOCS_VENV)/bin/mkdocs build --strict --quiet
	@echo "dist/site/index.html"

$(DOCS_VENV)/.stamp: requirements-docs.lock
	@echo "installing what builds the documentation into $(DOCS_VENV) (once, half a minute)"
	@$(PYTHON) -m venv $(DOCS_VENV)
	@$(DOCS_VENV)/bin/pip install -q --disable-pip-version-check --require-hashes -r $<
	@touch $@

release: $(DEV_STAMP) ## check version and changelog, build wheel and sdist, try both in clean environments, print tag and notes; pushes nothing
	@$(BIN)/python deploy/release.py

screenshots: $(DEV_STAMP) ## take the README's pictures of the console (needs chromium)
	@$(BIN)/python -m tests.e2e.screenshots
