"""What the level method needs."""

import builtins

import pytest

from manykernels.literature.level import level
from manykernels.losses import Hinge
from tests.literature.test_solvers import problem_of
from tests.reference.oracle import random_problem


def test_level_says_what_to_install(monkeypatch):
    grams, y = random_problem(20, 4, seed=12)
    own = builtins.__import__

    def without(name, *args, **kwargs):
        if name == "clarabel":
            raise ImportError(name)
        return own(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(ImportError, match=r"pip install manykernels\[baselines\]"):
        level(problem_of(grams, y, Hinge(), 1.0))
