"""Datasets in files of arrays: dense, sparse, in views, with splits."""

import pickle

import numpy as np
import pytest
from scipy import sparse

from manykernels.datasets import load

rng = np.random.default_rng(0)


def sparse_parts(matrix, prefix=""):
    parts = {"data": matrix.data, "indices": matrix.indices, "indptr": matrix.indptr, "shape": matrix.shape}
    return {prefix + name: np.asarray(part) for name, part in parts.items()}


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
