"""Bad input and early ends: one sentence that names the argument, and nothing half-fitted afterwards."""

import itertools
import re
import warnings

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.exceptions import ConvergenceWarning, NotFittedError

from manykernels import (
    AlignedKernel,
    MKLClassifier,
    MKLClassifierCV,
    MKLRegressor,
    TwoStageMKLClassifier,
    TwoStageMKLRegressor,
    UFOMKLClassifier,
    UFOMKLRegressor,
    mkl_path,
    ufo_path,
)
from manykernels.compute.memory import human_bytes
from manykernels.core.progress import listen
from manykernels.estimators import running
from manykernels.kernels import (
    Gaussian,
    GaussianFamily,
    GaussianLadder,
    Kernel,
    KernelBank,
    Linear,
    Polynomial,
    Precomputed,
)
from tests.estimators.refusals import ALL_ZERO

RNG = np.random.default_rng(0)
X = RNG.standard_normal((40, 3))
Y = np.where(X[:, 0] * X[:, 1] + 0.3 * RNG.standard_normal(40) > 0, 1, -1)
TARGET = X[:, 0] + X[:, 1] ** 2
KERNELS = [Gaussian(0.5), Gaussian(2.0), Linear(), Polynomial(2)]


def with_value(array, value):
    changed = np.array(array, dtype=float)
    changed.flat[5] = value
    return changed


def assert_refuses(call, names, error=(ValueError, TypeError)):
    """Refused in one sentence that names the argument."""
    with pytest.raises(error) as caught:
        call()
    message = str(caught.value)
    assert names in message, message
    assert "\n" not in message
    assert message.endswith((".", "?")), message
    assert re.search(r"[a-z]\. [A-Z]", message) is None, f"more than one sentence: {message}"


# -- parameters --------------------------------------------------------------------------------------------

FOR_BOTH = [
    {"C": 0},
    {"C": -1.0},
    {"C": np.nan},
    {"C": np.inf},
    {"C": "1"},
    {"C": None},
    {"C": True},
    {"tol": 0},
    {"tol": -1e-3},
    {"tol": np.nan},
    {"max_iter": 0},
    {"max_iter": 2.5},
    {"max_iter": "many"},
    {"norm": 0.5},
    {"norm": np.nan},
    {"norm": "2"},
    {"norm": None},
    {"norm": True},
    {"loss": "cauchy"},
    {"solver": "magic"},
    {"normalize": "max"},
    {"combination": "product of sums"},
    {"device": "abacus"},
    {"memory_budget": "plenty"},
    {"memory_budget": -1},
    {"memory_budget": np.inf},
    {"memory_budget": [1]},
    {"kernels": "unknown"},
    {"kernels": []},
    {"kernels": None},
    {"kernels": 3},
    {"kernels": Gaussian(1.0)},
    {"kernels": ["gaussian"]},
    {"kernels": [Gaussian]},
]
CLASSIFIER = [
    {"approximation": "ovo"},
    {"n_jobs": "dask"},
    {"n_jobs": 0},
    {"n_jobs": 1.5},
    {"class_weight": {-1: -1.0, 1: 1.0}},
    {"class_weight": {-1: np.nan, 1: 1.0}},
    {"class_weight": {-1: 0.0, 1: 0.0}},
]
REGRESSOR = [{"epsilon": value} for value in (-0.1, np.nan, np.inf, "wide", None)]


def shown(parameters):
    return repr(parameters)


@pytest.mark.parametrize("parameters", FOR_BOTH + CLASSIFIER, ids=shown)
def test_parameters_of_the_classifier(parameters):
    (name,) = parameters
    assert_refuses(lambda: MKLClassifier(**({"kernels": KERNELS} | parameters)).fit(X, Y), name)


@pytest.mark.parametrize("parameters", FOR_BOTH + REGRESSOR, ids=shown)
def test_parameters_of_the_regressor(parameters):
    (name,) = parameters
    assert_refuses(lambda: MKLRegressor(**({"kernels": KERNELS} | parameters)).fit(X, TARGET), name)


@pytest.mark.parametrize("class_weight", ["uneven", {5: 1.0}, [1.0, 2.0]], ids=repr)
def test_class_weights_that_fit_no_class(class_weight):
    with pytest.raises((ValueError, TypeError), match="class_weight"):
        MKLClassifier(KERNELS, class_weight=class_weight).fit(X, Y)


@pytest.mark.parametrize(
    "settings",
    [
        {"kernels": [GaussianLadder(low=0.5, high=2.0, count=5)]},
        {"kernels": [Gaussian(1.0)], "combination": "product"},
        {"kernels": [Gaussian(1.0)], "approximation": "nystroem"},
        {"kernels": GaussianFamily(0.5, 2.0)},
    ],
    ids=shown,
)
@pytest.mark.parametrize("normalize", ["nonsense", ["trace"], 1], ids=shown)
def test_an_unknown_normalization_is_refused_however_kernels_are_held(settings, normalize):
    assert_refuses(lambda: MKLClassifier(**settings, normalize=normalize).fit(X, Y), "normalize must be")


@pytest.mark.parametrize(
    "kind", [MKLClassifier, MKLRegressor, UFOMKLClassifier, TwoStageMKLClassifier, AlignedKernel, MKLClassifierCV]
)
def test_an_unknown_normalization_is_refused_by_all_estimators(kind):
    assert_refuses(lambda: kind(KERNELS, normalize="nonsense").fit(X, Y), "normalize must be")


def test_constructors_store_and_do_not_judge():
    """scikit-learn's rule: a grid may set anything, and fit tells."""
    assert MKLClassifier(C=-1, norm="x").get_params().items() >= {"C": -1, "norm": "x"}.items()


# -- data --------------------------------------------------------------------------------------------------

# scikit-learn's own checks of X and y: its words, several sentences, but the argument is named.
BAD_DATA = {
    "NaN in X": (with_value(X, np.nan), Y, "X contains NaN"),
    "infinity in X": (with_value(X, np.inf), Y, "X contains infinity"),
    "NaN in sparse X": (sp.csr_matrix(with_value(X, np.nan)), Y, "X contains NaN"),
    "no samples": (np.empty((0, 3)), np.empty(0), "0 sample"),
    "no features": (np.empty((40, 0)), Y, r"0 feature\(s\)"),
    "flat X": (X[:, 0], Y, "2D array"),
    "cube X": (np.zeros((40, 3, 2)), Y, "dim 3"),
    "lengths": (X, Y[:-1], "inconsistent numbers of samples"),
    "cube y": (X, np.zeros((40, 2, 2)), "dim 3"),
    "NaN in table y": (X, with_value(np.column_stack([Y, Y]), np.nan), "y contains NaN"),
    "text X": (np.full((40, 3), "a"), Y, "could not convert"),
    "complex X": (X + 1j, Y, "Complex data"),
    "NaN in y": (X, with_value(Y, np.nan), "y contains NaN"),
}


@pytest.mark.parametrize("case", BAD_DATA)
@pytest.mark.parametrize("estimator", [MKLClassifier, MKLRegressor])
def test_bad_data(estimator, case):
    data, y, words = BAD_DATA[case]
    with pytest.raises(ValueError, match=words):
        estimator(KERNELS).fit(data, y)


@pytest.mark.parametrize("y", [np.ones(40), ["only"] * 40, np.zeros(40, bool)], ids=["number", "text", "bool"])
def test_one_class(y):
    assert_refuses(lambda: MKLClassifier(KERNELS).fit(X, y), "y must hold at least 2 classes, got 1 class")


def test_a_label_is_shown_as_a_person_writes_it():
    with pytest.raises(ValueError, match=r"1 class: 7\.?$"):
        MKLClassifier(KERNELS).fit(X, np.full(40, 7))


def test_a_continuous_target_is_for_the_regressor():
    with pytest.raises(ValueError, match="continuous"):
        MKLClassifier(KERNELS).fit(X, TARGET)
    with pytest.raises(ValueError, match="could not convert string"):
        MKLRegressor(KERNELS).fit(X, np.where(Y > 0, "a", "b"))


# The words are scikit-learn's, but for weights that are all zero.
SAMPLE_WEIGHTS = {
    "negative": (-np.ones(40), "Negative values in data passed to `sample_weight`"),
    "one negative": (with_value(np.ones(40), -1.0), "Negative values in data passed to `sample_weight`"),
    "NaN": (with_value(np.ones(40), np.nan), "sample_weight contains NaN"),
    "infinite": (with_value(np.ones(40), np.inf), "sample_weight contains infinity"),
    "short": (np.ones(39), r"sample_weight.shape == \(39,\), expected \(40,\)"),
    "table": (np.ones((40, 2)), "Sample weights must be 1D array or scalar"),
    "zero": (np.zeros(40), ALL_ZERO),
}


@pytest.mark.parametrize("case", SAMPLE_WEIGHTS)
@pytest.mark.parametrize("estimator", [MKLClassifier, MKLRegressor])
def test_bad_sample_weights(estimator, case):
    weight, words = SAMPLE_WEIGHTS[case]
    with pytest.raises(ValueError, match=words):
        estimator(KERNELS).fit(X, Y, sample_weight=weight)


def test_weights_that_leave_one_class():
    assert_refuses(
        lambda: MKLClassifier(KERNELS).fit(X, Y, sample_weight=(Y > 0) * 1.0), "y must hold at least 2 classes"
    )


# -- kernels -----------------------------------------------------------------------------------------------


class Raw(Kernel):
    """A kernel from any function."""

    def __init__(self, function, columns=None, label=None):
        super().__init__(columns, label=label)
        self.function = function

    def compute(self, X, Z):
        return self.function(X, Z)


NUMBERS = np.arange(40)[:, None]
BAD_KERNELS = {
    "skew": ([Raw(lambda A, B: A[:, :1] + 0 * B[:, :1].T + 9, label="culprit")], X, "culprit"),
    "indefinite": ([Raw(lambda A, B: 1 - np.abs(A[:, :1] - B[:, :1].T), label="culprit")], X, "culprit"),
    "NaN": ([Raw(lambda A, B: np.full((len(A), len(B)), np.nan), label="culprit")], X, "culprit"),
    "shape": ([Raw(lambda A, B: np.ones(3), label="culprit")], X, "culprit"),
    "indefinite matrix": (
        KernelBank.from_arrays([np.eye(40), np.eye(40) - 0.5], names=["a", "culprit"]),
        NUMBERS,
        "culprit",
    ),
    "position": ([Gaussian(1.0, columns=[3])], X, "columns"),
    "name in an array": ([Gaussian(1.0, columns=["age"])], X, "columns"),
    "near miss": ([Gaussian(1.0, columns=["agee"])], pd.DataFrame(X, columns=["age", "b", "c"]), "did you mean 'age'"),
    "sample numbers": ([Precomputed(np.eye(39))], NUMBERS, "sample numbers from 0 to 38"),
    "features for sample numbers": ([Precomputed(np.eye(40))], X[:, :1], "sample numbers"),
    "several columns of sample numbers": ([Precomputed(np.eye(40))], X, "columns"),
    "all zero": ([Linear(columns=[0])], np.column_stack([np.zeros(40), X]), "kernel"),
}


@pytest.mark.parametrize("case", BAD_KERNELS)
def test_bad_kernels(case):
    kernels, data, names = BAD_KERNELS[case]
    assert_refuses(lambda: MKLClassifier(kernels).fit(data, Y), names)


def test_zero_and_duplicate_kernels_are_only_worth_a_word():
    data = np.column_stack([X, np.zeros(40)])
    with pytest.warns(UserWarning, match="kernels are zero|are the same") as caught:
        model = MKLClassifier([Linear(columns=[3]), Gaussian(1.0), Gaussian(1.0)], norm=2).fit(data, Y)
    words = " ".join(str(warning.message) for warning in caught)
    assert "Linear on x3" in words
    assert "Kernels 1 and 2 are the same (Gaussian(width=1) on all features)" in words
    assert model.weights_[0] == 0.0


def test_warnings_point_at_the_line_that_calls_fit():
    """Else Python shows the library's own line, and shows it once for all fits."""
    with pytest.warns(UserWarning, match="are the same|are zero|stopped after") as caught:
        MKLClassifier(
            [Gaussian(1.0), Gaussian(1.0), Linear(columns=[3])], solver="group_lasso", max_iter=1, tol=1e-12
        ).fit(np.column_stack([X, np.zeros(40)]), Y)
    assert len(caught) == 3  # duplicates, a zero kernel, no convergence
    assert {warning.filename for warning in caught} == {__file__}


def test_not_enough_memory_is_said_in_numbers():
    with pytest.raises((MemoryError, ValueError), match=r"^memory_budget is 1 kB, .* 40 samples .* kB\.$"):
        MKLClassifier(KERNELS, memory_budget="1kB").fit(X, Y)


@pytest.mark.parametrize("loss", ["hinge", "logistic"])
def test_every_budget_does_or_is_refused_by_its_own_number(loss):
    """From too little to plenty, with no budget in between that fails in another way."""
    outcomes = []
    for budget in range(8_000, 60_000, 2_000):
        try:
            model = MKLClassifier(KERNELS, norm=2, loss=loss, memory_budget=budget).fit(X, Y)
        except (MemoryError, ValueError) as error:
            outcomes.append(False)
            assert human_bytes(budget) in str(error)  # noqa: PT017 - either outcome is fine
        else:
            outcomes.append(model.converged_)
    assert outcomes == sorted(outcomes)
    assert not outcomes[0]
    assert outcomes[-1]


# -- prediction --------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def model():
    return MKLClassifier(KERNELS, norm=2, loss="logistic").fit(X, Y)


@pytest.mark.parametrize("method", ["predict", "decision_function", "predict_proba", "kernel"])
def test_bad_data_at_predict(model, method):
    use = getattr(model, method)
    for data, words in (
        (X[:, :2], "X has 2 features, but MKLClassifier is expecting 3"),
        (X[0], "2D array"),
        (with_value(X, np.nan), "X contains NaN"),
        (np.empty((0, 3)), "0 sample"),
    ):
        with pytest.raises(ValueError, match=words):
            use(data)


METHODS = ("predict", "kernel", "contributions", "save")


@pytest.mark.parametrize(
    ("estimator", "method"),
    [(MKLClassifier, "decision_function")]
    + [(kind, name) for kind in (MKLClassifier, MKLRegressor) for name in METHODS],
)
def test_not_fitted(estimator, method, tmp_path):
    with pytest.raises(NotFittedError):
        getattr(estimator(), method)(tmp_path / "model" if method == "save" else X)
    assert list(tmp_path.iterdir()) == []


def test_probabilities_have_to_be_asked_for():
    with pytest.raises(AttributeError, match="predict_proba"):
        MKLClassifier(KERNELS).fit(X, Y).predict_proba(X)


def precomputed_model(**settings):
    grams = [np.exp(-((X[:, None] - X[None]) ** 2).sum(axis=2) / width) for width in (1.0, 8.0)]
    return MKLClassifier(KernelBank.from_arrays(grams), norm=2, **settings).fit(NUMBERS[:30], Y[:30]), np.array(grams)


class OnDisk:
    """A table whose rows are read when they are asked for."""

    is_row_source, shape = True, X.shape

    def __getitem__(self, rows):
        pytest.fail("rows are read")


@pytest.mark.parametrize(
    "kind",
    [
        AlignedKernel,
        MKLClassifier,
        MKLClassifierCV,
        MKLRegressor,
        TwoStageMKLClassifier,
        TwoStageMKLRegressor,
        UFOMKLClassifier,
        UFOMKLRegressor,
    ],
)
def test_a_table_on_disk_is_for_an_approximation(kind):
    with pytest.raises(ValueError, match="A table on disk needs MKLClassifier or MKLRegressor with approximation="):
        kind().fit(OnDisk(), Y)


def test_stacks_of_another_shape():
    fitted, grams = precomputed_model()
    good = grams[:, 30:, :30]
    for stack in (good[:1], good[:, :, :29], grams, good.transpose(0, 2, 1)):
        with pytest.raises(
            ValueError, match=r"X is a stack of shape .*\(2 kernels, test samples, 30 training samples\)"
        ):
            fitted.predict(stack)
    with pytest.raises(ValueError, match="NaN"):
        fitted.predict(np.full_like(good, np.nan))


@pytest.mark.parametrize("settings", [{"center": True}, {"normalize": "cosine"}], ids=repr)
def test_stacks_that_lack_what_the_normalization_needs(settings):
    fitted, grams = precomputed_model(**settings)
    assert_refuses(lambda: fitted.predict(grams[:, 30:, :30]), "X is a stack of kernels")


def test_a_stack_for_kernels_on_features(model):
    assert_refuses(lambda: model.predict(np.ones((4, 5, 40))), "X is a stack of kernels")


def test_unknown_sample_numbers_at_predict():
    fitted, _ = precomputed_model()
    assert_refuses(lambda: fitted.predict([[40]]), "sample numbers from 0 to 39")


# -- nothing is half-fitted --------------------------------------------------------------------------------


class Fails(Kernel):
    """Works once, for the check, and then no more."""

    def __init__(self):
        super().__init__()
        self.calls = 0

    def compute(self, X, Z):
        self.calls += 1
        if self.calls > 1:
            raise RuntimeError("the disk is gone")
        return X @ Z.T


def unconverged(estimator, data, y):
    """Treat the warning of a fit that did not converge as an error."""
    with warnings.catch_warnings():
        warnings.simplefilter("error", ConvergenceWarning)
        estimator.set_params(solver="group_lasso", max_iter=1, tol=1e-9).fit(data, y)


WIDE = np.column_stack([X, X])
# How a fit on other data (six features) can fail, from the first check to the last step.
FAILURES = {
    "parameter": lambda e: e.set_params(C=-1).fit(WIDE, Y),
    "NaN": lambda e: e.fit(with_value(WIDE, np.nan), Y),
    "one class": lambda e: e.fit(WIDE, np.ones(40)),
    "norm": lambda e: e.set_params(norm=0.1).fit(WIDE, Y),
    "kernel": lambda e: e.set_params(kernels=[Fails()]).fit(WIDE, Y),
    "memory": lambda e: e.set_params(memory_budget=100).fit(WIDE, Y),
    "calibration": lambda e: e.set_params(probability=True).fit(WIDE[[0, 1]], [0, 1]),
    "warning as error": lambda e: unconverged(e, WIDE, Y),
    "listener": lambda e: listened(e, RuntimeError),
    "Ctrl-C": lambda e: e.set_params(kernels=[Interrupts(after=1)]).fit(WIDE, Y),
}


def listened(estimator, error):
    def callback(step):
        raise error("the listener had enough")

    with listen(callback):
        estimator.fit(WIDE, Y)


class Interrupts(Kernel):
    """Ctrl-C arrives in one of its calls: the one with the number ``after``, and any later one."""

    def __init__(self, after=np.inf):
        super().__init__()
        self.after = after
        self.calls = itertools.count()

    def compute(self, X, Z):
        if next(self.calls) >= self.after:
            raise KeyboardInterrupt
        return np.exp(-((X[:, None] - Z[None]) ** 2).sum(axis=2) / 2)


ANY_ERROR = (ValueError, TypeError, MemoryError, RuntimeError, ConvergenceWarning, KeyboardInterrupt)


@pytest.mark.parametrize("failure", FAILURES)
def test_a_failed_fit_leaves_a_fresh_estimator_unfitted(failure):
    estimator = MKLClassifier(KERNELS, norm=2)
    with pytest.raises(ANY_ERROR):
        FAILURES[failure](estimator)
    with pytest.raises(NotFittedError):
        estimator.predict(WIDE)


@pytest.mark.parametrize("failure", FAILURES)
def test_a_failed_refit_is_all_or_nothing(failure):
    """Either the model of before, which predicts what it predicted, or none; never a mixture."""
    estimator = MKLClassifier(KERNELS, norm=2).fit(X, Y)
    labels, attributes = estimator.predict(X), set(vars(estimator))
    with pytest.raises(ANY_ERROR):
        FAILURES[failure](estimator)
    try:
        after = estimator.predict(X)
    except NotFittedError:
        return
    np.testing.assert_array_equal(after, labels)
    assert set(vars(estimator)) == attributes


# -- the end of the iterations -----------------------------------------------------------------------------


@pytest.mark.parametrize("estimator", [MKLClassifier, MKLRegressor])
def test_stopping_early_warns_with_the_figures(estimator):
    model = estimator(KERNELS, solver="group_lasso", max_iter=1, tol=1e-6)
    with pytest.warns(ConvergenceWarning) as caught:
        model.fit(X, Y)
    message = str(caught[0].message)
    assert type(model).__name__ in message
    assert f"{model.gap_:.2e}" in message
    assert "tol=1.00e-06" in message
    assert "max_iter=1" in message
    assert model.n_iter_ == 1
    assert not model.converged_
    assert model.gap_ > 1e-6


def test_a_fit_that_converges_is_silent(capsys):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = MKLClassifier(KERNELS, norm=2).fit(X, Y)
    assert model.converged_
    assert capsys.readouterr() == ("", "")


def test_verbose_prints_where_the_kernels_are_and_each_iteration(capsys):
    model = MKLClassifier(KERNELS, norm=2, verbose=1, memory_budget="100MB").fit(X, Y)
    place, *lines = capsys.readouterr().out.splitlines()
    assert re.fullmatch(r"kernels: \d+ (as factors|packed) .*; the kernels get [\d.]+ MB, and the solver .*", place)
    assert len(lines) == model.n_iter_
    assert all("gap" in line and "objective" in line for line in lines)


# -- Ctrl-C ------------------------------------------------------------------------------------------------


def interrupt_after(count, heard):
    def callback(step):
        heard.append(step)
        if len(heard) == count:
            raise KeyboardInterrupt

    return callback


def assert_usable(model, n_iter, rounding=0.0):
    """A model of an early end: fitted, certified, not converged; its gap may own up to some rounding."""
    assert model.n_iter_ == n_iter
    assert not model.converged_
    smallest = min(step.gap for step in model.trace_)
    assert smallest <= model.gap_ <= smallest + rounding
    assert 0 < model.gap_ < 10
    assert set(model.predict(X)) <= {-1, 1}


def test_ctrl_c_with_a_listener_leaves_the_best_model():
    heard = []
    with listen(interrupt_after(4, heard)), pytest.warns(ConvergenceWarning, match="after 4 iterations"):
        model = MKLClassifier(KERNELS, solver="group_lasso", tol=1e-7).fit(X, Y)
    assert len(heard) == 4
    assert_usable(model, 4)


def test_ctrl_c_ends_the_fit_and_not_only_its_first_half():
    """With a large C the kernels in single precision do not do, but nobody wants a second fit after Ctrl-C."""
    heard = []
    with listen(interrupt_after(3, heard)), pytest.warns(ConvergenceWarning):
        model = MKLClassifier(KERNELS, solver="group_lasso", C=1000.0, tol=2e-5).fit(X, Y)
    assert len(heard) == 3
    assert_usable(model, 3, rounding=1e-3)


def test_ctrl_c_with_verbose_leaves_the_best_model(monkeypatch):
    monkeypatch.setattr(running, "print_step", interrupt_after(2, []))
    with pytest.warns(ConvergenceWarning):
        model = MKLClassifier(KERNELS, solver="group_lasso", tol=1e-7, verbose=1).fit(X, Y)
    assert_usable(model, 2)


@pytest.mark.parametrize(
    "model",
    [
        MKLClassifier(KERNELS, solver="group_lasso", tol=1e-7),
        UFOMKLClassifier(KERNELS, random_state=0),
        UFOMKLClassifier(KERNELS, tol=1e-9, random_state=0),
        TwoStageMKLClassifier([Gaussian(0.5, columns=[j]) for j in range(X.shape[1])], tol=1e-12),
    ],
    ids=["mkl", "ufo", "ufo-tol", "two-stage"],
)
def test_the_warning_after_ctrl_c_names_it_and_no_remedy(model):
    with listen(interrupt_after(1, [])), pytest.warns(ConvergenceWarning) as told:
        model.fit(X, Y)
    assert [str(entry.message).partition("; ")[2] for entry in told] == [
        "Ctrl-C ended it, and this is the best model so far."
    ]


def interrupt_in_fit(number):
    """What hears each step, and interrupts the second one of a fit."""
    begun = []

    def callback(step):
        begun.extend([step] if step.iteration == 1 else [])
        if step.iteration == 2 and len(begun) == number:
            raise KeyboardInterrupt

    return callback


SLOW = {"solver": "group_lasso", "tol": 1e-7}


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_ctrl_c_ends_a_path_with_the_best_model_of_its_point():
    with listen(interrupt_in_fit(2)):
        path = mkl_path(KERNELS, X, Y, Cs=[0.1, 1.0, 10.0], norms=[1.5, 2.0], **SLOW)
    assert [(point.C, point.norm, point.interrupted) for point in path] == [(0.1, 1.5, False), (1.0, 1.5, True)]
    assert_usable(path[-1].model, 2)
    with listen(interrupt_in_fit(2)):
        alphas = ufo_path(KERNELS, X, Y, alphas=[0.1, 0.01, 0.001], max_iter=20, random_state=0)
    assert [(point.alpha, point.interrupted) for point in alphas] == [(0.1, False), (0.01, True)]


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("number", [1, 2, 5])
def test_ctrl_c_ends_a_search_whoever_watches(number):
    search = MKLClassifierCV(KERNELS, Cs=[0.1, 1.0], norms=[1.5], cv=3, **SLOW)
    with listen(interrupt_in_fit(number)), pytest.raises(KeyboardInterrupt):
        search.fit(X, Y)
    assert not hasattr(search, "C_")


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("number", [1, 3])
def test_ctrl_c_leaves_probabilities_uncalibrated(number):
    """In the fit or in one of those to the folds: no scale is made of what is half learned."""
    model = MKLClassifier(KERNELS, probability=True, random_state=0, **SLOW)
    with listen(interrupt_in_fit(number)), pytest.warns(UserWarning, match="probabilities are not calibrated"):
        model.fit(X, Y)
    assert model.temperature_scale_ == 1.0


RECOMPUTE = {"memory_budget": 20_000}  # enough for the solver, not for the kernels: each pass calls them


def test_ctrl_c_in_the_middle_of_an_iteration_leaves_the_model_before_it():
    """It arrives inside a kernel, on a thread of the third iteration's first pass."""
    interrupted, heard = Interrupts(), []

    def callback(step):
        heard.append(step)
        if len(heard) == 2:
            interrupted.after = 0

    kernels = [interrupted, Gaussian(0.5), Gaussian(3.0)]
    with listen(callback), pytest.warns(ConvergenceWarning):
        model = MKLClassifier(kernels, solver="group_lasso", tol=1e-7, **RECOMPUTE).fit(X, Y)
    interrupted.after = np.inf
    assert_usable(model, 2)


@pytest.mark.parametrize("after", [0, 1, 60])
def test_ctrl_c_raises_when_nobody_listens(after):
    kernels = [Interrupts(after), Gaussian(0.5), Gaussian(3.0)]
    with pytest.raises(KeyboardInterrupt):
        MKLClassifier(kernels, solver="group_lasso", tol=1e-7, **RECOMPUTE).fit(X, Y)
    assert MKLClassifier(KERNELS, norm=2).fit(X, Y).converged_  # and the next fit works


def test_ctrl_c_before_there_is_a_model_raises_even_with_a_listener():
    with listen(lambda step: None), pytest.raises(KeyboardInterrupt):
        MKLClassifier([Interrupts(after=0)]).fit(X, Y)


@pytest.mark.parametrize("n_jobs", [None, 2])
def test_listeners_hear_every_class_with_any_number_of_jobs(n_jobs):
    labels = np.digitize(X[:, 0], [-0.4, 0.4])
    heard = []
    with listen(heard.append):
        model = MKLClassifier(KERNELS, norm=2, shared_weights=False, n_jobs=n_jobs).fit(X, labels)
    assert len(heard) == len(model.trace_) >= 3
