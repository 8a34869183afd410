"""Which columns a kernel sees: every way to say it, on arrays, sparse matrices and DataFrames."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.compose import make_column_selector

from manykernels.banks import Placement, Recipe, bind
from manykernels.kernels import Gaussian, KernelBank, Linear
from manykernels.kernels.columns import resolve_columns

NAMES = ["age", "income", "blood_a", "blood_b"]
VALUES = np.random.default_rng(0).standard_normal((12, 4))


def table():
    return pd.DataFrame(VALUES, columns=NAMES)


FORMS = {"array": lambda: VALUES, "sparse": lambda: sp.csr_matrix(VALUES), "table": table}
every_form = pytest.mark.parametrize("form", FORMS)

BY_POSITION = [
    (None, [0, 1, 2, 3]),
    (2, [2]),
    (-1, [3]),
    ([0, 2], [0, 2]),
    ((3, 1), [3, 1]),
    (np.array([-4, 1]), [0, 1]),
    (slice(1, 3), [1, 2]),
    (slice(None, None, 2), [0, 2]),
    (slice(-2, None), [2, 3]),
    ([True, False, False, True], [0, 3]),
    (np.array([False, True, False, False]), [1]),
    (lambda X: list(range(X.shape[1]))[-2:], [2, 3]),
    (lambda X: None, [0, 1, 2, 3]),
]
BY_NAME = [
    ("income", [1]),
    (["income"], [1]),
    (["blood_b", "age"], [3, 0]),
    (np.array(["age", "income"]), [0, 1]),
    (pd.Index(["blood_a"]), [2]),
    (slice("income", "blood_a"), [1, 2]),
    (slice("blood_a", None), [2, 3]),
    (slice(None, "income"), [0, 1]),
    (make_column_selector("blood_"), [2, 3]),
    (make_column_selector(dtype_include=np.number), [0, 1, 2, 3]),
    (lambda X: [name for name in X.columns if name.startswith("blood")], [2, 3]),
]


@every_form
@pytest.mark.parametrize(("columns", "expected"), BY_POSITION)
def test_positions(form, columns, expected):
    positions = resolve_columns(columns, FORMS[form]())
    assert positions.tolist() == expected
    assert positions.dtype.kind == "i"


@pytest.mark.parametrize(("columns", "expected"), BY_NAME)
def test_names(columns, expected):
    assert resolve_columns(columns, table()).tolist() == expected


@pytest.mark.parametrize(("columns", "expected"), BY_POSITION[1:6] + BY_NAME)
def test_a_kernel_sees_its_columns_and_no_other(columns, expected):
    bank = bind(KernelBank([Linear(columns=columns)]), table(), Recipe(normalize=None), Placement(precision="double"))
    np.testing.assert_allclose(bank.combine(np.ones(1)).array, VALUES[:, expected] @ VALUES[:, expected].T, atol=1e-12)


BAD = [
    (4, ValueError, "column 4, but X has 4 columns"),
    ([0, -5], ValueError, "column -5, but X has 4 columns"),
    ([], ValueError, "no column"),
    ([True, False], ValueError, "mask of 2 entries, but X has 4 columns"),
    ([False] * 4, ValueError, "mask that selects no column"),
    (slice(4, 9), ValueError, "none of the 4 columns"),
    ([[0, 1], [2, 3]], ValueError, "one-dimensional"),
    ([0.5, 1.0], TypeError, "names, positions, a slice, a mask or a callable"),
    ({"age"}, ValueError, r"\{'age'\}\" is (a name|not a column)"),
    (lambda X: [], ValueError, "no column"),
]


@every_form
@pytest.mark.parametrize(("columns", "error", "words"), BAD, ids=[str(i) for i in range(len(BAD))])
def test_bad_selections_are_refused(form, columns, error, words):
    with pytest.raises(error, match=f"columns.*{words}"):
        resolve_columns(columns, FORMS[form]())


def test_a_near_miss_gets_a_hint():
    with pytest.raises(ValueError, match=r"columns='incme' is not a column of X; did you mean 'income'\?"):
        resolve_columns(["age", "incme"], table())
    with pytest.raises(ValueError, match=r"columns='zebra' is not a column of X\.$"):
        resolve_columns("zebra", table())
    with pytest.raises(ValueError, match="did you mean 'blood_a'"):
        resolve_columns(slice("bloo_a", None), table())


@pytest.mark.parametrize("form", ["array", "sparse"])
def test_a_name_needs_a_table(form):
    with pytest.raises(ValueError, match="'age' is a name, but X has no column names"):
        resolve_columns("age", FORMS[form]())


def test_names_of_kernels_say_what_they_see():
    """One to three columns by name, more by number, all as "all features"; a label replaces them."""
    kernels = [
        Linear(),
        Linear(columns=["age"]),
        Linear(columns=["age", "blood_b"]),
        Linear(columns=NAMES[:3]),
        Gaussian(1.0, columns=NAMES),
        Linear(columns=["income"], label="money"),
        Linear(columns=["blood_a"], group="lab"),
        Linear(columns=["blood_b"], label="B", group="lab"),
    ]
    bank = bind(KernelBank(kernels), table())
    assert bank.names == [
        "Linear on all features",
        "Linear on age",
        "Linear on age, blood_b",
        "Linear on age, income, blood_a",
        "Gaussian(width=1) on all features",
        "Linear on money",
        "Linear on blood_a",
        "Linear on B",
    ]
    assert bank.groups == [
        "all features",
        "age",
        "age, blood_b",
        "age, income, blood_a",
        "all features",
        "money",
        "lab",
        "lab",
    ]


def test_names_without_names():
    X = np.random.default_rng(1).standard_normal((10, 12))
    bank = bind(KernelBank([Linear(columns=[7]), Linear(columns=slice(2, 9)), Linear(columns=-1)]), X)
    assert bank.names == ["Linear on x7", "Linear on x2, x3 and 5 more", "Linear on x11"]


@pytest.mark.parametrize("wrap", [np.asarray, pd.Index], ids=["array", "index"])
def test_long_selections_that_look_alike_are_told_apart(wrap):
    """Two views of over a thousand columns that differ in the middle only, where NumPy and pandas print dots."""
    first = np.arange(1200)
    second = first.copy()
    second[500:700] += 1000
    X = np.random.default_rng(2).standard_normal((4, 2200))
    bank = bind(KernelBank([Linear(columns=wrap(first)), Linear(columns=wrap(second))]), X)
    assert bank.bound[0].positions.tolist() == first.tolist()
    assert bank.bound[1].positions.tolist() == second.tolist()


def test_a_name_that_stands_for_two_columns_is_refused():
    """As in scikit-learn's ColumnTransformer: never the first of the two silently."""
    twice = pd.DataFrame(VALUES, columns=["a", "b", "a", "c"])
    assert resolve_columns("b", twice).tolist() == [1]
    with pytest.raises(ValueError, match="'a'"):
        resolve_columns("a", twice)
