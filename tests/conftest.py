"""What holds for all tests: threads that wait sleep, and random numbers do not depend on the tests that ran before."""

import gc
import os

# OpenMP's threads (of torch and scikit-learn) spin while they wait, and so keep the cores from the other processes that
# run tests: a fit on torch's CPU device takes twenty times as long then. It is read when the libraries are loaded.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")

import numpy as np
import pytest


def pytest_collection_finish():
    """Take what was imported out of every later search for cycles: it stays, and to look through it takes a second."""
    gc.collect()
    gc.freeze()


@pytest.fixture(scope="module")
def _states(request):
    """The generators of a module with their states after its import."""
    found = [value.bit_generator for value in vars(request.module).values() if isinstance(value, np.random.Generator)]
    return [(generator, generator.state) for generator in found]


@pytest.fixture(autouse=True)
def _as_if_alone(_states):
    """Let a test draw the numbers that it draws when it runs alone: which tests a process has run is chance."""
    for generator, state in _states:
        generator.state = state
