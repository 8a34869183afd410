"""The table of words in the docs says what estimators take and have: one column for each, none of them stale."""

import inspect
import re
from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import manykernels
from manykernels import estimators, kernels
from manykernels.kernels import Gaussian, GaussianFamily, Linear, NystroemFeatures

PAGE = (Path(__file__).parents[1] / "docs" / "api" / "words.md").read_text(encoding="utf-8")
ESTIMATORS = [name for name in estimators.__all__ if hasattr(getattr(estimators, name), "fit")]
KERNELS = [Gaussian(1.0), Linear()]
RNG = np.random.default_rng(0)
X = pd.DataFrame(RNG.normal(size=(40, 3)), columns=["a", "b", "c"])
VALUES = X["a"].to_numpy() + 0.1 * RNG.normal(size=40)


def tables():
    """Return the tables of the page: for each, its rows as lists of cells, the titles first."""
    found = re.findall(r"(?:^\|.*\n)+", PAGE, flags=re.MULTILINE)
    cells = [[[cell.strip() for cell in line.strip("|").split(" | ")] for line in text.splitlines()] for text in found]
    return [[rows[0], *rows[2:]] for rows in cells]


def by_estimator(table):
    """Return what a table says: {estimator: {word: cell}}, without words that the estimator does not have."""
    said: dict = {}
    for j, title in enumerate(table[0][1:-1], start=1):
        names = title.split(" / ")
        for row in table[1:]:
            parts = row[j].split(" / ") if len(names) > 1 and " / " in row[j] else [row[j]] * len(names)
            for name, part in zip(names, parts, strict=True):
                said.setdefault(name, {}).update({} if part == "-" else {row[0].strip("`"): part})
    return said


def default_of(kind, name):
    """Return the default of a parameter as the table has it."""
    known = inspect.signature(kind).parameters
    return f"`{known[name].default!r}`".replace("'", '"') if name in known else "-"


def fits(name):
    """Yield fitted models whose attributes are those that there are: plain ones, and those of special parameters."""
    kind = getattr(manykernels, name)
    y = VALUES if "Regressor" in name else (VALUES > 0).astype(int)
    y = np.column_stack([y, np.exp(VALUES)]) if "Survival" in name else y
    known = inspect.signature(kind).parameters
    shared = {key: value for key, value in {"cv": 2, "Cs": [1.0], "norms": [2.0]}.items() if key in known}
    yield kind(KERNELS, **shared).fit(X.to_numpy(), y)
    yield kind(**shared).fit(X, y)
    if "shared_weights" in known:
        yield kind(KERNELS, shared_weights=False, **shared).fit(X, np.column_stack([y, 1 - y]))
    if "approximation" in known:
        yield kind(KERNELS, approximation=NystroemFeatures(5), **shared).fit(X, y)
    if "alignment" in known:
        family = GaussianFamily(0.5, 5.0, per_feature=True, n_starts=0, shrinkage="auto")
        yield kind(family, **{**shared, "validation_fraction": 0.25}).fit(X, y)
    if hasattr(kind, "partial_fit"):
        classes = {} if "Regressor" in name else {"classes": [0, 1]}
        yield kind(KERNELS).partial_fit(X, y, **classes)


@cache
def attributes(name):
    """Return for each public attribute whether all models have it ("yes") or a few ("sometimes")."""
    every = [{key for key in vars(model) if key.endswith("_") and not key.startswith("_")} for model in fits(name)]
    return {key: "yes" if all(key in have for have in every) else "sometimes" for key in set().union(*every)}


def test_every_estimator_has_a_column():
    for table in tables()[:2]:
        assert sorted(by_estimator(table)) == sorted(ESTIMATORS)
        words = [row[0] for row in table[1:]]
        assert len(words) == len(set(words))
        assert all(len(row) == len(table[0]) and row[-1] for row in table)


@pytest.mark.parametrize("name", ESTIMATORS)
def test_parameters_and_defaults(name):
    kind = getattr(manykernels, name)
    assert by_estimator(tables()[0])[name] == {word: default_of(kind, word) for word in kind().get_params(deep=False)}


@pytest.mark.filterwarnings("ignore:(The kernel overfits|.*stopped after|approximation=)")
@pytest.mark.parametrize("name", ESTIMATORS)
def test_attributes(name):
    assert by_estimator(tables()[1])[name] == attributes(name)


def test_arguments_of_kernels():
    said = {row[0].strip("`"): re.findall(r"`(\w+)`", row[1]) for row in tables()[2][1:]}
    public = [getattr(kernels, name) for name in kernels.__all__]
    assert {kind.__name__ for kind in public if "columns" in inspect.signature(kind).parameters} <= set(said)
    assert said == {name: list(inspect.signature(getattr(kernels, name)).parameters) for name in said}
    for name, arguments in said.items():
        if "columns" in arguments:  # what a thing sees, and how that is called, come last
            assert arguments[-3:] == ["columns", "group", "label"], name
