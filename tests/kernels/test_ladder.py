"""Ladders against the kernels they stand for."""

import numpy as np
import pytest

from manykernels import MKLClassifier, load
from manykernels.banks import Placement, bind
from manykernels.kernels import Gaussian, GaussianLadder, KernelBank, Linear, standard_bank
from manykernels.kernels.ladder import chebyshev_widths, count_nodes, lagrange_basis
from tests.binding import bind_with

RNG = np.random.default_rng(0)
X = RNG.standard_normal((60, 4))
Y = np.sign(X[:, 0] + np.sin(2 * X[:, 1]) + 0.2 * RNG.standard_normal(60))
BETA = RNG.standard_normal(60)
LADDERS = [GaussianLadder(0.25, 16.0, 150), GaussianLadder(0.5, 8.0, 120, columns=[1, 2])]


def plain(ladders):
    """The same kernels, one by one."""
    return KernelBank([Gaussian(w, columns=ladder.columns) for ladder in ladders for w in ladder.widths])


@pytest.mark.parametrize("span", [(0.1, 0.2), (0.125, 64.0), (1e-3, 1e3)])
@pytest.mark.parametrize("error", [1e-4, 1e-7, 1e-10])
def test_the_stated_error_holds_between_the_nodes(span, error):
    """At widths and distances other than those where the number of nodes was chosen."""
    n_nodes = count_nodes(*span, error)
    nodes = chebyshev_widths(*span, n_nodes)
    widths = np.exp(np.random.default_rng(1).uniform(*np.log(span), 500))
    distances = np.geomspace(1e-6 * span[0] ** 2, 1e6 * span[1] ** 2, 777)
    approximate = lagrange_basis(widths, *span, n_nodes) @ np.exp(-distances / (2 * nodes[:, None] ** 2))
    assert np.abs(approximate - np.exp(-distances / (2 * widths[:, None] ** 2))).max() <= 1.5 * error


@pytest.mark.parametrize("center", [False, True])
@pytest.mark.parametrize("normalize", ["mean_diag", "trace", "cosine", None])
def test_same_numbers_as_single_kernels(normalize, center):
    options = {"normalize": normalize, "center": center, "precision": "double"}
    ladder, single = bind_with(KernelBank(LADDERS), X, **options), bind_with(plain(LADDERS), X, **options)
    beta = BETA - BETA.mean()
    scale = np.abs(beta).sum() ** 2 * single.normalization.largest.max()
    np.testing.assert_allclose(ladder.quad_forms(beta), single.quad_forms(beta), atol=1e-6 * scale)
    assert ladder.quad_forms(np.stack([beta, BETA])).shape == (2, 270)
    M = np.outer(beta, beta) + np.eye(60)
    np.testing.assert_allclose(ladder.inner_products(M), single.inner_products(M), atol=1e-6 * scale)
    dense, few = RNG.random(270), np.where(np.arange(270) % 90 == 0, 1.0, 0.0)
    for weights in (dense, few):
        np.testing.assert_allclose(
            ladder.combine(weights).array, single.combine(weights).array, atol=1e-5 * weights.sum()
        )
    chosen = np.array([3, 77, 200])
    np.testing.assert_allclose(ladder.matvecs(beta, chosen), single.matvecs(beta, chosen), atol=1e-6)
    np.testing.assert_allclose(ladder.diagonal(chosen), single.diagonal(chosen), atol=1e-6)
    part, single_part = ladder.tail(25), single.tail(25)
    np.testing.assert_allclose(part.quad_forms(beta[-25:]), single_part.quad_forms(beta[-25:]), atol=1e-6 * scale)
    np.testing.assert_allclose(part.combine(few).array, single_part.combine(few).array, atol=1e-5 * few.sum())
    assert ladder.names[200] == single.names[200]
    assert len(ladder.names) == len(ladder.groups) == 270


@pytest.mark.parametrize("normalize", ["mean_diag", "trace", "cosine", None])
def test_same_scale_as_single_kernels_where_samples_lack_a_view(normalize):
    ladders = [
        GaussianLadder(0.5, 8.0, 20, columns=[0]),
        GaussianLadder(0.5, 8.0, 20, columns=[1, 2]),
        GaussianLadder(count=20, columns=[3]),
    ]
    holes = X.copy()
    holes[5:20, 1:3] = np.nan
    holes[:, 3] = np.nan
    options = {"normalize": normalize, "precision": "double", "sample_weight": 1.0 + RNG.random(60)}
    with pytest.warns(UserWarning, match="20 of 60 kernels are zero"):
        bank = bind_with(KernelBank(ladders), holes, **options)
    with pytest.warns(UserWarning, match="20 of 60 kernels are zero"):
        single = bind_with(plain(ladders), holes, **options)
    np.testing.assert_allclose(bank.scale, single.scale)
    np.testing.assert_allclose(bank.diagonal(), single.diagonal())
    if normalize == "trace":
        np.testing.assert_allclose((bank.diagonal() @ options["sample_weight"])[:40], 1.0)


def test_peaks_are_the_local_maxima_of_each_ladder():
    bank = bind(KernelBank([GaussianLadder(count=5), GaussianLadder(count=4, columns=[0])]), X)
    values = np.array([1.0, 3.0, 2.0, 2.5, 2.4, 9.0, 8.0, 7.0, 8.0])
    assert bank.peaks(values).tolist() == [1, 3, 5, 8]


@pytest.mark.parametrize("norm", [1.0, 4 / 3, 2.0])
def test_a_model_on_a_ladder_is_the_model_on_its_kernels(norm, tmp_path):
    tol = 1e-4
    on_ladder = MKLClassifier(KernelBank(LADDERS), norm=norm, tol=tol).fit(X, Y)
    one_by_one = MKLClassifier(plain(LADDERS), norm=norm, tol=tol).fit(X, Y)
    assert on_ladder.objective_ == pytest.approx(one_by_one.objective_, rel=3 * tol)
    assert on_ladder.converged_
    new = np.random.default_rng(5).standard_normal((20, 4))
    np.testing.assert_allclose(on_ladder.decision_function(new), one_by_one.decision_function(new), atol=0.05)
    on_ladder.save(tmp_path / "model.mkl")
    again = load(tmp_path / "model.mkl")
    np.testing.assert_allclose(again.decision_function(new), on_ladder.decision_function(new), rtol=1e-8)
    assert on_ladder.feature_importances_.sum() == pytest.approx(1.0)


@pytest.mark.parametrize("norm", [1.0, 4 / 3])
def test_the_certificate_holds_for_the_true_kernels(norm):
    """The gap, recomputed with exact Gaussian kernels from the public attributes."""
    model = MKLClassifier(KernelBank(LADDERS), norm=norm, C=10.0).fit(X, Y)
    beta = np.zeros(60)
    beta[model.support_] = model.dual_coef_[0]
    true = bind(plain(LADDERS), X, placement=Placement(precision="double"))
    quad_forms, decision = true.quad_forms(beta), true.combine(model.weights_).array @ beta
    r = 2 * norm / (1 + norm)
    primal = 0.5 * np.sum((model.weights_ * np.sqrt(quad_forms)) ** r) ** (2 / r)
    primal += 10.0 * np.maximum(0.0, 1.0 - Y * (decision + model.intercept_[0])).sum()
    dual_norm = quad_forms.max() if norm == 1 else np.sum(quad_forms ** (norm / (norm - 1))) ** ((norm - 1) / norm)
    dual = Y @ beta - 0.5 * dual_norm
    assert model.objective_ == pytest.approx(primal, rel=1e-5)
    assert model.dual_objective_ == pytest.approx(dual, rel=1e-5)


def test_ladders_beside_plain_kernels():
    mixed = KernelBank([Linear(), LADDERS[1], Gaussian(1.0, columns=[0])])
    single = KernelBank([Linear(), Gaussian(1.0, columns=[0]), *plain(LADDERS[1:])])
    assert len(mixed) == len(single) == 122
    one, other = (
        bind(mixed, X, placement=Placement(precision="double")),
        bind(single, X, placement=Placement(precision="double")),
    )
    assert list(one.names) == other.names
    np.testing.assert_allclose(one.quad_forms(BETA), other.quad_forms(BETA), atol=1e-4)
    weights = RNG.random(122)
    np.testing.assert_allclose(one.combine(weights).array, other.combine(weights).array, atol=1e-5)
    chosen = np.array([0, 1, 50, 121])
    np.testing.assert_allclose(
        one.subset(chosen).combine(np.ones(4)).array, other.subset(chosen).combine(np.ones(4)).array, atol=1e-6
    )
    model = MKLClassifier(mixed).fit(X, Y)
    assert model.objective_ == pytest.approx(MKLClassifier(single).fit(X, Y).objective_, rel=2e-3)


def test_many_widths_make_ladders():
    bank = standard_bank(X, widths=500)
    assert len(bank) == 5 * 503
    assert sum(isinstance(kernel, GaussianLadder) for kernel in bank) == 5
    assert len(standard_bank(X, widths=20, degrees=())) == 100


@pytest.mark.parametrize(
    ("options", "word"),
    [({"low": 0.0}, "low"), ({"low": 2.0, "high": 1.0}, "high"), ({"count": 1}, "count"), ({"error": 0.0}, "error")],
)
def test_bad_parameters_are_named(options, word):
    with pytest.raises(ValueError, match=rf"^{word} must be"):
        GaussianLadder(**options)


@pytest.mark.parametrize(("C", "tol"), [(1e2, 1e-6), (1e4, 1e-5), (1e6, 1e-4)])
def test_a_large_C_gets_the_digits_it_needs(C, tol):
    """What interpolation leaves out is part of the gap: then the ladder is refined."""
    ladder = [GaussianLadder(0.25, 8.0, 200)]
    model = MKLClassifier(KernelBank(ladder), C=C, tol=tol).fit(X, Y)
    beta = np.zeros(60)
    beta[model.support_] = model.dual_coef_[0]
    true = bind(plain(ladder), X, placement=Placement(precision="double"))
    quad_forms, decision = true.quad_forms(beta), true.combine(model.weights_).array @ beta
    losses = C * np.maximum(0.0, 1.0 - Y * (decision + model.intercept_[0])).sum()
    primal = 0.5 * np.sum(model.weights_ * np.sqrt(quad_forms)) ** 2 + losses
    gap = (primal - (Y @ beta - 0.5 * quad_forms.max())) / primal
    assert model.converged_
    assert gap <= 1.3 * tol


def test_constant_columns_beside_others():
    Z = np.column_stack([X[:, :2], np.ones(60)])
    bank = KernelBank(
        [Linear(columns=[0]), GaussianLadder(count=50, columns=[2]), GaussianLadder(count=50, columns=[0, 1])]
    )
    with pytest.warns(UserWarning, match="50 of 101 kernels are zero"):
        model = MKLClassifier(bank, center=True).fit(Z, Y)
    assert model.weights_[1:51].max() == 0.0


def test_a_ladder_model_is_small():
    import pickle

    model = MKLClassifier(KernelBank([GaussianLadder(count=5000)]), C=10.0).fit(X, Y)
    assert len(pickle.dumps(model)) < 300_000
    assert len(model.kernel_names_) == 5000
    assert "from 'Gaussian(width=0.125)" in repr(model.kernel_names_)
