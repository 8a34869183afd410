"""What users bring as right-censored times."""

import numpy as np
import pandas as pd
import pytest

from manykernels.core.censored_times import Survival, read_survival

EVENT, TIME = np.array([True, False, True, True]), np.array([2.0, 2.0, 0.0, 5.5])
ROWS = list(zip(EVENT, TIME, strict=True))
FORMS = {
    "structured": np.array(ROWS, dtype=[("died", bool), ("days", float)]),
    "the other order": np.array([row[::-1] for row in ROWS], dtype=[("days", np.float32), ("died", bool)]),
    "array": np.c_[EVENT, TIME],
    "list": ROWS,
    "pair": (EVENT, TIME),
    "pair of lists": (EVENT.tolist(), TIME.tolist()),
    "other pair": (TIME, EVENT),
    "table": pd.DataFrame({"died": EVENT.astype(int), "days": TIME}, index=[7, 1, 3, 2]),
    "table, the other order": pd.DataFrame({"days": TIME, "died": EVENT}),
}


@pytest.mark.parametrize("form", FORMS)
def test_all_forms_say_the_same(form):
    survival = read_survival(FORMS[form])
    np.testing.assert_array_equal(survival.event, EVENT)
    np.testing.assert_array_equal(survival.time, TIME)


@pytest.mark.parametrize(
    ("y", "words"),
    [
        (TIME, "got the shape"),
        (np.zeros((4, 3)), "got the shape"),
        (np.c_[TIME, EVENT], "events must be 0 or 1"),
        (FORMS["structured"][["days"]], "got fields"),
        (np.array(ROWS, dtype=[("a", float), ("b", float)]), "one must be boolean"),
        ([(True, np.nan)], "finite numbers"),
        ([(True, -1.0)], "at least 0"),
        ([("yes", "long")], "not numbers"),
        (([True], [1.0, 2.0]), "got events of shape"),
    ],
)
def test_what_is_something_else_is_refused(y, words):
    with pytest.raises(ValueError, match=words) as error:
        read_survival(y)
    assert str(error.value).count("\n") == 0


def test_targets_keep_who_is_at_risk_when():
    """By the definition, for all pairs of an event and a sample."""
    rng = np.random.default_rng(0)
    event, time = rng.random(60) < 0.5, rng.integers(0, 12, 60).astype(float)
    times, target = Survival(event, time).ranks()
    np.testing.assert_array_equal(times, np.unique(time[event]))
    np.testing.assert_array_equal(target > 0, event)
    for i in np.flatnonzero(event):
        np.testing.assert_array_equal(np.abs(target) >= target[i], time >= time[i])
