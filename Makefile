# The two commands of the README are `make replicate` and `make test`; `make` alone lists everything.
PYTHON ?= python3
PROFILE ?= laptop
CORES ?= $(shell nproc)
PORT ?= 5000
# Folder with CIFAR-10, Penn Treebank or ImageNet (docs/data.md); without it SUITE_DATA counts.
DATA_ROOT ?=

SHELL := /bin/bash
BIN := $(CURDIR)/.venv/bin
# What the recipes start must find `suite` and `horovodrun` of this checkout, and no other Python's packages.
export PATH := $(BIN):$(PATH)
# Compiled files are worth keeping: importing torch without them takes half as long again, in every rank.
unexport PYTHONPATH PYTHONHOME PYTHONDONTWRITEBYTECODE

RESULTS = results/$(PROFILE)
REPORT = $(RESULTS)/report.html
SNAKEMAKE = $(BIN)/snakemake --cores $(CORES) --config profile=$(PROFILE) $(if $(DATA_ROOT),data_root='$(DATA_ROOT)') --

.DEFAULT_GOAL := help
.PHONY: help setup test test-slurm replicate report so-far reference ui lock clean

help: ## List the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-10s %s\n", $$1, $$2 }' $(firstword $(MAKEFILE_LIST))
	@echo 'Variables: PROFILE=$(PROFILE) DATA_ROOT=$(DATA_ROOT) CORES=$(CORES) PORT=$(PORT) PYTHON=$(PYTHON)'

setup: ## Install the suite, its pinned packages and Horovod into .venv
	@$(PYTHON) cluster/setup.py

test: setup ## Run the tests, two at a time (PYTEST_ARGS="-m 'not slow'" for a selection)
	$(BIN)/python -m pytest -n 2 --dist loadfile --no-loadscope-reorder $(PYTEST_ARGS)

test-slurm: setup ## Only the tests that start a private Slurm: jobs of many ranks, time limits, the pipeline (root)
	$(BIN)/python -m pytest -n 2 --dist loadfile --no-loadscope-reorder -m slurm $(PYTEST_ARGS)

replicate: setup ## Run the experiments of PROFILE and judge the claims
	$(SNAKEMAKE)
	@echo "Report: $(CURDIR)/$(REPORT)"

report: setup ## Bring only the report of PROFILE up to date
	$(SNAKEMAKE) $(REPORT)
	@echo "Report: $(CURDIR)/$(REPORT)"

so-far: setup ## Report on what PROFILE has finished, without training any more
	$(BIN)/suite so-far $(PROFILE)
	@echo "Report: $(CURDIR)/$(REPORT)"

reference: setup ## Emulate what results/reference holds, where its settings have changed (45 minutes in all)
	$(BIN)/python -m suite emulate --profile reference
	$(BIN)/python -m suite times reference

ui: setup ## Browse the runs of PROFILE in MLflow, at http://127.0.0.1:PORT
	@test -f $(RESULTS)/mlflow.db || { echo 'No runs yet: first `make replicate PROFILE=$(PROFILE)`.'; exit 2; }
	MLFLOW_DISABLE_TELEMETRY=true $(BIN)/mlflow ui --backend-store-uri sqlite:///$(CURDIR)/$(RESULTS)/mlflow.db \
	  --host 127.0.0.1 --port $(PORT)

lock: ## Resolve requirements.in into requirements.lock anew
	@folder=$$(mktemp -d) && trap 'rm -rf "$$folder"' EXIT && $(PYTHON) -m venv "$$folder" \
	  && "$$folder/bin/pip" install --quiet uv \
	  && "$$folder/bin/uv" pip compile --quiet --generate-hashes --python-version 3.11 requirements.in -o requirements.lock

clean: ## Remove the results of PROFILE, which can be computed again (.venv stays)
	rm -rf $(RESULTS) .snakemake
