"""From a table to a model to predictions."""

import io
import re

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import dump_svmlight_file

from manykernels import MKLClassifier, load
from manykernels.tables.held_out import hold_out

FIT = ("fit", "people.csv", "--target", "churn")


def frame(text):
    return pd.read_csv(io.StringIO(text))


def score_of(name, text):
    return float(re.search(rf"{name} +(\S+)", text)[1])


@pytest.mark.usefixtures("people")
class TestFit:
    def test_report(self, run):
        printed = run(*FIT)
        assert "90 rows to learn from, 30 held out; 3 columns as 6 features; 28 kernels." in printed.out
        assert re.search(r"(Gaussian|Polynomial)\(.*\) on (all features|age \[years\]|smokes) ", printed.out)
        assert re.search(r"relative gap +\d", printed.out)
        assert re.search(r"converged +yes", printed.out)
        assert "On the 30 held-out rows" in printed.out
        assert "The model that was scored is in people.mkl." in printed.out
        assert re.search(r"numbers +1 +age \[years\] +scaled to mean 0", printed.out)
        assert re.search(r"left out +1 +id +differs in nearly every row", printed.out)
        assert printed.err == ""

    def test_learns(self, run):
        out = run(*FIT).out
        assert score_of("learned kernels", out) > score_of("always (?:yes|no)", out) + 0.2

    def test_the_saved_model_is_the_one_that_was_scored(self, run, people):
        printed = run(*FIT, "--seed", 5)
        held_out = hold_out(people["churn"].to_numpy(str), 0.25, seed=5, regression=False)[1]
        people.iloc[held_out].to_csv("held_out.csv", index=False)
        predicted = frame(run("predict", "people.mkl", "held_out.csv").out)["prediction"].to_numpy()
        wrong = int(np.sum(predicted != people["churn"].to_numpy()[held_out]))
        assert f"{wrong} of 30 wrong" in printed.out.split("always")[0]

    def test_regression(self, run, people):
        printed = run("fit", "scores.csv", "--target", "score", "--regression", "--C", 10)
        assert score_of("learned kernels", printed.out) > 0.7
        assert "root mean squared error" in printed.out
        predicted = frame(run("predict", "scores.mkl", "scores.csv").out)
        assert list(predicted.columns) == ["prediction"]
        assert np.corrcoef(predicted["prediction"], people["score"])[0, 1] > 0.8

    @pytest.mark.parametrize(
        "task", [FIT, ("fit", "scores.csv", "--target", "score", "--regression")], ids=["classes", "numbers"]
    )
    def test_cross_validation(self, run, task):
        printed = run(*task, "--cv", 3)
        assert re.search(
            r"C = \S+ and norm = [12] are best in cross-validation: (R2|accuracy) 0\.\d+ on average", printed.out
        )
        assert re.search(r"converged +yes", printed.out)
        assert not run("predict", task[1].replace(".csv", ".mkl"), task[1]).err

    def test_without_a_held_out_part(self, run):
        printed = run(*FIT, "--test-size", 0, "--model", "whole.mkl")
        assert "120 rows to learn from, 0 held out" in printed.out
        assert "there is no score" in printed.out
        assert "The model is in whole.mkl." in printed.out
        assert load("whole.mkl").extra_["command"]["regression"] is False

    def test_options_reach_the_estimator(self, run):
        run(*FIT, "--norm", "inf", "--C", 0.5, "--loss", "logistic", "--tol", 0.01, "--seed", 3)
        model = load("people.mkl")
        assert (model.norm, model.C, model.loss, model.tol) == (np.inf, 0.5, "logistic", 0.01)
        np.testing.assert_allclose(model.weights_, model.weights_[0], rtol=1e-9)

    def test_says_when_the_tolerance_was_not_reached(self, run):
        printed = run(*FIT, "--max-iter", 1, "--tol", 1e-9)
        assert re.search(r"converged +no", printed.out)
        assert "note: MKLClassifier stopped after 1 iterations (max_iter=1)" in printed.err

    def test_the_seed_chooses_the_rows(self, run):
        reports = [re.sub(r"seconds.*", "", run(*FIT, "--seed", seed).out) for seed in (1, 1, 2)]
        assert reports[0] == reports[1] != reports[2]

    def test_three_classes_from_parquet(self, run, people):
        people["kind"] = np.select([people["score"] > 2, people["score"] > -1], [2, 1], 0)
        people.drop(columns=["score", "churn"]).to_parquet("people.parquet")
        run("fit", "people.parquet", "--target", "kind")
        predicted = frame(run("predict", "people.mkl", "people.parquet").out)
        assert list(predicted.columns) == ["prediction"]
        assert (predicted["prediction"] == people["kind"]).mean() > 0.7


class TestPredict:
    @pytest.fixture
    def model(self, people, run):
        run(*FIT, "--loss", "logistic")
        return "people.mkl"

    def test_predictions_decisions_and_probabilities(self, model, people, run):
        predicted = frame(run("predict", model, "people.csv").out)
        assert list(predicted.columns) == ["prediction", "decision", "proba_no", "proba_yes"]
        assert len(predicted) == len(people)
        np.testing.assert_allclose(predicted["proba_no"] + predicted["proba_yes"], 1.0)
        np.testing.assert_array_equal(predicted["prediction"] == "yes", predicted["decision"] > 0)
        assert (predicted["prediction"] == people["churn"]).mean() > 0.8

    def test_target_may_be_absent_and_columns_may_be_more(self, model, people, run):
        whole = run("predict", model, "people.csv").out
        people.drop(columns=["churn", "id"]).assign(extra=1).iloc[:, ::-1].to_csv("later.csv", index=False)
        assert run("predict", model, "later.csv").out == whole

    def test_one_row_with_an_unknown_level(self, model, run):
        pd.DataFrame({"age [years]": [40], "city": ["Kyiv"], "smokes": [True]}).to_csv("one.csv", index=False)
        assert len(frame(run("predict", model, "one.csv").out)) == 1

    def test_output_file(self, model, people, run):
        printed = run("predict", model, "people.csv", "--output", "out.csv")
        assert printed.out == ""
        assert "120 predictions are in out.csv." in printed.err
        assert len(pd.read_csv("out.csv")) == len(people)

    def test_missing_columns_are_named(self, model, people, fail):
        people.drop(columns=["city", "smokes"]).to_csv("less.csv", index=False)
        assert fail("predict", model, "less.csv").startswith("The table lacks the columns 'city', 'smokes'")

    def test_output_folder_must_exist(self, model, fail):
        message = fail("predict", model, "people.csv", "--output", "absent/out.csv")
        assert message.startswith(
            "--output must be a file that can be written; got 'absent/out.csv', but there is no folder"
        )

    @pytest.mark.usefixtures("people")
    def test_no_model(self, fail):
        assert "there is no file 'absent.mkl'" in fail("predict", "absent.mkl", "people.csv")

    @pytest.mark.usefixtures("people")
    def test_unreadable_model(self, fail):
        assert "people.csv" in fail("predict", "people.csv", "people.csv")

    @pytest.mark.usefixtures("people")
    def test_model_from_python(self, fail):
        X, y = np.random.default_rng(0).normal(size=(20, 2)), np.arange(20) % 2
        MKLClassifier().fit(X, y).save("python.mkl")
        assert "does not say how to read a table" in fail("predict", "python.mkl", "people.csv")

    @pytest.mark.usefixtures("folder")
    def test_libsvm_features_that_no_row_mentions_are_zero(self, run):
        X = np.random.default_rng(0).normal(size=(60, 3))
        dump_svmlight_file(X, np.sign(X[:, 0]), "train.svm", zero_based=False)
        run("fit", "train.svm", "--target", "target")
        X[:, 2] = 0.0
        dump_svmlight_file(X[:, :2], np.zeros(60), "short.svm", zero_based=False)
        pd.DataFrame(X, columns=["f1", "f2", "f3"]).to_csv("full.csv", index=False)
        short, full = (frame(run("predict", "train.mkl", table).out) for table in ("short.svm", "full.csv"))
        pd.testing.assert_frame_equal(short, full)


def test_demo(run):
    out = run("demo").out
    assert "426 tumors to learn from, 143 held out; 30 features; 403 kernels." in out
    assert "Learned kernels" in out
    assert re.search(r"converged +yes", out)
    assert score_of("learned sum", out) > 0.93
    assert score_of("uniform sum", out) > 0.9
    assert re.search(r"single kernel +0\.9\d+ +\d+ wrong; cross-validated 0\.9\d+; (Gaussian|Polynomial)\(", out)
    assert out.rstrip().endswith("manykernels fit --help")


@pytest.mark.usefixtures("folder")
def test_one_held_out_number(run):
    pd.DataFrame({"a": range(4), "y": [1.0, 2.0, 3.0, 5.0]}).to_csv("few.csv", index=False)
    printed = run("fit", "few.csv", "--target", "y", "--regression", "--model", "my model.mkl")
    assert "1 held-out row of one value cannot be scored by R2; the root mean squared error is " in printed.out
    assert "nan" not in printed.out
    assert "manykernels predict 'my model.mkl' TABLE" in printed.out
