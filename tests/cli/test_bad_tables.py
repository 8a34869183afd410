"""Each way in which a table can be wrong: one sentence on standard error, and the exit status 2."""

import gzip

import numpy as np
import pytest

ROWS = "".join(f"{number},{number % 3},{'xz'[number % 2]}\n" for number in range(12))
NUMBERS = "".join(f"{number}.5,{'xz'[number % 2]}\n" for number in range(60))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        pytest.param("", "must have a line of column names and rows; 'bad.csv' is empty", id="empty"),
        pytest.param("\n\n", "'bad.csv' is empty", id="blank lines"),
        pytest.param("a,b,y\n", "'bad.csv' has 0 rows and 3 columns", id="header only"),
        pytest.param(
            f"a,b,y\n{ROWS}1,2,x,4\n",
            "line 14 has 4 values separated by commas, and the first line has 3 names",
            id="long row",
        ),
        pytest.param(f"a,b,y\n{ROWS}1,2\n", "line 14 has 2 values separated by commas", id="short row"),
        pytest.param(
            "a,y\n1,2,x\n3,4,z\n", "more values, separated by commas, than its first line", id="too few names"
        ),
        pytest.param(f"a,a,y\n{ROWS}", "must have distinct column names; 'bad.csv' repeats a", id="repeated names"),
        pytest.param(f"a,b,z\n{ROWS}", "--target must name a column of the table; got 'y'", id="unknown target"),
        pytest.param(ROWS.replace("z", "x").join(["a,b,y\n", ""]), "must have at least two classes", id="one class"),
        pytest.param(f"a,y\n{NUMBERS}unknown,x\n", "'a' mixes numbers with other text: 1 of ", id="mixed types"),
        pytest.param(f"a,b,y\n{ROWS}1,1,\n", "must have a value in every row; it lacks 1 of 13", id="missing target"),
        pytest.param(f"a,b,y\n{ROWS}".replace("x", "inf").replace("z", "1"), "it is infinite", id="infinite class"),
        pytest.param(f"a,b,y\n{ROWS}inf,1,x\n" * 1, "'a' must hold finite numbers", id="infinite feature"),
        pytest.param('a,b,y\n1,"2,x\n3,4,z\n', "a quote is opened and not closed", id="open quote"),
        pytest.param(f"a,b,y\n{ROWS}".replace("x", "café").encode("latin-1"), "must be text in UTF-8", id="latin-1"),
        pytest.param(f"a,b,y\n{ROWS}".encode("utf-16"), "it is in UTF-16", id="utf-16"),
        pytest.param(f"a,b,y\n{ROWS}".encode("utf-16-le"), "it is not a text file", id="utf-16 unmarked"),
        pytest.param(np.random.default_rng(0).bytes(5000), "it is not a text file", id="junk"),
        pytest.param(bytes(range(128, 256)) * 10, "must be text in UTF-8", id="junk without zeros"),
        pytest.param(gzip.compress(b"a,y\n1,x\n"), "'bad.csv'", id="compressed"),
        pytest.param(f"{'a' * 200_000},y\n1,x\n", "a cell has more than 131072 characters", id="endless name"),
    ],
)
def test_content(folder, fail, content, message):
    (folder / "bad.csv").write_bytes(content if isinstance(content, bytes) else content.encode())
    assert message in fail("fit", "bad.csv", "--target", "y")
    assert not (folder / "bad.mkl").exists()


@pytest.mark.parametrize(
    ("target", "message"),
    [
        ("1,2,nan", "must have a value in every row"),
        ("1,2,inf", "must hold finite numbers for --regression; it is infinite in 1 rows"),
        ("1,2,many", "must hold finite numbers for --regression; it holds 'many'"),
        ("2,2,2", "must vary; it is 2 in every row"),
    ],
)
def test_numbers_to_predict(folder, fail, target, message):
    values = target.split(",") + ["2"] * 5
    (folder / "bad.csv").write_text("a,y\n" + "".join(f"{i},{value}\n" for i, value in enumerate(values)))
    assert message in fail("fit", "bad.csv", "--target", "y", "--regression")


@pytest.mark.usefixtures("folder")
def test_no_file(fail):
    assert fail("fit", "absent.csv", "--target", "y") == (
        "The table must be a file that exists; got 'absent.csv', but there is no such file."
    )


def test_a_folder(folder, fail):
    (folder / "folder.csv").mkdir()
    assert "but it is a folder" in fail("fit", "folder.csv", "--target", "y")


def test_many_numbers_that_are_taken_for_classes(folder, run):
    (folder / "many.csv").write_text("a,y\n" + "".join(f"{i},{i % 25}\n" for i in range(150)))
    printed = run("fit", "many.csv", "--target", "y").err
    assert "note: The target has 25 different whole numbers" in printed
    assert "each of which is a class: --regression would predict a number." in printed


def test_a_number_that_was_taken_for_a_class(folder, fail):
    (folder / "bad.csv").write_text("a,y\n" + "".join(f"{i},{i * i}\n" for i in range(30)))
    assert "add --regression to predict a number, as 30 different ones suggest" in fail(
        "fit", "bad.csv", "--target", "y"
    )


def test_a_class_of_one_row(folder, fail):
    (folder / "bad.csv").write_text("a,y\n" + "".join(f"{i},{'x' if i else 'z'}\n" for i in range(9)))
    assert fail("fit", "bad.csv", "--target", "y") == (
        "The target needs two rows of each class to hold some out; class 'z' has one (remove it, or use --test-size 0)."
    )


def test_too_few_rows_to_hold_out(folder, fail):
    (folder / "bad.csv").write_text("a,y\n1,x\n2,z\n3,x\n4,z\n")
    assert fail("fit", "bad.csv", "--target", "y", "--test-size", "0.9").startswith(
        "--test-size 0.9 splits 4 rows into 0 and 4;"
    )
    assert fail("fit", "bad.csv", "--target", "a", "--regression", "--test-size", "0.75") == (
        "--test-size 0.75 leaves 1 rows for training; it needs 2."
    )


def test_what_views_can_say(folder, fail):
    (folder / "mixed.csv").write_text("a,y\n" + "".join(f"{i}.5,{i % 2}\n" for i in range(40)) + "many,1\n")
    assert fail("fit", "mixed.csv", "--target", "y").endswith("or call the column a category by --views.")
    (folder / "same.csv").write_text("a,y\n" + "1,x\n1,z\n" * 6)
    assert fail("fit", "same.csv", "--target", "y").endswith("(--views can say what a column is).")
    (folder / "views.toml").write_text('[views]\nlab = ["lab_*"]\n')
    assert fail("fit", "same.csv", "--target", "y", "--views", "views.toml") == (
        "--views names 'lab_*', but the table has no such column besides the target."
    )
    (folder / "views.toml").write_text("")
    assert fail("fit", "same.csv", "--target", "y", "--views", "views.toml").startswith(
        "--views 'views.toml' must have"
    )
    (folder / "plain.csv").write_text("a,y\n" + "1,x\n2,z\n" * 6)
    needed = "--views prefix needs columns such as rna_1 and rna_2"
    assert fail("fit", "plain.csv", "--target", "y", "--views", "prefix").startswith(needed)
