"""A table made ready to learn from, and the rows that were held out of it."""

import numpy as np
import pandas as pd
import pytest

from manykernels.tables.column_views import Views
from manykernels.tables.encoder import encode_table
from manykernels.tables.held_out import held_out
from manykernels.tables.prepared import prepare_table
from manykernels.tables.target import take_target

SETTINGS = {"rows": 80, "test_size": 0.25, "seed": 0, "regression": False}


@pytest.fixture
def path(tmp_path):
    rng = np.random.default_rng(0)
    table = pd.DataFrame(
        {
            "lab_hb": rng.normal(size=80),
            "lab_crp": rng.normal(size=80),
            "city": rng.choice(["Rome", "Oslo"], 80),
            "ward": "east",
            "ill": np.repeat(["no", "yes"], [72, 8]),
        }
    )
    table.to_csv(tmp_path / "people.csv", index=False)
    return tmp_path / "people.csv"


def test_classes(path):
    prepared = prepare_table(path, "ill")
    assert (len(prepared.y_train), len(prepared.y_test)) == (60, 20)
    assert prepared.X_train.shape == (60, len(prepared.encoder.feature_names))
    assert prepared.X_test.shape == (20, prepared.X_train.shape[1])
    assert prepared.balance.counts == {"no": 54, "yes": 6}
    assert prepared.notes == prepared.balance.notes()
    assert {kernel.group for kernel in prepared.kernels} == {"lab_hb", "lab_crp", "city", "all features"}


def test_numbers_have_no_balance(path):
    prepared = prepare_table(path, "lab_hb", regression=True, test_size=0.0)
    assert prepared.balance is None
    assert prepared.notes == []
    assert prepared.y_train.dtype == np.float64
    assert (len(prepared.y_train), len(prepared.y_test)) == (80, 0)


def test_views_have_the_kernels(path):
    views = Views(patterns={"blood": ["lab_*"], "all": ["*"], "nothing": ["city"]}, kinds={"ward": "ignore"})
    prepared = prepare_table(path, "ill", views=views)
    assert prepared.views == {"blood": ["lab_hb", "lab_crp"], "all": ["city"]}
    assert {kernel.group for kernel in prepared.kernels} == {"blood", "all"}
    assert prepared.notes[0] == "View 'nothing' has no columns: they are in earlier views, or left out."


def test_the_rows_that_were_held_out_are_found_again(path):
    prepared = prepare_table(path, "ill")
    table, X = encode_table(path, prepared.encoder)
    features, y = take_target(table, "ill", regression=False)
    rows = held_out(features, y, prepared.encoder, **SETTINGS)
    np.testing.assert_array_equal(X[rows], prepared.X_test)
    np.testing.assert_array_equal(y[rows], prepared.y_test)


@pytest.mark.parametrize("other", [{"rows": 81}, {"seed": 1}, {"test_size": 0.0}])
def test_none_are_found_in_another_table_or_split(path, other):
    prepared = prepare_table(path, "ill")
    table, _ = encode_table(path, prepared.encoder)
    features, y = take_target(table, "ill", regression=False)
    assert held_out(features, y, prepared.encoder, **(SETTINGS | other)).size == 0
