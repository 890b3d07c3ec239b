# Every command sets up what it needs; `make help` lists them.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
RUN_STAMP := $(VENV)/.run-stamp
DEV_STAMP := $(VENV)/.dev-stamp
CONTEXTS := common handoff router orchestrator pipeline workflow
PROTOS := $(shell find protos/pointsman -name '*.proto' 2>/dev/null | sort)

.PHONY: help setup proto lock
.DEFAULT_GOAL := help

help: ## list the commands
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 18

$(VENV)/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "Pointsman needs Python 3.11 or newer; set PYTHON=/path/to/python3.11"; exit 1; }
	$(PYTHON) -m venv $(VENV)

$(RUN_STAMP): requirements.lock pyproject.toml | $(VENV)/bin/python
	@echo "installing locked dependencies into $(VENV) (once, about a minute)"
	@$(BIN)/pip install -q --disable-pip-version-check --require-hashes -r requirements.lock
	@touch $@

$(DEV_STAMP): requirements-dev.lock pyproject.toml | $(VENV)/bin/python
	@echo "installing locked dependencies and tools into $(VENV) (once, about a minute)"
	@$(BIN)/pip install -q --disable-pip-version-check --require-hashes -r requirements-dev.lock
	@$(BIN)/pip install -q --disable-pip-version-check --no-deps --no-build-isolation -e .
	@touch $@ $(RUN_STAMP)

setup: $(DEV_STAMP) ## virtual environment with everything, from the lock files

proto: $(DEV_STAMP) ## generate pointsman/api from protos/
	@$(BIN)/python protos/generate.py

lock: ## resolve the dependencies anew into the two lock files (needs uv)
	uv lock --upgrade
	uv export -q --format requirements.txt --no-emit-project --no-header --no-annotate --no-default-groups -o requirements.lock
	uv export -q --format requirements.txt --no-emit-project --no-header --no-annotate --group dev -o requirements-dev.lock
