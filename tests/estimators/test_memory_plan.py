"""What a fit plans to take of its memory budget, and what it takes."""

import errno
import multiprocessing
import sys
import warnings
import weakref
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from numba.core.event import install_recorder

from manykernels import (
    MKLClassifier,
    MKLClassifierCV,
    TwoStageMKLClassifier,
    UFOMKLClassifier,
    UFOMKLRegressor,
    mkl_path,
)
from manykernels.banks import Data
from manykernels.banks.planning import HEADROOM, Extent
from manykernels.compute.gpu import has_device
from manykernels.compute.memory import human_bytes
from manykernels.core.solver import Need, Sizes, Solver
from manykernels.estimators import by_list, ufo_base
from manykernels.inner.solve import RULES
from manykernels.kernels import (
    FourierFeatures,
    Gaussian,
    GaussianLadder,
    KernelBank,
    Linear,
    NystroemFeatures,
    ParametricKernel,
    RandomFourier,
    standard,
)
from manykernels.losses import LOSSES, Hinge, Logistic
from manykernels.norms import LpNorm
from manykernels.outer.group_lasso import GROUP_LASSO

KERNELS = [Gaussian(w) for w in np.geomspace(0.3, 5.0, 50)]
RNG = np.random.default_rng(0)
X = RNG.normal(size=(300, 3))
Y = X[:, 0] * X[:, 1] > 0


def placed(model, shape, norms=()):
    """Where an estimator's list of kernels goes, for so many tasks and samples."""
    settings, data = model._settings(), Data(X, X)
    return by_list.place_kernels(settings, by_list.list_kernels(settings, data), shape, data, "single", norms)


def planned(n, budget, loss=None, norms=(), **settings):
    model = MKLClassifier(KERNELS, memory_budget=budget, loss=loss or "hinge", **settings)
    return placed(model, (1, n), norms)


@pytest.mark.parametrize("norm", [1, 1.5, 2, 4])
@pytest.mark.parametrize("loss", [Hinge(), Logistic()], ids=["hinge", "logistic"])
@pytest.mark.parametrize("n", [200, 2000, 20_000])
def test_kernels_and_solver_share_the_budget(norm, loss, n):
    budget = int(6 * 8 * n * n)
    plan = planned(n, budget, loss, norm=norm)
    assert plan.budget + plan.spare <= (1 - HEADROOM) * budget
    assert plan.spare >= 8 * n * n


def test_a_smooth_loss_needs_the_combined_kernel_and_one_factor():
    assert GROUP_LASSO.need(Sizes(1, 1000, 10), LpNorm(2), Logistic()).n_bytes == 2 * 8 * 10**6


@pytest.mark.parametrize("loss", [kind for kind in LOSSES if kind.classification], ids=lambda kind: kind.__name__)
def test_rows_on_demand_are_planned_where_an_inner_solver_takes_them(loss):
    """The plan knows no inner solver: whoever adds one for rows is told here that it is never asked."""
    if {rule.loss for rule in RULES if rule.kernel <= {"rows"}} & loss().offers:
        assert planned(20_000, 10**9, loss()).storage == "rows"
    else:
        with pytest.raises(MemoryError, match="the combined kernel of 20000 samples and its solver"):
            planned(20_000, 10**9, loss())


def test_the_plan_is_for_every_norm_of_a_path():
    """Whichever comes first: the second-order methods of p = 1 hold more, and keep room for a working set."""
    budget = 12 * 8 * 500**2
    alone = planned(500, budget, norm=2)
    both = [planned(500, budget, norm=norm, norms=(LpNorm(2), LpNorm(1))) for norm in (2, 1)]
    assert both[0] == both[1]
    assert both[0].reserve == planned(500, budget, norm=1).reserve > alone.reserve
    assert both[0].spare >= max(alone.spare, planned(500, budget, norm=1).spare)


def test_a_path_tells_its_plan_all_norms(monkeypatch):
    seen = []

    real = by_list.place_kernels

    def spy(settings, listed, shape, data, precision, norms):
        seen.append([norm.p for norm in norms])
        return real(settings, listed, shape, data, precision, norms)

    monkeypatch.setattr(by_list, "place_kernels", spy)
    mkl_path(KERNELS[::10], X, Y, Cs=[1.0], norms=(2, 1))
    MKLClassifierCV(KERNELS[::10], Cs=[1.0], norms=(2, 1), cv=2).fit(X, Y)
    assert seen[:3] == [[2.0, 1.0]] * 3


def test_the_kernels_are_listed_once_for_all_fits_of_a_path(monkeypatch):
    """With the digits of the second bank and the plans of both, too."""
    seen = []
    real = standard.choose
    monkeypatch.setattr(standard, "choose", lambda *given: seen.append(1) or real(*given))
    MKLClassifier(tol=1e-6).fit(X, Y)
    assert len(seen) == 1
    mkl_path("standard", X, Y, Cs=[0.1, 1.0], norms=(1, 2))
    assert len(seen) == 2
    TwoStageMKLClassifier("standard", missing="ignore").fit(X, Y)
    assert len(seen) == 3


def test_the_interior_point_is_left_out_where_it_has_no_memory(monkeypatch):
    """As the last resort of p = 2: a solver that is not taken needs no memory."""
    from manykernels.outer import automatic

    taken = []
    monkeypatch.setattr(automatic, "_PATIENCE", 1)
    real = automatic.NEWTON
    monkeypatch.setattr(automatic, "NEWTON", replace(real, run=lambda *a, **k: taken.append(1) or real(*a, **k)))
    n = X.shape[0]
    for budget, expected in ((int(2 * 8 * n * n), False), (10**9, True)):
        taken.clear()
        MKLClassifier(KERNELS, norm=2, C=100.0, tol=1e-4, memory_budget=budget).fit(X, Y)
        assert bool(taken) == expected


def test_separate_classes_side_by_side_have_matrices_of_their_own():
    n = 1000
    budget = int(40 * 8 * n * n)
    settings = {"norm": 2, "shared_weights": False}
    plans = []
    for n_jobs in (1, 3):
        model = MKLClassifier(KERNELS, memory_budget=budget, n_jobs=n_jobs, **settings)
        plans.append(placed(model, (3, n)))
    assert plans[1].spare == 3 * plans[0].spare


@pytest.mark.skipif(not has_device("torch:cpu"), reason="needs torch")
def test_separate_classes_take_turns_on_a_device():
    """So they need memory once; where the kernels fall back to the CPU, they are side by side again."""
    n = 1000
    settings = {"norm": 2, "shared_weights": False, "memory_budget": int(40 * 8 * n * n), "device": "torch:cpu"}
    alone, together = (placed(MKLClassifier(KERNELS, n_jobs=jobs, **settings), (3, n)) for jobs in (1, 3))
    assert (together.spare, together.budget) == (alone.spare, alone.budget)
    assert together.on_cpu().spare == 3 * alone.on_cpu().spare


@pytest.mark.parametrize("settings", [{"center": True}, {"normalize": "cosine"}])
def test_rows_of_numbers_for_every_kernel_count(settings):
    bank = KernelBank([Gaussian(w) for w in np.geomspace(0.3, 5.0, 5000)])
    n, budget = 400, 10**8
    plans = []
    for own in ({}, settings):
        model = MKLClassifier(bank, norm=2, memory_budget=budget, **own)
        plans.append(placed(model, (1, n)))
    assert plans[0].budget - plans[1].budget == 8 * 5000 * n


def test_very_many_kernels_are_refused_before_the_work_by_their_own_number():
    wide = sp.random(50, 4000, density=0.01, random_state=0, format="csr")
    bank = [Gaussian(w, columns=[j]) for j in range(4000) for w in (1.0, 2.0, 3.0, 4.0, 5.0)]
    y = np.arange(50) % 2
    with pytest.raises(MemoryError, match=r"^memory_budget is 5 MB, but the data and names of 20,000 kernels .* MB\.$"):
        MKLClassifier(bank, memory_budget="5MB").fit(wide, y)


class Mixture(ParametricKernel):
    """(d_0 + d_1 x'z)^2: two parameters, however many columns there are."""

    def bind(self, X):
        return ["constant", "linear"]

    def compute(self, X, Z, weights):
        return (weights[0] + weights[1] * X @ Z.T) ** 2

    def derivative(self, X, Z, weights, k):
        return 2 * (weights[0] + weights[1] * X @ Z.T) * (X @ Z.T if k else 1.0)


@pytest.mark.parametrize(
    ("settings", "count"),
    [
        ({"kernels": KERNELS}, 50),
        ({"combination": "product"}, 3),
        ({"combination": "product", "kernels": KERNELS[:7]}, 7),
        ({"combination": Mixture()}, 2),
        ({"combination": Mixture(), "kernels": KERNELS}, 2),
    ],
)
def test_the_plan_counts_the_weights_that_are_learned(settings, count):
    sizes = []

    def need(of, norm, loss):
        sizes.append(of)
        return Need(0)

    def first(problem, **options):
        raise AssertionError

    model = MKLClassifier(solver=Solver("spy", first, need=need), **settings)
    listed = by_list.list_kernels(model._settings(), Data(X, X))
    assert Extent.of(*listed, model._recipe(), X, (1, 300)).n_kernels == count
    by_list.need_beside(model._settings(), listed, (1, 300))
    assert sizes == [Sizes(1, 300, count)]


def test_folds_at_the_same_time_share_the_memory(monkeypatch):
    from manykernels.estimators import cv

    seen = []
    real = cv._score_fold

    def spy(single, *rest):
        seen.append(single.memory_budget)
        return real(single, *rest)

    monkeypatch.setattr(cv, "_score_fold", spy)
    model = MKLClassifierCV(KERNELS[::10], Cs=[1.0], norms=(2,), cv=3, n_jobs=1, memory_budget="100MB")
    model.fit(X, Y)
    assert seen == ["100MB"] * 3
    assert model.n_jobs == 1


@pytest.mark.parametrize(
    "settings",
    [{}, {"shared_weights": False}, {"approximation": NystroemFeatures(9)}, {"memory_budget": "600kB", "tol": 0.1}],
    ids=["matrices", "a matrix for each class", "features", "rows on demand"],
)
def test_calibration_holds_the_kernels_of_one_fit_at_a_time(monkeypatch, settings):
    """Neither those of the whole fit nor those of another fold are left, on a path as well."""
    MKLClassifier(KERNELS[:3], norm=2, **settings).fit(X, Y)  # compiling may keep what a function was first called with
    bound, stored, bind = [], set(), by_list.bind

    def bind_alone(*arguments):
        assert all(earlier() is None for earlier in bound)
        bank = bind(*arguments)
        bound.append(weakref.ref(bank))
        stored.add(bank.placement.storage)
        return bank

    monkeypatch.setattr(by_list, "bind", bind_alone)
    options = {"probability": True, "norm": 2, "random_state": 0, **settings}
    MKLClassifier(KERNELS[:3], **options).fit(X, Y)
    assert len(bound) == 1 + 5
    options.pop("norm")
    path = mkl_path(KERNELS[:3], X, Y, Cs=[1.0, 10.0], norms=[2.0], **options)
    assert len(bound) == (1 + 2) * (1 + 5)
    assert ("rows" in stored) == ("memory_budget" in settings)
    assert all(point.model.temperature_scale_ > 0 for point in path)


MAPS = [Linear(), RandomFourier(2.0, 40)]


@pytest.mark.parametrize(
    "model",
    [
        MKLClassifier(KERNELS[:3]),
        MKLClassifier(KERNELS[:3], approximation=NystroemFeatures(20)),
        MKLClassifier(KERNELS[:3], approximation=FourierFeatures(20)),
        UFOMKLClassifier(KERNELS[:3], tol=0.3),
        UFOMKLClassifier(MAPS, tol=0.3),
        UFOMKLRegressor(MAPS, tol=0.3),
    ],
    ids=["kernels", "nystroem", "fourier", "ufo", "ufo on features", "ufo for numbers"],
)
def test_a_fitted_model_keeps_no_more_of_the_data_than_predictions_need(monkeypatch, model):
    """Not by a view of a few rows either, whose base is all of them."""
    seen = []

    def remembering(bind):
        def bind_and_remember(kernels, data, *rest):
            seen.append(weakref.ref(data.X if data.X.base is None else data.X.base))
            return bind(kernels, data, *rest)

        return bind_and_remember

    model.fit(X[:200], Y[:200])  # compiling may keep what a function was first called with
    for module in (by_list, ufo_base):
        monkeypatch.setattr(module, "bind", remembering(module.bind))
    model.fit(X[:200], Y[:200])
    assert len(seen) >= 1
    assert all(data() is None for data in seen)


@pytest.mark.parametrize("kernels", [KERNELS[:3], MAPS], ids=["values", "features"])
def test_a_stream_keeps_no_batch(kernels):
    model = UFOMKLClassifier(kernels)
    model.partial_fit(X, Y, classes=[False, True])
    batch = X.copy()
    given = weakref.ref(batch)
    model.partial_fit(batch, Y)
    del batch
    assert given() is None


def test_ufo_says_what_it_needs():
    with pytest.raises(MemoryError, match=r"^memory_budget"):
        UFOMKLClassifier(KERNELS, memory_budget=200_000).fit(X, Y)


NYSTROEM = {"approximation": NystroemFeatures(100), "random_state": 0}
# Samples, budget, and the estimator for kernels and a budget.
PATHS = {
    "hinge": (1500, 80e6, lambda kernels, budget: MKLClassifier(kernels, norm=2, memory_budget=budget)),
    "logistic": (
        1200,
        60e6,
        lambda kernels, budget: MKLClassifier(kernels, norm=2, loss="logistic", memory_budget=budget),
    ),
    "l1": (1200, 60e6, lambda kernels, budget: MKLClassifier(kernels, memory_budget=budget)),
    "ladder": (1000, 60e6, lambda _, budget: MKLClassifier([GaussianLadder(count=500)], norm=2, memory_budget=budget)),
    "rows": (2500, 40e6, lambda kernels, budget: MKLClassifier(kernels[::6], norm=2, tol=1e-2, memory_budget=budget)),
    "nystroem": (
        10_000,
        60e6,
        lambda kernels, budget: MKLClassifier(kernels[::10], norm=2, **NYSTROEM, memory_budget=budget),
    ),
    "nystroem_file": (
        10_000,
        25e6,
        lambda kernels, budget: MKLClassifier(kernels[::10], norm=2, tol=1e-2, **NYSTROEM, memory_budget=budget),
    ),
    # The first iteration holds what all of them hold, and thousands of products with features take half a minute.
    "nystroem_logistic": (
        6000,
        40e6,
        lambda kernels, budget: MKLClassifier(
            kernels[::10], loss="logistic", C=1e3, max_iter=1, **NYSTROEM, memory_budget=budget
        ),
    ),
    "fourier": (
        10_000,
        60e6,
        lambda kernels, budget: MKLClassifier(
            kernels[::10], max_iter=1, **NYSTROEM | {"approximation": "fourier"}, memory_budget=budget
        ),
    ),
    "ufo": (
        600,
        30e6,
        lambda kernels, budget: UFOMKLClassifier(kernels, max_iter=1, random_state=0, memory_budget=budget),
    ),
    "two_stage": (
        700,
        45e6,
        lambda kernels, budget: TwoStageMKLClassifier(kernels, validation_fraction=None, memory_budget=budget),
    ),
}


@pytest.fixture(scope="module")
def new_process():
    """A pool that runs each function in a process of its own, which has imported the library and done nothing else."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["manykernels.estimators.classifier", "manykernels.estimators.ufo", "numba"])
    with ProcessPoolExecutor(1, mp_context=context, max_tasks_per_child=1) as pool:
        yield pool


def trial(path):
    """Fit, and return the bytes that this took at its peak, and how many functions were compiled for it."""
    n, budget, estimator = PATHS[path]
    warnings.simplefilter("ignore")
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, 6))
    y = X[:, 0] * X[:, 1] + np.sin(2 * X[:, 2]) > 0
    kernels = [Gaussian(w, columns=[j, (j + 1) % 6]) for j in range(6) for w in np.geomspace(0.3, 8.0, 10)]
    estimator(kernels, None).fit(X[:80], y[:80])
    before = resident("VmRSS")
    Path("/proc/self/clear_refs").write_text("5")
    with install_recorder("numba:compile") as compiled:
        estimator(kernels, int(budget)).fit(X, y)
    return resident("VmHWM") - before, len(compiled.buffer)


def resident(which):
    """Return the bytes that this process has in memory (VmRSS), or had at most (VmHWM)."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(which))


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads the peak where Linux writes it")
@pytest.mark.parametrize("path", PATHS)
def test_the_peak_stays_within_the_budget(path, new_process):
    """Budget + 15 %, and 8 MB that an interpreter takes and leaves in such a small trial."""
    budget = PATHS[path][1]
    try:
        peak, n_compiled = new_process.submit(trial, path).result()
        if n_compiled:  # a compiler takes memory, too: what it made is kept for another trial
            peak, n_compiled = new_process.submit(trial, path).result()
    except OSError as error:
        if error.errno not in (errno.EACCES, errno.EPERM, errno.EROFS):
            raise
        pytest.skip("the peak cannot be set back here")
    assert not n_compiled
    assert peak <= 1.15 * budget + 8e6, human_bytes(peak)
