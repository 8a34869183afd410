"""The report on a model file and a table."""

import json
import re

import numpy as np
import pandas as pd
import pytest

from manykernels import MKLClassifier


@pytest.fixture
def table(folder):
    rng = np.random.default_rng(0)
    age, city = rng.normal(50, 10, 80), rng.choice(["Rome", "Oslo"], 80)
    table = pd.DataFrame(
        {"age [years]": age, "city <b>": city, "ill": np.where(age > 50, "yes", "no"), "cost": 3 * age}
    )
    table.to_csv("people.csv", index=False)
    return table


@pytest.fixture
def model(table, run):
    table.drop(columns="cost").to_csv("ill.csv", index=False)
    run("fit", "ill.csv", "--target", "ill")
    return "ill.mkl"


def test_classes(model, run, folder):
    printed = run("report", model, "people.csv", "--folds", 2, "--seed", 3)
    assert re.search(r"On unseen rows, accuracy is 0\.[89]\d+ \(95% interval 0\.\d+ to \d\.\d+\)\.", printed.out)
    assert "The report is in ill.html." in printed.out
    page = (folder / "ill.html").read_text(encoding="utf-8")
    assert "<h1>ill from people.csv</h1>" in page
    assert "manykernels report ill.mkl people.csv --folds 2 --seed 3" in page
    assert "age [years]" in page
    assert "city &lt;b&gt;=Rome" not in page  # features are columns of the table
    assert "scores may be too good" not in page  # refits have all kernels, not only those of the file
    assert "encoded as when the model was made" in page


def test_numbers(table, run, folder):
    table.drop(columns="ill").to_csv("cost.csv", index=False)
    run("fit", "cost.csv", "--target", "cost", "--regression", "--C", 10)
    printed = run("report", "cost.mkl", "cost.csv", "--out", "my report.html", "--folds", 2, "--max-rows", 60)
    assert "On unseen rows, R2 is 0.9" in printed.out
    page = (folder / "my report.html").read_text(encoding="utf-8")
    assert "Of 80 rows, 60 were drawn to cross-validate on" in page
    assert "cost.mkl cost.csv --folds 2 --seed 0 --max-rows 60 --out &#x27;my report.html&#x27;" in page


def test_bad_input(model, table, fail, folder):
    assert "--out must be a file that can be written; got 'no/x.html'" in fail(
        "report", model, "people.csv", "--out", "no/x.html"
    )
    assert "there is no file 'absent.mkl'" in fail("report", "absent.mkl", "people.csv")
    assert "a whole number of at least 2" in fail("report", model, "people.csv", "--folds", 1)
    table.drop(columns="ill").to_csv("without.csv", index=False)
    assert "The table must hold the target 'ill'" in fail("report", model, "without.csv")
    table.assign(ill="maybe").iloc[:40].to_csv("other.csv", index=False)
    assert "The target 'ill' must have at least two classes" in fail("report", model, "other.csv")
    MKLClassifier().fit(np.arange(20.0)[:, None], np.arange(20) % 2).save("python.mkl")
    assert "does not say how to read a table" in fail("report", "python.mkl", "people.csv")
    assert not list(folder.glob("*.html"))


@pytest.fixture
def asked(monkeypatch):
    """What the command asks of the model's method, which then makes no report: cross-validation takes seconds."""
    calls = []

    def report(model, X, y, path, **options):
        calls.append(options)
        raise ValueError("Asked.")

    monkeypatch.setattr(MKLClassifier, "report", report)
    return calls


def test_a_page_with_the_rows_that_fit_held_out_and_facts_of_the_table(people, run, folder):
    fitted = json.loads(run("fit", "people.csv", "--target", "churn", "--json").out)
    run("report", "people.mkl", "people.csv", "--folds", 2, "--max-rows", 50)
    page = (folder / "people.html").read_text(encoding="utf-8")
    told = r"On 30 rows of test data, which it has not seen, the fitted model itself has accuracy ([\d.]+)%"
    accuracy = 100 * fitted["scores"]["learned"]["accuracy"]
    assert float(re.search(told, page)[1]) == pytest.approx(accuracy, abs=0.05)
    assert "`fit --cv` chose" not in page
    facts = dict(re.findall(r"<dt>([\w ]+)</dt><dd>(.*?)</dd>", page))
    gaps = int(people["age [years]"].isna().sum())
    assert gaps > 0
    assert facts["missing values"] == f"{gaps} in 1 of the columns"
    assert facts["columns"] == "3 (number: 1, category: 1, boolean: 1)"
    assert facts["columns left out"] == "1"
    assert facts["rows"] == "120"
    counts = people["churn"].value_counts()
    assert facts["classes"] == f"no ({counts['no']}), yes ({counts['yes']})"


def test_rows_that_were_held_out_are_known_in_the_same_table_only(people, run, fail, asked):
    run("fit", "people.csv", "--target", "churn")
    table = pd.read_csv("people.csv")
    for other in (table, table.sample(frac=1, random_state=0), table.iloc[:100]):  # in other places, rows are others
        other.to_csv("other.csv", index=False)
        assert fail("report", "people.mkl", "other.csv") == "Asked."
    assert asked[0]["X_test"].shape[0] == asked[0]["y_test"].size == 30
    for options in asked[1:]:
        assert options["X_test"] is None
        assert options["y_test"] is None


@pytest.mark.usefixtures("people")
def test_settings_that_were_chosen_are_said_to_be(run, fail, asked):
    """In a note; notes are on the page, as those on the encoding are."""
    run("fit", "people.csv", "--target", "churn", "--cv", 2)
    assert fail("report", "people.mkl", "people.csv") == "Asked."
    assert any("`fit --cv` chose C and the norm on rows" in note for note in asked[0]["notes"])
    assert any("encoded as when the model was made" in note for note in asked[0]["notes"])
