"""Hierarchical MKL: a product is used only with all its divisors, and its conditions hold on the active set."""

import numpy as np
import pytest

from manykernels.banks import bind_family
from manykernels.kernels import GaussianFamily, Linear, ProductKernels
from manykernels.literature.hierarchical import hierarchical
from manykernels.losses import Squared

X = np.random.default_rng(0).normal(size=(60, 4))
Y = (X[:, 0] * X[:, 1] * X[:, 2] + X[:, 3])[None]
C = np.full((1, 60), 10.0)


@pytest.fixture(scope="module")
def family():
    return bind_family(ProductKernels([Linear(columns=[j]) for j in range(4)], degree=3), X)


def test_a_product_comes_with_all_its_divisors(family):
    names = set(hierarchical(family, Squared(), Y, C, growth=1.2).bank.names)
    assert "x0 * x1 * x2" in names
    assert names >= {"x0", "x1", "x2", "x3", "x0 * x1", "x0 * x2", "x1 * x2"}


def test_the_active_set_stays_as_small_as_asked_for(family):
    assert len(hierarchical(family, Squared(), Y, C, growth=1.0, max_kernels=6).bank.names) == 6


def test_higher_prices_leave_products_out(family):
    assert len(hierarchical(family, Squared(), Y, C, growth=1e6).bank.names) == 4


def test_a_family_without_divisors_is_refused():
    with pytest.raises(TypeError, match="needs kernels that offer lattice"):
        hierarchical(bind_family(GaussianFamily(0.1, 10.0), X), Squared(), Y, C)
