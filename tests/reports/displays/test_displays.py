"""Displays: what is drawn is what the models say, for few and for very many kernels, in light and in dark styles."""

import builtins
from functools import cache

import matplotlib as mpl
import numpy as np
import pytest
from matplotlib import pyplot as plt
from sklearn.base import clone
from sklearn.datasets import load_wine
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from manykernels import (
    AlignedKernel,
    MKLClassifier,
    MKLRegressor,
    TwoStageMKLClassifier,
    UFOMKLClassifier,
    mkl_path,
    ufo_path,
)
from manykernels.core.results import Step
from manykernels.kernels import Gaussian, KernelBank, Linear
from manykernels.norms import LpPenalty
from manykernels.reports import (
    ContributionsDisplay,
    ConvergenceDisplay,
    KernelWeightsDisplay,
    LearnedKernelDisplay,
    PathDisplay,
)
from manykernels.reports.displays.common import HATCHES, MOST_SERIES, shortened

mpl.use("agg")
X, y = load_wine(return_X_y=True, as_frame=True)
Z = StandardScaler().set_output(transform="pandas").fit_transform(X)
VIEWS = [Gaussian(3.0, columns=[name], group="acid" if "acid" in name else "other") for name in list(X)[:9]]
KERNELS = [*VIEWS, Linear()]


@pytest.fixture(autouse=True)
def _close_figures():
    yield
    plt.close("all")


@pytest.fixture(scope="module")
def model():
    return MKLClassifier(KERNELS, norm=2.0).fit(Z, y)


@pytest.fixture(scope="module")
def own_weights():
    return MKLClassifier(KERNELS, norm=2.0, shared_weights=False).fit(Z, y)


@pytest.fixture(scope="module")
def regressor():
    return MKLRegressor(KERNELS, norm=2.0).fit(Z, 100.0 + X["hue"] * X["ash"])


@cache
def short_path():
    return ufo_path(KERNELS, Z, y, n_alphas=2, random_state=0)


def many(n_kernels=10_000, n_groups=50):
    weights = np.random.default_rng(0).exponential(size=n_kernels) ** 4
    weights[::2] = 0.0
    names = [f"Gaussian(width={k}) on column {k % n_groups}" for k in range(n_kernels)]
    groups = [f"column {k % n_groups}" for k in range(n_kernels)]
    return KernelWeightsDisplay(weights=weights / weights.sum(), names=names, groups=groups)


def labels(axis):
    return [label.get_text() for label in axis.get_ticklabels()]


def widths(ax):
    return [patch.get_width() for patch in ax.patches]


def overlaps(figure, texts):
    """Return whether two of the texts lie on top of each other once the figure is drawn."""
    figure.canvas.draw()
    boxes = [text.get_window_extent() for text in texts if text.get_text()]
    return any(a.overlaps(b) for i, a in enumerate(boxes) for b in boxes[:i])


class TestWeights:
    def test_ten_kernels_have_a_bar_each(self, model):
        display = KernelWeightsDisplay.from_estimator(model)
        order = np.argsort(-model.weights_, kind="stable")
        assert labels(display.ax_.yaxis) == [model.kernel_names_[k] for k in order]
        np.testing.assert_allclose(widths(display.ax_), model.weights_[order])
        assert list(display.axes_) == ["kernels"]
        assert {text.get_text() for text in display.ax_.get_legend().get_texts()} == {"acid", "other", "all features"}

    def test_a_group_has_one_color(self, model):
        display = KernelWeightsDisplay.from_estimator(model)
        colors = {}
        for bar, patch in zip(display.bars_, display.ax_.patches, strict=True):
            colors.setdefault(bar.group, set()).add(patch.get_facecolor())
        assert all(len(own) == 1 for own in colors.values())
        assert len(set.union(*colors.values())) == 3

    def test_kernels_of_weight_zero_have_a_name_where_all_have(self):
        display = KernelWeightsDisplay(weights=[0.0, 1.0], names=["zero", "one"], groups=["g", "g"]).plot()
        assert labels(display.ax_.yaxis) == ["one", "zero"]
        assert display.ax_.get_legend() is None
        assert display.ax_.get_title(loc="left") == "1 of 2 kernels with a positive weight"

    def test_of_ten_thousand_the_rest_is_summed(self):
        display = many().plot(max_kernels=15)
        single, sums = widths(display.axes_["kernels"]), widths(display.axes_["sums"])
        assert (len(single), len(sums)) == (15, 6)
        assert sum(single) + sum(sums) == pytest.approx(1.0)
        assert single == sorted(np.sort(display.weights)[-15:], reverse=True)
        assert "more in 20 groups" in labels(display.axes_["sums"].yaxis)[-1]
        for ax in display.axes_.values():
            assert not overlaps(display.figure_, ax.get_yticklabels())

    def test_weights_of_one_class_or_their_mean(self, own_weights):
        display = KernelWeightsDisplay.from_estimator(own_weights)
        np.testing.assert_allclose(display.weights, own_weights.weights_.mean(axis=0))
        display = KernelWeightsDisplay.from_estimator(own_weights, task=2)
        np.testing.assert_allclose(display.weights, own_weights.weights_[2])
        with pytest.raises(ValueError, match="task must be from 0 to 2"):
            KernelWeightsDisplay.from_estimator(own_weights, task=3)

    def test_pipelines_and_searches_show_their_last_step(self, model):
        pipeline = make_pipeline(StandardScaler().set_output(transform="pandas"), clone(model)).fit(X, y)
        display = KernelWeightsDisplay.from_estimator(pipeline)
        np.testing.assert_allclose(display.weights, pipeline[-1].weights_)
        search = GridSearchCV(pipeline, {"mklclassifier__C": [1.0]}, cv=2).fit(X, y)
        np.testing.assert_allclose(KernelWeightsDisplay.from_estimator(search).weights, display.weights)

    def test_wrong_arguments(self, model):
        with pytest.raises(ValueError, match="have the same length"):
            KernelWeightsDisplay(weights=[1.0], names=["a", "b"], groups=["g"])
        with pytest.raises(ValueError, match="max_kernels"):
            KernelWeightsDisplay.from_estimator(model, max_kernels=0)
        with pytest.raises(NotFittedError):
            KernelWeightsDisplay.from_estimator(MKLClassifier())
        with pytest.raises(TypeError, match="LogisticRegression"):
            KernelWeightsDisplay.from_estimator(LogisticRegression().fit(Z, y))


class TestConvergence:
    def test_the_gap_falls_below_the_tolerance(self, model):
        display = ConvergenceDisplay.from_estimator(model)
        (line,) = display.lines_
        np.testing.assert_allclose(line.get_ydata(), [step.gap for step in model.trace_])
        np.testing.assert_allclose(line.get_xdata(), [step.seconds for step in model.trace_])
        tolerance = display.ax_.lines[-1].get_ydata()[0]
        assert line.get_ydata()[-1] <= tolerance == model.tol
        assert display.ax_.get_yscale() == "log"

    def test_several_estimators_share_axes_and_the_tolerance(self, model, own_weights):
        first = ConvergenceDisplay.from_estimator(model, name="shared")
        second = ConvergenceDisplay.from_estimator(own_weights, name="one by one", ax=first.ax_)
        assert second.ax_ is first.ax_
        assert len(second.lines_) == 3  # a class each, in one color
        assert len({line.get_color() for line in second.lines_}) == 1 != first.lines_[0].get_color()
        texts = [text.get_text() for text in second.ax_.get_legend().get_texts()]
        assert texts == ["shared", "tolerance 0.001", "one by one"]

    def test_an_exact_certificate_is_drawn_at_the_bottom(self):
        steps = [Step(1, 0.1, 1.0, 0.5, 3, 1e-3), Step(2, 0.2, 1.0, -1e-18, 3, 1e-3)]
        display = ConvergenceDisplay(traces=[steps]).plot()
        assert display.lines_[0].get_ydata().tolist() == [0.5, 1e-16]

    def test_two_stages_have_a_gap_of_the_alignment(self, model):
        fitted = TwoStageMKLClassifier(KERNELS).fit(Z, y)
        display = ConvergenceDisplay.from_estimator(fitted)
        assert display.lines_[0].get_ydata()[-1] == pytest.approx(fitted.alignment_bound_ - fitted.alignment_)
        assert display.ax_.get_ylabel() == "gap of the alignment"
        assert ConvergenceDisplay.from_estimator(model).ax_.get_ylabel() == "relative gap"
        assert ConvergenceDisplay.from_estimator(model, ax=display.ax_).ax_.get_ylabel() == "gap"

    @pytest.mark.filterwarnings("ignore:MKLClassifier stopped")
    def test_a_fit_without_a_gap_is_refused(self):
        fitted = MKLClassifier(combination="product", norm=LpPenalty(1), max_iter=3).fit(Z, y)
        with pytest.raises(ValueError, match="no duality gap"):
            ConvergenceDisplay.from_estimator(fitted)


class TestPath:
    def test_alpha(self):
        path = ufo_path(KERNELS, Z[::2], y[::2], n_alphas=3, random_state=0)
        display = PathDisplay.from_path(path, Z[1::2], y[1::2])
        assert list(display.ax_.lines[0].get_ydata()) == [point.n_kernels for point in path]
        np.testing.assert_allclose(display.ax_.lines[0].get_xdata(), [point.alpha for point in path])
        expected = [point.model.score(Z[1::2], y[1::2]) for point in path]
        np.testing.assert_allclose(display.axes_["score"].lines[0].get_ydata(), expected)
        assert display.axes_["weights"].get_xlabel() == "alpha"
        assert display.ax_.get_xscale() == "log"

    def test_weights_of_the_largest_kernels_and_the_sum_of_the_others(self):
        path = mkl_path(KERNELS, Z, y, Cs=[0.1, 1.0, 10.0], norms=[2.0])
        display = PathDisplay.from_path(path, max_kernels=3)
        assert list(display.axes_) == ["kernels", "weights"]
        lines = display.axes_["weights"].lines
        assert len(lines) == 4
        total = np.sum([line.get_ydata() for line in lines], axis=0)
        np.testing.assert_allclose(total, [point.model.weights_.sum() for point in path])
        largest = max(path[1].model.weights_)
        assert largest in lines[0].get_ydata()
        assert lines[-1].get_label() == "sum of 7 others"

    @pytest.mark.parametrize(("along", "names"), [(None, ["norm 1", "norm 2"]), ("norm", ["C 0.1", "C 1", "C 10"])])
    def test_two_parameters_make_several_curves(self, along, names):
        path = mkl_path(KERNELS, Z, y, Cs=[0.1, 1.0, 10.0], norms=[1.0, 2.0])
        display = PathDisplay.from_path(path, Z, y, along=along)
        assert [line.get_label() for line in display.ax_.lines] == names
        assert "weights" not in display.axes_
        if along == "norm":
            assert labels(display.axes_["score"].xaxis) == ["1", "2"]

    def test_norms_of_any_kind_are_evenly_spaced(self):
        path = mkl_path(KERNELS, Z, y, Cs=[1.0], norms=[1.0, 2.0, np.inf])
        display = PathDisplay.from_path(path)
        assert display.parameter == "norm"
        assert labels(display.axes_["weights"].xaxis) == ["1", "2", "inf"]
        # With the last norm all weights are 1: the largest share tells more.
        best = int(path[0].model.weights_.argmax())
        assert display.axes_["weights"].lines[0].get_label() == path[0].model.kernel_names_[best]
        assert list(display.ax_.lines[0].get_xdata()) == [0, 1, 2]

    def test_panels_in_the_place_of_given_axes(self):
        path = short_path()
        figure, (left, right) = plt.subplots(1, 2)
        display = PathDisplay.from_path(path, ax=right)
        assert display.figure_ is figure
        assert not right.axison
        assert len(figure.axes) == 5  # the two, two panels and the names of kernels
        display.plot(right)
        assert len(figure.axes) == 5
        figure.canvas.draw()
        assert display.ax_.get_position().x0 > left.get_position().x1

    def test_wrong_arguments(self):
        path = short_path()
        with pytest.raises(ValueError, match="together"):
            PathDisplay.from_path(path, Z)
        with pytest.raises(ValueError, match="empty"):
            PathDisplay.from_path([])
        with pytest.raises(ValueError, match="along must be 'alpha'"):
            PathDisplay.from_path(path, along="C")
        with pytest.raises(ValueError, match="inconsistent numbers of samples"):
            PathDisplay.from_path(path, Z, y[:5])
        with pytest.raises(ValueError, match="max_kernels == -1"):
            PathDisplay.from_path(path, max_kernels=-1)


class TestLearnedKernel:
    def test_samples_are_in_the_order_of_their_classes(self, model):
        order = np.random.default_rng(0).permutation(len(y))
        shuffled, target = Z.iloc[order], y.iloc[order]
        display = LearnedKernelDisplay.from_estimator(model, shuffled, target)
        assert np.all(np.diff(target.to_numpy()[display.order_]) >= 0)
        sorted_rows = shuffled.iloc[display.order_]
        np.testing.assert_allclose(display.image_.get_array(), model.kernel(sorted_rows))
        assert labels(display.ax_.xaxis) == ["0", "1", "2"]
        ends = np.cumsum(np.bincount(y))[:-1] - 0.5
        assert sorted({line.get_ydata()[0] for line in display.ax_.lines} - {0}) == pytest.approx(ends.tolist())

    def test_values_of_a_target(self, regressor):
        target = 100.0 + X["hue"] * X["ash"]
        display = LearnedKernelDisplay.from_estimator(regressor, Z, target)
        assert not display.ax_.lines
        assert float(labels(display.ax_.xaxis)[0]) == pytest.approx(target.min(), rel=0.01)

    def test_many_samples_are_thinned(self, own_weights):
        display = LearnedKernelDisplay.from_estimator(own_weights, Z, y, max_samples=50, task=1)
        assert display.kernel.shape == (50, 50)
        again = LearnedKernelDisplay.from_estimator(own_weights, Z, y, max_samples=50, task=1)
        np.testing.assert_array_equal(display.kernel, again.kernel)
        other = LearnedKernelDisplay.from_estimator(own_weights, Z, y, max_samples=50, task=2)
        assert not np.allclose(display.kernel, other.kernel)

    def test_pipelines_precomputed_kernels_and_transformers(self, model):
        pipeline = make_pipeline(StandardScaler().set_output(transform="pandas"), clone(model)).fit(X, y)
        display = LearnedKernelDisplay.from_estimator(pipeline, X, y)
        np.testing.assert_allclose(display.kernel, pipeline[-1].kernel(Z))
        bank = KernelBank.from_arrays(display.kernel[None])
        numbers = np.arange(len(y))[:, None]
        by_number = LearnedKernelDisplay.from_estimator(MKLClassifier(bank).fit(numbers, y), numbers, y)
        assert np.corrcoef(by_number.kernel.ravel(), display.kernel.ravel())[0, 1] == pytest.approx(1.0)
        LearnedKernelDisplay.from_estimator(AlignedKernel(KERNELS).fit(Z, y), Z, y)
        with pytest.raises(ValueError, match="kernel must be of shape"):
            LearnedKernelDisplay(kernel=np.eye(3), y=[0, 1])

    def test_wrong_arguments(self, model):
        with pytest.raises(ValueError, match="inconsistent numbers of samples"):
            LearnedKernelDisplay.from_estimator(model, Z, y[:100], max_samples=50)
        for limit in (-1, 0):
            with pytest.raises(ValueError, match="max_samples"):
                LearnedKernelDisplay.from_estimator(model, Z, y, max_samples=limit)
        with pytest.raises(TypeError, match="max_samples must be an instance of int"):
            LearnedKernelDisplay.from_estimator(model, Z, y, max_samples=2.5)


class TestContributions:
    def test_the_bars_lead_from_the_intercept_to_the_decision(self, model):
        display = ContributionsDisplay.from_estimator(model, Z, row=7, task=1)
        names, starts, ends = zip(*display.steps_, strict=True)
        assert (names[0], names[-1]) == ("intercept", "decision value")
        assert ends[0] == pytest.approx(model.intercept_[1])
        assert ends[-1] == pytest.approx(model.decision_function(Z.iloc[[7]])[0, 1])
        np.testing.assert_allclose(starts[1:-1], ends[:-2])
        sizes = np.abs(np.subtract(ends, starts))[1:-1]
        assert np.all(np.diff(sizes) <= 0)
        np.testing.assert_allclose(np.abs(widths(display.ax_)), sizes)
        assert "class 1" in display.ax_.get_title(loc="left")

    def test_parts_without_a_bar_are_summed(self, model):
        display = ContributionsDisplay.from_estimator(model, Z, max_parts=3)
        assert [name for name, _, _ in display.steps_][-2:] == ["7 others", "decision value"]
        whole = ContributionsDisplay.from_estimator(model, Z, max_parts=9)
        assert len(whole.steps_) == 12  # a tenth bar rather than the sum of one
        assert display.steps_[-1][2] == pytest.approx(whole.steps_[-1][2])

    def test_groups_regression_and_no_kernel(self, regressor):
        display = ContributionsDisplay.from_estimator(regressor, Z, row=3, by="group")
        assert {name for name, _, _ in display.steps_} == {
            "intercept",
            "acid",
            "other",
            "all features",
            "prediction",
        }
        low, high = display.ax_.get_xlim()
        assert 0 < low < regressor.predict(Z.iloc[[3]])[0] < high  # 0 is far off
        alone = UFOMKLClassifier(KERNELS, alpha=100.0).fit(Z, y)
        assert len(ContributionsDisplay.from_estimator(alone, Z).steps_) == 2

    def test_figures_are_not_rounded_to_zero_and_hide_lines(self):
        display = ContributionsDisplay(values=[3.0, -4e-4, 1e-7, 0.0], names=list("abcd"), intercept=-2e-5).plot()
        figures = [text.get_text() for text in display.ax_.texts]
        assert figures == ["-2e-05", "+3.00", "-0.0004", "+1e-07", "+0.00", "3.00"]
        background = mpl.colors.to_rgba(plt.rcParams["axes.facecolor"])
        assert {text.get_bbox_patch().get_facecolor() for text in display.ax_.texts} == {background}

    def test_ten_thousand_parts(self):
        rng = np.random.default_rng(0)
        names = [f"a kernel with quite a long name on column {k}" for k in range(10_000)]
        display = ContributionsDisplay(values=rng.normal(size=10_000), names=names, intercept=1.0).plot()
        assert len(display.steps_) == 15
        assert not overlaps(display.figure_, [*display.ax_.get_yticklabels(), *display.ax_.texts])

    def test_wrong_arguments(self, model):
        with pytest.raises(ValueError, match="by must be"):
            ContributionsDisplay.from_estimator(model, Z, by="view")
        with pytest.raises(ValueError, match="task must be from 0 to 2"):
            ContributionsDisplay.from_estimator(model, Z, task=3)
        with pytest.raises(ValueError, match="max_parts"):
            ContributionsDisplay.from_estimator(model, Z, max_parts=0)


def _drawn(model, regressor):
    return [
        KernelWeightsDisplay.from_estimator(model),
        many().plot(),
        ConvergenceDisplay.from_estimator(model),
        PathDisplay.from_path(short_path()),
        LearnedKernelDisplay.from_estimator(model, Z, y),
        ContributionsDisplay.from_estimator(regressor, Z),
    ]


@pytest.mark.parametrize("style", ["default", "dark_background", "grayscale", "ggplot"])
def test_nothing_has_the_color_of_its_background(style, model, regressor):
    with plt.style.context(style):
        for display in _drawn(model, regressor):
            for ax in getattr(display, "axes_", {"": display.ax_}).values():
                background = mpl.colors.to_rgb(ax.get_facecolor())
                inside = [*ax.lines, *ax.patches]
                colors = [
                    mpl.colors.to_rgb(getattr(a, "get_facecolor", getattr(a, "get_color", None))()) for a in inside
                ]
                assert all(np.abs(np.subtract(color, background)).max() > 0.1 for color in colors)
            display.figure_.canvas.draw()


def test_given_axes_are_used(model, regressor):
    _, axes = plt.subplots(2, 2)
    displays = [
        KernelWeightsDisplay.from_estimator(model, ax=axes[0, 0]),
        ConvergenceDisplay.from_estimator(model, ax=axes[0, 1]),
        LearnedKernelDisplay.from_estimator(model, Z, y, ax=axes[1, 0]),
        ContributionsDisplay.from_estimator(regressor, Z, ax=axes[1, 1]),
    ]
    assert [display.ax_ for display in displays] == axes.ravel().tolist()


def _in_subplots():
    return plt.subplots()[1]


def _in_subfigure():
    return plt.figure().subfigures().subplots()


def _by_hand():
    return plt.figure().add_axes([0.4, 0.1, 0.55, 0.8])


def _beside_constrained():
    figure, _ = plt.subplots(layout="constrained")
    return figure.add_axes([0.4, 0.1, 0.55, 0.8])


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("axes", [_in_subplots, _in_subfigure, _by_hand, _beside_constrained])
@pytest.mark.parametrize("what", ["weights", "path"])
def test_panels_are_readable_in_given_axes(axes, what, model):
    ax = axes()
    if what == "weights":
        display = KernelWeightsDisplay.from_estimator(model, max_kernels=4, ax=ax)
    else:
        path = mkl_path(KERNELS, Z, y, Cs=[0.1, 1.0], norms=[2.0])
        display = PathDisplay.from_path(path, Z, y, max_kernels=4, ax=ax)
    names = ax.figure.axes[-1].get_legend()
    panels = list(display.axes_.values())
    ax.figure.canvas.draw()
    whole = ax.figure.canvas.figure.bbox
    parts = [names.get_window_extent(), *(panel.get_tightbbox() for panel in panels)]
    assert all(whole.x0 <= part.x0 and part.x1 <= whole.x1 for part in parts)
    assert all(whole.y0 <= part.y0 and part.y1 <= whole.y1 for part in parts)
    texts = [text for panel in panels for text in (panel.title, panel._left_title, panel.xaxis.label)]
    assert not overlaps(ax.figure, [*texts, *names.get_texts()])
    if axes in (_by_hand, _beside_constrained):
        box = ax.get_position()
        assert all(box.y0 - 1e-9 <= panel.get_position().y0 for panel in panels)


def test_one_panel_takes_the_place_of_earlier_ones(model):
    figure, ax = plt.subplots()
    display = KernelWeightsDisplay.from_estimator(model, max_kernels=4, ax=ax)
    assert len(figure.axes) == 4
    display.plot(ax, max_kernels=20)
    assert figure.axes == [ax] == [display.ax_]
    assert ax.axison


def test_patterns_tell_all_series_apart():
    assert len(set(HATCHES)) == MOST_SERIES


def test_names_are_cut_in_the_middle_and_are_no_formulas():
    assert shortened("short") == "short"
    assert shortened("0123456789", 5) == "01…89"
    assert len(shortened("x" * 100, 40)) == 40
    display = KernelWeightsDisplay(weights=[1.0], names=["price in $ of $_{"], groups=["g"]).plot()
    display.figure_.canvas.draw()


def test_without_matplotlib_the_error_says_what_to_install(model, monkeypatch):
    original = builtins.__import__

    def without(name, *arguments, **options):
        if name.startswith("matplotlib"):
            raise ImportError(name)
        return original(name, *arguments, **options)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(ImportError, match=r'pip install "manykernels\[plot\]"'):
        KernelWeightsDisplay.from_estimator(model)
