"""Kernels of small rank for many samples: the same problem as with the approximate kernels written out."""

import numpy as np
import pytest

from manykernels import MKLClassifier, MKLRegressor, load
from manykernels.kernels import Gaussian, KernelBank, Linear
from manykernels.losses import EpsilonInsensitive, Hinge, Logistic, Squared, SquaredHinge
from manykernels.norms import LpNorm
from manykernels.outer.automatic import automatic
from manykernels.problem import Problem

KERNELS = [Gaussian(0.7), Gaussian(2.0), Gaussian(1.0, columns=[0]), Linear()]


def data(n=300, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    return X, X[:, 0] + np.sin(2 * X[:, 1]) + 0.2 * rng.normal(size=n)


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("loss", [Hinge(), SquaredHinge(), Logistic(), Squared(), EpsilonInsensitive(0.1)], ids=repr)
@pytest.mark.parametrize("p", [1.0, 1.5, 2.0])
@pytest.mark.parametrize("C", [0.01, 1.0, 100.0])
def test_equals_the_approximate_kernels_written_out(loss, p, C, intercept):
    X, score = data()
    y = score if loss.regression else np.where(score > 0, 1.0, -1.0)
    bank = KernelBank(KERNELS).bind_features(X, rank=40, random_state=0, normalize=None, precision="double")
    written = KernelBank([entry.kernel for entry in bank.bound]).bind(X, normalize=None, precision="double")
    problems = [Problem(own, loss, LpNorm(p), y[None], np.full((1, 300), C), intercept) for own in (bank, written)]
    found, expected = (automatic(problem, tol=1e-4) for problem in problems)
    assert found.converged
    assert found.certificate.primal == pytest.approx(expected.certificate.primal, rel=2e-4)
    K = written.combine(found.weights)
    assert np.allclose(found.machine.decision, found.machine.beta @ K, atol=1e-8 * np.abs(found.machine.decision).max())
    assert np.allclose(bank.quad_forms(found.machine.beta), written.quad_forms(found.machine.beta), rtol=1e-6)


def test_epsilon_insensitive_regression_and_files(tmp_path):
    X, y = data()
    model = MKLRegressor(KERNELS, loss="epsilon_insensitive", approximation="nystroem", rank=60, random_state=0)
    model.fit(X, y)
    exact = MKLRegressor(KERNELS, loss="epsilon_insensitive").fit(X, y)
    assert model.converged_
    assert model.score(X, y) == pytest.approx(exact.score(X, y), abs=0.03)
    assert model.approximation_error_.shape == (4,)
    assert model.ranks_.tolist()[-1] == 3
    model.save(tmp_path / "model.mkl")
    assert np.allclose(load(tmp_path / "model.mkl").predict(X), model.predict(X), atol=1e-12)


@pytest.mark.parametrize("place", ["memory", "file", "nowhere"])
def test_where_features_are_held_changes_nothing(place, monkeypatch):
    X, score = data()
    budget = {"memory": 10**9, "file": 10_000, "nowhere": 10_000}[place]
    if place == "nowhere":
        monkeypatch.setattr("shutil.disk_usage", lambda path: type("Usage", (), {"free": 0})())
    bank = KernelBank(KERNELS).bind_features(X, rank=40, random_state=0, memory_budget=budget, center=True)
    words = {"memory": "in memory", "file": "temporary file", "nowhere": "in each pass"}[place]
    assert words in bank.describe_storage()
    reference = KernelBank(KERNELS).bind_features(X, rank=40, random_state=0, memory_budget=10**9, center=True)
    assert np.allclose(bank.quad_forms(score), reference.quad_forms(score), rtol=1e-5)


@pytest.mark.parametrize(("rank", "words"), [(0, "rank must be"), (1.5, "rank must be"), (True, "rank must be")])
def test_bad_ranks(rank, words):
    X, score = data(40)
    with pytest.raises(ValueError, match=words):
        MKLClassifier(KERNELS, approximation="nystroem", rank=rank).fit(X, score > 0)
