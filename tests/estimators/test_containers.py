"""Fits on arrays in containers that may hold Dask arrays, such as those of xarray."""

import numpy as np
import pytest

from manykernels import MKLClassifier, MKLRegressorCV
from manykernels.core.rows import bare_dask, is_dask
from manykernels.kernels import Gaussian, Linear

RNG = np.random.default_rng(0)
X = RNG.standard_normal((60, 3))
Y = np.where(X[:, 0] * X[:, 1] > 0, 1, -1)
KERNELS = [Linear(), Gaussian(1.0)]


class Container:
    """Has Dask's methods whatever it holds, as xarray.DataArray does, and a graph only if it holds Dask data."""

    def __init__(self, data):
        self.data, self.shape, self.ndim, self.dtype = data, data.shape, data.ndim, data.dtype

    def __len__(self):
        return self.shape[0]

    def __array__(self, dtype=None, copy=None):
        return np.array(self.data, dtype=dtype)

    def __getitem__(self, rows):
        return Container(self.data[rows])

    def __dask_graph__(self):
        own = getattr(self.data, "__dask_graph__", None)
        return None if own is None else own()

    def compute(self):
        return Container(self.data.compute())


def kinds():
    yield pytest.param(Container, id="a container")
    try:
        import xarray
    except ImportError:
        yield pytest.param(None, id="xarray", marks=pytest.mark.skip(reason="xarray is not installed"))
    else:
        yield pytest.param(xarray.DataArray, id="xarray")


@pytest.mark.parametrize("wrap", list(kinds()))
def test_arrays_in_containers_are_arrays(wrap):
    plain = MKLClassifier(KERNELS).fit(X, Y)
    model = MKLClassifier(KERNELS).fit(wrap(X), wrap(Y))
    np.testing.assert_array_equal(model.weights_, plain.weights_)
    np.testing.assert_array_equal(model.decision_function(wrap(X)), plain.decision_function(X))
    target = X[:, 0]
    chosen = MKLRegressorCV(KERNELS, cv=2).fit(wrap(X), wrap(target))
    np.testing.assert_array_equal(chosen.weights_, MKLRegressorCV(KERNELS, cv=2).fit(X, target).weights_)


@pytest.mark.parametrize("wrap", list(kinds()))
def test_dask_arrays_in_containers_are_dask(wrap):
    array = pytest.importorskip("dask.array").from_array(X, chunks=(30, 3))
    assert is_dask(array)
    assert is_dask(wrap(array))
    assert bare_dask(array) is array
    assert bare_dask(wrap(array)) is array
    model = MKLClassifier(KERNELS).fit(wrap(array), Y)
    np.testing.assert_array_equal(model.weights_, MKLClassifier(KERNELS).fit(X, Y).weights_)
