"""Files that are not overwritten."""

import gzip
from pathlib import Path

import pytest

from manykernels.cli.outputs import check_output


@pytest.fixture
def kept(people, run, folder):
    """The table, the views and the model, which no command may change."""
    (folder / "views.toml").write_text('[columns]\ncity = "category"\n')
    run("fit", "people.csv", "--target", "churn")
    return {path: path.read_bytes() for path in folder.iterdir()}


@pytest.mark.parametrize(
    "arguments",
    [
        ("fit", "people.csv", "--target", "churn", "--model", "people.csv"),
        ("fit", "people.csv", "--target", "churn", "--views", "views.toml", "--model", "./views.toml"),
        ("predict", "people.mkl", "people.csv", "--output", "people.mkl"),
        ("predict", "people.mkl", "people.csv", "--output", "people.csv"),
        ("report", "people.mkl", "people.csv", "--out", "people.mkl"),
        ("report", "people.mkl", "people.csv", "--out", "people.csv"),
    ],
)
def test_inputs(kept, fail, arguments):
    assert "that is a file to read, which would be lost" in fail(*arguments)
    assert all(path.read_bytes() == content for path, content in kept.items())


@pytest.mark.parametrize(
    "arguments",
    [
        ("fit", "people.csv", "--target", "churn", "--model"),
        ("predict", "people.mkl", "people.csv", "--output"),
        ("report", "people.mkl", "people.csv", "--out"),
    ],
)
@pytest.mark.usefixtures("kept")
def test_folders(fail, arguments):
    assert fail(*arguments, ".").endswith("got '.', but it is a folder.")
    assert fail(*arguments, "absent/x").endswith("got 'absent/x', but there is no folder 'absent'.")


@pytest.mark.parametrize(
    ("arguments", "name"),
    [
        (("fit", "people.csv", "--target", "churn", "--model"), "other.mkl"),
        (("predict", "people.mkl", "people.csv", "--output"), "other.csv"),
        (("report", "people.mkl", "people.csv", "--folds", "2", "--out"), "other.html"),
    ],
)
@pytest.mark.usefixtures("kept")
def test_an_output_that_fails_leaves_the_old_one(fail, folder, arguments, name, monkeypatch):
    """Every command writes beside the old file, and replaces it when all is done."""

    def full(*_):
        raise OSError("No space left on device")

    before = sorted(path.name for path in folder.iterdir())
    (folder / name).write_text("old")
    monkeypatch.setattr("os.replace", full)
    assert "No space left on device" in fail(*arguments, name)
    assert (folder / name).read_text() == "old"
    assert sorted(path.name for path in folder.iterdir()) == sorted([*before, name])


@pytest.mark.usefixtures("kept")
def test_predictions_are_compressed_as_the_name_says(run, folder):
    for name in ("plain.csv", "packed.csv.gz"):
        run("predict", "people.mkl", "people.csv", "--output", name)
    assert gzip.decompress((folder / "packed.csv.gz").read_bytes()) == (folder / "plain.csv").read_bytes()


def test_a_protected_folder(tmp_path, monkeypatch):
    """A file is replaced, which its folder must allow, whatever the file itself does."""
    path = tmp_path / "model.mkl"
    path.write_text("old")
    monkeypatch.setattr("os.access", lambda where, _: Path(where) != tmp_path)
    with pytest.raises(ValueError, match=r"the folder .* is protected"):
        check_output("--model", path, [])
    monkeypatch.setattr("os.access", lambda where, _: Path(where) == tmp_path)
    with pytest.raises(ValueError, match="it is protected"):
        check_output("--model", path, [])
