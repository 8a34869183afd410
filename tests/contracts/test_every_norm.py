"""What every norm and penalty keeps: its dual, weights, projections and gradients by their definitions."""

import numpy as np
import pytest
from scipy.optimize import minimize

from manykernels.norms import ElasticNorm, LpNorm, LpPenalty, MixedNorm, Penalty

GROUPS = ["a", "b", "b", "a", "c"]
M = len(GROUPS)


class Entropy(Penalty):
    """A penalty of a user's own, with its conjugate."""

    def value(self, weights):
        return float(np.sum(weights * np.log(np.maximum(weights, 1e-300))))

    def gradient(self, weights):
        return 1 + np.log(np.maximum(weights, 1e-300))

    def conjugate(self, slopes):
        return float(np.sum(np.exp(slopes - 1)))

    def __repr__(self):
        return "Entropy()"


class Quartic(Penalty):
    """A penalty of a user's own with the two methods that are needed."""

    def value(self, weights):
        return float(np.sum(weights**4))

    def gradient(self, weights):
        return 4 * weights**3

    def __repr__(self):
        return "Quartic()"


LPS = [LpNorm(p) for p in (1, 4 / 3, 2, np.inf)]
MIXED = [MixedNorm(q, GROUPS) for q in (0.5, 0.75, 1, 2, np.inf)]
ELASTIC = [ElasticNorm(), ElasticNorm(0.4), ElasticNorm(0.4, 1.5)]
PENALTIES = [LpPenalty(1, 0.8), LpPenalty(1.5), LpPenalty(2, 3.0), Entropy()]
NORMS = [*LPS, *MIXED, *ELASTIC, *PENALTIES, Quartic()]
# With q > 1 the weights of groups are a worst case, not a best one: a step need not lower the objective.
DESCENDING = [norm for norm in [*LPS, *MIXED, *ELASTIC, *PENALTIES] if not getattr(norm, "q", 0) > 1]
DESCENDING = [norm for norm in DESCENDING if norm.has_closed_form]
PROJECTABLE = [norm for norm in NORMS if norm.projection() is not None]
CONSTRAINTS = [norm for norm in NORMS if norm.__class__ in (LpNorm, MixedNorm)]


def every(norms):
    return pytest.mark.parametrize("norm", norms, ids=repr)


def vectors(count, seed, top=1.5):
    """Positive numbers; some vanish, and some are tiny."""
    rng = np.random.default_rng(seed)
    values = rng.uniform(0.0, top, (count, M))
    values[1::3] *= rng.random(values[1::3].shape) < 0.5
    values[2::3] **= 6
    values[:, 0] += 0.01
    return values


def test_the_list_holds_every_kind():
    assert {type(norm) for norm in DESCENDING} == {LpNorm, MixedNorm, ElasticNorm, LpPenalty}
    assert {type(norm) for norm in PROJECTABLE} == {LpNorm, LpPenalty, Entropy, Quartic}


@every(NORMS)
def test_what_a_problem_asks(norm):
    assert all(isinstance(value, bool) for value in (norm.selects, norm.has_dual, norm.bounds_dual))
    assert norm.has_dual == (not isinstance(norm, Quartic))
    assert np.isnan(norm.dual_regularizer(np.ones(M))) == (not norm.has_dual)


@every([norm for norm in NORMS if not isinstance(norm, Penalty)])
def test_what_overflows_is_infinite(norm):
    with np.errstate(over="ignore"):
        assert norm.regularizer(np.ones(M), np.full(M, 1e305)) < np.inf
        assert norm.regularizer(np.full(M, 1e10), np.full(M, 1e305)) == np.inf


@every([norm for norm in NORMS if norm.has_dual])
def test_weak_duality(norm):
    """Regularizer plus dual regularizer is at least sum_k a_k s_k, whatever the component norms and the forms."""
    for d, q, other in zip(vectors(60, 1), vectors(60, 2), vectors(60, 3), strict=True):
        for slopes in (q, other):
            inner = np.sum(d * np.sqrt(q * slopes))
            bound = norm.regularizer(d, q) + norm.dual_regularizer(slopes)
            assert bound >= inner - 1e-12 * (1 + inner)


@every([norm for norm in NORMS if norm.has_dual])
def test_the_dual_is_the_maximum(norm):
    """max over d of d'q - regularizer(d, q), by a general method from several places."""
    for q in np.minimum(vectors(4, 4), 1.5) + 0.05:
        expected = norm.dual_regularizer(q)
        best = 0.0
        for start in (np.ones(M), norm.initial_weights(M), 0.1 + np.eye(M)[np.argmax(q)]):

            def loss(roots, q=q):
                return norm.regularizer(roots**2, q) - roots**2 @ q

            bounds = [(0.0, 6.0)] * M
            found = minimize(loss, np.sqrt(start), method="Powell", bounds=bounds, options={"ftol": 1e-12})
            found = minimize(loss, found.x, method="Nelder-Mead", bounds=bounds, options={"fatol": 1e-13})
            best = max(best, -found.fun)
        assert best <= expected * (1 + 1e-9) + 1e-9
        # With q = inf the maximum is at a ridge, which no general method climbs to its top.
        assert best >= (0.97 if np.isinf(getattr(norm, "q", 0)) else 0.999) * expected - 1e-6


@every([norm for norm in NORMS if norm.has_dual and not isinstance(norm, Entropy)])
def test_at_the_dual_limit_the_dual_is_finite(norm):
    for scale in (1e-3, 1.0, 1e3):
        for q in scale * vectors(6, 5):
            limit = norm.dual_limit(q)
            assert 0.0 < limit <= 1.0
            assert np.isfinite(norm.dual_regularizer(limit**2 * q))
            assert limit == 1.0 or norm.dual_regularizer((1.001 * limit) ** 2 * q) == np.inf


@every(NORMS)
@pytest.mark.parametrize("n_kernels", [1, M, 1000])
def test_initial_weights(norm, n_kernels):
    """Positive, and on the boundary where there is one."""
    own = MixedNorm(norm.q, [f"group {k % 7}" for k in range(n_kernels)]) if type(norm) is MixedNorm else norm
    d = own.initial_weights(n_kernels)
    assert d.shape == (n_kernels,)
    assert np.all((d > 0) & np.isfinite(d))
    np.testing.assert_allclose(own.scaled(d), d, rtol=1e-12)


@every(NORMS)
def test_scaled_weights_are_on_the_boundary(norm):
    """Scaling again changes nothing, and neither does the size that weights come with, if they are constrained."""
    for d in vectors(10, 6):
        scaled = norm.scaled(d)
        np.testing.assert_allclose(norm.scaled(scaled), scaled, rtol=1e-12)
        assert np.array_equal(scaled > 0, d > 0)
        if norm in CONSTRAINTS:
            np.testing.assert_allclose(norm.scaled(1e3 * d), scaled, rtol=1e-12)
        else:
            np.testing.assert_array_equal(scaled, d)


@every([norm for norm in CONSTRAINTS if not getattr(norm, "q", 0) > 1])  # with those it is a maximum, too
def test_on_the_boundary_the_norm_is_a_minimum_over_weights(norm):
    """1/2 d'q is at least the regularizer of a = d sqrt(q) for weights of size 1."""
    for d, q in zip(vectors(50, 7), vectors(50, 8), strict=True):
        weights = norm.scaled(d)
        assert 0.5 * weights @ q >= norm.regularizer(weights, q) * (1 - 1e-12)


def ridge(stack, weights, y):
    """The machine of the squared loss: beta, and the losses of its predictions."""
    K = np.tensordot(weights, stack, axes=1)
    beta = np.linalg.solve(K + np.eye(y.size), y)
    return beta, 0.5 * np.sum((y - K @ beta) ** 2)


def some_kernels(n=12):
    rng = np.random.default_rng(9)
    factors = rng.standard_normal((M, n, 4)) * np.array([0.1, 0.5, 1.0, 1.0, 2.0])[:, None, None]
    return np.einsum("kir,kjr->kij", factors, factors), rng.standard_normal(n)


@every(DESCENDING)
@pytest.mark.parametrize("seed", range(3))
def test_reweighing_never_increases_the_objective(norm, seed):
    """The primal value of the machine, solved anew for each weights, from any weights."""
    stack, y = some_kernels()
    weights = norm.scaled(vectors(3, 10 + seed)[seed] + 0.01)
    values = []
    for _ in range(15):
        beta, losses = ridge(stack, weights, y)
        forms = np.einsum("i,kij,j->k", beta, stack, beta)
        values.append(norm.regularizer(weights, forms) + losses)
        weights = norm.reweigh(weights, forms)
        assert np.all((weights >= 0) & np.isfinite(weights))
    assert np.all(np.diff(values) <= 1e-10 * values[0])
    assert values[-1] < values[0]


@every([norm for norm in NORMS if norm.has_closed_form])
def test_reweighing_knows_kernels_that_are_nothing(norm):
    """A form or a weight of 0 stays a number, and so does nothing at all."""
    with np.errstate(all="raise"):
        for weights, forms in ((np.ones(M), np.zeros(M)), (np.eye(M)[1], np.ones(M)), (np.ones(M), np.eye(M)[2])):
            better = norm.reweigh(norm.scaled(weights), forms)
            assert better.shape == (M,)
            assert np.all((better >= 0) & np.isfinite(better))


# --- what projected gradients ask for --------------------------------------------------------------------------


@every(PROJECTABLE)
def test_the_projection_is_the_nearest_point(norm):
    """Feasible; what is feasible stays; and the angle to every feasible point is obtuse."""
    feasible = [norm.project(z) for z in np.random.default_rng(11).normal(size=(200, M))]
    for v in np.random.default_rng(12).normal(size=(10, M)) * 2:
        x = norm.project(v)
        assert np.all(x >= 0)
        np.testing.assert_allclose(norm.project(x), x, rtol=1e-9, atol=1e-12)
        assert max((v - x) @ (z - x) for z in feasible) <= 1e-7


def lengths():
    """(norm, length): one for each weight only for penalties, since a ball has no nearest point without a metric."""
    for norm in PROJECTABLE:
        some = {"short": 1e-3, "long": 0.7, "one each": np.linspace(0.1, 3.0, M)}
        for word, length in some.items():
            if word != "one each" or type(norm) is not LpNorm:
                yield pytest.param(norm, length, id=f"{norm!r}-{word}")


@pytest.mark.parametrize(("norm", "length"), list(lengths()))
def test_the_proximal_point_is_the_minimum(norm, length):
    """Of sum_k (x_k - v_k)^2 / (2 length_k) + penalty(x) over what is allowed; None where it is not known."""
    rng = np.random.default_rng(13)
    for v in rng.normal(size=(5, M)) * 2:
        x = norm.prox(v, length)
        if x is None:
            assert type(norm).prox is Penalty.prox
            continue

        def value(d, v=v):
            return np.sum((d - v) ** 2 / (2 * length)) + norm.penalty(d)

        for spread in (1.0, 1e-1, 1e-3, 1e-5):
            for other in norm.project(x) + spread * rng.normal(size=(20, M)):
                assert value(norm.project(other)) >= value(x) - 1e-12 * (1 + value(x))


@every(PROJECTABLE)
def test_the_gradient_of_the_penalty_by_differences(norm):
    d, step = np.random.default_rng(14).uniform(0.2, 3.0, M), 1e-6
    slopes = [(norm.penalty(d + e) - norm.penalty(d - e)) / (2 * step) for e in step * np.eye(M)]
    np.testing.assert_allclose(norm.penalty_gradient(d), slopes, rtol=1e-6, atol=1e-8)


# --- all of them -----------------------------------------------------------------------------------------------


@every(NORMS)
def test_nothing_is_written_to_what_is_given(norm):
    weights, forms = vectors(2, 15)
    weights.flags.writeable = forms.flags.writeable = False
    for method in ("regularizer", "reweigh"):
        if hasattr(norm, method):
            getattr(norm, method)(weights, forms)
    for method in ("dual_regularizer", "dual_limit", "scaled", "project", "penalty", "penalty_gradient", "weights"):
        if hasattr(norm, method):
            getattr(norm, method)(weights)
    if hasattr(norm, "prox"):
        norm.prox(weights, 0.5)


@every([*LPS, *MIXED, *ELASTIC, *PENALTIES[:3]])
def test_equality_hash_and_words(norm):
    parameters = {name: value for name, value in vars(norm).items() if not name.startswith("_")}
    twin = type(norm)(**parameters)
    assert twin == norm
    assert hash(twin) == hash(norm)
    assert [other for other in NORMS if other == norm] == [norm]
    assert norm != repr(norm)
    assert repr(norm).startswith(type(norm).__name__)
