"""Datasets by name: the folder they lie in, names that are not there, and the real ones."""

import json

import numpy as np
import pytest

from manykernels.datasets import available, data_folder, load


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


class TestUnknownName:
    def test_suggests_near_names(self, folder):
        np.savez(folder / "tumors.npz", X=np.eye(2), y=[0, 1])
        with pytest.raises(ValueError, match="did you mean tumors"):
            load("tumours")

    def test_says_how_to_set_the_folder(self, monkeypatch):
        monkeypatch.delenv("MANYKERNELS_DATA", raising=False)
        with pytest.raises(ValueError, match=r"MANYKERNELS_DATA must name a folder that holds zzz\.npz"):
            load("zzz")


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
