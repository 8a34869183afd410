"""Tables as they come: every kind of column, gaps, views, uneven classes."""

import io
import json
import re
from dataclasses import asdict

import numpy as np
import pandas as pd
import pytest

from manykernels import MKLClassifier, load
from manykernels.cli.model_file import open_model
from manykernels.kernels import Gaussian
from manykernels.tables.encoder import encode_table
from manykernels.tables.held_out import hold_out

FIT = ("fit", "clinic.csv", "--target", "relapse")
GOOD, BAD = ["calm", "well", "healthy"], ["pain", "fever", "worse"]


@pytest.fixture
def clinic(folder):
    """Every kind of column, with gaps; the mood of the note and the city decide, and one row in ten has a relapse."""
    rng = np.random.default_rng(3)
    count = 240
    city, ill = rng.choice(["Rome", "Oslo", "Lima"], count), rng.random(count) < 0.35
    relapse = ill & (city == "Rome")
    words = [rng.choice(BAD if own else GOOD, 2) for own in ill]
    table = pd.DataFrame(
        {
            "patient": [f"P{number:05}" for number in range(count)],
            "lab_hb": np.where(rng.random(count) < 0.1, np.nan, rng.normal(14, 1, count)),
            "lab_crp": rng.lognormal(1, 1, count),
            "home.city": np.where(rng.random(count) < 0.05, None, city),
            "home.kind": rng.choice(["flat", "house"], count),
            "smokes": rng.random(count) < 0.4,
            "visit": pd.Series(pd.Timestamp("2022-01-01") + pd.to_timedelta(rng.integers(0, 700, count), unit="D"))
            .dt.strftime("%Y-%m-%d")
            .where(rng.random(count) > 0.05),
            "note": [f"Visit {number}: the patient felt {a} and {b} today" for number, (a, b) in enumerate(words)],
            "ward": "east",
            "fax": np.nan,
            "relapse": np.where(relapse, "yes", "no"),
        }
    )
    table.to_csv("clinic.csv", index=False)
    return table


@pytest.mark.usefixtures("clinic")
class TestSummary:
    def test_says_what_became_of_each_column(self, run):
        out = run(*FIT).out
        for row in (
            r"numbers +2 +lab_hb, lab_crp +scaled to mean 0",
            r"true or false +1 +smokes",
            r"categories +2 +home.city, home.kind +compared by",
            r"dates +1 +visit +a trend, and a circle each",
            r"free text +1 +note +tf-idf of \d+ words and of",
            r"left out +1 +patient +differs in nearly every",
            r"left out +1 +ward +is constant",
            r"left out +1 +fax +has no values in the 180",
        ):
            assert re.search(row, out), row
        assert all(len(line) <= 80 for line in out.split("180 rows")[0].splitlines())
        assert "missing values: the" in out

    def test_uneven_classes(self, run):
        printed = run(*FIT)
        assert "note: The classes are uneven, class 'yes' has 17 of 180 training rows (9%)" in printed.err
        assert "balanced accuracy" in printed.out
        assert load("clinic.mkl").class_weight == "balanced"
        assert "all classes count alike; --balance no lets all rows count alike." in printed.err
        run(*FIT, "--balance", "no")
        assert load("clinic.mkl").class_weight is None

    def test_learns_from_text_and_category(self, run):
        out = run(*FIT).out
        learned, constant = (
            float(re.search(rf"{name} +\S+ +(\S+)", out)[1]) for name in ("learned kernels", "always no")
        )
        assert constant == 0.5
        assert learned > 0.8
        assert re.search(r"Linear on (words|3-letter pieces) of note", out)


@pytest.mark.usefixtures("clinic")
class TestViews:
    def test_by_prefix(self, run):
        out = run(*FIT, "--views", "prefix").out
        assert "view lab: lab_hb, lab_crp\nview home: home.city, home.kind\nview other: smokes, visit, note\n" in out
        assert "; 3 views; " in out
        weights = dict(re.findall(r"^  (lab|home|other) +(\d\.\S+)", out.split("Views")[1], re.MULTILINE))
        model = load("clinic.mkl")
        assert sorted(set(model.kernel_groups_)) == ["home", "lab", "other"]
        assert {name: float(weight) for name, weight in weights.items()} == {
            name: pytest.approx(weight, abs=1e-4)
            for name, weight in zip(model.group_names_, model.group_weights_, strict=True)
            if weight > 0
        }

    def test_by_file(self, run, folder):
        (folder / "views.toml").write_text(
            '[views]\nblood = ["lab_*"]\nlife = ["home.*", "smokes"]\n[columns]\npatient = "text"\nvisit = "ignore"\n'
        )
        out = run(*FIT, "--views", "views.toml").out
        assert re.search(r"free text +2 +patient, note", out)
        assert re.search(r"left out +1 +visit +is to be ignored", out)
        settings = open_model("clinic.mkl")[2]
        assert settings.views == {
            "blood": ["lab_hb", "lab_crp"],
            "life": ["home.city", "home.kind", "smokes"],
            "other": ["patient", "note"],
        }

    def test_bad_views(self, fail):
        assert "--views must be 'prefix' or a file" in fail(*FIT, "--views", "sufix")


@pytest.mark.usefixtures("clinic")
class TestJSON:
    def result(self, run, *arguments):
        return json.loads(run(*FIT, "--json", *arguments).out)

    def test_has_it_all(self, run):
        result = self.result(run, "--views", "prefix", "--seed", 4)
        assert result["table"] == "clinic.csv"
        assert result["model"] == "clinic.mkl"
        assert result["settings"]["target"] == "relapse"
        assert result["settings"]["seed"] == 4
        assert result["settings"]["weighted"] is True
        assert result["data"]["rows"] == {"train": 180, "test": 60}
        assert result["data"]["classes"] == {"no": 163, "yes": 17}
        kinds = {column["name"]: column["kind"] for column in result["columns"]}
        assert kinds == {
            "lab_hb": "number",
            "lab_crp": "number",
            "home.city": "category",
            "home.kind": "category",
            "smokes": "boolean",
            "visit": "date",
            "note": "text",
            "patient": None,
            "ward": None,
            "fax": None,
        }
        assert list(result["views"]) == ["lab", "home", "other"]
        total = sum(view["weight"] for view in result["weights"]["views"])
        assert total == pytest.approx(sum(kernel["weight"] for kernel in result["weights"]["kernels"]))
        assert result["certificate"]["converged"] is True
        assert any(note.endswith("--balance no lets all rows count alike.") for note in result["notes"])
        assert result["certificate"]["gap"] <= 1e-3
        assert set(result["scores"]["learned"]) == {"accuracy", "balanced_accuracy"}
        assert result["scores"]["constant"]["balanced_accuracy"] == 0.5
        assert result["cross_validation"] is None
        assert "uneven" in result["notes"][0]
        assert 0 < result["seconds"]["fit"] < result["seconds"]["all"]
        assert {"python", "manykernels", "numpy"} <= set(result["versions"])

    def test_cross_validation(self, run):
        result = self.result(run, "--cv", 2)
        assert result["cross_validation"]["folds"] == 2
        assert result["cross_validation"]["metric"] == "balanced accuracy"
        assert result["settings"]["norm"] in (1.0, 2.0)

    def test_what_json_cannot_hold(self, run):
        result = self.result(run, "--norm", "inf", "--test-size", 0, "--max-iter", 1, "--tol", 1e-12)
        assert result["settings"]["norm"] == "inf"
        assert result["scores"] is None

    def test_regression(self, run):
        result = json.loads(run("fit", "clinic.csv", "--target", "lab_crp", "--regression", "--json").out)
        assert set(result["scores"]["learned"]) == {"r2", "rmse"}
        assert result["data"]["classes"] is None


@pytest.mark.usefixtures("clinic")
class TestCrossValidation:
    def test_five_folds_unless_said(self, run):
        assert json.loads(run(*FIT, "--cv", "--json").out)["cross_validation"]["folds"] == 5

    @pytest.mark.parametrize(
        ("folds", "message"),
        [
            (1, "argument --cv: it must be a whole number of at least 2; got '1'"),
            (24, "--cv 24 needs 24 rows of each class to learn from; class 'yes' has 17 (use fewer folds)"),
        ],
    )
    def test_bad_numbers_of_folds(self, fail, folds, message):
        assert message in fail(*FIT, "--cv", folds)

    def test_more_folds_than_rows(self, fail):
        message = fail("fit", "clinic.csv", "--target", "lab_crp", "--regression", "--cv", 181)
        assert message == "--cv 181 needs as many rows to learn from; there are 180."
        message = fail("fit", "clinic.csv", "--target", "lab_crp", "--regression", "--cv", 91)
        assert message == "--cv 91 needs 182 rows to learn from, two in each fold; there are 180."


class TestOpened:
    def test_the_file_is_enough_to_score_again(self, clinic, run):
        out = run(*FIT, "--seed", 2, "--test-size", 0.3).out
        model, encoder, settings = open_model("clinic.mkl")
        table, X = encode_table("clinic.csv", encoder)
        test = hold_out(table["relapse"].to_numpy(str), settings.test_size, settings.seed, False)[1]
        wrong = int(np.sum(model.predict(X[test]) != table["relapse"].to_numpy()[test]))
        assert f"{wrong} of 72 wrong" in out.split("always")[0]
        assert asdict(settings) == {
            "target": "relapse",
            "regression": False,
            "test_size": 0.3,
            "seed": 2,
            "rows": 240,
            "cv": None,
            "views": {},
            "balance": "auto",
            "weighted": True,
            "classes": {"no": 153, "yes": 15},
        }

    def test_later_tables_may_differ(self, clinic, run):
        run(*FIT)
        later = clinic.head(4).drop(columns=["relapse", "patient", "fax", "ward"])
        later["home.city"] = ["Kyiv", None, "Rome", "Oslo"]
        later["visit"] = [None, "2030-01-01", "1.2.2022", "2022-02-01T10:00:00"]
        later["note"] = [None, "", "ein ganz anderer Text", "pain and fever"]
        later["lab_crp"] = [None, 1, 2, 3]
        later.to_csv("later.csv", index=False)
        predicted = pd.read_csv(io.StringIO(run("predict", "clinic.mkl", "later.csv").out))
        assert predicted["prediction"].isin(["yes", "no"]).all()
        assert np.isfinite(predicted["decision"]).all()

    @pytest.mark.usefixtures("folder")
    @pytest.mark.parametrize("kept", [{"target": "class"}, "words", [1]])
    def test_a_file_that_lacks_settings(self, fail, kept):
        X = np.random.default_rng(0).normal(size=(40, 2))
        model = MKLClassifier([Gaussian(1.0)]).fit(X, X[:, 0] > 0)
        model.save("other.mkl", extra={"command": kept})
        assert "'other.mkl' lacks settings" in fail("predict", "other.mkl", "ages.csv")


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize(
    ("options", "advice"), [((), "try --cv"), (("--cv", 2), "the columns may not predict the target")]
)
def test_says_when_nothing_was_learned(run, options, advice):
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"a": rng.normal(size=90), "y": rng.choice(["p", "q"], 90, p=[0.7, 0.3])})
    table.to_csv("noise.csv", index=False)
    result = json.loads(run("fit", "noise.csv", "--target", "y", "--json", *options).out)
    assert result["scores"]["learned"]["accuracy"] <= result["scores"]["constant"]["accuracy"]
    assert "By accuracy, the learned kernels are no better than 'always p'" in result["notes"][-1]
    assert advice in result["notes"][-1]


@pytest.mark.parametrize("views", [(), ("--views", "zip.toml")])
def test_codes_keep_their_zeros_whatever_else_is_in_the_table(folder, run, views):
    (folder / "zip.toml").write_text('[columns]\nzip = "category"\n')
    place = np.random.default_rng(0).integers(0, 4, 80)
    table = pd.DataFrame({"zip": [f"0{100 + own}" for own in place], "y": np.where(place < 2, "01", "02")})
    table.to_csv("zips.csv", index=False)
    out = run("fit", "zips.csv", "--target", "y", *views).out
    assert re.search(r"categories +1 +zip", out)
    table.replace({"zip": {table["zip"][0]: "abroad"}}).to_csv("abroad.csv", index=False)
    table.assign(zip=place + 100).to_csv("dropped.csv", index=False)
    known = table["zip"] != table["zip"][0]
    for name in ("zips", "abroad", "dropped"):
        predicted = pd.read_csv(io.StringIO(run("predict", "zips.mkl", f"{name}.csv").out), dtype=str)["prediction"]
        np.testing.assert_array_equal(predicted[known], table["y"][known])


@pytest.mark.usefixtures("folder")
def test_ten_thousand_columns(run):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 10_000)).astype(np.float32).round(2)
    table = pd.DataFrame(X, columns=[f"g{number}" for number in range(X.shape[1])])
    table.insert(0, "y", np.where(X[:, :3].sum(axis=1) > 0, "a", "b"))
    table.to_csv("wide.csv", index=False)
    printed = run("fit", "wide.csv", "--target", "y")
    assert "10000 columns as 10000 features; 10013 kernels." in printed.out
    assert "10000 columns would make 130013 kernels: each number or date gets one linear kernel" in printed.err
