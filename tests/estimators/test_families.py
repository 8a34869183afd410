"""The estimators with families of kernels: products, widths, frequencies, and families of a user's own."""

import pickle
import weakref
from itertools import combinations_with_replacement

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GridSearchCV

from manykernels import MKLClassifier, MKLRegressor, load, mkl_path
from manykernels.banks import binding
from manykernels.banks.collection import Collection
from manykernels.banks.packed_storage import PackedStorage
from manykernels.banks.planning import HEADROOM
from manykernels.compute.triangles import triangle_size
from manykernels.core.progress import listen
from manykernels.estimators import running
from manykernels.kernels import (
    ContinuousFamily,
    DirichletFamily,
    Gaussian,
    GaussianFamily,
    Kernel,
    KernelBank,
    Linear,
    ProductKernels,
)
from manykernels.norms import LpNorm

RNG = np.random.default_rng(0)
X, NEW = RNG.standard_normal((45, 3)), RNG.standard_normal((25, 3))
NAMES = ["age", "income", "height"]


def signal(X):
    return X[:, 0] * X[:, 1] + 0.3 * X[:, 2]


TARGET, BINARY = signal(X), np.where(signal(X) > 0, "yes", "no")
CLASSES = np.digitize(signal(X), [-0.4, 0.4])


class Laplacian(Kernel):
    def __init__(self, scale, columns=None, group=None, label=None):
        super().__init__(columns, group, label)
        self.scale = scale

    def compute(self, X, Z):
        return np.exp(-np.abs(X[:, None] - Z[None]).sum(axis=2) / self.scale)


class Laplacians(ContinuousFamily):
    """A family of a user's own."""

    def __init__(self, low=0.1, high=30.0):
        super().__init__(low, high)

    def kernel(self, parameters):
        return Laplacian(float(parameters[0]))


FAMILIES = {
    "monomials": ProductKernels([Linear(columns=[j]) for j in range(3)], 2),
    "priors": ProductKernels([Linear(columns=[j]) for j in range(3)], 2, prior=[1.0, 2.0]),
    "gaussians": ProductKernels([Gaussian(1.0, columns=[j]) for j in range(3)] + [Linear()], 3),
    "width": GaussianFamily(0.1, 30.0),
    "widths": GaussianFamily(0.1, 30.0, per_feature=True),
    "frequency": DirichletFamily(0.0, 5.0, columns=[0]),
    "own": Laplacians(),
}
BY_FAMILY = pytest.mark.parametrize("family", FAMILIES)
EXACT = {"monomials", "priors", "width", "frequency"}


def gram(kernel, X, Z):
    """A kernel of a continuum by its definition."""
    V, W = (A if kernel.columns is None else A[:, kernel.columns] for A in (X, Z))
    kind = type(kernel).__name__
    D = ((V[:, None] - W[None]) ** 2).sum(axis=2)
    if kind == "Gaussian":
        return np.exp(-D / (2 * kernel.width**2))
    if kind == "ScaledGaussian":
        return np.exp(-((V[:, None] - W[None]) ** 2 * np.asarray(kernel.scales)).sum(axis=2))
    if kind == "Dirichlet":
        return 1 + 2 * np.cos(kernel.frequency * np.sqrt(D))
    return kernel.compute(V, W)


def normalized_grams(model, family, X):
    """The matrices of the selected kernels, each divided as the family says."""
    grams = []
    for entry in model._predictors[0].kernel.bound:
        kernel = entry.kernel
        if type(kernel).__name__ != "KernelProduct":
            K = gram(kernel, X, X)
            grams.append(K / np.mean(np.diag(K)))
            continue
        K, V = np.ones((len(X), len(X))), X[:, kernel.columns]
        for factor, places in zip(kernel.kernels, kernel.places, strict=True):
            v = V[:, places]
            own = v @ v.T if isinstance(factor, Linear) else np.exp(-((v[:, None] - v) ** 2).sum(axis=2) / 2)
            K *= own / np.mean(np.diag(own))
        grams.append(K / family.prior[len(kernel.kernels) - 1])
    return grams


def losses(name, y, z, epsilon=0.1):
    return {
        "squared": lambda: (y - z) ** 2 / 2,
        "hinge": lambda: np.maximum(0, 1 - y * z),
        "logistic": lambda: np.logaddexp(0, -y * z),
        "epsilon_insensitive": lambda: np.maximum(0, np.abs(y - z) - epsilon),
    }[name]()


# -- fit and what is left of it ----------------------------------------------------------------------------


@pytest.fixture(scope="module")
def classifiers():
    return {name: MKLClassifier(family, C=5.0).fit(X, BINARY) for name, family in FAMILIES.items()}


@pytest.fixture(scope="module")
def regressors():
    return {name: MKLRegressor(family, C=20.0).fit(X, TARGET) for name, family in FAMILIES.items()}


@pytest.mark.parametrize("kind", ["classifiers", "regressors"])
@BY_FAMILY
def test_attributes_are_consistent(family, kind, request):
    model = request.getfixturevalue(kind)[family]
    n = len(model.weights_)
    assert model.converged_
    assert 0 < n <= 40
    assert len(model.kernel_names_) == len(model.kernel_groups_) == n
    assert len(set(model.kernel_names_)) == n
    np.testing.assert_array_equal(model.active_, np.arange(n))
    assert np.all(model.weights_ > 0)
    assert model.weights_.sum() == pytest.approx(1.0)
    assert model.group_weights_.sum() == pytest.approx(1.0)
    assert model.feature_importances_.shape == (3,)
    assert model.feature_importances_.sum() == pytest.approx(1.0)
    assert np.all(model.feature_importances_ >= 0)
    assert model.dual_coef_.shape == (1, model.support_.size)
    assert model.gap_ <= 1e-3
    assert model.objective_ >= model.dual_objective_
    assert model.n_iter_ == len(model.trace_)
    if family in EXACT:
        assert model.gap_is_exact_
    if family in ("widths", "own"):
        assert not model.gap_is_exact_


@BY_FAMILY
def test_the_objective_of_a_classifier_can_be_recomputed(family, classifiers):
    model = classifiers[family]
    grams = normalized_grams(model, FAMILIES[family], X)
    check_objective(model, grams, np.where(BINARY == "yes", 1.0, -1.0), 5.0, "hinge")


@BY_FAMILY
def test_the_objective_of_a_regressor_can_be_recomputed(family, regressors):
    model = regressors[family]
    check_objective(model, normalized_grams(model, FAMILIES[family], X), TARGET, 20.0, "squared")


def check_objective(model, grams, y, C, loss):
    beta = np.zeros(len(y))
    beta[model.support_] = model.dual_coef_[0]
    K = np.tensordot(model.weights_, grams, axes=1)
    z = K @ beta + model.intercept_[0]
    norms = model.weights_ * np.sqrt([beta @ own @ beta for own in grams])
    assert 0.5 * norms.sum() ** 2 + C * losses(loss, y, z).sum() == pytest.approx(model.objective_, rel=1e-3)
    np.testing.assert_allclose(model.kernel(X), K, rtol=1e-5, atol=1e-5)
    own = model.decision_function(X) if hasattr(model, "decision_function") else model.predict(X)
    np.testing.assert_allclose(own, z, atol=1e-3 * np.abs(z).max())


@BY_FAMILY
def test_predictions_are_of_the_right_shape_and_kind(family, classifiers, regressors):
    assert set(classifiers[family].predict(NEW)) <= {"yes", "no"}
    assert classifiers[family].decision_function(NEW).shape == (25,)
    assert regressors[family].predict(NEW).shape == (25,)


@pytest.mark.parametrize("family", ["monomials", "width", "widths", "own"])
def test_families_learn(family, classifiers, regressors):
    assert classifiers[family].score(X, BINARY) > 0.85
    assert regressors[family].score(X, TARGET) > 0.85


def test_the_product_that_matters_is_found(regressors):
    model = regressors["monomials"]
    assert model.kernel_names_[int(model.weights_.argmax())] == "x0 * x1"
    assert model.score(NEW, signal(NEW)) > 0.95
    assert model.feature_importances_[2] < min(model.feature_importances_[:2])


@BY_FAMILY
def test_prediction_keeps_only_the_selected_kernels(family, classifiers):
    model = classifiers[family]
    (predictor,) = model._predictors
    assert len(predictor.kernel.bound) == len(model.weights_)
    assert predictor.kernel.X.shape[0] == model.support_.size


@pytest.mark.parametrize(("loss", "kind"), [("logistic", MKLClassifier), ("epsilon_insensitive", MKLRegressor)])
@pytest.mark.parametrize("family", ["monomials", "width"])
def test_other_losses(family, loss, kind):
    y = BINARY if kind is MKLClassifier else TARGET
    model = kind(FAMILIES[family], C=5.0, loss=loss).fit(X, y)
    target = np.where(BINARY == "yes", 1.0, -1.0) if kind is MKLClassifier else TARGET
    assert model.converged_
    check_objective(model, normalized_grams(model, FAMILIES[family], X), target, 5.0, loss)


@pytest.mark.parametrize("normalize", ["trace", None])
@pytest.mark.parametrize("family", ["monomials", "width"])
def test_other_normalizations(family, normalize):
    C = 5.0 * len(X) if normalize == "trace" else 5.0
    model = MKLRegressor(FAMILIES[family], C=C, normalize=normalize).fit(X, TARGET)
    assert model.converged_
    assert model.score(X, TARGET) > 0.7


@pytest.mark.parametrize(("solver", "norm"), [("greedy", 1.0), ("ckl", 1.0), ("stochastic_mirror", 2.0)])
@pytest.mark.parametrize("family", ["monomials", "width"])
def test_solvers_by_name(family, solver, norm):
    model = MKLRegressor(FAMILIES[family], norm=norm, solver=solver, max_iter=30, tol=0.1, random_state=0)
    again = clone(model).fit(X, TARGET)
    assert model.fit(X, TARGET).score(X, TARGET) > 0.3
    np.testing.assert_array_equal(model.weights_, again.weights_)
    assert np.linalg.norm(model.weights_, norm) == pytest.approx(1.0)


def test_the_norm_chooses_the_solver():
    many, few = (
        MKLRegressor(FAMILIES["monomials"], norm=norm, max_iter=40, random_state=0).fit(X, TARGET)
        for norm in (LpNorm(2), 1.0)
    )
    assert np.linalg.norm(many.weights_) == pytest.approx(1.0)
    assert few.weights_.sum() == pytest.approx(1.0)
    assert many.n_iter_ == 40 > few.n_iter_


# -- files, copies, grids ----------------------------------------------------------------------------------


@BY_FAMILY
def test_files_give_back_the_same_predictions(family, classifiers, regressors, tmp_path):
    for model in (classifiers[family], regressors[family]):
        model.save(tmp_path / "model.mkl")
        again = load(tmp_path / "model.mkl", kernels=[Laplacian] if family == "own" else [])
        np.testing.assert_allclose(again._decisions(NEW), model._decisions(NEW), rtol=1e-9)
        np.testing.assert_allclose(again.kernel(NEW), model.kernel(NEW), rtol=1e-9, atol=1e-12)
        assert again.kernel_names_ == list(model.kernel_names_)
        assert again.gap_is_exact_ == model.gap_is_exact_
        np.testing.assert_array_equal(again.weights_, model.weights_)


def test_a_file_with_an_own_kernel_says_which(classifiers, tmp_path):
    classifiers["own"].save(tmp_path / "model.mkl")
    with pytest.raises(ValueError, match="Laplacian"):
        load(tmp_path / "model.mkl")


def test_a_file_with_an_own_kernel_in_a_product(tmp_path):
    family = ProductKernels([Laplacian(1.0, columns=[0]), Laplacian(2.0, columns=[1]), Linear(columns=[2])], 2)
    model = MKLRegressor(family, C=10.0).fit(X, TARGET)
    model.save(tmp_path / "model.mkl")
    np.testing.assert_allclose(load(tmp_path / "model.mkl", kernels=[Laplacian]).predict(NEW), model.predict(NEW))


def test_a_file_with_products_of_matrices(tmp_path):
    Z = np.vstack([X, NEW])
    bank = KernelBank.from_arrays([np.outer(z, z) for z in Z.T])
    model = MKLRegressor(ProductKernels(bank, 2), C=10.0).fit(np.arange(45)[:, None], TARGET)
    model.save(tmp_path / "model.mkl")
    again, new = load(tmp_path / "model.mkl"), np.arange(45, 70)[:, None]
    np.testing.assert_allclose(again.predict(new), model.predict(new))
    assert model.score(new, signal(NEW)) > 0.9


@BY_FAMILY
def test_a_model_from_a_file_can_be_fitted_again(family, regressors, tmp_path):
    regressors[family].save(tmp_path / "model.mkl")
    again = clone(load(tmp_path / "model.mkl", kernels=[Laplacian] if family == "own" else [])).fit(X, TARGET)
    assert again.score(X, TARGET) == pytest.approx(regressors[family].score(X, TARGET), abs=0.1)


def test_a_model_from_a_file_with_a_solver_for_families_can_be_fitted_again(tmp_path):
    model = MKLRegressor(FAMILIES["monomials"], solver="greedy").fit(X, TARGET)
    model.save(tmp_path / "model.mkl")
    again = load(tmp_path / "model.mkl")
    expected = model.score(X, TARGET)
    assert again.fit(X, TARGET).score(X, TARGET) == pytest.approx(expected, abs=0.1)


@BY_FAMILY
def test_pickles_and_clones(family, classifiers):
    model = classifiers[family]
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.decision_function(NEW), model.decision_function(NEW))
    copy = clone(model)
    assert copy.kernels is model.kernels
    if family in ("monomials", "widths"):
        np.testing.assert_array_equal(copy.fit(X, BINARY).weights_, model.weights_)
    assert repr(copy).startswith("MKLClassifier(")


def test_a_grid_over_C():
    grid = GridSearchCV(MKLRegressor(FAMILIES["monomials"]), {"C": [0.001, 10.0]}, cv=2).fit(X, TARGET)
    assert grid.best_params_ == {"C": 10.0}
    grid = GridSearchCV(MKLClassifier(C=5.0), {"kernels": [FAMILIES["monomials"], "standard"]}, cv=2).fit(X, BINARY)
    assert grid.best_score_ > 0.6


def test_a_path_over_C():
    path = mkl_path(FAMILIES["monomials"], X, TARGET, Cs=[0.1, 10.0], regression=True)
    assert [point.model.converged_ for point in path] == [True, True]
    assert path[0].model.score(X, TARGET) < path[1].model.score(X, TARGET)


# -- data of other forms -----------------------------------------------------------------------------------


def test_columns_of_a_table_by_name():
    table = pd.DataFrame(X, columns=NAMES)
    family = ProductKernels([Linear(columns=name) for name in NAMES], 2)
    model = MKLRegressor(family, C=20.0).fit(table, TARGET)
    assert model.kernel_names_[int(model.weights_.argmax())] == "age * income"
    np.testing.assert_allclose(model.predict(table), MKLRegressor(family_of_places(), C=20.0).fit(X, TARGET).predict(X))
    narrow = MKLRegressor(GaussianFamily(0.1, 30.0, columns=["age", "income"]), C=20.0).fit(table, TARGET)
    assert narrow.feature_importances_[2] == 0
    assert all(name.endswith("on age, income") for name in narrow.kernel_names_)


def family_of_places():
    return ProductKernels([Linear(columns=[j]) for j in range(3)], 2)


@pytest.mark.parametrize("family", ["monomials", "gaussians", "width", "frequency"])
def test_sparse_data(family):
    dense, sparse = (MKLRegressor(FAMILIES[family], C=5.0).fit(form(X), TARGET) for form in (np.asarray, sp.csr_matrix))
    assert sparse.objective_ == pytest.approx(dense.objective_, rel=2e-3)
    np.testing.assert_allclose(sparse.predict(sp.csr_matrix(NEW)), sparse.predict(NEW), rtol=1e-6, atol=1e-8)


def test_a_weight_of_two_is_two_copies():
    weight = RNG.integers(1, 3, 45)
    rows = np.repeat(np.arange(45), weight)
    for family in ("monomials", "frequency", "own"):
        weighted = MKLClassifier(FAMILIES[family], C=2.0).fit(X, BINARY, sample_weight=weight)
        copied = MKLClassifier(FAMILIES[family], C=2.0).fit(X[rows], BINARY[rows])
        assert weighted.objective_ == pytest.approx(copied.objective_, rel=1e-6)
        np.testing.assert_allclose(weighted.decision_function(NEW), copied.decision_function(NEW), atol=1e-6)


@pytest.mark.parametrize("family", ["monomials", "width", "own"])
def test_several_classes(family):
    model = MKLClassifier(FAMILIES[family], C=5.0, tol=1e-2).fit(X, CLASSES)
    assert model.dual_coef_.shape[0] == 3
    assert model.decision_function(NEW).shape == (25, 3)
    assert model.weights_.ndim == 1
    assert model.score(X, CLASSES) > 0.75


@pytest.mark.parametrize("family", ["monomials", "width"])
def test_a_class_of_one_sample(family):
    y = np.zeros(45, dtype=int)
    y[0] = 1
    assert MKLClassifier(FAMILIES[family], C=10.0).fit(X, y).predict(X).shape == (45,)
    y[1:30] = 2
    assert set(MKLClassifier(FAMILIES[family], C=10.0, tol=1e-2).fit(X, y).classes_) == {0, 1, 2}


@pytest.mark.filterwarnings("ignore:.*zero:UserWarning")
@pytest.mark.parametrize("family", ["monomials", "gaussians", "width", "own"])
def test_constant_features(family):
    V = X.copy()
    V[:, 2] = 1.0
    model = MKLRegressor(FAMILIES[family], C=5.0).fit(V, TARGET)
    assert np.all(np.isfinite(model.predict(V)))


@pytest.mark.parametrize("family", ["width", "widths", "own"])
def test_features_that_are_all_constant(family):
    model = MKLRegressor(FAMILIES[family]).fit(np.ones((10, 3)), np.arange(10.0))
    np.testing.assert_allclose(model.predict(np.ones((2, 3))), 4.5, rtol=1e-4)


@pytest.mark.parametrize(
    "norm",
    [1.0, 2.0],
)
@pytest.mark.parametrize("family", ["monomials", "width"])
def test_a_constant_target(family, norm):
    model = MKLRegressor(FAMILIES[family], norm=norm, max_iter=5, random_state=0)
    with np.errstate(all="ignore"):
        model.fit(X, np.full(45, 3.0))
    np.testing.assert_allclose(model.predict(NEW), 3.0)


def test_probabilities():
    model = MKLClassifier(FAMILIES["width"], C=5.0, tol=1e-2, probability=True, random_state=0).fit(X, BINARY)
    assert model.predict_proba(NEW).shape == (25, 2)
    np.testing.assert_allclose(model.predict_proba(NEW).sum(axis=1), 1.0)


def test_ctrl_c_keeps_the_model_so_far():
    heard = []

    def callback(step):
        heard.append(step)
        if len(heard) == 2:
            raise KeyboardInterrupt

    with listen(callback), pytest.warns(ConvergenceWarning):
        model = MKLRegressor(FAMILIES["monomials"], C=50.0).fit(X, np.sin(3 * TARGET) + X[:, 1] ** 2)
    assert model.n_iter_ == 2
    assert len(model.weights_) <= 2
    assert model.predict(NEW).shape == (25,)


def test_verbose_prints_the_steps(capsys):
    model = MKLRegressor(FAMILIES["monomials"], verbose=1).fit(X, TARGET)
    place, *lines = capsys.readouterr().out.splitlines()
    assert place.startswith("kernels: ProductKernels")
    assert "in addition to matrices of 45 samples" in place
    assert len(lines) == model.n_iter_


# -- errors ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("settings", "error", "words"),
    [
        ({"center": True}, ValueError, "center=False"),
        ({"missing": "ignore"}, ValueError, "missing='error'"),
        ({"combination": "product"}, ValueError, "combination='sum'"),
        ({"solver": "newton"}, ValueError, "solver must be one of"),
        ({"solver": "group_lasso"}, ValueError, "solver must be one of"),
        ({"solver": "gredy"}, ValueError, "solver must be one of"),
        ({"solver": "greedy", "norm": 2.0}, TypeError, "solver='greedy' needs norm=1"),
        ({"solver": "ckl", "norm": 2.0}, TypeError, "needs norm=1"),
        ({"solver": "stochastic_mirror"}, TypeError, "solver='stochastic_mirror' needs norm=2"),
        ({"norm": 1.5}, TypeError, "norm=1"),
        ({"normalize": "cosine"}, ValueError, "normalize='cosine'"),
        ({"memory_budget": "50kB"}, MemoryError, "memory_budget"),
    ],
)
@pytest.mark.parametrize("family", ["monomials", "width", "own"])
def test_what_a_family_cannot_do_is_named(family, settings, error, words):
    model = MKLClassifier(FAMILIES[family], **settings)
    with pytest.raises(error, match=words):
        model.fit(X, BINARY)
    assert not hasattr(model, "weights_")


def test_weights_of_its_own_for_each_class_are_refused():
    with pytest.raises(ValueError, match="shared_weights=True"):
        MKLClassifier(FAMILIES["width"], shared_weights=False).fit(X, CLASSES)
    MKLClassifier(FAMILIES["width"], shared_weights=False, tol=1e-2).fit(X, BINARY)


@pytest.mark.parametrize("solver", ["greedy", "ckl", "stochastic_mirror"])
def test_solvers_for_families_are_not_for_lists(solver):
    with pytest.raises(ValueError, match=f"solver='{solver}' is for a family"):
        MKLClassifier([Gaussian(1.0)], solver=solver).fit(X, BINARY)


def test_a_family_inside_a_list_is_refused():
    with pytest.raises(TypeError, match="GaussianFamily"):
        MKLClassifier([FAMILIES["width"], Linear()]).fit(X, BINARY)


def test_frequencies_of_several_columns_are_refused():
    with pytest.raises(ValueError, match="single column"):
        MKLClassifier(DirichletFamily()).fit(X, BINARY)


def test_the_memory_budget_is_for_the_base_kernels_too(monkeypatch):
    seen = []
    original = binding.bind

    def bind(kernels, data, recipe, placement):
        seen.append(placement.budget)
        return original(kernels, data, recipe, placement)

    monkeypatch.setattr(binding, "bind", bind)
    MKLRegressor(FAMILIES["monomials"], memory_budget="3MB").fit(X, TARGET)
    assert seen[0] is not None


def test_digits_that_a_gap_claims_are_those_of_the_search():
    """In double precision, so are the kernels that products are made of: a plain listing of all products agrees."""
    widths, C = [0.5, 2.0], 10.0
    family = ProductKernels([Gaussian(w, columns=[j]) for j in range(3) for w in widths], 2)
    model = MKLRegressor(family, C=C, tol=1e-9, max_iter=50).fit(X, TARGET)
    base = [np.exp(-((X[:, j, None] - X[:, j]) ** 2) / (2 * w**2)) for j in range(3) for w in widths]
    products = base + [first * second for first, second in combinations_with_replacement(base, 2)]
    beta = np.zeros(len(X))
    beta[model.support_] = model.dual_coef_[0]
    largest = max(beta @ K @ beta for K in products)
    dual = beta @ TARGET - 0.5 * beta @ beta / C - 0.5 * largest
    assert model.converged_
    assert (model.objective_ - dual) / model.objective_ <= model.gap_ + 1e-12
    assert model.dual_objective_ == pytest.approx(dual, rel=1e-12)


def test_base_kernels_in_single_precision_go_before_those_in_double_come(monkeypatch):
    MKLRegressor(FAMILIES["gaussians"]).fit(X, TARGET)  # compiling may keep what a function was first called with
    bound, bind = [], binding.bind

    def bind_base(kernels, data, recipe, placement):
        assert all(earlier() is None for earlier in bound)
        bank = bind(kernels, data, recipe, placement)
        bound.append(weakref.ref(bank))
        assert bank.precision == ("single", "double")[len(bound) - 1]
        return bank

    monkeypatch.setattr(binding, "bind", bind_base)
    monkeypatch.setattr(running, "needs_digits", lambda rounding, tol: True)
    MKLRegressor(FAMILIES["gaussians"]).fit(X, TARGET)
    assert len(bound) == 2


@pytest.mark.parametrize("solver", ["stochastic_mirror", "greedy"])
def test_kernels_that_an_optimizer_collects_keep_the_budget(monkeypatch, solver):
    """In single precision, and in double where rounding asks for it: what does not fit is computed in each pass."""
    collections, original = [], Collection.__init__

    def remember(self, family, precision):
        original(self, family, precision)
        collections.append(self)

    monkeypatch.setattr(Collection, "__init__", remember)
    rows = np.random.default_rng(1).standard_normal((200, 3))
    settings = {"norm": 2 if solver == "stochastic_mirror" else 1, "solver": solver, "C": 1e4, "max_iter": 25}
    monkeypatch.setattr(running, "needs_digits", lambda rounding, tol: True)
    free = MKLRegressor(FAMILIES["widths"], **settings, random_state=0).fit(rows, signal(rows))
    collections.clear()
    tight = MKLRegressor(FAMILIES["widths"], **settings, random_state=0, memory_budget="4MB").fit(rows, signal(rows))
    assert [collection.precision for collection in collections] == ["single", "double"]
    left = int((1 - HEADROOM) * 4_000_000) - 8 * 8 * 200**2
    for collection in collections:
        storages = collection.bank().storages
        held = sum(storage.stack.nbytes for storage in storages if isinstance(storage, PackedStorage))
        assert 0 < held <= left < 4 * triangle_size(200) * len(collection)
    # In the same precision the search takes the same way.
    assert tight.objective_ == pytest.approx(free.objective_, rel=1e-6)
