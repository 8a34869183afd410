"""What a column is taken for."""

import datetime

import numpy as np
import pandas as pd
import pytest

from manykernels.tables.cells import UNCLEAR_DATES
from manykernels.tables.encoder import TableEncoder
from manykernels.tables.kinds import IDENTIFIER, NOTATION, kind_of, refuse_mixtures


def word(values, name="column"):
    kind = kind_of(name, values if isinstance(values, pd.Series) else pd.Series(values))
    return kind if isinstance(kind, str) else kind.word


SENTENCES = [f"the patient number {number} came back with a cough" for number in range(40)]


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([1.5, 2.5, None], "number"),
        ([20240101, 20240102, 20240103], "number"),
        ([1999, 2000, 2001], "number"),
        ([True, False, True], "boolean"),
        ([True, False, None], "category"),
        (["yes", "no", "yes"], "category"),
        (["2024-01-31", None, "2023-12-01"], "date"),
        (["2024-01-31 10:00", "2024-01-31T11:30:15.25Z", "2024-01-31T10:00:00+02:00"], "date"),
        (["31.1.2024", "1.2.2024"], "date"),
        (["2024/1/31", "2024/2/1"], "date"),
        (pd.to_datetime(["2024-01-31", None]), "date"),
        ([datetime.date(2024, 1, 31), datetime.date(2024, 2, 1)], "date"),
        (["2024-02-30", "2024-01-31", "2024-01-31"], "category"),
        (["1/2/2024", "1/2/2024", "2/1/2024"], f"{UNCLEAR_DATES},"),
        (["1/15/2024 10:00", "1/2/2024 9:00"], "date"),
        (["05/31/2024", "06/01/2024"], "date"),
        (["5-Jan-2024", "6-Feb-2024"], "date"),
        (["2024-05", "2024-06"], "date"),
        (["1.234,5", "3,2", "2.000,0"], NOTATION),
        (["45%", "0.3", "7%"], NOTATION),
        (["010", "020", "300"], IDENTIFIER),
        (["0", "1", "2", "3+"] * 30, "category"),
        (SENTENCES, "text"),
        (["never smoked in my life", "has stopped years ago"] * 20, "category"),
        (SENTENCES * 20, "category"),
        ([f"x{number:04}" for number in range(60)], IDENTIFIER),
        ([f"x{min(number, 97):04}" for number in range(100)], IDENTIFIER),
        ([f"x{number % 30:04}" for number in range(60)], "category"),
        (pd.Categorical(["a", "b", "c"]), "category"),
    ],
)
def test_by_its_values(values, expected):
    assert word(values) == expected


@pytest.mark.parametrize("name", ["id", "ID", "patient_id", "customerId", "row nr", "index"])
def test_whole_numbers_that_are_all_distinct_under_the_name_of_an_identifier(name):
    assert word([17, 4, 9], name) == IDENTIFIER
    assert word([17, 4, 4], name) == "number"
    assert word([17.5, 4.0, 9.0], name) == "number"


@pytest.mark.parametrize("name", ["paid", "grid", "covid", "kidney"])
def test_names_that_only_end_so(name):
    assert word([17, 4, 9], name) == "number"


@pytest.mark.parametrize(
    ("most", "what"),
    [
        ([f"{number}.5" for number in range(40)], "numbers"),
        ([f"2024-01-{day:02}" for day in range(1, 31)], "dates"),
    ],
)
def test_mixtures_are_refused(most, what):
    values = pd.Series([*most, "unknown"])
    message = (
        rf"'a' mixes {what} with other text: 1 of {len(values)} values, such as 'unknown'; .*leave the cells empty"
    )
    with pytest.raises(ValueError, match=message):
        refuse_mixtures("a", values)
    with pytest.raises(ValueError, match=message):
        TableEncoder().fit(pd.DataFrame({"a": values}), rows=np.arange(5))


def test_lists_are_refused():
    with pytest.raises(ValueError, match="'a' holds lists"):
        kind_of("a", pd.Series([np.zeros(2), np.ones(2)]))
