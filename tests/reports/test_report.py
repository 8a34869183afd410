"""The page says what the model says, escapes what it is given, stays small, and is honest about model files."""

import re
import warnings
from html.parser import HTMLParser
from time import perf_counter

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_diabetes, load_iris
from sklearn.metrics import balanced_accuracy_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from manykernels import AlignedKernel, MKLClassifier, MKLRegressor, TwoStageMKLRegressor, UFOMKLClassifier, load
from manykernels.kernels import (
    Gaussian,
    GaussianFamily,
    GaussianLadder,
    KernelBank,
    Linear,
    NystroemFeatures,
    Polynomial,
    standard_bank,
)
from manykernels.reports import make_report
from manykernels.reports.html.words import percent
from manykernels.reports.summary import describe

VOID = {"meta", "input", "wbr", "br", "img", "link"}


class Outline(HTMLParser):
    """The headings, identifiers and elements of a page; fails where elements are not closed in order."""

    def __init__(self, page):
        super().__init__()
        self.levels, self.ids, self.tags, self.references, self.text, self._open = [], [], set(), [], "", []
        self.feed(page)
        assert self._open == []

    def handle_starttag(self, tag, attrs):
        attrs = dict(attrs)
        self.tags.add(tag)
        if re.fullmatch(r"h[1-6]", tag):
            self.levels.append(int(tag[1]))
        self.ids += [attrs["id"]] if "id" in attrs else []
        self.references += f"{attrs.get('aria-labelledby', '')} {attrs.get('for', '')}".split()
        self.references += [attrs["href"][1:]] if attrs.get("href", "").startswith("#") else []
        assert "style" not in attrs  # the policy would refuse it
        assert not any(name.startswith("on") for name in attrs)
        if tag not in VOID:
            self._open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.tags.add(tag)

    def handle_endtag(self, tag):
        assert self._open.pop() == tag
        self.text += " "

    def handle_data(self, data):
        if not self._open or self._open[-1] not in ("style", "script"):
            self.text += data


@pytest.fixture(scope="module")
def iris():
    data = load_iris(as_frame=True)
    return data.data, data.target_names[data.target]


@pytest.fixture(scope="module")
def fitted(iris):
    return MKLClassifier().fit(*iris)


@pytest.fixture(scope="module")
def timed(iris, fitted):
    """A report, and how many seconds it took."""
    start = perf_counter()
    made = fitted.report(*iris, folds=3, X_test=iris[0][::5], y_test=iris[1][::5])
    return made, perf_counter() - start


@pytest.fixture(scope="module")
def report(timed):
    return timed[0]


@pytest.fixture(scope="module")
def diabetes():
    X, y = load_diabetes(return_X_y=True, as_frame=True)
    model = make_pipeline(StandardScaler().set_output(transform="pandas"), MKLRegressor(C=10.0)).fit(X, y)
    return make_report(model, X, y, folds=2, title="Diabetes", max_samples=200)


class TestNumbers:
    def test_of_the_model(self, report, fitted):
        text = Outline(report.html).text
        assert f"{fitted.active_.size} of {len(fitted.kernel_names_)} kernels carry all the weight" in text
        assert f"{fitted.objective_:.8g}" in text
        assert f"{fitted.dual_objective_:.8g}" in text
        assert f"{fitted.gap_:.2e}" in text
        best = int(fitted.weights_.argmax())
        assert fitted.kernel_names_[best] in text
        assert f"{fitted.weights_[best]:.4g}" in text
        view = int(fitted.group_weights_.argmax())
        share = fitted.group_weights_[view] / fitted.group_weights_.sum()
        assert f"“{fitted.group_names_[view]}” has {percent(share)}" in text
        first = fitted.feature_importances_.max()
        assert percent(first) in text

    def test_of_the_scores(self, report, iris):
        text, found = Outline(report.html).text, report.assessment
        right = int(np.sum(found.model.predicted == iris[1]))
        assert f"it is right in {right / 150:.1%} of the cases" in text
        assert f"{150 - right} rows of 150 are put into a wrong class." in text
        assert "On 30 rows of test data, which it has not seen, the fitted model itself has accuracy" in text
        for outcome in found.outcomes:
            assert outcome.name in text
            assert f"{outcome.score.value:.1%}" in text

    def test_of_the_refits(self, report):
        used = report.learned.used
        assert report.learned.refits.shape == (3, 65)
        best = int(report.learned.order[0])
        assert f"{used[best]} of 3" in Outline(report.html).text

    def test_of_a_regression(self, diabetes):
        text, found = Outline(diabetes.html).text, diabetes.assessment.model
        truth = diabetes.assessment.truth
        assert f"R² {found.score.value:.3f}" in text
        assert f"{np.sqrt(np.mean((truth - found.predicted) ** 2)):.4g}" in text
        assert "Of 442 rows, 200 were drawn to cross-validate on" in text
        assert "Predicted against actual" in text
        assert diabetes.html.count("h0") > 2 * 200

    def test_time_is_told_apart(self, timed):
        report, seconds = timed
        assert report.fit_seconds == pytest.approx(sum(o.seconds for o in report.assessment.outcomes))
        assert min(report.fit_seconds, report.other_seconds) > 0
        assert report.fit_seconds + report.other_seconds <= seconds


class TestPage:
    @pytest.mark.parametrize("which", ["report", "diabetes"])
    def test_is_well_formed(self, which, request):
        page = request.getfixturevalue(which).html
        outline = Outline(page)
        assert outline.levels[0] == 1
        assert all(b - a <= 1 for a, b in zip(outline.levels, outline.levels[1:], strict=False))
        assert len(outline.ids) == len(set(outline.ids))
        assert set(outline.references) <= set(outline.ids)
        assert page.startswith('<!DOCTYPE html>\n<html lang="en">')

    def test_needs_nothing_from_outside(self, report):
        assert "http" not in report.html.replace("http-equiv", "")
        assert "//" not in re.sub(r"<script>.*?</script>", "", report.html, flags=re.DOTALL)
        assert not Outline(report.html).tags & {"link", "img", "iframe", "object", "embed", "base"}
        assert "default-src 'none'" in report.html
        assert "unsafe" not in report.html

    def test_charts_have_words(self, report):
        for chart in re.findall(r"<svg[^>]*>", report.html):
            assert 'aria-hidden="true"' in chart or 'role="img" aria-labelledby=' in chart

    def test_without_scripts_the_first_kernels_are_there(self, report):
        body = re.search(r'<table class="kernels sortable">(.*?)</table>', report.html, flags=re.DOTALL)[1]
        assert body.count("<tr>") == 26

    def test_print_and_dark_and_narrow(self, report):
        for rule in ("@media print", "prefers-color-scheme: dark", "max-width: 640px"):
            assert rule in report.html

    def test_files_and_notebooks(self, report, tmp_path):
        path = report.save(tmp_path / "report.html")
        assert path.read_text(encoding="utf-8") == report.html
        assert report._repr_html_().startswith('<iframe srcdoc="&lt;!DOCTYPE html&gt;')
        assert repr(report).startswith("<Report: accuracy 0.9")


def test_every_name_is_escaped(tmp_path):
    evil = '<script>alert("1")</script>&'
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(40, 2)), columns=[evil, "]]></style>"])
    y = np.where(X.iloc[:, 0] > 0, '<b class="x">', "</td>")
    path = tmp_path / "evil.html"
    MKLClassifier([Linear([evil]), Gaussian(1.0, group="<u>")]).fit(X, y).report(X, y, path, folds=2, title=evil)
    page = path.read_text(encoding="utf-8")
    outline = Outline(page)
    assert outline.tags.isdisjoint({"u"})
    assert evil in outline.text
    assert '<b class="x">' not in page
    assert page.count("<script") == 2  # the data of the kernels, and the script of the page


def test_ten_thousand_kernels_stay_small():
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(50, 9)), columns=[f"a measured quantity {j}" for j in range(9)])
    y = X.iloc[:, 0].to_numpy() > 0
    report = MKLClassifier(standard_bank(X, widths=1000, degrees=()), norm=2).fit(X, y).report(X, y, folds=2)
    assert len(report.learned.names) == 10_000
    assert "10,000 kernels" in report.html
    assert len(report.html.encode()) < 2e6
    assert report.html.count("Gaussian(width=") >= 10_000
    assert report.html.count("<tr>") < 200


def test_a_million_kernels_are_not_all_listed():
    X = np.random.default_rng(0).normal(size=(30, 2))
    model = MKLClassifier(standard_bank(X, widths=20_000, degrees=())).fit(X, X[:, 0] > 0)
    report = model.report(X, X[:, 0] > 0, folds=2)
    assert len(report.html) < 2e6
    assert re.search(r"[\d,]+ kernels with smaller weights are left out of the table\.", report.html)


class TestTwins:
    def test_are_flagged(self, iris):
        kernels = [Gaussian(1.0), Gaussian(1.001), Linear([0]), Gaussian(0.05, columns=[1])]
        model = MKLClassifier(kernels, norm=2).fit(*iris)
        report = model.report(*iris, folds=2)
        assert [set(group) for group in report.learned.twins] == [{0, 1}]
        text = Outline(report.html).text
        assert "weights are interchangeable" in text
        assert percent(model.weights_[:2].sum() / model.weights_.sum()) in text

    def test_of_a_family_and_a_ladder(self, iris):
        X, y = iris[0].to_numpy(), iris[1]
        family = MKLClassifier(GaussianFamily(0.5, 0.51)).fit(X, y)
        assert all(len(group) > 1 for group in describe(family, X).twins)
        ladder = MKLClassifier(standard_bank(X, widths=400, degrees=(), per_feature=False), norm=2).fit(X, y)
        found = describe(ladder, X)
        assert max(len(group) for group in found.twins) > 50
        assert "the largest kernels (200)" in found.twins_note

    def test_constant_kernels_are_like_no_other(self):
        X = np.column_stack([np.linspace(-1, 1, 20), np.ones(20)])
        model = MKLClassifier([Linear([0]), Linear([1])], norm=np.inf).fit(X, X[:, 0] > 0)
        assert describe(model, X).twins == ()


class TestModelFiles:
    def test_chosen_kernels_are_said_to_be(self, iris, tmp_path):
        X, y = iris[0].iloc[::3], iris[1][::3]
        kernels = [Gaussian(width, columns=[j]) for j in range(4) for width in (0.3, 1.0, 3.0)]
        MKLClassifier(kernels).fit(X, y).save(tmp_path / "iris.mkl")
        opened = load(tmp_path / "iris.mkl")
        assert "scores may be too good" in opened.report(X, y, folds=2).html
        honest = opened.report(X, y, folds=2, kernels=kernels)
        assert "scores may be too good" not in honest.html
        assert honest.assessment.refits[0].shares.size == 12

    def test_standard_kernels_are_whole(self, fitted, iris, tmp_path):
        fitted.save(tmp_path / "iris.mkl")
        assert "scores may be too good" not in load(tmp_path / "iris.mkl").report(*iris, folds=2, max_samples=50).html


def test_two_stages(iris):
    X = iris[0].to_numpy()
    model = TwoStageMKLRegressor([Gaussian(1.0), Linear()], random_state=0).fit(X[:, :3], X[:, 3])
    report = model.report(X[:, :3], X[:, 3], folds=2)
    assert f"learned by alignment with the target: {model.alignment_:.4f}" in report.html


def test_a_fit_without_a_tolerance(iris):
    X = iris[0].to_numpy()
    model = UFOMKLClassifier([Gaussian(1.0), Linear()], max_iter=3, random_state=0).fit(X, iris[1])
    page = model.report(X, iris[1], folds=2).html
    assert "The fit stopped after 3 iterations, as asked." in page
    assert "did not meet its tolerance" not in page


class TestBadInput:
    def test_of_the_model(self, iris):
        assert not hasattr(AlignedKernel(), "report")
        with pytest.raises(ValueError, match="A report needs a model with kernels that predicts, got StandardScaler"):
            make_report(StandardScaler(), *iris)
        with pytest.raises(ValueError, match="not fitted"):
            MKLClassifier().report(*iris)

    def test_of_the_data(self, fitted, iris):
        X, y = iris
        with pytest.raises(ValueError, match="X has 3 features, but the model was fitted on 4"):
            fitted.report(X.iloc[:, :3], y)
        with pytest.raises(ValueError, match="y holds the class 'rose', which the model does not know"):
            fitted.report(X, np.where(y == "setosa", "rose", y))
        with pytest.raises(ValueError, match="max_samples must be a whole number of at least 10"):
            fitted.report(X, y, max_samples=5)
        with pytest.raises(ValueError, match="X_test and y_test must be given together"):
            fitted.report(X, y, folds=2, X_test=X)
        with pytest.raises(ValueError, match="y must vary, but it is 'setosa' in every row"):
            fitted.report(X, np.full(150, "setosa"))
        with pytest.raises(ValueError, match="X must have rows and columns"):
            fitted.report(X.to_numpy()[:, 0].tolist(), y)

    def test_comes_before_the_fits(self, fitted, iris, tmp_path, monkeypatch):
        monkeypatch.setattr("manykernels.reports.html_report.assess", None)
        X, y = iris
        with pytest.raises(ValueError, match="feature_names must hold 4 names, one for each feature; got 2"):
            fitted.report(X, y, feature_names=["a", "b"])
        with pytest.raises(ValueError, match="path must be a file in a folder that exists"):
            fitted.report(X, y, tmp_path / "none" / "report.html")
        with pytest.raises(ValueError, match="X has 3 features"):
            fitted.report(X, y, X_test=X.iloc[:, :3], y_test=y)
        numbers = MKLRegressor([Linear()]).fit(X.to_numpy(), X.to_numpy()[:, 0])
        with pytest.raises(ValueError, match="y must vary, but it is 1 in every row"):
            numbers.report(X.to_numpy(), np.ones(150))
        with pytest.raises(ValueError, match="y must hold finite numbers"):
            numbers.report(X.to_numpy(), np.full(150, np.nan))


def test_tables_on_disk(tmp_path):
    rng = np.random.default_rng(0)
    X = np.memmap(tmp_path / "X", dtype=np.float64, mode="w+", shape=(300, 2))
    X[:] = rng.normal(size=(300, 2))
    y = X[:, 0] > 0
    model = MKLClassifier([Gaussian(1.0), Linear()], approximation=NystroemFeatures(20), random_state=0).fit(X, y)
    report = model.report(X, y, folds=2, max_samples=100)
    assert report.assessment.truth.size == 100
    assert report.assessment.model.score.value > 0.8


def test_matrices_one_by_one(iris):
    X = iris[0].to_numpy()
    model = MKLClassifier(KernelBank([Gaussian(1.0), Linear([2]), Gaussian(0.5)]), norm=2).fit(X, iris[1])
    stack = model.kernel_matrices(X[:10], [1, 2])
    np.testing.assert_allclose(stack[0], np.outer(X[:10, 2], X[:10, 2]))
    squares = ((X[:10, None] - X[None, :10]) ** 2).sum(axis=2)
    np.testing.assert_allclose(stack[1], np.exp(-squares / 0.5))
    with pytest.raises(ValueError, match="places must be of kernels in active_, got 7"):
        model.kernel_matrices(X[:10], [7])


@pytest.mark.parametrize("normalize", ["mean_diag", "cosine"])
def test_matrices_of_ladders_that_are_summed_on_nodes(iris, normalize):
    X = iris[0].to_numpy() + 1.0
    ladder = GaussianLadder([1, 2], low=0.1, high=10.0, count=50)
    model = MKLClassifier([ladder, Polynomial(2, coef0=0.0, columns=[0])], norm=2, normalize=normalize, C=0.1)
    model.fit(X, iris[1])
    few = np.vstack([X[:5], np.zeros(4)])
    few[:, 0] = 0.0  # so that one of the kernels is zero on these rows, of which nobody is told
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        stack = model.kernel_matrices(few, [0, 7])
    assert not np.any(stack[0])
    squares = ((few[:, None, 1:3] - few[None, :, 1:3]) ** 2).sum(axis=2)
    np.testing.assert_allclose(stack[1], np.exp(-squares / (2 * ladder.widths[6] ** 2)), atol=1e-12)
    for place in (51, -1):
        with pytest.raises(ValueError, match=f"places must be of kernels in active_, got {place}"):
            model.kernel_matrices(few, [0, place])


class TestColumnsOfKernels:
    def test_kernels_one_by_one(self, iris):
        X, y = iris[0].to_numpy(), iris[1]
        kernels = [Gaussian(1.0), Linear(columns=[2, 0]), Gaussian(0.5, columns=[3])]
        model = MKLClassifier(kernels, norm=np.inf).fit(X, y)
        assert [columns.tolist() for columns in model.kernel_columns([2, 0, 1])] == [[3], [0, 1, 2, 3], [0, 2]]
        with pytest.raises(ValueError, match="places must be of kernels in active_, got 7"):
            model.kernel_columns([7])

    def test_each_class_with_its_own_kernels(self, iris):
        X, y = iris[0].to_numpy(), iris[1]
        model = MKLClassifier([Gaussian(1.0, columns=[j]) for j in range(4)], shared_weights=False).fit(X, y)
        assert model.weights_.shape == (3, 4)
        active = np.flatnonzero(model.weights_.any(axis=0))
        assert [columns.tolist() for columns in model.kernel_columns(active)] == [[j] for j in active]

    def test_ladders_on_nodes_have_the_columns_of_their_group(self, iris):
        X, y = iris[0].to_numpy(), iris[1]
        ladders = [GaussianLadder(low=0.1, high=10.0, count=50, group="petal", columns=[j]) for j in (2, 3)]
        model = MKLClassifier([*ladders, Gaussian(1.0, columns=[0])], norm=2).fit(X, y)
        columns = dict(zip(model.active_.tolist(), model.kernel_columns(model.active_), strict=True))
        assert len(columns) == 101
        for k, name in enumerate(model.kernel_names_):
            assert columns[k].tolist() == ([0] if name.endswith("x0") else [2, 3])

    def test_a_product_has_those_of_the_learned_kernel(self, iris):
        X, y = iris[0].to_numpy()[:100], iris[1][:100]
        model = MKLClassifier([Gaussian(1.0, columns=[j]) for j in range(4)], combination="product").fit(X, y)
        for columns in model.kernel_columns(model.active_):
            np.testing.assert_array_equal(columns, range(4))


def test_balanced_classes_are_scored_alike():
    rng = np.random.default_rng(0)
    y = np.repeat(["common", "rare"], [100, 20])
    X = rng.normal(size=(120, 2)) + 1.5 * (y == "rare")[:, None]
    model = MKLClassifier([Gaussian(1.0), Gaussian(3.0)], class_weight="balanced").fit(X, y)
    report = model.report(X, y, folds=3, X_test=X, y_test=y)
    found = report.assessment
    assert found.metric == "balanced accuracy"
    for outcome in found.outcomes:
        assert outcome.score.value == pytest.approx(balanced_accuracy_score(y, outcome.predicted))
        assert outcome.beside["accuracy"] == pytest.approx(np.mean(outcome.predicted == y))
        assert outcome.score.low <= outcome.score.value <= outcome.score.high
        assert outcome.difference.value == pytest.approx(found.model.score.value - outcome.score.value)
    assert found.outcomes[-1].score.value == 0.5  # a constant prediction is no good here, however rare the class is
    assert "on average over the classes" in report.html
    assert f"balanced accuracy {100 * balanced_accuracy_score(y, model.predict(X)):.1f}%" in report.html


class TestNarrowKernels:
    @pytest.fixture
    def model(self, iris):
        kernels = [Gaussian(1e-4), Gaussian(1.0, columns=["petal length (cm)"]), Gaussian(1.0)]
        return MKLClassifier(kernels, norm=np.inf).fit(*iris)

    def test_count_for_no_view_and_no_feature(self, model, iris):
        found = describe(model, iris[0])
        np.testing.assert_array_equal(found.narrow, [True, False, False])
        assert found.too_narrow.share == pytest.approx(1 / 3)
        assert {part.name: part.share for part in found.by_view} == pytest.approx(
            {"petal length (cm)": 1 / 3, "all features": 1 / 3}
        )
        shares = {part.name: part.share for part in found.by_feature}
        assert shares["petal length (cm)"] == pytest.approx(1 / 3 + 1 / 12)
        assert shares["sepal width (cm)"] == pytest.approx(1 / 12)

    def test_are_flagged(self, model, iris):
        report = model.report(*iris, folds=2)
        text = Outline(report.html).text
        assert "1 kernel with 33.3% of the weight is so narrow that each row is alike only to itself" in text
        assert "too narrow to generalize" in text
        assert '"narrow":["yes","",""]' in report.html
        assert report.learned.too_narrow.refits == pytest.approx([1 / 3, 1 / 3])

    def test_that_share_a_name_have_columns_of_their_own(self):
        X = np.random.default_rng(0).normal(size=(60, 3))
        kernels = [Gaussian(width, columns=[j], label="one") for j, width in ((0, 1e-6), (1, 1e-6), (2, 1.0))]
        found = describe(MKLClassifier(kernels, norm=np.inf).fit(X, X[:, 2] > 0), X)
        np.testing.assert_array_equal(found.narrow, [True, True, False])
        assert {part.name: part.share for part in found.by_feature} == pytest.approx({"x2": 1 / 3, "x0": 0, "x1": 0})

    def test_of_a_ladder(self, iris):
        X, y = iris[0].to_numpy(), iris[1]
        model = MKLClassifier([GaussianLadder(low=1e-3, high=10.0, count=50)], norm=2).fit(X, y)
        found = describe(model, X)
        assert 5 < found.narrow.sum() < 45
        assert sum(part.share for part in found.by_feature) == pytest.approx(1 - found.too_narrow.share)


def test_lists_of_rows(iris):
    X = iris[0].to_numpy()
    model = MKLClassifier([Gaussian(1.0), Linear()]).fit(X, iris[1])
    assert model.report(X.tolist(), iris[1].tolist(), folds=2).assessment.model.score.value > 0.9


def test_facts_are_of_all_rows_that_were_given():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(120, 2)), np.arange(120) % 2
    X[:6, 1] = np.nan
    model = MKLClassifier([Linear([0]), Linear([1])], missing="ignore").fit(X, y)
    text = Outline(model.report(X, y, folds=2, max_samples=40).html).text
    assert "missing values 6" in text
    assert "0 (60), 1 (60)" in text


def test_features_of_one_name_are_taken_together(iris, fitted):
    found = describe(fitted, iris[0], feature_names=["sepal", "sepal", "petal", "petal"])
    parts = {part.name: part.share for part in found.by_feature}
    assert parts == pytest.approx({"petal": fitted.feature_importances_[2:].sum(), "sepal": 1 - parts["petal"]})


def test_a_chart_says_how_many_points_it_has():
    x = np.random.default_rng(0).normal(size=(1800, 1))
    page = MKLRegressor([Linear()]).fit(x, x[:, 0]).report(x, x[:, 0], folds=2).html
    assert "1,500 of 1,800 points;" in page
