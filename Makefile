# Everything a person or CI runs. `make demo` and `make test` set the machine up by themselves.
SHELL := /bin/bash
UV_VERSION := 0.13.9
UV := $(shell command -v uv 2>/dev/null || echo .uv/bin/uv)
PYTHON ?= python3
RUN := .venv/bin/
export PATH := $(CURDIR)/.venv/bin:$(PATH)
export DO_NOT_TRACK := 1
.DEFAULT_GOAL := help

.PHONY: help
help: ## list these targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-10s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: setup
setup: .venv/.ready ## install everything, pinned and checked by hash, into .venv

.uv/bin/uv:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "nightowl needs Python 3.11 or newer; found: $$($(PYTHON) --version 2>&1). Name one: make setup PYTHON=/path/to/python3.12"; exit 2; }
	@$(PYTHON) -m venv .uv || { echo "$(PYTHON) cannot make a virtual environment; on Debian and Ubuntu: apt install python3-venv"; exit 2; }
	.uv/bin/pip install --quiet uv==$(UV_VERSION)

.venv/.ready: requirements.lock pyproject.toml | $(if $(filter .uv/bin/uv,$(UV)),.uv/bin/uv)
	@test -x .venv/bin/python || $(UV) venv --quiet --python $(PYTHON) .venv
	$(UV) pip sync --quiet --compile-bytecode --python .venv/bin/python --require-hashes requirements.lock
	$(UV) pip install --quiet --python .venv/bin/python --no-deps --no-build-isolation --editable .
	@touch $@

.PHONY: demo
demo: setup ## a whole night on built-in circuit-board images (under 8 minutes on two cores)
	@$(RUN)nightowl demo

.PHONY: check
check: setup ## lint, types, import contracts
	$(RUN)ruff format --check .
	$(RUN)ruff check .
	$(RUN)mypy
	$(RUN)lint-imports

.PHONY: test
test: setup ## every test that takes seconds
	$(RUN)pytest -m "not slow"

.PHONY: soak
soak: setup ## the long trials: whole nights on the demo and on BCCD
	$(RUN)pytest -m slow

.PHONY: format
format: setup ## put the code into house form
	$(RUN)ruff format .
	$(RUN)ruff check --fix .

.PHONY: lock
lock: setup ## resolve requirements.lock anew and restate what each stage depends on
	$(UV) pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-emit-index-url --extra dev pyproject.toml -o requirements.lock
	$(RUN)python -m tools.stage_libraries

.PHONY: clean
clean: ## remove the environment and all caches of tools; nothing of yours
	rm -rf .venv .uv .mypy_cache .ruff_cache .pytest_cache .import_linter_cache
