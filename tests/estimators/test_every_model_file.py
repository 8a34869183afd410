"""What is saved loads: every estimator, kernel, norm, loss, approximation and combination, with equal predictions."""

import importlib
import pkgutil
import sys
import warnings

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

import manykernels.estimators
from manykernels import (
    AlignedKernel,
    MKLClassifier,
    MKLClassifierCV,
    MKLRegressor,
    MKLRegressorCV,
    OneClassMKL,
    TwoStageMKLClassifier,
    TwoStageMKLRegressor,
    UFOMKLClassifier,
    UFOMKLRegressor,
    load,
)
from manykernels.kernels import KERNELS as KNOWN
from manykernels.kernels import (
    Dirichlet,
    DirichletFamily,
    FourierFeatures,
    Gaussian,
    GaussianFamily,
    GaussianLadder,
    Kernel,
    KernelBank,
    Linear,
    Nystroem,
    NystroemFeatures,
    Overlap,
    Polynomial,
    PowerOfSum,
    Precomputed,
    ProductKernels,
    RandomFourier,
)
from manykernels.kernels.feature_maps import FeatureKernel, Nothing
from manykernels.kernels.gaussian_product import ScaledGaussian
from manykernels.kernels.parametric import FixedParameters
from manykernels.kernels.precomputed import PrecomputedColumns
from manykernels.kernels.product_family import KernelProduct
from manykernels.losses import JOINT_LOSSES, LOSSES, JointLoss, Loss, OneVsRest
from manykernels.norms import NORMS as NORMS_OF_THE_LIBRARY
from manykernels.norms import ElasticNorm, LpNorm, LpPenalty, MixedNorm, Norm, Penalty

RNG = np.random.default_rng(0)
X = np.column_stack([RNG.standard_normal((40, 3)), np.zeros(40), np.arange(40) % 3])
NEW = np.column_stack([RNG.standard_normal((11, 4)), np.arange(11) % 3])
NUMBERS, NEW_NUMBERS = np.arange(40.0)[:, None], np.arange(40.0, 51.0)[:, None]
GRAM = np.exp(-((np.vstack([X, NEW])[:, None] - np.vstack([X, NEW])) ** 2).sum(axis=2) / 8)
BINARY = np.where(X[:, 0] + X[:, 1] ** 2 > 0.8, "yes", "no")
CLASSES = np.digitize(X[:, 0] + 0.3 * X[:, 1], [-0.5, 0.5])
TARGET = np.sin(2 * X[:, 0]) + X[:, 2]
OBSERVED = [0, 1, 2]


class Cubes(FeatureKernel):
    """A kernel of a user's own, with features."""

    def __init__(self, power, columns=None, group=None, label=None):
        super().__init__(columns, group, label)
        self.power = power

    def features(self, X):
        return np.asarray(X) ** self.power


class Entropy(Penalty):
    """A penalty of a user's own."""

    def value(self, weights):
        return float(np.sum(weights * np.log(np.maximum(weights, 1e-300))))

    def gradient(self, weights):
        return 1 + np.log(np.maximum(weights, 1e-300))

    def conjugate(self, slopes):
        return float(np.sum(np.exp(slopes - 1)))


# One of each class; the zero kernels are those on column 3.
KERNELS = {
    "Linear": Linear(columns=OBSERVED),
    "Overlap": Overlap(1, columns=[4]),
    "Polynomial": Polynomial(3, coef0=0.5, columns=[1, 2]),
    "Gaussian": Gaussian(0.7, columns=OBSERVED),
    "Dirichlet": Dirichlet(2, columns=[0]),
    "RandomFourier": RandomFourier(1.3, n_components=8, seed=3, columns=[0, 2]),
    "Nystroem": Nystroem.from_data(Gaussian(1.0, columns=[0, 1]), X, n_components=7),
    "ScaledGaussian": ScaledGaussian([1.0, 0.0, 0.3], columns=OBSERVED),
    "KernelProduct": KernelProduct([Gaussian(1.0), Linear(), Linear()], [[0, 1], [2], [2]], columns=OBSERVED),
    "Nothing": Nothing(),
    "zero": Linear(columns=[3]),
    "zero polynomial": Polynomial(2, coef0=0.0, columns=[3]),
    "own": Cubes(np.int64(3), columns=[1], group="own", label="cubes"),
}
MANY = list(KERNELS.values())
FEW = [KERNELS[name] for name in ("Linear", "Gaussian", "zero", "KernelProduct", "own")]
GAUSSIANS = [Gaussian(width, columns=OBSERVED) for width in (0.5, 2.0)] + [Linear(columns=[3])]
NORMS = {
    "1": 1,
    "1.5": 1.5,
    "2": np.float64(2),
    "inf": np.inf,
    "LpNorm(inf)": LpNorm(np.inf),
    "mixed 0.5": MixedNorm(0.5),
    "mixed 2": MixedNorm(2, [("a", k % 2) for k in range(len(FEW))]),
    "LpPenalty": LpPenalty(2, 0.5),
    "elastic": ElasticNorm(0.1),
    "elastic 1.5": ElasticNorm(0.1, 1.5),
    "own": Entropy(),
}
APPROXIMATIONS = {
    "exact": {},
    "nystroem": {"approximation": NystroemFeatures(10)},
    "nystroem by share": {"approximation": NystroemFeatures(0.05)},
    "fourier": {"approximation": FourierFeatures(6)},
}
NORMALIZATIONS = [
    {"normalize": normalize, "center": center}
    for normalize in ("mean_diag", "trace", "cosine", None)
    for center in (False, True)
]
FORMS = {
    "dense": (X, NEW),
    "sparse": (sp.csr_matrix(X), sp.csr_matrix(NEW)),
    "fortran": (np.asfortranarray(X), np.asfortranarray(NEW)),
    "table": (pd.DataFrame(X, columns=list("abcde")), pd.DataFrame(NEW, columns=list("abcde"))),
}
FAMILIES = {
    "gaussian": GaussianFamily(0.1, 10.0),
    "dirichlet": DirichletFamily(),
    "products": ProductKernels([Linear(columns=[j]) for j in range(3)], degree=3),
}


@pytest.fixture(autouse=True)
def _quiet():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        yield


def answers(model, data):
    """All that a model says of new data; a file does not hold precomputed kernels of new samples with each other."""
    methods = ["predict", "decision_function", "score_samples", "predict_proba", "transform"]
    if data is not NEW_NUMBERS:
        methods.append("kernel")
    return [getattr(model, method)(data) for method in methods if hasattr(model, method)]


def check(model, path, *datasets):
    """Save and load, twice; all answers are the same to the last bit.

    But for the first time where the second stage is a learner of scikit-learn: it adds up in an order of its own.
    """
    again, is_exact = model, not isinstance(model, (TwoStageMKLClassifier, TwoStageMKLRegressor))
    for _ in range(2):
        before = [answers(again, data) for data in datasets]
        again.save(path)
        again = load(path, kernels=[Cubes])
        for data, expected in zip(datasets, before, strict=True):
            for left, right in zip(expected, answers(again, data), strict=True):
                assert left.dtype == right.dtype
                if is_exact or left.dtype.kind != "f":
                    np.testing.assert_array_equal(left, right)
                else:
                    np.testing.assert_allclose(left, right, rtol=1e-12, atol=1e-12 * np.abs(left).max())
        is_exact = True
    return again


@pytest.mark.parametrize("name", KERNELS)
@pytest.mark.parametrize("approximation", ["exact", "nystroem", "nystroem by share"])
def test_kernels(name, approximation, tmp_path):
    """Each kernel beside one that never is zero, exact and approximated."""
    options = APPROXIMATIONS[approximation]
    model = MKLClassifier([KERNELS[name], Gaussian(2.0, columns=[1, 2])], norm=np.inf, **options).fit(X, BINARY)
    check(model, tmp_path / "model.mkl", NEW, X)


def classes_of_the_library(kind):
    """All subclasses that can be made, of every module of the package."""
    for module in pkgutil.walk_packages(manykernels.__path__, "manykernels."):
        if module.name != "manykernels.compute.fused":  # needs Triton
            importlib.import_module(module.name)

    def below(kind):
        for derived in kind.__subclasses__():
            yield derived
            yield from below(derived)

    def stands_in_the_library(kind):
        """The classes of examples in docstrings say so, too, but their modules do not know them."""
        module = sys.modules.get(kind.__module__)
        return kind.__module__.startswith("manykernels.") and getattr(module, kind.__name__, None) is kind

    return {kind for kind in below(kind) if stands_in_the_library(kind) and not kind.__abstractmethods__}


def test_every_norm_and_loss_of_the_library_is_covered():
    """A class that is added stands in its package's list, from which names and model files are made."""
    assert classes_of_the_library(Norm) == set(NORMS_OF_THE_LIBRARY)
    assert classes_of_the_library(Loss) == set(LOSSES)
    assert classes_of_the_library(JointLoss) == {*JOINT_LOSSES, OneVsRest}  # which has the name of its loss
    assert {type(norm) for norm in NORMS.values()} >= set(NORMS_OF_THE_LIBRARY)


def test_every_kernel_of_the_library_is_covered():
    """A class that is added must be known to model files, or be listed here as one that cannot be in them."""
    # Precomputed comes back as the first; the others are for subclasses, and for what cannot be saved.
    assert classes_of_the_library(Kernel) - set(KNOWN) == {PrecomputedColumns, FeatureKernel, FixedParameters}
    assert {kind for kind in KNOWN if kind is not Precomputed} <= {type(kernel) for kernel in MANY}


def test_every_estimator_is_covered():
    saved = {name for name in manykernels.estimators.__all__ if hasattr(getattr(manykernels.estimators, name), "save")}
    assert saved == {type(model).__name__ for model, _ in ESTIMATORS.values()}


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("approximation", APPROXIMATIONS)
def test_norms(norm, approximation, tmp_path):
    kernels = GAUSSIANS + FEW[:2] if approximation == "fourier" else FEW
    solver = "spg" if norm == "own" else "auto"
    model = MKLClassifier(kernels, norm=NORMS[norm], solver=solver, random_state=0, **APPROXIMATIONS[approximation])
    again = check(model.fit(X, BINARY), tmp_path / "model.mkl", NEW, X)
    assert again.active_.size > 0
    assert list(again.kernel_names_) == list(model.kernel_names_)


@pytest.mark.parametrize("options", NORMALIZATIONS, ids=str)
@pytest.mark.parametrize("approximation", ["exact", "nystroem"])
@pytest.mark.parametrize("form", FORMS)
def test_normalization_centering_and_forms_of_data(options, approximation, form, tmp_path):
    train, new = FORMS[form]
    model = MKLRegressor(FEW[:4], norm=2, **options, **APPROXIMATIONS[approximation]).fit(train, TARGET)
    check(model, tmp_path / "model.mkl", new, train)


SEPARATE = {"shared_weights": False}
ESTIMATORS = {
    "classifier": (MKLClassifier(MANY, norm=1.1), CLASSES),
    "standard kernels": (MKLClassifier(), BINARY),
    "classes apart": (MKLClassifier(MANY, norm=2, **SEPARATE), CLASSES),
    "classes apart, approximated": (
        MKLClassifier(MANY, norm=2, **SEPARATE, **APPROXIMATIONS["nystroem"]),
        CLASSES,
    ),
    "probabilities": (MKLClassifier(MANY, norm=2, probability=True, random_state=0), BINARY),
    "logistic": (MKLClassifier(MANY, norm=2, loss="logistic"), CLASSES),
    "squared hinge": (MKLClassifier(MANY, norm=2, loss="squared_hinge", fit_intercept=False), BINARY),
    "regressor": (MKLRegressor(MANY, norm=np.inf), TARGET),
    "tube": (MKLRegressor(MANY, loss="epsilon_insensitive", epsilon=0.2), TARGET),
    "one class": (OneClassMKL(MANY, nu=0.2), None),
    "one class, standard": (OneClassMKL(nu=0.2, norm=np.inf), None),
    "one class, features": (OneClassMKL(MANY, nu=0.2, **APPROXIMATIONS["nystroem"]), None),
    "product": (MKLClassifier([Gaussian(1.0, columns=[j]) for j in range(4)], combination="product"), BINARY),
    "ladder": (MKLClassifier(KernelBank([GaussianLadder(count=20, low=0.1, high=10.0), Linear()])), BINARY),
    "ladder, centered": (MKLClassifier(KernelBank([GaussianLadder(count=20), *FEW]), norm=2, center=True), BINARY),
    "cv": (MKLClassifierCV(FEW, cv=3, Cs=(0.1, 1.0), norms=(1, 2)), BINARY),
    "cv regressor": (MKLRegressorCV(FEW, cv=3, Cs=(1.0,), norms=(2,)), TARGET),
    "ufo": (UFOMKLClassifier(MANY, random_state=0, max_iter=3), CLASSES),
    "ufo, kernels": (UFOMKLClassifier(MANY, features="kernel", random_state=0, max_iter=3), CLASSES),
    "ufo, joint": (UFOMKLClassifier(FEW, loss="multiclass_hinge", random_state=0, max_iter=3), CLASSES),
    "ufo, averaged": (UFOMKLClassifier(FEW, average=True, random_state=0, max_iter=3), BINARY),
    "ufo, features": (UFOMKLClassifier([Linear(), RandomFourier(1.0, 8)], random_state=0, norm=3), BINARY),
    "ufo regressor": (UFOMKLRegressor(FEW, random_state=0, max_iter=3, alpha=0.01), TARGET),
    "ufo, tube": (UFOMKLRegressor(FEW, loss="epsilon_insensitive", random_state=0, max_iter=3), TARGET),
    "two stages": (TwoStageMKLClassifier(MANY, random_state=0), CLASSES),
    "two stages, uniform": (TwoStageMKLClassifier(MANY, alignment="uniform", random_state=0), BINARY),
    "two stages, regressor": (TwoStageMKLRegressor(FEW, alignment="qp", random_state=0), TARGET),
    "aligned": (AlignedKernel(FEW), BINARY),
}


@pytest.mark.parametrize("name", ESTIMATORS)
def test_estimators(name, tmp_path):
    model, y = ESTIMATORS[name]
    check(model.fit(X, y), tmp_path / "model.mkl", NEW, X)


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize(
    ("kind", "options"),
    [
        (MKLClassifier, {"solver": "greedy"}),
        (MKLClassifier, {"solver": "ckl", "max_iter": 5}),
        (MKLRegressor, {"norm": 2, "random_state": 0, "max_iter": 20}),
        (TwoStageMKLClassifier, {"random_state": 0, "max_iter": 3}),
        (AlignedKernel, {"max_iter": 3, "target": "classes"}),
    ],
    ids=["greedy", "ckl", "stochastic", "two stages", "aligned"],
)
def test_families(family, kind, options, tmp_path):
    if "norm" in options and family != "products":
        pytest.skip("stochastic selection is for families that can be drawn from")
    y = TARGET if kind is MKLRegressor else BINARY
    train, new = (X[:, [0]], NEW[:, [0]]) if family == "dirichlet" else (X, NEW)
    check(kind(FAMILIES[family], **options).fit(train, y), tmp_path / "model.mkl", new, train)


@pytest.mark.parametrize("options", NORMALIZATIONS, ids=str)
@pytest.mark.parametrize("kind", [MKLRegressor, TwoStageMKLRegressor, UFOMKLRegressor])
def test_precomputed_kernels(kind, options, tmp_path):
    kernels = [Precomputed(GRAM), Precomputed(GRAM**2, label="square"), Precomputed(np.zeros((51, 51)), label="zero")]
    if kind is not MKLRegressor and options["center"]:
        pytest.skip("these do not center")
    own = options if kind is MKLRegressor else {"normalize": options["normalize"], "random_state": 0}
    check(kind(kernels, **own).fit(NUMBERS, TARGET), tmp_path / "model.mkl", NEW_NUMBERS)


@pytest.mark.parametrize("approximation", ["exact", "nystroem"])
def test_missing_views(approximation, tmp_path):
    gaps, new = X.copy(), NEW.copy()
    gaps[:8, [0, 1]] = new[:3, [0, 1]] = np.nan
    kernels = [Gaussian(1.0, columns=[0, 1]), Linear(columns=[2]), Linear(columns=[3])]
    model = MKLClassifier(kernels, norm=2, missing="ignore", **APPROXIMATIONS[approximation]).fit(gaps, BINARY)
    check(model, tmp_path / "model.mkl", new, gaps)


@pytest.mark.parametrize("labels", [np.int8, np.uint64, np.float32, bool, "U3", object], ids=str)
def test_labels(labels, tmp_path):
    y = (CLASSES > 0).astype(int).astype(str).astype(object) if labels is object else (CLASSES > 0).astype(labels)
    check(MKLClassifier([Linear()]).fit(X, y), tmp_path / "model.mkl", NEW)


def test_what_cannot_be_saved_says_so(tmp_path):
    """In one sentence, before a file is made."""

    class Mine(MKLClassifier):
        pass

    refused = {
        "class Mine": Mine([Linear()]).fit(X, BINARY),
        "not numbers or text": MKLRegressor(combination=PowerOfSum([Linear()], 2), norm=2).fit(X, TARGET),
        "ends with the character 0": MKLClassifier([Linear()]).fit(X, BINARY),
        "memory_budget": MKLClassifier([Linear()]).fit(X, BINARY),
        "only numbers and text": MKLClassifier([Linear()]).fit(X, BINARY),
    }
    refused["ends with the character 0"].classes_ = np.array(["a", "b\0"], dtype=object)
    refused["memory_budget"].memory_budget = object()
    refused["only numbers and text"].classes_ = np.array([1j, 2j])
    for words, model in refused.items():
        with pytest.raises((ValueError, TypeError), match=words):
            model.save(tmp_path / "model.mkl")
        assert list(tmp_path.iterdir()) == []
