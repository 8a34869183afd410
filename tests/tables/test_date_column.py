"""Dates as numbers."""

import numpy as np
import pandas as pd
import pytest

from manykernels.tables.cells import as_dates
from manykernels.tables.date_column import DateColumn
from manykernels.tables.written_dates import order_of, seconds_of


@pytest.mark.parametrize(
    ("text", "same"),
    [
        ("2024-05-31", "2024-05-31T00:00:00+00:00"),
        ("2024/5/31", "2024-05-31"),
        ("31.05.2024", "2024-05-31"),
        ("2024-05-31 18:30", "2024-05-31T18:30:00Z"),
        ("2024-05-31T18:30:00+02:00", "2024-05-31T16:30:00Z"),
        ("2024-05-31T18:30:00+0200", "2024-05-31T16:30:00Z"),
        ("31.5.2024 18:30", "2024-05-31T18:30"),
        ("31-May-2024", "2024-05-31"),
        ("1 jan 2024 9:05", "2024-01-01T09:05"),
        ("2024-05", "2024-05-01"),
    ],
)
def test_ways_to_write_a_date(text, same):
    assert seconds_of(text) == pd.Timestamp(same.replace("Z", "+00:00")).timestamp() == seconds_of(same)


@pytest.mark.parametrize(
    ("text", "order", "same"),
    [
        ("5/31/2024", "month", "2024-05-31"),
        ("01/02/2024", "month", "2024-01-02"),
        ("01/02/2024", "day", "2024-02-01"),
        ("31-05-2024 7:30", "day", "2024-05-31 07:30"),
        ("1/15/2024 6:30 PM", "month", "2024-01-15 18:30"),
        ("1/15/2024 12:05 am", "month", "2024-01-15 00:05"),
    ],
)
def test_dates_that_need_an_order(text, order, same):
    assert seconds_of(text, order) == seconds_of(same)
    assert seconds_of(text) is None
    assert seconds_of(text, "unclear") is None


def test_a_number_above_twelve_decides_the_order():
    assert order_of(["1/2/2024", "13/2/2024"]) == "day"
    assert order_of(["1/2/2024", "1/13/2024 10:00"]) == "month"
    assert order_of(["1/2/2024", "12/2/2024"]) == "unclear"
    assert order_of(["1/13/2024", "13/1/2024"]) == "unclear"


@pytest.mark.parametrize("text", ["5/31/2024 13:00 PM", "31/5/2024", "5-31/2024"])
def test_what_is_no_date_in_any_order(text):
    assert seconds_of(text, "month") is None


@pytest.mark.parametrize("text", ["", "2024", "202405", "20240531", "2024-13-01", "2024-05/31", "5/31/2024", "soon"])
def test_what_is_no_date(text):
    assert seconds_of(text) is None


def test_the_cell_that_is_no_date_is_named():
    with pytest.raises(ValueError, match="'since' must hold dates such as 2024-05-31; it holds 'soon'"):
        as_dates("since", pd.Series(["2024-05-31", "soon"]))


class TestColumn:
    def test_trend_and_cycles(self):
        days = pd.Series(["2024-01-01", "2024-01-08", "2024-07-01", None])  # Mondays
        column = DateColumn.learn("since", days)
        assert column.cycles == ["month"]
        assert column.labels() == ["", "(missing)", "(month sine)", "(month cosine)"]
        assert sum(column.parts().values()) == len(column.labels())
        X = column.encode("since", days)
        present = pd.to_datetime(days).dropna()
        assert np.corrcoef(X[:3, 0], present.to_numpy().astype(np.int64))[0, 1] == pytest.approx(1.0)
        assert X[3, 0] == X[1, 0]  # the median
        np.testing.assert_array_equal(X[:, 1], [0, 0, 0, 1])
        np.testing.assert_allclose(X[:, 2:], [[0, 1], [0, 1], [0, -1], [0, 0]], atol=1e-12)

    @pytest.mark.parametrize("cycle", ["month", "weekday", "hour"])
    def test_cycles_are_those_of_the_calendar(self, cycle):
        rng = np.random.default_rng(0)
        moments = pd.Series(pd.Timestamp("1900-01-01") + pd.to_timedelta(rng.integers(0, 4_000_000, 300), unit="min"))
        column = DateColumn.learn("at", moments)
        circle = column.encode("at", moments)[:, 1 + 2 * column.cycles.index(cycle) :][:, :2]
        expected = {"month": moments.dt.month, "weekday": moments.dt.day_name(), "hour": moments.dt.hour}[cycle]
        points = pd.Series([tuple(point) for point in circle.round(6)])
        # One point of the circle for each month, day or hour, and the other way around.
        assert len(set(zip(points, expected, strict=True))) == points.nunique() == expected.nunique() > 6

    def test_the_hour_goes_around(self):
        hours = pd.Series([f"2024-01-01 {hour:02}:00" for hour in range(24)])
        column = DateColumn.learn("at", hours)
        assert column.cycles == ["hour"]
        circle = column.encode("at", hours)[:, 1:]
        steps = np.linalg.norm(circle - np.roll(circle, 1, axis=0), axis=1)
        np.testing.assert_allclose(steps, steps[0])

    def test_a_column_of_datetimes_and_its_text_are_alike(self):
        days = pd.Series(pd.to_datetime(["2024-01-01", "2024-02-03 10:00", "2025-03-05"], format="ISO8601"))
        column = DateColumn.learn("since", days)
        np.testing.assert_array_equal(column.encode("since", days), column.encode("since", days.astype(str)))
        oslo = days.dt.tz_localize("UTC").dt.tz_convert("Europe/Oslo")
        np.testing.assert_array_equal(column.encode("since", days), column.encode("since", oslo))

    def test_the_order_of_day_and_month_is_remembered(self):
        column = DateColumn.learn("since", pd.Series(["1/2/2024", "5/31/2024", "7/4/2024"]))
        assert column.order == "month"
        later = column.encode("since", pd.Series(["1/2/2024", "3/4/2024"]))
        np.testing.assert_array_equal(later, column.encode("since", pd.Series(["2024-01-02", "2024-03-04"])))
        with pytest.raises(ValueError, match="it holds '31/5/2024'"):
            column.encode("since", pd.Series(["31/5/2024"]))
        with pytest.raises(ValueError, match="'since' looks like dates whose order of day and month is unclear"):
            DateColumn.learn("since", pd.Series(["1/2/2024", "3/4/2024"]))

    def test_one_day_is_constant(self):
        assert DateColumn.learn("since", pd.Series(["2024-01-01", None, "2024-01-01"])) is None

    def test_words(self):
        column = DateColumn.learn("since", pd.Series(["2024-01-01", "2024-02-05", None]))
        assert DateColumn.treatment({"since": column}) == (
            "a trend, and a circle each for month; missing dates: the median, and an indicator (since)"
        )
