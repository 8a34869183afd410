"""Datasets by name: files in a folder, then OpenML."""

import json
import pickle
from urllib.error import URLError

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.utils import Bunch

from manykernels.datasets import available, catalog, data_folder, load, openml

rng = np.random.default_rng(0)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("MANYKERNELS_DATA", str(tmp_path))
    return tmp_path


def sparse_parts(matrix, prefix=""):
    parts = {"data": matrix.data, "indices": matrix.indices, "indptr": matrix.indptr, "shape": matrix.shape}
    return {prefix + name: np.asarray(part) for name, part in parts.items()}


class TestFolder:
    def test_is_none_when_the_variable_is_unset(self, monkeypatch):
        monkeypatch.delenv("MANYKERNELS_DATA", raising=False)
        assert data_folder() is None
        assert available() == []

    def test_must_exist(self, monkeypatch, tmp_path):
        monkeypatch.setenv("MANYKERNELS_DATA", str(tmp_path / "absent"))
        with pytest.raises(ValueError, match="MANYKERNELS_DATA must name a folder"):
            load("sonar")

    def test_lists_only_the_datasets(self, folder):
        for name in ("b", "a"):
            np.savez(folder / f"{name}.npz", X=np.eye(2), y=[0, 1])
        (folder / "README.md").write_text("not a dataset")
        assert available() == ["a", "b"]

    def test_a_name_cannot_leave_the_folder(self, folder):
        (folder / "inner").mkdir()
        np.savez(folder / "secret.npz", X=np.eye(2), y=[0, 1])
        with pytest.raises(ValueError, match="no dataset named"):
            load("../secret", folder=folder / "inner")


class TestArchive:
    def test_dense_with_names_and_the_given_split(self, folder):
        X, y = rng.normal(size=(4, 2)), np.array([-1, 1, 1, -1])
        np.savez(
            folder / "toy.npz",
            X=X,
            y=y,
            feature_names=["age", "height"],
            class_names=["no", "yes"],
            train_idx=[0, 1],
            test_idx=[2, 3],
            ids=[7, 8, 9, 10],
        )
        toy = load("toy")
        np.testing.assert_array_equal(toy.data, X)
        np.testing.assert_array_equal(toy.target, y)
        assert toy.feature_names == ["age", "height"]
        assert toy.target_names == ["no", "yes"]
        assert toy.views is None
        assert [(list(train), list(test)) for train, test in toy.splits] == [([0, 1], [2, 3])]
        assert list(toy.ids) == [7, 8, 9, 10]
        assert toy.name == "toy"

    def test_sparse(self, folder):
        X = sparse.random(5, 8, density=0.4, format="csr", random_state=0)
        np.savez(folder / "words.npz", y=np.arange(5.0), **sparse_parts(X))
        words = load("words")
        assert sparse.issparse(words.data)
        np.testing.assert_array_equal(words.data.toarray(), X.toarray())

    def test_views_stand_side_by_side(self, folder):
        gene, lipid = rng.normal(size=(3, 4)), rng.normal(size=(3, 2))
        names = {"feature_names_gene": list("abcd"), "feature_names_lipid": list("ef")}
        # Five names for two classes: they name another column, and stay under their own key.
        np.savez(folder / "mice.npz", X_gene=gene, X_lipid=lipid, y=[0, 1, 1], class_names=list("vwxyz"), **names)
        mice = load("mice")
        np.testing.assert_array_equal(mice.data[:, mice.views["gene"]], gene)
        np.testing.assert_array_equal(mice.data[:, mice.views["lipid"]], lipid)
        assert mice.feature_names == list("abcdef")
        assert mice.target_names is None
        assert len(mice.class_names) == 5

    def test_sparse_views_and_several_labels(self, folder):
        graph = sparse.random(4, 6, density=0.5, format="csr", random_state=1)
        dense = rng.normal(size=(4, 2))
        labels = rng.integers(0, 2, size=(4, 3))
        np.savez(folder / "genes.npz", X_dense=dense, Y=labels, **sparse_parts(graph, "X_graph_"))
        genes = load("genes")
        np.testing.assert_array_equal(genes.data[:, genes.views["graph"]].toarray(), graph.toarray())
        np.testing.assert_array_equal(genes.data[:, genes.views["dense"]].toarray(), dense)
        np.testing.assert_array_equal(genes.target, labels)

    def test_masks_and_realizations_become_splits(self, folder):
        masks = np.array([[1, 0, 0], [0, 0, 1]], dtype=np.uint8)
        np.savez(folder / "masked.npz", X=np.eye(3), y=np.arange(3.0), test_mask=masks)
        np.savez(folder / "drawn.npz", X=np.eye(3), y=np.arange(3.0), splits_train=[[0, 1]], splits_test=[[2]])
        assert [(list(train), list(test)) for train, test in load("masked").splits] == [
            ([1, 2], [0]),
            ([0, 1], [2]),
        ]
        assert [(list(train), list(test)) for train, test in load("drawn").splits] == [([0, 1], [2])]

    @pytest.mark.parametrize(
        ("arrays", "message"),
        [
            ({"X": np.eye(2)}, "lacks y"),
            ({"y": np.arange(2)}, "it needs X"),
            ({"X": np.eye(3), "y": np.arange(2)}, "3 rows of data and 2 targets"),
            ({"X": np.eye(2), "y": np.arange(2), "feature_names": ["a"]}, "2 features and 1 feature names"),
            ({"X_a": np.eye(2), "X_b": np.eye(3), "y": np.arange(2)}, "same number of rows"),
        ],
    )
    def test_says_what_a_file_lacks(self, folder, arrays, message):
        np.savez(folder / "bad.npz", **arrays)
        with pytest.raises(ValueError, match=message) as caught:
            load("bad")
        assert str(caught.value).startswith("bad.npz is not a dataset")

    def test_never_unpickles(self, folder):
        np.savez(folder / "objects.npz", X=np.array([{"a": 1}], dtype=object), y=[0])
        (folder / "pickle.npz").write_bytes(pickle.dumps({"X": 1}))
        (folder / "noise.npz").write_bytes(b"not a zip file")
        np.save(folder / "lone.npy", np.eye(2))
        (folder / "lone.npy").rename(folder / "lone.npz")
        for name in ("objects", "pickle", "noise", "lone"):
            with pytest.raises(ValueError, match=f"{name}.npz must be an npz file of plain arrays"):
                load(name)


class TestUnknownName:
    def test_suggests_near_names(self, folder):
        np.savez(folder / "tumors.npz", X=np.eye(2), y=[0, 1])
        with pytest.raises(ValueError, match="did you mean tumors"):
            load("tumours")

    def test_says_how_to_set_the_folder(self, monkeypatch):
        monkeypatch.delenv("MANYKERNELS_DATA", raising=False)
        with pytest.raises(ValueError, match=r"MANYKERNELS_DATA must name a folder that holds zzz\.npz"):
            load("zzz")


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


def real_sets():
    """Every real set and its declared shape, where the data folder and its manifest are present."""
    folder = data_folder()
    if folder is None or not (folder / "MANIFEST.json").is_file():
        reason = "MANYKERNELS_DATA does not name a folder with a MANIFEST.json"
        return [pytest.param(None, marks=pytest.mark.skip(reason=reason))]
    entries = json.loads((folder / "MANIFEST.json").read_text())["datasets"]
    # The large ones would take most of the time and have the same layouts as the small ones.
    return [pytest.param(entry, id=entry["name"]) for entry in entries if entry["bytes"] < 300_000]


@pytest.mark.parametrize("entry", real_sets())
def test_real_sets_match_their_manifest(entry):
    dataset = load(entry["name"])
    shape = entry["shape"]
    if isinstance(shape, dict):
        widths = {view.removeprefix("X_"): size[1] for view, size in shape.items()}
        assert {view: part.stop - part.start for view, part in dataset.views.items()} == widths
        assert dataset.data.shape[1] == sum(widths.values())
    else:
        assert list(dataset.data.shape) == shape
    if entry["classes"] and dataset.target.ndim == 1:
        labels, counts = np.unique(dataset.target, return_counts=True)
        assert dict(zip(map(str, labels), counts.tolist(), strict=True)) == entry["classes"]
    for train, test in dataset.splits or []:
        assert not set(train) & set(test)
