"""Which kernels the command makes for a table."""

from collections import Counter

import pytest

from manykernels.cli.bank import ALL, MAX_KERNELS, make_kernels
from manykernels.kernels import Gaussian, Linear, Polynomial


def table_of(count):
    return {f"c{number}": [number] for number in range(count)}


def test_every_kernel_on_all_features_and_on_each_column():
    kernels, note = make_kernels({"age": [0], "city": [1, 2]})
    assert note == ""
    assert Counter(kernel.group for kernel in kernels) == {ALL: 13, "age": 13, "city": 13}
    for group, columns in ((ALL, None), ("age", [0]), ("city", [1, 2])):
        own = [kernel for kernel in kernels if kernel.group == group]
        assert all(kernel.columns == columns and kernel.label == group for kernel in own)
        assert [kernel.width for kernel in own if isinstance(kernel, Gaussian)] == [2.0**e for e in range(-3, 7)]
        assert [kernel.degree for kernel in own if isinstance(kernel, Polynomial)] == [1, 2, 3]


def test_one_column_is_all_features():
    kernels, _ = make_kernels({"city": [0, 1]})
    assert len(kernels) == 13
    assert {kernel.group for kernel in kernels} == {"city"}


@pytest.mark.parametrize(("columns", "shortened"), [(152, False), (153, True)])
def test_many_columns_get_fewer_kernels_each(columns, shortened):
    kernels, note = make_kernels(table_of(columns))
    assert len(kernels) == (13 + 4 * columns if shortened else 13 * (columns + 1))
    assert len(kernels) <= MAX_KERNELS
    assert bool(note) == shortened


def test_the_shorter_list():
    kernels, note = make_kernels(table_of(200))
    assert Counter(kernel.group for kernel in kernels)[ALL] == 13
    own = [kernel for kernel in kernels if kernel.group == "c7"]
    assert [type(kernel) for kernel in own] == [Linear, Gaussian, Gaussian, Gaussian]
    assert all(kernel.columns == [7] for kernel in own)
    assert "200 columns would make 2613 kernels" in note
