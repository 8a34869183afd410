"""Many outputs with the squared loss, each with kernel weights of its own: all of a batch at once, by products alone.

For each output y of a batch, with D = diag(1 / C),

    minimize over d >= 0, ||d||_p <= 1    J(d) = max over beta, 1'beta = 0    y'beta - 1/2 beta'(K_d + D) beta
    dual:  maximize over beta             y'beta - 1/2 beta'D beta - 1/2 ||q||_{p*},      q_k = beta'K_k beta.

The kernels are the same for all outputs, so that the costly part, K_k times vectors, is done for all of them in one
product of matrices: a pass. Each output searches its beta in a space of its own, spanned by a few vectors V (columns,
orthonormal, 1'V = 0), of which it keeps K_k V. In that space, beta = V c, the problem is one of a few numbers,

    J_V(d) = max over c    (V'y)'c - 1/2 c'(sum_k d_k G_k + V'D V) c,      G_k = V'K_k V,

and J_V <= J. A pass makes the space larger by one vector, the residual r = y - b - K_d beta - D beta multiplied by the
inverse of K_m + D, where m is the mean of the weights of outputs that are alike: a few factorizations serve all, and
how many depends on what a pass costs. Where V has grown too large, beta and its last change are kept of it.

In between, d is moved by steps of the closed form of MKLGL, d_k proportional to (d_k^2 q_k)^(1/(1+p)), each of which
lowers J_V. They cost next to nothing, but J_V says little of J where d is far from the weights that V was made for. So
they are taken in rounds of 1, 2, 4, ... steps, and a round is kept while the error of the machine is not larger than
the error of the weights:

    C/2 |r|^2 <= theta * 1/2 (||q||_{p*} - sum_k d_k q_k).

The two sum to the duality gap of the output, which is computed from the whole of beta and K_k beta. An output leaves
the batch when its gap is reached. Those that do not come to it (extreme C, tolerances near rounding) are told apart by
their gaps, and left to the solvers of one output.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, cast

import numpy as np

from manykernels.compute.combined import DOUBLE, LAST_BIT
from manykernels.compute.threads import n_threads, one_blas_thread, parallel
from manykernels.core.protocols import MatrixBank
from manykernels.core.results import SeparateTasks
from manykernels.core.solver import Need, Sizes, Solver
from manykernels.losses import Loss
from manykernels.norms import Norm
from manykernels.problem import Problem

_SPACE = 10  # vectors of an output
_THETA = 2.0  # the error of the machine, beside that of the weights
_NEAR = 0.3  # of tol: errors that need not be smaller
_ROUNDS = 256  # steps between two passes
_MOST_PASSES, _PATIENCE = 80, 12  # and passes without a gap that becomes smaller
_PROGRESS = 0.8
_MOST_OUTPUTS, _MOST_ON_DEVICE, _FEWEST_OUTPUTS = 256, 1 << 14, 8
_FACTOR_SHARE = 0.5  # of a pass
_SAME = 1e-3  # squared distance of the roots of weights
_LEAST_START = 1e-3  # of the largest weight
_CROWDED = 0.75  # with fewer outputs left of a batch, the others leave their memory


@one_blas_thread()
def batched_ridge(
    problem: Problem, *, tol: float = 1e-3, max_iter: int = 1000, start: np.ndarray | None = None
) -> SeparateTasks:
    """Learn every task of a problem with weights of its own.

    Parameters
    ----------
    problem : Problem
        With the squared loss and an LpNorm; its tasks are the outputs. With an intercept no task has equal targets.
    tol : float
        Relative duality gap to reach for each output.
    max_iter : int
        Most passes.
    start : ndarray of shape (n_outputs, n_kernels), optional
        Weights to start from. Default: equal weights.

    Returns
    -------
    SeparateTasks

    Examples
    --------
    >>> import numpy as np
    >>> from manykernels.banks import bind
    >>> from manykernels.kernels import Gaussian, KernelBank
    >>> from manykernels.losses import Squared
    >>> from manykernels.norms import LpNorm
    >>> from manykernels.outer.batched_ridge import batched_ridge
    >>> from manykernels.problem import Problem
    >>> X = np.linspace(-3, 3, 30)[:, None]
    >>> Y = np.sin(np.arange(1, 11)[:, None] * X.T)
    >>> bank = bind(KernelBank([Gaussian(w) for w in (0.1, 1.0, 10.0)]), X)
    >>> outputs = batched_ridge(Problem(bank, Squared(), LpNorm(1), Y, np.ones(Y.shape)), tol=1e-4)
    >>> outputs.weights.shape, bool(outputs.gaps.max() <= 1e-4)
    ((10, 3), True)
    """
    batches, first = list(_batches(problem)), _start(problem, start)

    def learn(outputs: np.ndarray) -> SeparateTasks:
        return _Batch(problem, outputs, first[outputs], tol).learn(max_iter)

    place = _bank_of(problem).batches()
    learned = parallel(learn, batches) if place.side_by_side else [learn(batch) for batch in batches]
    order = np.argsort(np.concatenate(batches), kind="stable")
    parts = {
        name: np.concatenate([getattr(part, name) for part in learned])[order]
        for name in ("weights", "beta", "intercept", "primal", "dual", "rounding")
    }
    return SeparateTasks(**parts, n_iter=max(part.n_iter for part in learned))


def _start(problem: Problem, start: np.ndarray | None) -> np.ndarray:
    """Return the weights to start from; those that are 0 are raised a little, since multiplied they would stay 0."""
    norm, m = problem.norm, problem.bank.n_kernels
    if start is None:
        return np.tile(norm.initial_weights(m), (problem.y.shape[0], 1))
    raised = np.maximum(start, _LEAST_START * start.max(axis=1, keepdims=True))
    return np.array([norm.scaled(weights) for weights in raised])


def _refuses(norm: Norm, loss: Loss) -> str | None:
    levels = norm.levels()
    if not loss.quadratic:
        return f"needs the squared loss, got {loss!r}."
    return None if levels is not None and levels.is_plain else f"needs LpNorm(p), got {norm!r}."


def _need(sizes: Sizes, norm: Norm, loss: Loss) -> Need:
    """Return two matrices, and the vectors of a small batch; a larger one takes what is spare."""
    return Need(2 * 8 * sizes.n_samples**2 + _FEWEST_OUTPUTS * _bytes_of(sizes.n_kernels, sizes.n_samples))


BATCHED_RIDGE = Solver(
    name="batched_ridge",
    run=batched_ridge,
    needs=frozenset({"combine", "kernel_products", "coefficients", "diagonal", "largest_diagonals"}),
    refuses=_refuses,
    need=_need,
)


def _bank_of(problem: Problem) -> MatrixBank:
    return cast(MatrixBank, problem.bank)


def _bytes_of(m: int, n: int) -> int:
    """Return the bytes of an output: its vectors, their products with all kernels, and what is computed of them."""
    return 8 * n * (m * (_SPACE + 3) + _SPACE + 12)


def _batches(problem: Problem) -> Iterator[np.ndarray]:
    """Yield the outputs of each batch: those that share their costs, as many as there is room for."""
    n = problem.y.shape[1]
    place = _bank_of(problem).batches()
    most = _MOST_OUTPUTS if place.side_by_side else _MOST_ON_DEVICE
    room = place.room(problem.bank.spare) // _bytes_of(problem.bank.n_kernels, n)
    size = int(np.clip(room // (n_threads() if place.side_by_side else 1), _FEWEST_OUTPUTS, most))
    level = problem.C.sum(axis=1)
    for value in np.unique(level):
        outputs = np.flatnonzero(level == value)
        yield from np.array_split(outputs, -(-outputs.size // size))


def alike(weights: np.ndarray, count: int) -> list[np.ndarray]:
    """Return the places of outputs in groups of similar weights: those nearest to one of ``count`` that lie far apart.

    Examples
    --------
    >>> import numpy as np
    >>> from manykernels.outer.batched_ridge import alike
    >>> alike(np.array([[1.0, 0.0], [0.0, 1.0], [0.9, 0.1]]), 2)
    [array([0, 2]), array([1])]
    """
    roots = np.sqrt(weights)
    nearest, owner = ((roots - roots.mean(axis=0)) ** 2).sum(axis=1), np.zeros(len(roots), np.int64)
    middle = int(nearest.argmin())
    nearest = ((roots - roots[middle]) ** 2).sum(axis=1)
    for number in range(1, count):
        farthest = int(nearest.argmax())
        if nearest[farthest] <= _SAME:
            break
        distance = ((roots - roots[farthest]) ** 2).sum(axis=1)
        owner[distance < nearest] = number
        nearest = np.minimum(nearest, distance)
    return [np.flatnonzero(owner == number) for number in np.unique(owner)]


class _Batch:
    """Some outputs on their way.

    ``live`` are the places of those that are still in the arrays below, which have a row for each:
    ``y, C`` (n_live, n), ``d`` (n_live, m), the vectors ``V`` (n_live, space, n), their products ``KV`` (n_live, m,
    space, n) with the kernels, and ``G`` (n_live, m, space, space); ``size`` vectors are in use.
    """

    def __init__(self, problem: Problem, outputs: np.ndarray, start: np.ndarray, tol: float) -> None:
        self.problem, self.bank, self.tol = problem, _bank_of(problem), tol
        self.at = self.bank.batches()
        levels = problem.norm.levels()
        assert levels is not None
        self.p = levels.p
        self.live = np.arange(outputs.size)
        self.y, self.C = self.at.send(problem.y[outputs]), self.at.send(problem.C[outputs])
        self.d, self.residual = self.at.send(start), self.y
        m, n = self.bank.n_kernels, self.bank.n_samples
        self.V, self.KV = self.at.zeros(outputs.size, _SPACE, n), self.at.zeros(outputs.size, m, _SPACE, n)
        self.G, self.size = self.at.zeros(outputs.size, m, _SPACE, _SPACE), 0
        self.best = {"weights": start.copy(), "beta": np.zeros((outputs.size, n))}
        for name in ("intercept", "dual", "rounding"):
            self.best[name] = np.zeros(outputs.size)
        self.best["primal"], self.gaps = np.full(outputs.size, np.inf), np.full(outputs.size, np.inf)
        self.largest = self.at.send(self.bank.largest_diagonals(np.arange(m)))
        self.diagonals = self.at.send(self.bank.diagonal())

    def learn(self, max_iter: int) -> SeparateTasks:
        """Make passes until all gaps are reached, or no gap becomes smaller."""
        best, since, n_passes = np.inf, 0, 0
        for n_passes in range(1, min(max_iter, _MOST_PASSES) + 1):  # noqa: B007
            if self.size == _SPACE:
                self._restart()
            self._extend()
            self._judge(*self._improved())
            open_outputs = self.gaps[self.live] > self.tol
            total = float(np.minimum(self.gaps, 1.0).sum())
            best, since = (total, 0) if total < _PROGRESS * best else (best, since + 1)
            if not np.any(open_outputs) or since > _PATIENCE:
                break
            if open_outputs.mean() < _CROWDED:
                self._keep(np.flatnonzero(open_outputs))
        return SeparateTasks(**self.best, n_iter=n_passes)

    def _keep(self, kept: np.ndarray) -> None:
        """Go on with some of the live outputs."""
        self.live, places = self.live[kept], self.at.places(kept)
        for name in ("y", "C", "d", "residual", "V", "KV", "G", "c"):
            setattr(self, name, getattr(self, name)[places])

    # -- a pass -----------------------------------------------------------------------------------------------------

    def _extend(self) -> None:
        """Add a vector to each space: the residual, times the inverse of what similar outputs have in common."""
        vectors, at = self._preconditioned(self.residual), self.size
        for _ in range(2):  # the second time takes off what rounding has left
            if at:
                known = self.V[:, :at]
                vectors = vectors - ((known @ vectors[..., None]).swapaxes(1, 2) @ known)[:, 0]
            if self.problem.fit_intercept:
                vectors = vectors - vectors.mean(1)[:, None]
            length = (vectors**2).sum(1)[:, None] ** 0.5
            vectors = vectors / self.at.where(length > 0, length, length + 1.0)
        self.V[:, at] = vectors
        for k in range(self.bank.n_kernels):
            self.KV[:, k, at] = self.bank.kernel_products(k, vectors)
        forms = (self.KV[:, :, : at + 1] @ vectors[:, None, :, None])[..., 0]
        self.G[:, :, : at + 1, at] = forms
        self.G[:, :, at, : at + 1] = forms
        self.size += 1

    def _preconditioned(self, rows: Any) -> Any:
        """Return (K_m + D)^-1 times each of the rows, with sums of 0 where there is an intercept."""
        d, solved = self.at.fetch(self.d), self.at.zeros(*rows.shape)
        for members in alike(d, self._n_factors(len(d))):
            places = self.at.places(members)
            solved[places] = self._solved_together(d[members].mean(axis=0), places, rows[places])
        return solved

    def _n_factors(self, n_live: int) -> int:
        """Return how many matrices may be factored in the time of a part of a pass, which takes 6 m n_live / n."""
        m, n = self.bank.n_kernels, self.bank.n_samples
        return min(1 + int(_FACTOR_SHARE * 6 * m * n_live / n), self.at.most_factors)

    def _solved_together(self, mean: np.ndarray, places: Any, rows: Any) -> Any:
        """Return the same for outputs at some places, by the factor of one matrix."""
        B, s = self.bank.combined(self.problem.norm.scaled(mean)), self.C[places].mean(0) ** 0.5
        B *= s[:, None]
        B *= s
        solve = self.at.factored(B)
        solved = s * solve(s * rows)
        if self.problem.fit_intercept:
            ones = s * solve(s[None, :])
            solved = solved - solved.sum(1)[:, None] / ones.sum() * ones
        return solved

    def _restart(self) -> None:
        """Keep beta and its last change of each space."""
        first = self.c / (self.c**2).sum(1)[:, None] ** 0.5
        second = self.at.zeros(*first.shape)
        second[:, -1] = 1.0
        for _ in range(2):
            second = second - (second * first).sum(1)[:, None] * first
            length = (second**2).sum(1)[:, None] ** 0.5
            second = second / self.at.where(length > 0, length, length + 1.0)
        turn = self.at.zeros(first.shape[0], 2, _SPACE)
        turn[:, 0], turn[:, 1] = first, second
        self.V[:, :2] = turn @ self.V
        self.KV[:, :, :2] = turn[:, None] @ self.KV
        self.G[:, :, :2, :2] = turn[:, None] @ self.G @ turn.swapaxes(1, 2)[:, None]
        self.size = 2

    # -- between passes ---------------------------------------------------------------------------------------------

    def _improved(self) -> tuple[Any, Any]:
        """Move the weights by rounds of steps; return the coefficients c in the spaces, and the quadratic forms."""
        s, (n_live, m) = self.size, self.d.shape
        V = self.V[:, :s]
        forms = self.G[:, :, :s, :s].reshape(n_live, m, s * s)
        system, right = (V / self.C[:, None]) @ V.swapaxes(1, 2), (V @ self.y[..., None])[..., 0]
        system = system + self._void(V)
        going, steps, total, move = None, 1, 0, self._steps(forms, system, right)
        while total < _ROUNDS:
            moved = move(self.d, steps)
            c, q = self._solved(moved, forms, system, right)
            value = 0.5 * (right * c).sum(1)
            ahead = 0.5 * (self._dual_norm(q) - (moved * q).sum(1))
            near = self._machine_error(moved, c) <= self._least(_THETA * ahead, value)
            kept = near if going is None else near & going
            # The first round, a single step of the alternation, lowers J in any case.
            self.d = moved if going is None else self.at.where(kept[:, None], moved, self.d)
            going = kept & (ahead > _NEAR * self.tol * value)
            total, steps = total + steps, 2 * steps
            if not bool(going.any()):
                break
        return self._solved(self.d, forms, system, right)

    def _void(self, V: Any) -> Any:
        """Return 1 for vectors that are 0, on the diagonals of the systems, which then have a solution."""
        is_void = self.at.where((V**2).sum(2) > 0, 0.0 * V[:, :, 0], 0.0 * V[:, :, 0] + 1.0)
        return is_void[:, :, None] * self.at.send(np.eye(V.shape[1]))

    def _least(self, errors: Any, value: Any) -> Any:
        """Return the errors, or what need not be smaller."""
        enough = _NEAR * self.tol * value
        return self.at.where(errors > enough, errors, enough)

    def _steps(self, forms: Any, system: Any, right: Any) -> Any:
        """Return what takes steps of the alternation in the spaces."""

        def step(d: Any) -> Any:
            _, q = self._solved(d, forms, system, right)
            return self._on_the_ball((d * d * q) ** (1.0 / (1.0 + self.p)), d)

        return self.at.repeated(step)

    def _solved(self, d: Any, forms: Any, system: Any, right: Any) -> tuple[Any, Any]:
        """Return the coefficients for these weights, and their quadratic forms."""
        A = (d[:, None, :] @ forms)[:, 0].reshape(system.shape) + system
        c = self.at.solve(A, right)
        outer = (c[:, :, None] * c[:, None, :]).reshape(c.shape[0], -1)
        return c, (forms @ outer[..., None])[..., 0].clip(0.0)

    def _on_the_ball(self, values: Any, others: Any) -> Any:
        """Return values scaled to ||d||_p = 1, and the others where all of them are 0."""
        if np.isinf(self.p):
            return others
        largest = self.at.largest(values)
        shape = values / self.at.where(largest > 0, largest, largest + 1.0)
        size = (shape**self.p).sum(1)[:, None] ** (1.0 / self.p)
        return self.at.where(largest > 0, shape / self.at.where(size > 0, size, size + 1.0), others)

    def _dual_norm(self, q: Any) -> Any:
        """Return ||q||_{p*} of each row."""
        return self._power_norm(q, 1.0 if np.isinf(self.p) else np.inf if self.p == 1 else self.p / (self.p - 1.0))

    def _power_norm(self, values: Any, power: float) -> Any:
        largest = self.at.largest(values)
        if np.isinf(power):
            return largest[:, 0]
        shape = values / self.at.where(largest > 0, largest, largest + 1.0)
        return largest[:, 0] * (shape**power).sum(1) ** (1.0 / power)

    def _machine_error(self, d: Any, c: Any) -> Any:
        """Return C/2 |r|^2 of each output: the gap of its machine, whose kernel is fixed."""
        residual, _, beta = self._residuals(d, self._of_space(c), c)
        return 0.5 * (self.C * (residual - beta / self.C) ** 2).sum(1)

    def _of_space(self, c: Any) -> Any:
        """Return K_k beta, shape (n_live, m, n)."""
        return (c[:, None, None, :] @ self.KV[:, :, : self.size])[:, :, 0]

    def _residuals(self, d: Any, products: Any, c: Any) -> tuple[Any, Any, Any]:
        """Return y - b - K_d beta, the best intercepts b, and beta."""
        residual = self.y - (d[:, None, :] @ products)[:, 0]
        beta = (c[:, None, :] @ self.V[:, : self.size])[:, 0]
        intercept = 0.0 * residual[:, 0]
        if self.problem.fit_intercept:
            intercept = (self.C * residual).sum(1) / self.C.sum(1)
        return residual - intercept[:, None], intercept, beta

    # -- certificates -----------------------------------------------------------------------------------------------

    def _judge(self, c: Any, q: Any) -> None:
        """Compute the certificates, and keep what is better than before."""
        self.c = self.at.zeros(c.shape[0], _SPACE)
        self.c[:, : self.size] = c
        products = self._of_space(c)
        residual, _, beta = self._residuals(self.d, products, c)
        self.residual = residual - beta / self.C
        weights = self._without_the_least()
        residual, intercept, beta = self._residuals(weights, products, c)
        forms = (products * beta[:, None]).sum(2).clip(0.0)
        exponent = 2.0 if np.isinf(self.p) else 2.0 * self.p / (1.0 + self.p)
        size = self._power_norm(weights * forms**0.5, exponent)
        primal = 0.5 * size**2 + 0.5 * (self.C * residual**2).sum(1)
        conjugate = (self.y * beta).sum(1) - 0.5 * (beta**2 / self.C).sum(1)
        dual = conjugate - 0.5 * self._dual_norm(forms)
        values = {
            "weights": weights,
            "beta": beta,
            "intercept": intercept,
            "primal": primal,
            "dual": dual,
            "rounding": self._rounding(weights, beta, residual, forms)
            / self.at.where(primal > 0, primal, 1.0 + primal),
        }
        fetched = {name: self.at.fetch(value) for name, value in values.items()}
        scale = np.maximum(np.abs(fetched["primal"]), np.abs(fetched["dual"]))
        gaps = np.abs(fetched["primal"] - fetched["dual"]) / np.where(scale > 0, scale, 1.0)
        better = gaps < self.gaps[self.live]  # not where a value is NaN
        places = self.live[better]
        self.gaps[places] = gaps[better]
        for name, value in fetched.items():
            self.best[name][places] = value[better]

    def _without_the_least(self) -> Any:
        """Return the weights with exact zeros where the norm selects: those that together carry next to nothing."""
        if not self.problem.norm.selects:
            return self.d
        least = 0.1 * self.tol / self.d.shape[1] * self.at.largest(self.d)
        return self._on_the_ball(self.at.where(self.d > least, self.d, 0.0 * self.d), self.d)

    def _rounding(self, weights: Any, beta: Any, residual: Any, forms: Any) -> Any:
        """Return about how far rounded kernel values move the primal and the dual value, as ``Problem`` bounds it."""
        unit = max(self.bank.unit_roundoff, DOUBLE)
        diagonal = (weights @ self.diagonals).clip(0.0)
        size = (diagonal * beta**2).sum(1)[:, None] ** 0.5
        moved = unit * size * diagonal**0.5 + LAST_BIT * ((self.y - residual) ** 2) ** 0.5
        if self.bank.centering_errors is not None:
            lost = weights @ self.at.send(self.bank.centering_errors)
            moved = moved + lost[:, None] * (beta**2).sum(1)[:, None] ** 0.5
        primal = (self.C * ((residual**2) ** 0.5 * moved + 0.5 * moved**2)).sum(1)
        raised = forms + unit * self.largest * (beta**2).sum(1)[:, None]
        return primal + 0.5 * (self._dual_norm(raised) - self._dual_norm(forms))
