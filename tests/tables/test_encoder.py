"""From a table to numbers, the same way each time."""

import decimal
import json

import numpy as np
import pandas as pd
import pytest

from manykernels.tables.column import MAX_LEVELS
from manykernels.tables.encoder import TableEncoder


def encoded(table, later=None):
    encoder = TableEncoder().fit(pd.DataFrame(table))
    return encoder.transform(pd.DataFrame(table if later is None else later))


class TestNumbers:
    def test_standardized_with_the_figures_of_the_training_table(self):
        X = encoded({"a": [1.0, 2.0, 3.0]}, {"a": [2.0, 4.0]})
        np.testing.assert_allclose(X[:, 0], [0.0, 2.0 / np.std([1.0, 2.0, 3.0])])

    def test_missing_values_become_the_median(self):
        X = encoded({"a": [1.0, 2.0, 9.0, np.nan]})
        assert X[3, 0] == X[1, 0]

    def test_an_indicator_tells_where_values_were_missing_in_training(self):
        encoder = TableEncoder().fit(pd.DataFrame({"a": [1.0, 2.0, 9.0, np.nan], "b": [1.0, 2.0, 3.0, 4.0]}))
        assert encoder.feature_names == ["a", "a=(missing)", "b"]
        X = encoder.transform(pd.DataFrame({"a": [np.nan, 2.0], "b": [np.nan, 1.0]}))
        np.testing.assert_array_equal(X[:, 1], [1.0, 0.0])

    def test_missing_at_prediction(self):
        X = encoded({"a": [1.0, 2.0, 9.0]}, {"a": [np.nan, 2.0]})
        assert X[0, 0] == X[1, 0]

    def test_a_whole_column_can_be_missing_at_prediction(self):
        assert np.isfinite(encoded({"a": [1.0, 2.0]}, {"a": [None, None]})).all()

    @pytest.mark.parametrize(
        "values",
        [
            pd.array([1, 2, 3], dtype="Int64"),
            [decimal.Decimal("1.5"), decimal.Decimal("2.5"), decimal.Decimal("9.5")],
            pd.to_timedelta(["1 day", "2 days", "5 days"]),
            np.array([1, 2, 3], dtype=np.uint8),
        ],
        ids=["nullable", "decimal", "duration", "bytes"],
    )
    def test_kinds_of_numbers(self, values):
        X = encoded({"a": values})
        assert X.shape == (3, 1)
        assert X.dtype == np.float64
        assert abs(X.mean()) < 1e-12
        assert X[:, 0].std() == pytest.approx(1.0)

    @pytest.mark.parametrize(
        ("values", "answer"), [([0, 1, 1], True), ([-2.5, 7.0, 7.0], True), ([0, 1, 2], False), ([0, 1, None], False)]
    )
    def test_two_values_are_noticed(self, values, answer):
        assert TableEncoder().fit(pd.DataFrame({"a": values})).blocks[0].two_valued is answer

    def test_infinity_is_refused(self):
        with pytest.raises(ValueError, match="'a' must hold finite numbers; it is infinite in 1 rows"):
            encoded({"a": [1.0, np.inf]})

    def test_text_at_prediction_is_refused(self):
        with pytest.raises(ValueError, match="'a' must hold numbers; it holds 'old'"):
            encoded({"a": [1.0, 2.0]}, {"a": ["3", "old"]})

    def test_values_that_cannot_be_standardized(self):
        with pytest.raises(ValueError, match="'a' cannot be standardized"):
            encoded({"a": [-1e308, 1e308, 1e308]})


class TestFlags:
    def test_zero_and_one(self):
        np.testing.assert_array_equal(encoded({"a": [True, False, True]})[:, 0], [1.0, 0.0, 1.0])

    @pytest.mark.parametrize("later", [["True", "FALSE"], [1, 0], [1.0, 0.0], ["true", "false"]])
    def test_other_spellings_at_prediction(self, later):
        np.testing.assert_array_equal(encoded({"a": [True, False]}, {"a": later})[:, 0], [1.0, 0.0])

    def test_missing_at_prediction_is_the_usual_value(self):
        X = encoded({"a": [True, False, True]}, {"a": [None, False]})
        np.testing.assert_array_equal(X[:, 0], [1.0, 0.0])

    def test_something_else_at_prediction_is_refused(self):
        with pytest.raises(ValueError, match="'a' must hold true or false; it holds 'maybe'"):
            encoded({"a": [True, False]}, {"a": ["maybe", "True"]})

    def test_missing_in_training_is_a_third_answer(self):
        encoder = TableEncoder().fit(pd.DataFrame({"a": [True, False, None, True]}))
        assert encoder.feature_names == ["a=True", "a=False", "a=(missing)"]


class TestLevels:
    def test_one_output_for_each_level_and_for_missing(self):
        table = pd.DataFrame({"city": ["Rome", "Oslo", None, "Rome"]})
        encoder = TableEncoder().fit(table)
        assert encoder.feature_names == ["city=Rome", "city=Oslo", "city=(missing)"]
        np.testing.assert_array_equal(encoder.transform(table), [[1, 0, 0], [0, 1, 0], [0, 0, 1], [1, 0, 0]])

    def test_unknown_levels_are_all_zeros(self):
        X = encoded({"city": ["Rome", "Oslo", "Rome"]}, {"city": ["Lima", None, "Oslo"]})
        np.testing.assert_array_equal(X, [[0, 0], [0, 0], [0, 1]])

    def test_rare_levels_share_an_output(self):
        frequent = [f"c{number:02}" for number in range(MAX_LEVELS)] * 2
        table = pd.DataFrame({"city": [*frequent, "rare 1", "rare 2"]})
        encoder = TableEncoder().fit(table)
        assert len(encoder.feature_names) == MAX_LEVELS + 1
        assert encoder.feature_names[-1] == "city=(other)"
        X = encoder.transform(pd.DataFrame({"city": ["rare 1", "rare 2", "never seen", "c00"]}))
        np.testing.assert_array_equal(X[:, -1], [1, 1, 0, 0])
        np.testing.assert_array_equal(X.sum(axis=1), [1, 1, 0, 1])
        assert any("2 rarest" in note for note in encoder.notes)

    def test_does_not_depend_on_the_order_of_the_rows(self):
        table = pd.DataFrame({"city": ["b", "a", "c", "a", "b", "c"]})
        shuffled = table.sample(frac=1.0, random_state=3)
        assert TableEncoder().fit(table).to_dict() == TableEncoder().fit(shuffled).to_dict()

    def test_categories_that_are_numbers(self):
        # Written to CSV and read again, with one cell missing, 1 is 1.0.
        X = encoded({"a": pd.Categorical([1, 2, 1])}, {"a": [1.0, np.nan, 2.0]})
        np.testing.assert_array_equal(X, [[1, 0], [0, 0], [0, 1]])

    @pytest.mark.parametrize(
        ("levels", "later"),
        [
            (["0100", "0200", "0100"], [100, 200]),  # a spreadsheet has dropped the zeros
            (["100", "200", "100"], ["0100", "0200"]),  # so did older versions
            (["1.10", "1.20", "x"], [1.1, 1.2]),
            (["5%", "10%", "none"], [5.0, 10.0]),
        ],
    )
    def test_other_spellings_of_a_number(self, levels, later):
        table = pd.DataFrame({"a": pd.Categorical(levels)})
        encoder = TableEncoder().fit(table)
        np.testing.assert_array_equal(
            encoder.transform(pd.DataFrame({"a": [*later, "abroad"]})),
            [*encoder.transform(table)[:2], np.zeros(len(encoder.feature_names))],
        )

    def test_levels_that_differ_by_zeros_are_told_apart(self):
        X = encoded({"a": ["01", "1", "01", "1"]}, {"a": ["1", "01", "001"]})
        np.testing.assert_array_equal(X, [[0, 1], [1, 0], [0, 0]])

    def test_declared_categories_are_no_identifier(self):
        assert encoded({"a": pd.Categorical(["x", "y", "z"])}).shape == (3, 3)

    def test_lists_are_refused(self):
        with pytest.raises(ValueError, match="'a' holds lists"):
            encoded({"a": [[1, 2], [3]]})

    def test_complex_numbers_are_refused(self):
        with pytest.raises(ValueError, match="'a' holds complex numbers"):
            encoded({"a": [1j, 2.0]})


def outputs_of(encoder):
    """Return the outputs of each column that is used, by its name."""
    return {block.name: block.outputs for block in encoder.blocks}


class TestWhatIsLeftOut:
    @pytest.mark.parametrize(
        ("values", "note"),
        [
            ([5.0, 5.0, 5.0], "is constant"),
            ([5.0, np.nan, 5.0], "is constant"),
            ([True, True, True], "is constant"),
            (["x", "x", "x"], "is constant"),
            (["id1", "id2", "id3"], "as an identifier does"),
            ([None, None, None], "has no values in the 3 training rows"),
        ],
    )
    def test_with_a_note(self, values, note):
        encoder = TableEncoder().fit(pd.DataFrame({"a": values, "b": [1.0, 2.0, 4.0]}))
        assert outputs_of(encoder) == {"b": [0]}
        assert len(encoder.notes) == 1
        assert note in encoder.notes[0]
        assert "'a'" in encoder.notes[0]
        # What is left out in training is not needed later.
        assert encoder.transform(pd.DataFrame({"b": [1.0]})).shape == (1, 1)

    def test_a_column_without_a_name(self):
        table = pd.DataFrame({"Unnamed: 0": [0, 1], "Unnamed: 3": [None, None], "b": [1.0, 2.0]})
        assert outputs_of(TableEncoder().fit(table)) == {"b": [0]}

    def test_nothing_left_is_refused(self):
        with pytest.raises(ValueError, match="must have a column to learn from"):
            encoded({"a": [1.0, 1.0]})

    def test_a_failed_fit_changes_nothing(self):
        encoder = TableEncoder().fit(pd.DataFrame({"b": [1.0, 2.0]}))
        before = encoder.to_dict()
        with pytest.raises(ValueError, match="infinite"):
            encoder.fit(pd.DataFrame({"c": [1.0, 2.0], "a": [np.inf, 1.0]}))
        assert encoder.to_dict() == before


@pytest.fixture
def mixed():
    rng = np.random.default_rng(0)
    count = 40
    return pd.DataFrame(
        {
            "age": np.where(rng.random(count) < 0.1, np.nan, rng.normal(50, 10, count)),
            "city": rng.choice(["Rome", "Oslo", "Lima"], count),
            "smokes": rng.random(count) < 0.5,
            "constant": 1,
            "since": pd.Timestamp("2020-01-01") + pd.to_timedelta(rng.integers(0, 900, count), unit="D"),
            "note": [f"the {rng.choice(['slow', 'quick'])} reply of day {number}" for number in range(count)],
        }
    )


class TestKindsThatAreGiven:
    def kinds(self, table, **given):
        return {block.name: block.kind for block in TableEncoder(given).fit(pd.DataFrame(table)).blocks}

    def test_they_win(self):
        table = {"zip": [10115, 10117, 10119], "code": ["a1", "b2", "a3"], "age": [1, 2, 3], "flag": [0, 1, 1]}
        kinds = self.kinds(table, zip="category", code="text", age="ignore", flag="boolean")
        assert kinds == {"zip": "category", "flag": "boolean"}  # no two codes share a word
        assert self.kinds({"dna": ["ACGTACG", "CGTACCC", "TTTTTTT"], "a": [1, 2, 3]}, dna="text")["dna"] == "text"

    def test_a_boolean_with_gaps_is_a_category(self):
        assert self.kinds({"a": [True, None, False]}, a="boolean") == {"a": "category"}

    def test_what_does_not_fit_is_refused(self):
        with pytest.raises(ValueError, match="'a' must hold dates such as 2024-05-31; it holds '2020'"):
            self.kinds({"a": [2020, 2021]}, a="date")
        with pytest.raises(ValueError, match="'a' must hold numbers; it holds 'x'"):
            self.kinds({"a": ["x", "1"]}, a="number")


class TestWholeTables:
    def test_sources_cover_every_output_once(self, mixed):
        encoder = TableEncoder().fit(mixed)
        outputs = outputs_of(encoder)
        assert list(outputs) == ["age", "city", "smokes", "since", "note"]
        assert outputs["since"] == [6, 7, 8, 9, 10]
        X = encoder.transform(mixed)
        assert sorted(output for places in outputs.values() for output in places) == list(range(X.shape[1]))
        assert X.shape == (len(mixed), len(encoder.feature_names))
        np.testing.assert_array_equal(X[:, outputs["city"]].sum(axis=1), 1.0)

    def test_round_trip_through_json(self, mixed):
        encoder = TableEncoder().fit(mixed)
        restored = TableEncoder.from_dict(json.loads(json.dumps(encoder.to_dict())))
        np.testing.assert_array_equal(restored.transform(mixed), encoder.transform(mixed))
        assert restored.blocks == encoder.blocks
        assert restored.notes == encoder.notes
        assert restored.left_out == encoder.left_out == {"constant": "is constant"}
        assert restored.blocks == encoder.blocks

    def test_blocks_name_the_parts_that_have_kernels_of_their_own(self, mixed):
        blocks = {block.name: block for block in TableEncoder().fit(mixed).blocks}
        assert [block.kind for block in blocks.values()] == ["number", "category", "boolean", "date", "text"]
        assert blocks["since"].parts == {
            "since": [6],
            "month of since": [7, 8],
            "weekday of since": [9, 10],
        }
        assert list(blocks["note"].parts) == ["words of note", "3-letter pieces of note"]
        assert blocks["age"].parts == {"age": [0, 1]}

    def test_order_of_columns_and_more_of_them_do_not_matter(self, mixed):
        encoder = TableEncoder().fit(mixed)
        other = mixed[mixed.columns[::-1]].assign(extra="x")
        np.testing.assert_array_equal(encoder.transform(other), encoder.transform(mixed))

    def test_missing_columns_are_named(self, mixed):
        encoder = TableEncoder().fit(mixed)
        with pytest.raises(ValueError, match="lacks the columns 'age', 'city', on which"):
            encoder.transform(mixed.drop(columns=["age", "city"]))
        with pytest.raises(ValueError, match="lacks the columns 'age', 'city', 'smokes' and 2 more, on which"):
            encoder.transform(mixed[["constant"]])

    def test_no_rows(self, mixed):
        encoder = TableEncoder().fit(mixed)
        assert encoder.transform(mixed.iloc[:0]).shape == (0, len(encoder.feature_names))

    @pytest.mark.parametrize("state", [{}, {"columns": [{"name": "a", "kind": "odd"}], "left_out": {}}])
    def test_bad_state_is_refused(self, state):
        with pytest.raises(ValueError, match="not in the form that to_dict gives"):
            TableEncoder.from_dict(state)
