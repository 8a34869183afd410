"""Model files: what goes in comes out, nothing else is in them, and damage is found and said in one sentence."""

import hashlib
import io
import json
import pickle
import zipfile

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted

from manykernels import MKLClassifier, MKLRegressor, load
from manykernels.compute.column_units import ColumnScales
from manykernels.estimators.archive import VERSION
from manykernels.kernels import Dirichlet, Gaussian, Kernel, KernelBank, Linear, Overlap, Polynomial, Precomputed
from manykernels.norms import LpNorm, MixedNorm

RNG = np.random.default_rng(0)
X = RNG.standard_normal((60, 4))
NEW = RNG.standard_normal((15, 4))
BINARY = np.where(X[:, 0] + X[:, 1] ** 2 > 0.8, 1, 0)
CLASSES = np.digitize(X[:, 0] + 0.3 * X[:, 1], [-0.5, 0.5])
TARGET = np.sin(2 * X[:, 0]) + X[:, 2]
NAMES = ["age", "income", "height", "weight"]
ALL_NUMBERS = np.arange(75)[:, None]
GRAMS = [
    np.exp(-((np.vstack([X, NEW])[:, None] - np.vstack([X, NEW])[None]) ** 2).sum(axis=2) / (2 * width**2))
    for width in (0.7, 2.0, 8.0)
]
SOME = [
    Gaussian(0.5),
    Gaussian(2.0, columns=[0, 1]),
    Linear(columns=[2]),
    Overlap(2, columns=[1, 3]),
    Polynomial(2, coef0=0.5),
    Dirichlet(1.5, columns=[3]),
]


class Laplacian(Kernel):
    """A kernel of a user's own, with all the arguments of a kernel."""

    def __init__(self, scale, columns=None, group=None, label=None):
        super().__init__(columns, group, label)
        self.scale = scale

    def compute(self, X, Z):
        return np.exp(-np.abs(X[:, None] - Z[None]).sum(axis=2) / self.scale)


class Brief(Kernel):
    """A kernel of a user's own in as few lines as the guide asks for: no columns, group or label."""

    def __init__(self, scale=1.0):
        super().__init__()
        self.scale = scale

    def compute(self, X, Z):
        return np.exp(-np.abs(X[:, None] - Z[None]).sum(axis=2) / self.scale)


def table(values):
    return pd.DataFrame(values, columns=NAMES)


def beside(numbers, values):
    """Features with the column of sample numbers in front."""
    return np.column_stack([numbers, values])


ALL = np.vstack([X, NEW])
WITH_NUMBERS = [
    Precomputed(GRAMS[1], columns=[0], label="graph"),
    Linear(columns=[1, 2]),
    Gaussian(1.0, columns=[3, 4]),
]
# name: (estimator, training X, y, new X)
CASES = {
    "binary": (MKLClassifier(SOME, norm=2), X, BINARY, NEW),
    "standard": (MKLClassifier(), X, BINARY, NEW),
    "several classes": (MKLClassifier(SOME, norm=1.5), X, CLASSES, NEW),
    "own weights for each class": (MKLClassifier(SOME, shared_weights=False), X, CLASSES, NEW),
    "regression": (MKLRegressor(SOME, C=10.0), X, TARGET, NEW),
    "tube": (MKLRegressor(SOME, loss="epsilon_insensitive", epsilon=0.2, norm=2), X, TARGET, NEW),
    "logistic": (MKLClassifier(SOME, loss="logistic", norm=2), X, CLASSES, NEW),
    "squared hinge": (MKLClassifier(SOME, loss="squared_hinge", fit_intercept=False), X, BINARY, NEW),
    "calibrated": (MKLClassifier(SOME, norm=2, probability=True, random_state=0), X, BINARY, NEW),
    "sparse": (MKLClassifier(SOME, norm=2), sp.csr_matrix(X), BINARY, sp.csr_matrix(NEW)),
    "table": (
        MKLClassifier([Gaussian(1.0, columns=["age", "height"]), Linear()], norm=2),
        table(X),
        BINARY,
        table(NEW),
    ),
    "standard table": (MKLClassifier(norm=2), table(X), BINARY, table(NEW)),
    "text labels": (MKLClassifier(SOME, norm=2), X, np.array(["no", "yes"])[BINARY], NEW),
    "object labels": (MKLClassifier(SOME, norm=2), X, np.array(["a", "bb", "ccc"], dtype=object)[CLASSES], NEW),
    "boolean labels": (MKLClassifier(SOME, norm=2), X, BINARY == 1, NEW),
    "centered": (MKLClassifier(SOME, norm=2, center=True), X, BINARY, NEW),
    "cosine": (MKLClassifier(SOME, norm=2, normalize="cosine"), X, BINARY, NEW),
    "centered cosine": (MKLClassifier(SOME, norm=2, normalize="cosine", center=True), X, CLASSES, NEW),
    "trace": (MKLClassifier(SOME, norm=2, normalize="trace", C=60.0), X, BINARY, NEW),
    "as it is": (MKLClassifier(SOME, norm=2, normalize=None), X, BINARY, NEW),
    "precomputed": (MKLClassifier(KernelBank.from_arrays(GRAMS), norm=2), ALL_NUMBERS[:60], BINARY, ALL_NUMBERS[60:]),
    "precomputed centered": (
        MKLClassifier(KernelBank.from_arrays(GRAMS), norm=2, center=True),
        ALL_NUMBERS[:60],
        BINARY,
        ALL_NUMBERS[60:],
    ),
    "precomputed cosine": (
        MKLClassifier(KernelBank.from_arrays(GRAMS), norm=2, normalize="cosine"),
        ALL_NUMBERS[:60],
        BINARY,
        ALL_NUMBERS[60:],
    ),
    "precomputed beside features": (
        MKLClassifier(WITH_NUMBERS, norm=2),
        beside(ALL_NUMBERS[:60], X),
        BINARY,
        beside(ALL_NUMBERS[60:], NEW),
    ),
    "precomputed beside features, sparse": (
        MKLClassifier(WITH_NUMBERS, norm=2),
        sp.csr_matrix(beside(ALL_NUMBERS[:60], X)),
        BINARY,
        sp.csr_matrix(beside(ALL_NUMBERS[60:], NEW)),
    ),
    "a kernel that sees the sample numbers too": (
        MKLClassifier([Precomputed(GRAMS[1], columns=[0]), Gaussian(20.0)], norm=2),
        beside(ALL_NUMBERS[:60], X),
        BINARY,
        beside(ALL_NUMBERS[60:], NEW),
    ),
    "infinite norm": (MKLClassifier(SOME, norm=np.inf), X, BINARY, NEW),
    "norm object": (MKLClassifier(SOME, norm=LpNorm(np.inf)), X, BINARY, NEW),
    "class weights": (MKLClassifier(SOME, norm=2, class_weight={0: 1.0, 1: 3.5}), X, BINARY, NEW),
    "text class weights": (
        MKLClassifier(SOME, norm=2, class_weight={"no": 2, "yes": 1.0}),
        X,
        np.array(["no", "yes"])[BINARY],
        NEW,
    ),
    "balanced": (MKLClassifier(SOME, norm=2, class_weight="balanced"), X, BINARY, NEW),
    "numbers of NumPy": (
        MKLClassifier(SOME, norm=np.float64(2), C=np.float32(3), max_iter=np.int64(500), random_state=np.int64(3)),
        X,
        BINARY,
        NEW,
    ),
    "own kernel": (
        MKLClassifier([Laplacian(1.5), Laplacian(0.5, columns=[1, 2], group="g"), Linear()], norm=2),
        X,
        BINARY,
        NEW,
    ),
    "brief own kernel": (MKLClassifier([Brief(), Linear()], norm=2), X, BINARY, NEW),
    "own kernel with a number of NumPy": (MKLClassifier([Laplacian(np.int64(2)), Linear()], norm=2), X, BINARY, NEW),
}
ARRAYS = ("weights_", "group_weights_", "active_", "dual_coef_", "support_", "intercept_", "feature_importances_")
VALUES = (
    "kernel_names_", "kernel_groups_", "group_names_", "objective_", "dual_objective_", "gap_", "converged_",
    "n_iter_", "n_inner_solves_", "n_features_in_", "trace_",
)  # fmt: skip


def fitted(case):
    """A fresh copy of the case's estimator, fitted."""
    estimator, train, y, new = CASES[case]
    return clone(estimator).fit(train, y), train, new


def round_trip(model, path):
    model.save(path)
    return load(path, kernels=[Laplacian, Brief])


def outputs(model, data):
    """All that a model says about new data."""
    out = [model.predict(data)]
    for method in ("decision_function", "predict_proba"):
        if hasattr(model, method):
            out.append(getattr(model, method)(data))
    return out


@pytest.mark.parametrize("case", CASES)
def test_round_trip(case, tmp_path):
    """Same predictions to the last bit or nearly, same attributes, same parameters."""
    model, train, new = fitted(case)
    again = round_trip(model, tmp_path / "model.mkl")
    for data in (new, train):
        for expected, found in zip(outputs(model, data), outputs(again, data), strict=True):
            if expected.dtype.kind == "f":
                np.testing.assert_allclose(found, expected, rtol=1e-10, atol=1e-12)
            else:
                np.testing.assert_array_equal(found, expected)
            assert found.dtype == expected.dtype
    for name in ARRAYS:
        np.testing.assert_array_equal(getattr(again, name), getattr(model, name))
    for name in VALUES:
        assert getattr(again, name) == getattr(model, name), name
    assert type(again) is type(model)
    before, after = model.get_params(), again.get_params()
    differing = {name for name in before if name != "kernels" and before[name] != after[name]}
    assert differing == set()
    if hasattr(model, "feature_names_in_"):
        assert again.feature_names_in_.tolist() == model.feature_names_in_.tolist()
        assert again.feature_names_in_.dtype == model.feature_names_in_.dtype


@pytest.mark.parametrize(
    "case", ["binary", "table", "own weights for each class", "precomputed", "own kernel", "sparse"]
)
def test_a_loaded_model_can_be_saved_again(case, tmp_path):
    model, _, new = fitted(case)
    twice = round_trip(round_trip(model, tmp_path / "once"), tmp_path / "twice")
    np.testing.assert_allclose(twice.decision_function(new), model.decision_function(new), rtol=1e-10, atol=1e-12)


def test_the_learned_kernel_survives(tmp_path):
    for case in ("binary", "centered cosine", "sparse"):
        model, train, new = fitted(case)
        again = round_trip(model, tmp_path / "model.mkl")
        np.testing.assert_allclose(again.kernel(new, train), model.kernel(new, train), rtol=1e-10, atol=1e-12)


def test_a_loaded_model_knows_its_active_kernels(tmp_path):
    model = MKLClassifier([Gaussian(0.5, columns=[i]) for i in range(4)], tol=1e-4).fit(X, BINARY)
    again = round_trip(model, tmp_path / "model.mkl")
    assert [kernel.columns for kernel in again.kernels] == [[k] for k in model.active_]
    assert clone(again).fit(X, BINARY).objective_ == pytest.approx(model.objective_, rel=1e-3)


def test_a_loaded_model_knows_the_active_kernels_of_every_class(tmp_path):
    """The first class looks at one column only, the others at two: the parameter holds the kernels of all."""
    y = np.where(X[:, 0] > 0.3, 0, np.where(X[:, 1] > 0, 1, 2))
    spread = X + np.column_stack([np.where(y == 0, 3.0, 0.0), 2 * np.sign(X[:, 1]), np.zeros((60, 2))])
    model = MKLClassifier([Linear(columns=[i]) for i in range(4)], shared_weights=False).fit(spread, y)
    assert np.count_nonzero(model.weights_[0]) < model.active_.size
    again = round_trip(model, tmp_path / "model.mkl")
    assert sorted(kernel.columns[0] for kernel in again.kernels) == model.active_.tolist()


@pytest.mark.parametrize("name", [str, int, lambda j: ("view", j), lambda j: frozenset([j])])
def test_a_mixed_norm_with_groups_of_its_own(name, tmp_path):
    """Of names of any kind; the loaded model has the groups of the kernels that it kept."""
    kernels = [Gaussian(width, columns=[j]) for j in range(4) for width in (0.3, 1.0, 3.0)]
    groups = [name(j // 2) for j in range(4) for _ in range(3)]
    model = MKLClassifier(kernels, norm=MixedNorm(2, groups), tol=1e-4).fit(X, BINARY)
    assert model.active_.size < len(kernels)
    once = round_trip(model, tmp_path / "model.mkl")
    for again in (once, round_trip(once, tmp_path / "again.mkl")):
        assert again.norm.groups == [groups.index(groups[k]) // 6 for k in model.active_]
        assert clone(again).fit(X, BINARY).objective_ == pytest.approx(model.objective_, rel=1e-3)


def test_a_mixed_norm_beside_the_standard_kernels_keeps_its_groups(tmp_path):
    groups = ["first"] + ["rest"] * (len(MKLClassifier().fit(X, BINARY).weights_) - 1)
    model = MKLClassifier(norm=MixedNorm(2, groups)).fit(X, BINARY)
    again = round_trip(model, tmp_path / "model.mkl")
    assert clone(again).fit(X, BINARY).objective_ == pytest.approx(model.objective_, rel=1e-6)


def test_names_of_columns_are_checked_after_loading(tmp_path):
    model, _, new = fitted("table")
    again = round_trip(model, tmp_path / "model.mkl")
    with pytest.raises(ValueError, match="feature names"):
        again.predict(new[NAMES[::-1]])


def test_extra_data_travels_along(tmp_path):
    model, _, _ = fitted("binary")
    extra = {"note": "heart study", "levels": [1, 2.5, None], "nested": {"deep": True}}
    model.save(tmp_path / "model.mkl", extra=extra)
    assert load(tmp_path / "model.mkl").extra_ == extra
    assert load(str(tmp_path / "model.mkl")).extra_ == extra


def test_a_model_that_is_not_fitted_cannot_be_saved(tmp_path):
    with pytest.raises(NotFittedError):
        MKLClassifier().save(tmp_path / "model.mkl")
    assert not (tmp_path / "model.mkl").exists()


@pytest.mark.parametrize("what", ["kernel", "extra", "labels"])
def test_what_cannot_be_saved_leaves_the_old_file_alone(what, tmp_path):
    """The error comes before the file is opened: the model that was there is still there."""
    path = tmp_path / "model.mkl"
    model, _, new = fitted("binary")
    model.save(path)
    bad = MKLClassifier([Laplacian(1.5), Linear()], norm=2).fit(X, BINARY)
    if what == "kernel":
        bad.kernels[0].scale = object()
    if what == "labels":
        bad.classes_ = np.array([None, 1], dtype=object)
    with pytest.raises((ValueError, TypeError)):
        bad.save(path, extra={"function": print} if what == "extra" else None)
    np.testing.assert_array_equal(load(path).predict(new), model.predict(new))


# -- what is in the file -------------------------------------------------------------------------------------


def contents(path):
    with zipfile.ZipFile(path) as file:
        return json.loads(file.read("manifest.json")), {
            name: np.load(io.BytesIO(file.read(name)), allow_pickle=False)
            for name in file.namelist()
            if name.endswith(".npy")
        }


def test_the_file_holds_active_kernels_and_support_vectors_only(tmp_path):
    """An SVM on separable data with a sparse norm: few kernels, few samples."""
    y = np.where(X[:, 0] > 0, 1, -1)
    gap = X.copy()
    gap[:, 0] += y
    model = MKLClassifier(C=100.0).fit(gap, y)
    model.save(tmp_path / "model.mkl")
    manifest, arrays = contents(tmp_path / "model.mkl")
    n_support, n_active = model.support_.size, model.active_.size
    assert n_support < 20 < len(gap)
    assert n_active < len(model.weights_) / 2
    (predictor,) = manifest["predictors"]
    assert [kernel["name"] for kernel in predictor["kernels"]] == [model.kernel_names_[k] for k in model.active_]
    support = ColumnScales(model.column_means_, model.column_scales_).of(gap[model.support_])
    np.testing.assert_array_equal(np.unique(arrays["arrays/predictor0_X.npy"], axis=0), np.unique(support, axis=0))
    others = [name for name, array in arrays.items() if len(gap) in array.shape]
    assert others == []  # nothing is kept for each training sample


def test_precomputed_kernels_are_stored_for_the_support_vectors_only(tmp_path):
    model = MKLClassifier(KernelBank.from_arrays(GRAMS), C=0.3).fit(ALL_NUMBERS[:60], BINARY)
    model.save(tmp_path / "model.mkl")
    _, arrays = contents(tmp_path / "model.mkl")
    stored = [array.shape for name, array in arrays.items() if "_kernel" in name and array.ndim == 2]
    assert model.support_.size < 60
    assert stored == [(75, model.support_.size)] * model.active_.size


def test_arrays_are_plain(tmp_path):
    """No array needs pickle, for any case."""
    for case in ("object labels", "table", "precomputed"):
        fitted(case)[0].save(tmp_path / "model.mkl")
        _, arrays = contents(tmp_path / "model.mkl")
        assert all(array.dtype != object for array in arrays.values())


# -- damage --------------------------------------------------------------------------------------------------


@pytest.fixture
def saved(tmp_path):
    """A saved model: (path, its bytes, its decision values on NEW)."""
    model = MKLClassifier([Gaussian(1.0, columns=[0]), Linear()], norm=2).fit(X, BINARY)
    path = tmp_path / "model.mkl"
    model.save(path)
    return path, path.read_bytes(), model.decision_function(NEW)


def rewrite(path, change):
    """Write the zip anew, valid throughout, with ``change`` applied to {name: bytes} and the manifest sealed."""
    with zipfile.ZipFile(path) as file:
        parts = {name: file.read(name) for name in file.namelist()}
    change(parts)
    with zipfile.ZipFile(path, "w") as file:
        for name, data in parts.items():
            file.writestr(name, data)
        file.comment = hashlib.sha256(parts["manifest.json"]).hexdigest().encode()


def replace_array(path, name, array, **options):
    """Put another array in the place of one, with its size and its checksum in the manifest."""
    buffer = io.BytesIO()
    np.save(buffer, array, **options)
    data = buffer.getvalue()

    def change(parts):
        manifest = json.loads(parts["manifest.json"])
        manifest["members"][f"arrays/{name}.npy"] = [len(data), hashlib.sha256(data).hexdigest()]
        parts[f"arrays/{name}.npy"], parts["manifest.json"] = data, json.dumps(manifest).encode()

    rewrite(path, change)


def change_manifest(path, **entries):
    def change(parts):
        parts["manifest.json"] = json.dumps(json.loads(parts["manifest.json"]) | entries).encode()

    rewrite(path, change)


def assert_refused(path, words="."):
    """One sentence that names the file."""
    with pytest.raises(ValueError, match=words) as caught:
        load(path)
    message = str(caught.value)
    assert path.name in message
    assert "\n" not in message
    assert message.endswith(".")


def test_a_truncated_file_is_refused(saved):
    path, data, _ = saved
    for size in (0, 1, 10, len(data) // 2, len(data) - 1):
        path.write_bytes(data[:size])
        assert_refused(path)


@pytest.mark.parametrize("flip", [0x01, 0xFF])
def test_an_altered_byte_is_found_or_harmless(saved, flip):
    """Whatever byte is altered, load says so with a ValueError, or returns the same model (dates, padding)."""
    path, data, expected = saved
    surprises = set()
    for place in range(0, len(data), 7):
        altered = bytearray(data)
        altered[place] ^= flip
        path.write_bytes(altered)
        try:
            model = load(path)
        except ValueError:
            continue
        except Exception as error:
            surprises.add(f"{type(error).__module__}.{type(error).__name__}")
            continue
        if not np.array_equal(model.decision_function(NEW), expected):
            surprises.add("another model")
    assert surprises == set()


def test_an_altered_array_in_a_valid_zip_is_found(saved):
    path, _, _ = saved

    def change(parts):
        buffer = io.BytesIO()
        np.save(buffer, np.array([99.0]))
        assert len(parts["arrays/intercept_.npy"]) == len(buffer.getvalue())
        parts["arrays/intercept_.npy"] = buffer.getvalue()

    rewrite(path, change)
    assert_refused(path, r"was altered: arrays/intercept_\.npy does not match its checksum")


def test_a_missing_array_is_found(saved):
    path, _, _ = saved
    rewrite(path, lambda parts: parts.pop("arrays/weights_.npy"))
    assert_refused(path, "damaged")


@pytest.mark.parametrize(
    "content", [b"", b"weights: 1\n", b"\x89PNG\r\n", pickle.dumps({"a": 1})], ids=["empty", "text", "image", "pickle"]
)
def test_other_files_are_refused(tmp_path, content):
    path = tmp_path / "notes.txt"
    path.write_bytes(content)
    assert_refused(path, "not a manykernels model")


@pytest.mark.parametrize(
    "manifest", [None, b"{}", b"[1]", b"not json", b'{"format": "other", "version": 1}', b"\xff\xfe"], ids=repr
)
def test_a_foreign_zip_is_refused(tmp_path, manifest):
    path = tmp_path / "foreign.zip"
    with zipfile.ZipFile(path, "w") as file:
        file.writestr("readme.txt", "hello")
        if manifest is not None:
            file.writestr("manifest.json", manifest)
    assert_refused(path)


def test_a_newer_format_asks_for_an_upgrade(saved):
    path, _, _ = saved
    change_manifest(path, version=VERSION + 1)
    assert_refused(path, "upgrade manykernels")


@pytest.mark.parametrize(
    "entries",
    [
        {"version": "1"},
        {"version": 1},
        {"version": True},
        {"version": None},
        {"version": [2] * 1000},
        {"estimator": "os.system"},
        {"predictors": []},
        {"members": {}},
        {"members": None},
        {"members": {"arrays/weights_.npy": [1, "0"]}},
        {"parameters": {}},
        {"values": {"__class__": 1}},
        {"values": {"n_features_in_": 4, "kernel_names_": "ab", "kernel_groups_": ["a", "b"]}},
        {"trace": [{"iteration": 1}]},
    ],
    ids=repr,
)
def test_a_manifest_that_makes_no_sense_is_refused(saved, entries):
    path, _, _ = saved
    change_manifest(path, **entries)
    assert_refused(path)


def test_a_missing_file_is_a_missing_file(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"nothing\.mkl"):
        load(tmp_path / "nothing.mkl")
    with pytest.raises((ValueError, OSError), match=tmp_path.name):
        load(tmp_path)


class Trap:
    """Unpickling it would leave a trace."""

    sprung = False

    def __reduce__(self):
        return setattr, (Trap, "sprung", True)


def test_a_pickle_inside_is_never_loaded(saved):
    """An array of objects with a matching checksum: refused without running what it holds."""
    path, _, _ = saved
    trap = np.array([Trap()], dtype=object)
    buffer = io.BytesIO()
    np.save(buffer, trap, allow_pickle=True)
    np.load(io.BytesIO(buffer.getvalue()), allow_pickle=True)
    assert Trap.sprung  # the trap works
    Trap.sprung = False
    replace_array(path, "weights_", trap, allow_pickle=True)
    assert_refused(path, "only numbers and text are read")
    assert not Trap.sprung


# -- kernels of one's own ------------------------------------------------------------------------------------


def test_an_own_kernel_must_be_passed(tmp_path):
    model, _, new = fitted("own kernel")
    model.save(tmp_path / "model.mkl")
    with pytest.raises(ValueError, match=r"kernel class Laplacian.*load\(path, kernels=\[Laplacian\]\)"):
        load(tmp_path / "model.mkl")
    again = load(tmp_path / "model.mkl", kernels=[Laplacian])
    np.testing.assert_allclose(again.decision_function(new), model.decision_function(new), rtol=1e-12)


def test_a_failed_load_leaves_nothing_behind(saved):
    """Reading a bad file does not disturb a good one after it."""
    path, data, expected = saved
    path.write_bytes(data[:100])
    with pytest.raises(ValueError, match="model"):
        load(path)
    path.write_bytes(data)
    model = load(path)
    check_is_fitted(model)
    np.testing.assert_array_equal(model.decision_function(NEW), expected)
