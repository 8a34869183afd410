"""What every joint loss keeps: values by definition, subgradients, conjugates. New joint losses join the list."""

import numpy as np
import pytest
from scipy.optimize import linprog, minimize

from manykernels.losses import (
    EpsilonInsensitive,
    Hinge,
    Logistic,
    MulticlassHinge,
    OneVsRest,
    Squared,
    SquaredHinge,
    StructuredHinge,
)


class Tree(StructuredHinge):
    """The classes in a tree of the docstring: branches first, then leaves."""

    paths = {"cat": [1, 0, 1, 0, 0], "dog": [1, 0, 0, 1, 0], "oak": [0, 1, 0, 0, 1]}  # noqa: RUF012
    n_outputs = 5

    def embed(self, label):
        return np.array(self.paths[label], dtype=float)

    def cost(self, label, other):
        return 0.25 * np.abs(self.embed(label) - self.embed(other)).sum()

    def best(self, z, y=None):
        return max(self.paths, key=lambda label: z @ self.embed(label) + (0.0 if y is None else self.cost(y, label)))


SMOOTH = [OneVsRest(Logistic(), 3), OneVsRest(Squared(), 3), OneVsRest(SquaredHinge(), 3)]
KINKED = [OneVsRest(Hinge(), 3), OneVsRest(EpsilonInsensitive(0.2), 3), MulticlassHinge(2), MulticlassHinge(4)]
LOSSES = [OneVsRest(Hinge(), 1), *SMOOTH, *KINKED, Tree()]


def words(loss):
    inner = getattr(loss, "loss", None)
    return f"{type(loss).__name__}({'' if inner is None else repr(inner) + ', '}{loss.n_outputs})"


every_loss = pytest.mark.parametrize("loss", LOSSES, ids=words)
every_known_conjugate = pytest.mark.parametrize("loss", [*SMOOTH, *KINKED], ids=words)


def targets(loss, n, rng):
    if isinstance(loss, Tree):
        return rng.choice(list(loss.paths), n).tolist()
    if isinstance(loss, MulticlassHinge):
        return rng.integers(0, loss.n_outputs, n)
    shape = (n, loss.n_outputs)
    return rng.choice([-1.0, 1.0], shape) if loss.loss.classification else rng.standard_normal(shape)


def scores(loss, n, rng):
    return 1.5 * rng.standard_normal((n, loss.n_outputs))


def plain_value(loss, y, z):
    if isinstance(loss, Tree):
        return max(loss.cost(y, label) + z @ loss.embed(label) for label in loss.paths) - z @ loss.embed(y)
    if isinstance(loss, MulticlassHinge):
        return max([0.0] + [1.0 - z[y] + z[c] for c in range(loss.n_outputs) if c != y])
    return sum(float(loss.loss.value(y[c], z[c])) for c in range(loss.n_outputs))


@every_loss
def test_values_are_the_definition_and_not_negative(loss):
    rng = np.random.default_rng(0)
    y, z = targets(loss, 50, rng), scores(loss, 50, rng)
    expected = [plain_value(loss, y[i], z[i]) for i in range(50)]
    values = loss.values(y, z)
    assert values.shape == (50,)
    np.testing.assert_allclose(values, expected, atol=1e-12)
    assert np.all(values >= -1e-12)


@every_loss
def test_descent_gives_the_value_and_leaves_the_scores_alone(loss):
    rng = np.random.default_rng(1)
    y, z = targets(loss, 20, rng), scores(loss, 20, rng)
    before = z.copy()
    for i in range(20):
        value, step = loss.descent(y[i], z[i])
        assert value == pytest.approx(plain_value(loss, y[i], z[i]), abs=1e-12)
        assert step.shape == (loss.n_outputs,)
    np.testing.assert_array_equal(z, before)


@every_loss
def test_descent_is_minus_a_subgradient(loss):
    """loss(u) >= loss(z) - g'(u - z) for every u: also far away, and where z is 0 or at a kink."""
    rng = np.random.default_rng(2)
    for y in targets(loss, 6, rng):
        for z in [np.zeros(loss.n_outputs), np.ones(loss.n_outputs), *scores(loss, 5, rng)]:
            value, g = loss.descent(y, z)
            for u in [*scores(loss, 20, rng), *(100.0 * scores(loss, 5, rng)), z + 1e-6 * rng.standard_normal(z.size)]:
                other = plain_value(loss, y, u)
                assert other >= value - g @ (u - z) - 1e-10 * (1 + abs(other))


@every_loss
def test_a_short_step_along_the_descent_lowers_the_loss(loss):
    rng = np.random.default_rng(3)
    y, z = targets(loss, 20, rng), scores(loss, 20, rng)
    for i in range(20):
        value, g = loss.descent(y[i], z[i])
        if np.any(g):
            assert plain_value(loss, y[i], z[i] + 1e-4 * g) < value


# --- conjugates --------------------------------------------------------------------------------------------


def dual_points(loss, y, C, rng):
    """Dual points of one sample: means of descents at random scores, times C; all are inside the domain."""
    steps = np.array([loss.descent(y, z)[1] for z in scores(loss, 6, rng)])
    shares = rng.dirichlet(np.ones(6), 4)
    return C * np.vstack([shares @ steps, steps[:1], 0.0 * steps[:1]])


def numeric_supremum(loss, y, beta, C):
    """sup_z (-beta'z - C loss(y, z)) by a general solver; the loss of several classes sees differences only."""
    if isinstance(loss, MulticlassHinge):
        M = loss.n_outputs
        rivals = [c for c in range(M) if c != y]
        rows = np.zeros((M - 1, M + 1))  # z_c - z_y - xi <= -1
        for row, c in zip(rows, rivals, strict=True):
            row[c], row[y], row[M] = 1.0, -1.0, -1.0
        bounds = [(0, 0) if c == y else (None, None) for c in range(M)] + [(0, None)]
        found = linprog([*beta, C], rows, -np.ones(M - 1), bounds=bounds)
        assert found.success
        return -found.fun
    total = 0.0
    for c in range(loss.n_outputs):  # each output by itself, on a grid and then finer around its best point
        grid = np.linspace(-60.0, 60.0, 120_001)
        best = grid[np.argmax(-beta[c] * grid - C * loss.loss.value(y[c], grid))]
        fine = minimize(
            lambda z: beta[c] * z[0] + C * float(loss.loss.value(y[c], z[0])),  # noqa: B023
            [best],
            method="Nelder-Mead",
            options={"xatol": 1e-10, "fatol": 1e-12},
        )
        total -= fine.fun
    return total


@every_known_conjugate
@pytest.mark.parametrize("C", [0.3, 4.0])
def test_the_conjugate_is_the_supremum(loss, C):
    rng = np.random.default_rng(4)
    for y in targets(loss, 2, rng):
        for beta in dual_points(loss, y, C, rng):
            found = loss.conjugates(np.array([y]), beta[None], np.array([C]))
            assert found.shape == (1,)
            assert found[0] == pytest.approx(numeric_supremum(loss, y, beta, C), rel=1e-6, abs=1e-6)


@every_known_conjugate
def test_scores_and_their_descent_make_an_equality(loss):
    """Fenchel: C loss(z) + conjugate(beta) + beta'z >= 0 for every dual point, and = 0 for C times the descent at z."""
    rng = np.random.default_rng(5)
    y, z, C = targets(loss, 30, rng), scores(loss, 30, rng), rng.uniform(0.1, 3.0, 30)
    beta = C[:, None] * np.array([loss.descent(y[i], z[i])[1] for i in range(30)])
    left = C * loss.values(y, z) + loss.conjugates(y, beta, C) + np.sum(beta * z, axis=1)
    np.testing.assert_allclose(left, 0.0, atol=1e-9)
    elsewhere = scores(loss, 30, rng)
    left = C * loss.values(y, elsewhere) + loss.conjugates(y, beta, C) + np.sum(beta * elsewhere, axis=1)
    assert np.all(left >= -1e-9)
