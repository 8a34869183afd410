"""The column to predict."""

from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from manykernels.tables.reading import read_table
from manykernels.tables.target import class_notes, take_target

TABLE = pd.DataFrame(
    {
        "age": [31, 45, 27, 60],
        "churn": ["no", "yes", "yes", "no"],
        "price": [1.5, 2.0, 3.25, 4.0],
        "level": [1.0, 2.0, 2.0, 1.0],
        "paid": [True, False, False, True],
        "gap": [1.0, np.nan, 3.0, 4.0],
        "same": ["x"] * 4,
        "five": [5] * 4,
        "huge": [1e300, 1.0, 1.0, 2e299],
    }
)


class TestTakeTarget:
    def test_text(self):
        features, target = take_target(TABLE, "churn", regression=False)
        assert "churn" not in features
        assert features.shape == (4, 8)
        assert target.dtype.kind == "U"
        assert target.tolist() == ["no", "yes", "yes", "no"]

    def test_whole_floats_are_integer_labels(self):
        target = take_target(TABLE, "level", regression=False)[1]
        assert target.dtype == np.int64
        assert target.tolist() == [1, 2, 2, 1]

    def test_flags_are_text_labels(self):
        assert take_target(TABLE, "paid", regression=False)[1].tolist() == ["True", "False", "False", "True"]

    def test_numbers(self):
        np.testing.assert_array_equal(take_target(TABLE, "price", regression=True)[1], [1.5, 2.0, 3.25, 4.0])

    @pytest.mark.parametrize(
        "labels", [[12345678901234567890, 12345678901234567891], [10**30, 10**30 + 1], [10**30, 1]]
    )
    def test_whole_numbers_beyond_64_bits_are_text_labels(self, labels):
        target = take_target(pd.DataFrame({"a": labels, "b": [1, 2]}), "a", regression=False)[1]
        assert target.tolist() == [str(label) for label in labels]

    @pytest.mark.parametrize(
        ("classes", "labels", "expected"),
        [
            (["1", "2", "x"], [1, 2, 1], ["1", "2", "1"]),
            (["01", "02"], [1, 2, 2], ["01", "02", "02"]),
            ([1, 2], ["01", "02", "01"], [1, 2, 1]),
            (["a", "b"], ["a", "c", "a"], ["a", "c", "a"]),
        ],
    )
    def test_labels_are_those_of_the_model(self, classes, labels, expected):
        model = SimpleNamespace(classes_=np.array(classes))
        target = take_target(pd.DataFrame({"a": labels, "b": 0}), "a", regression=False, model=model)[1]
        assert target.tolist() == expected
        assert target.dtype.kind == model.classes_.dtype.kind

    def test_messages_for_a_model_name_no_arguments(self):
        model = SimpleNamespace(classes_=np.array(["no", "yes"]))
        for name, regression in (("gap", True), ("same", False), ("price", False), ("churn", True), ("five", True)):
            with pytest.raises(ValueError, match="The target") as caught:
                take_target(TABLE, name, regression, model=model)
            assert "--" not in str(caught.value)

    @pytest.mark.parametrize("word", ["None", "NA"])
    def test_the_word_that_was_taken_for_missing_is_named(self, tmp_path, word):
        path = tmp_path / "a.csv"
        path.write_text(f"b, y\n1,mild\n2,{word}\n")
        with pytest.raises(ValueError, match=rf"first in row 2, where '{word}' is taken for a missing value\)"):
            take_target(read_table(path), "y", regression=False, path=path)

    @pytest.mark.parametrize(
        ("name", "regression", "message"),
        [
            (
                "churm",
                False,
                r"^target must name a column of the table; got 'churm' \(did you mean 'churn'\?\)\.",
            ),
            ("CHURN", False, r"did you mean 'churn'"),
            ("zzzzzz", False, r"the columns are 'age', 'churn'"),
            ("gap", True, r"'gap' must have a value in every row; it lacks 1 of 4 \(first in row 2\)"),
            ("same", False, "'same' must have at least two classes; it is x in every row"),
            ("huge", False, r"1e\+300 is too large to be told from others"),
            ("price", False, r"fractions such as 1\.5, so add regression=True to predict a number"),
            ("churn", True, "'churn' must hold finite numbers for regression; it holds 'no'"),
            ("five", True, "'five' must vary; it is 5 in every row"),
        ],
    )
    def test_what_is_refused(self, name, regression, message):
        with pytest.raises(ValueError, match=message):
            take_target(TABLE, name, regression)


def test_many_whole_numbers_are_noted():
    assert "30 different whole numbers" in class_notes(np.arange(30))[0]
    assert not class_notes(np.arange(20))
    assert not class_notes(np.arange(30).astype(str))
