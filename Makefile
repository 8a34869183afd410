# All targets do their own set-up: they need Python 3.11+, make and PyPI.
PYTHON ?= python3
BIN := .venv/bin

.PHONY: demo test test-fast test-environments lint docs clean

demo: .venv/installed
	$(BIN)/manykernels demo

test: .venv/installed-dev
	$(BIN)/python -m pytest -n auto --maxprocesses 4 --dist loadgroup

# Of each room and of the contracts what is quick and breaks when the room does: a minute on two cores. A test sees to it
# that no room is left out.
FAST = core compute/test_linalg.py compute/test_triangles.py compute/test_pairwise.py compute/test_rowcache.py \
	kernels/test_base.py kernels/test_columns.py losses norms inner banks/test_packed.py banks/cluster/test_bank.py \
	test_problem.py contracts outer/test_newton.py outer/test_interior_point.py outer/test_automatic.py \
	literature/test_cutting_planes.py literature/test_smo_mkl.py alignment/test_finite.py datasets tables \
	reports/test_terminal_tables.py reports/test_intervals.py estimators/test_own_parts.py estimators/test_views.py \
	estimators/test_reduced.py cli/test_outputs.py test_layout.py test_environments.py

test-fast: .venv/installed-dev
	$(BIN)/python -m pytest -n auto --maxprocesses 4 --dist loadgroup $(addprefix tests/,$(FAST))

# With the lowest declared versions and with the newest: a part of the tests, or all of them with ALL=1.
test-environments: .venv/installed-dev
	$(BIN)/python tools/environments.py $(if $(ALL),all,smoke)

lint: .venv/installed-dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports
	$(BIN)/mypy
	$(BIN)/python tools/house.py

# From scratch (-E): a build that goes on from the last one does not repeat its warnings.
docs: .venv/installed-dev
	$(BIN)/python -m sphinx -E -W --keep-going --nitpicky -q docs docs/_build/html
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
