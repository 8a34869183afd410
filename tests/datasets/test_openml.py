"""Datasets from OpenML, whose answers are made up here."""

from urllib.error import URLError

import numpy as np
import pandas as pd
import pytest
from sklearn.utils import Bunch

from manykernels.datasets import catalog, load, openml


class TestOpenML:
    """The network is replaced: these tests are about what is made of the answer."""

    @pytest.fixture(autouse=True)
    def _no_folder(self, monkeypatch):
        monkeypatch.delenv("MANYKERNELS_DATA", raising=False)

    def answer(self, monkeypatch, data, target):
        asked = {}

        def fake(name, *, version, as_frame):
            asked.update(name=name, version=version, as_frame=as_frame)
            return Bunch(data=data, target=target)

        monkeypatch.setattr(openml, "fetch_openml", fake)
        return asked

    def test_two_classes_are_signs_and_incomplete_rows_go(self, monkeypatch):
        data = pd.DataFrame({"a": [1.0, np.nan, 3.0], "b": [4.0, 5.0, 6.0]})
        target = pd.Series(["malignant", "benign", "benign"], dtype="category")
        asked = self.answer(monkeypatch, data, target)
        cells = load("breast_wisconsin")
        assert asked == {"name": "breast-w", "version": 1, "as_frame": True}
        np.testing.assert_array_equal(cells.data, [[1.0, 4.0], [3.0, 6.0]])
        np.testing.assert_array_equal(cells.target, [1, -1])
        assert cells.target_names == ["benign", "malignant"]
        assert cells.feature_names == ["a", "b"]

    def test_counts_stored_as_classes_become_numbers(self, monkeypatch):
        data = pd.DataFrame({"sex": pd.Categorical(["M", "F"]), "length": [0.5, 0.25]})
        self.answer(monkeypatch, data, pd.Series(["15", "7"], dtype="category"))
        snails = load("abalone")
        np.testing.assert_array_equal(snails.target, [15.0, 7.0])
        assert sorted(snails.feature_names) == ["length", "sex_F", "sex_M"]

    def test_columns_that_are_not_features_go(self, monkeypatch):
        data = pd.DataFrame({"Speaker_Number": ["Andrew", "Bill", "Bill"], "Feature_0": [1.0, 2.0, 3.0]})
        self.answer(monkeypatch, data, pd.Series(["hid", "hId", "hEd"]))
        vowel = load("vowel")
        assert vowel.feature_names == ["Feature_0"]
        assert sorted(vowel.target) == [0, 1, 2]

    def test_a_file_comes_first(self, monkeypatch, tmp_path):
        np.savez(tmp_path / "sonar.npz", X=np.eye(2), y=[-1, 1])
        monkeypatch.setattr(catalog, "fetch", lambda name: pytest.fail("the network was asked"))
        assert load("sonar", folder=tmp_path).data.shape == (2, 2)

    def test_without_a_network(self, monkeypatch):
        def unreachable(name, **options):
            raise URLError("no route to host")

        monkeypatch.setattr(openml, "fetch_openml", unreachable)
        with pytest.raises(ValueError, match="OpenML could not be reached"):
            load("sonar")
