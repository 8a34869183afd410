"""Files that are not overwritten."""

import pytest


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
