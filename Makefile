# All targets do their own set-up: they need Python 3.11+, make and PyPI.
PYTHON ?= python3
BIN := .venv/bin

.PHONY: demo test test-fast test-environments lint docs clean

demo: .venv/installed
	$(BIN)/manykernels demo

test: .venv/installed-dev
	$(BIN)/python -m pytest -n auto --maxprocesses 4 --dist worksteal

# What breaks most often when something moves.
FAST = core inner tables compute/test_linalg.py contracts/test_losses.py contracts/test_every_norm.py \
	contracts/test_combined_kernels.py kernels/test_bank.py outer/test_newton.py estimators/test_own_parts.py

test-fast: .venv/installed-dev
	$(BIN)/python -m pytest -n auto --maxprocesses 4 --dist worksteal $(addprefix tests/,$(FAST))

# With the lowest declared versions and with the newest: a part of the tests, or all of them with ALL=1.
test-environments: .venv/installed-dev
	$(BIN)/python tools/environments.py $(if $(ALL),all,smoke)

lint: .venv/installed-dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports
	$(BIN)/mypy
	$(BIN)/python tools/house.py

docs: .venv/installed-dev
	$(BIN)/python -m sphinx -W --keep-going --nitpicky -q docs docs/_build/html
	@echo "The site is docs/_build/html/index.html"

.venv/installed: pyproject.toml
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e .
	touch $@

.venv/installed-dev: .venv/installed
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e ".[dev]"
	touch $@

clean:
	rm -rf .venv .venv-lowest .venv-newest .pytest_cache .mypy_cache .ruff_cache docs/_build docs/gallery
