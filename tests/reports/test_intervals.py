"""Intervals hold what they promise, and figures agree with scikit-learn's."""

import numpy as np
import pytest
from sklearn.metrics import r2_score, roc_auc_score

from manykernels.reports.intervals import area_under_roc, bootstrap, explained, mean_interval, paired_difference, wilson

RUNS = 400


def covered(intervals, truth):
    return np.mean([interval.low <= truth <= interval.high for interval in intervals])


@pytest.mark.parametrize(("share", "n"), [(0.5, 30), (0.9, 50), (0.98, 100)])
def test_wilson_covers(share, n):
    counts = np.random.default_rng(0).binomial(n, share, size=RUNS)
    assert 0.91 < covered([wilson(int(count), n) for count in counts], share) <= 1.0


def test_wilson_at_the_ends():
    assert wilson(0, 20).low == 0.0
    assert 0.1 < wilson(0, 20).high < 0.2
    assert wilson(20, 20).high == 1.0


@pytest.mark.parametrize("n", [40, 300])
def test_paired_difference_covers(n):
    rng = np.random.default_rng(1)
    found = []
    for _ in range(RUNS):
        easy = rng.random(n) < 0.8  # rows that both get right
        first, second = easy | (rng.random(n) < 0.5), easy | (rng.random(n) < 0.3)
        found.append(paired_difference(first, second))
    assert 0.92 < covered(found, 0.2 * 0.2) <= 1.0


def test_paired_difference_is_antisymmetric_and_cautious():
    rng = np.random.default_rng(2)
    first, second = rng.random(50) < 0.9, rng.random(50) < 0.6
    one, other = paired_difference(first, second), paired_difference(second, first)
    assert one.value == pytest.approx(-other.value)
    assert one.low == pytest.approx(-other.high)
    same = paired_difference(np.ones(10, bool), np.ones(10, bool))
    assert same.low < -0.1  # ten rows prove little, even where all are right
    assert not same.excludes_zero


def test_bootstrap_covers_the_mean():
    rng = np.random.default_rng(3)
    found = []
    for _ in range(100):
        values = rng.normal(size=60)
        found += bootstrap(lambda rows, values=values: values[rows].mean(axis=1)[:, None], 60)
    assert 0.87 < covered(found, 0.0) <= 1.0


def test_explained_is_r2():
    rng = np.random.default_rng(4)
    truth = rng.normal(size=80)
    near, far = truth + 0.3 * rng.normal(size=80), truth + rng.normal(size=80)
    scores, differences = explained(truth, [near, far])
    assert scores[0].value == pytest.approx(r2_score(truth, near))
    assert differences[1].value == pytest.approx(r2_score(truth, near) - r2_score(truth, far))
    assert differences[1].excludes_zero
    assert differences[0] == type(differences[0])(0.0, 0.0, 0.0)
    assert explained(truth, [near, far])[0] == scores  # the seed is fixed


def test_area_with_ties():
    rng = np.random.default_rng(5)
    positive, decisions = rng.random(200) < 0.3, rng.integers(0, 5, size=200).astype(float)
    assert area_under_roc(positive, decisions) == pytest.approx(roc_auc_score(positive, decisions))
    assert np.isnan(area_under_roc(np.ones(3, bool), np.arange(3.0)))


def test_intervals_of_a_mean_over_classes_hold():
    rng = np.random.default_rng(0)
    found = [
        mean_interval([wilson(int(rng.binomial(n, p)), n) for n, p in ((60, 0.9), (15, 0.5))]) for _ in range(RUNS)
    ]
    assert 0.92 < covered(found, 0.7) < 0.985
