"""The machine for a fixed kernel: an ordered list of rules, of which the first that fits is taken.

A rule says what the combined kernel must be able to do, what the loss must offer, and, where that is not enough, when
it pays. To add an inner solver, write it in a file of its own and enter its rule here.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from manykernels.core.results import Iterate, Machine
from manykernels.inner import bundle, coupled_newton, newton, newton_cg, ridge, smo
from manykernels.inner.coordinate_descent import MOST_ROUNDS, solve_features
from manykernels.inner.decomposition import solve_rows
from manykernels.inner.device_smo import solve_blocks
from manykernels.inner.feature_interior import solve_interior
from manykernels.inner.feature_newton import MOST_STEPS, solve_smooth

# A Newton step squares the error, so that the last one is nearly free: ask for more than is needed. By conjugate
# gradients it does not, where the slope of the loss has corners.
_FINER, _MUCH_FINER = 1e-2, 1e-5
# Scores that differ by no more than this part of the largest differ by rounding.
_SAME = 1e-14
# Fewest rounds of coordinate descent before the interior point takes over.
_FEW_ROUNDS = 50
# Newton steps before it does: each costs about what a step of the interior point does.
_FEW_STEPS = 20


@dataclass(frozen=True)
class Work:
    """A problem with its kernel fixed.

    Attributes
    ----------
    K : CombinedKernel
    loss : Loss
    y, C : ndarrays of shape (n_tasks, n_samples)
        Targets, and the weights of the losses.
    intercept : bool
    start : Iterate or None
    offset : float or ndarray of shape (n_tasks,)
        What will be added to the intercepts: a huge one leaves them few digits.
    tol : float
        Relative accuracy of the objective, or of the gradient.
    """

    K: Any
    loss: Any
    y: np.ndarray
    C: np.ndarray
    intercept: bool
    start: Iterate | None
    offset: Any
    tol: float

    @property
    def n_tasks(self) -> int:
        """Number of machines."""
        return self.y.shape[0]

    def begin(self, t: int) -> tuple[np.ndarray, float] | None:
        """Return the coefficients and the intercept that task t starts from."""
        return None if self.start is None else (np.asarray(self.start.beta[t]), float(self.start.intercept[t]))

    def feasible(self, beta: np.ndarray, t: int) -> np.ndarray:
        """Return the nearest point of the domain of task t's dual."""
        return self.loss.feasible(self.y[t], beta, self.C[t], self.intercept)

    def solve_box(
        self, t: int, solve_box: Callable[..., smo.BoxSolution], start: np.ndarray | None
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return the coefficients of task t, whose dual is a box, and K times these."""
        box = self.loss.box(self.y[t], self.C[t])
        solution = solve_box(
            y=box.linear,
            lower=box.lower,
            upper=box.upper,
            epsilon=box.epsilon,
            start=start,
            intercept=self.intercept,
            tol=self.tol * box.unit,
        )
        return solution.beta, solution.gradient + box.linear

    def solve_boxes(self, solve_box: Callable[..., smo.BoxSolution]) -> Machine:
        """Return the machine of all tasks, whose duals are boxes, one after the other."""
        begins = [self.begin(t) for t in range(self.n_tasks)]
        pairs = [self.solve_box(t, solve_box, begin[0] if begin else None) for t, begin in enumerate(begins)]
        return self.machine([beta for beta, _ in pairs], [decision for _, decision in pairs])

    def machine(self, betas: list[np.ndarray], decisions: list[np.ndarray]) -> Machine:
        """Return the machine of all tasks."""
        return machine_of(self.loss, self.y, self.C, np.array(betas), np.array(decisions), self.intercept, self.offset)


@dataclass(frozen=True)
class InnerRule:
    """When an inner solver is taken.

    Attributes
    ----------
    kernel : frozenset of str
        What the combined kernel must be able to do.
    loss : str
        What the loss must offer: "box", "smooth", "quadratic" or "elementwise" of a sum over samples, or "coupled".
    run : function of Work
        Returns the machine.
    pays : function of Work
        Whether it is worth it here.
    """

    kernel: frozenset[str]
    loss: str
    run: Callable[[Work], Machine]
    pays: Callable[[Work], bool] = lambda work: True


def solve(
    K: Any,
    loss: Any,
    y: np.ndarray,
    C: np.ndarray,
    *,
    intercept: bool,
    offset: Any = 0.0,
    start: Iterate | None = None,
    tol: float = 1e-3,
) -> Machine:
    """Return the machine of every task for the fixed kernel K, by the first rule that fits.

    Parameters are those of :class:`Work`.

    Examples
    --------
    >>> import numpy as np
    >>> from manykernels.compute.combined import CombinedMatrix
    >>> from manykernels.inner.solve import solve
    >>> from manykernels.losses import Hinge
    >>> x, C = np.array([-2.0, -1.0, 1.0, 2.0]), np.full((1, 4), 10.0)
    >>> machine = solve(CombinedMatrix(np.outer(x, x)), Hinge(), np.sign(x)[None], C, intercept=True)
    >>> machine.beta, machine.intercept
    (array([[ 0. , -0.5,  0.5,  0. ]]), array([0.]))
    """
    center = loss.center(C) if intercept else None
    if center is not None:
        return _solve_around(center, Work(K, loss, y, C, intercept, start, offset, tol))
    work = Work(K, loss, y, C, intercept, start, offset, tol)
    for rule in RULES:
        if rule.kernel <= K.can and rule.loss in loss.offers and rule.pays(work):
            return rule.run(work)
    raise TypeError(
        f"There is no inner solver for the loss {loss!r} and a combined kernel that offers {sorted(K.can)}."
    )


def machine_of(
    loss: Any,
    y: np.ndarray,
    C: np.ndarray,
    beta: np.ndarray,
    decision: np.ndarray,
    intercept: bool,
    offset: Any = 0.0,
) -> Machine:
    """Return the machine with these coefficients and K beta: its best intercepts, and what it is worth.

    Parameters
    ----------
    loss : Loss
    y, C, beta, decision : ndarrays of shape (n_tasks, n_samples)
    intercept : bool
    offset : float or ndarray of shape (n_tasks,)
        What will be added to the intercepts: they have the digits that this leaves.
    """
    tasks, b = range(beta.shape[0]), np.zeros(beta.shape[0])
    if intercept:
        b = np.array([loss.best_intercept(y[t], decision[t], C[t]) for t in tasks])
        b = (b + offset) - offset

    def conjugates_at(share: float) -> float:
        return float(sum(loss.total_conjugate(y[t], share * beta[t], C[t]) for t in tasks))

    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):  # what overflows is not a certificate
        losses = float(sum(loss.total(y[t], decision[t] + b[t], C[t]) for t in tasks))
        center = loss.center(C) if intercept else None
        if center is not None:
            losses += float(b @ center.sum(axis=1))
        quadratic = float(np.sum(beta * decision))
        return Machine(beta, decision, b, quadratic, losses, conjugates_at, conjugates_at(1.0))


# -- coefficients with another sum than 0 -----------------------------------------------------------------------------


def _solve_around(center: np.ndarray, work: Work) -> Machine:
    """Return the machine whose coefficients have the sum of the center's, which are in the domain.

    Around the center, beta = center + rest, it is a machine as any other: the conjugates of the rest are those of
    another loss, the quadratic form has the linear part (K center)'rest, which targets have too, and 1'rest = 0.
    """
    loss, y, C, K = work.loss, work.y, work.C, work.K
    lower, upper = loss.domain(y, C)
    target, start = -K.product(center), work.start
    # No other coefficients have that sum, or none are better.
    if np.all(center >= upper) or np.ptp(target) <= _SAME * np.abs(target).max(initial=0.0):
        return machine_of(loss, y, C, center, -target, work.intercept, work.offset)
    near = loss.around_center()
    begin = None if start is None else Iterate(start.beta - center, start.decision + target, start.intercept)
    rest = solve(K, near, target, C, intercept=True, offset=work.offset, start=begin, tol=work.tol)
    low, high = near.domain(target, C)
    beta = np.clip(center + rest.beta, lower, upper)
    beta[rest.beta <= low], beta[rest.beta >= high] = lower[rest.beta <= low], upper[rest.beta >= high]
    return machine_of(loss, y, C, beta, rest.decision - target, work.intercept, work.offset)


# -- matrices ---------------------------------------------------------------------------------------------------------


def _ridge(work: Work) -> Machine:
    beta, _ = ridge.solve(work.K.array, work.y, work.C[0], intercept=work.intercept)
    return machine_of(work.loss, work.y, work.C, beta, work.K.product(beta), work.intercept, work.offset)


def _same_costs(work: Work) -> bool:
    """Whether the tasks can share a factorization."""
    return bool(np.all(work.C[0] == work.C))


def _pairs(work: Work) -> Machine:
    return work.solve_boxes(partial(smo.solve_box, work.K.array))


def _newton(work: Work) -> Machine:
    def step(t: int, **options: Any) -> newton.NewtonSolution:
        return newton.solve(work.K.array, work.y[t], work.C[t], work.loss, tol=_FINER * work.tol, **options)

    return _smooth(work, step)


def _smooth(work: Work, solve_task: Callable[..., newton.NewtonSolution]) -> Machine:
    """Solve the tasks of a smooth loss one by one, and put their coefficients into the domain of the dual."""
    betas, decisions = [], []
    for t in range(work.n_tasks):
        solution = solve_task(t, start=work.begin(t), intercept=work.intercept)
        beta = work.feasible(solution.beta, t)
        same = np.array_equal(beta, solution.beta)
        betas.append(beta)
        decisions.append(solution.decision if same else work.K.product(beta[None])[0])
    return work.machine(betas, decisions)


def _product(work: Work, vector: np.ndarray) -> np.ndarray:
    return work.K.product(vector[None])[0]


def _coupled(work: Work) -> Machine:
    return _coupled_tasks(work, coupled_newton.factored(work.K.array))


def _coupled_cg(work: Work) -> Machine:
    return _coupled_tasks(work, coupled_newton.by_products(partial(_product, work)))


def _coupled_tasks(work: Work, solve_step: coupled_newton.StepSolver) -> Machine:
    """Solve the tasks of a coupled loss one by one, until their gaps are small enough."""
    product, solutions = partial(_product, work), []
    for y, C, begin in zip(work.y, work.C, map(work.begin, range(work.n_tasks)), strict=True):
        start = begin[0] if begin else None
        solutions.append(coupled_newton.solve(product, solve_step, y, C, work.loss, start=start, tol=work.tol))
    return work.machine([solution.beta for solution in solutions], [solution.decision for solution in solutions])


# -- rows on demand, blocks on a device -------------------------------------------------------------------------------


def _decomposition(work: Work) -> Machine:
    beta = np.zeros(work.y.shape) if work.start is None else work.start.beta.copy()
    decision = np.zeros(work.y.shape)
    for t in range(work.n_tasks):

        def product(vector: np.ndarray, t: int = t) -> np.ndarray:
            beta[t] = vector  # the kernel remembers products with the last coefficients of all tasks
            return work.K.product(beta)[t]

        solve_box = partial(solve_rows, work.K, product=product)
        beta[t], decision[t] = work.solve_box(t, solve_box, beta[t].copy())
    return machine_of(work.loss, work.y, work.C, beta, decision, work.intercept, work.offset)


def _blocks(work: Work) -> Machine:
    return work.solve_boxes(partial(solve_blocks, work.K))


def _newton_cg(work: Work) -> Machine:
    tol = max(_MUCH_FINER * work.tol, work.K.unit_roundoff)  # the objective itself is known no better

    def step(t: int, **options: Any) -> newton.NewtonSolution:
        return newton_cg.solve(work.K.product, work.K.diagonal(), work.y[t], work.C[t], work.loss, tol=tol, **options)

    return _smooth(work, step)


# -- features ---------------------------------------------------------------------------------------------------------


def _on_features(work: Work, solve_task: Callable[[int], np.ndarray]) -> Machine:
    beta = np.array([work.feasible(solve_task(t), t) for t in range(work.n_tasks)])
    return machine_of(work.loss, work.y, work.C, beta, work.K.product(beta), work.intercept, work.offset)


def _n_columns(work: Work) -> int:
    return int(np.count_nonzero(work.K.columns))


def _feature_interior(work: Work) -> Machine:
    def task(t: int) -> np.ndarray:
        parts = work.loss.box(work.y[t], work.C[t]).parts()
        return solve_interior(work.K, work.y[t], parts, start=work.begin(t), intercept=work.intercept, tol=work.tol)

    return _on_features(work, task)


def _coordinate_descent(work: Work) -> Machine:
    """Coordinate descent, which is fast to a first accuracy, and slow where C is large; then the interior point.

    Each step of the latter makes and factors a matrix of the features: about a tenth of a round for each column. So the
    rounds that it is given first cost no more than the interior point. Where they were not enough, the next solve of
    the task has half as many, until one is: all that were in vain cost no more than twice the first, and where other
    weights or a warm start make the task easy, that is seen.

    Where that matrix has no room in the memory budget, or would take longer than all the rounds, coordinate descent is
    all there is, and gets the most rounds. It needs no memory besides the features and is quick where C is small: such
    a problem is not refused. Where the rounds are not enough, the certificate says what is lacking.
    """
    n_columns = _n_columns(work)
    heavy = not work.K.table.factors_quickly(n_columns)
    rounds = MOST_ROUNDS if heavy else int(np.clip(2 * n_columns, _FEW_ROUNDS, MOST_ROUNDS))
    options: dict[str, Any] = {"intercept": work.intercept, "tol": work.tol}

    def task(t: int) -> np.ndarray:
        y, box = work.y[t], work.loss.box(work.y[t], work.C[t])
        solution = solve_features(
            work.K,
            box.linear,
            box.lower,
            box.upper,
            epsilon=box.epsilon,
            start=work.begin(t),
            max_rounds=rounds >> work.K.failures[t],
            **options,
        )
        if heavy or _has_converged(work, t, solution.converged):
            return solution.beta
        return solve_interior(work.K, y, box.parts(), start=(solution.beta, solution.intercept), **options)

    return _on_features(work, task)


def _has_converged(work: Work, t: int, converged: bool) -> bool:
    """Return whether the quick method has converged, and count for the task how often it has not."""
    work.K.failures[t] = max(work.K.failures[t] + (-1 if converged else 1), 0)
    return converged


def _feature_newton(work: Work) -> Machine:
    """Newton's method and, where it takes long and the conjugate is quadratic, the interior point.

    Where C is large, a squared hinge is a wall, and the steps go from wall to wall. Steps that were not enough are
    halved for the next solve, as the rounds of coordinate descent are.
    """

    def task(t: int) -> np.ndarray:
        y, C = work.y[t], work.C[t]
        options: dict[str, Any] = {"start": work.begin(t), "intercept": work.intercept}
        parts = work.loss.quadratic_parts(y, C) if work.K.table.factors_quickly(_n_columns(work)) else None
        most = MOST_STEPS if parts is None else _FEW_STEPS >> work.K.failures[t]
        solution = solve_smooth(work.K, y, C, work.loss, tol=_FINER * work.tol, max_iter=most, **options)
        if parts is None or _has_converged(work, t, solution.converged):
            return solution.beta
        return solve_interior(work.K, y, parts, tol=work.tol, **options)

    return _on_features(work, task)


def _rule(kernel: str, loss: str, run: Callable[[Work], Machine], **options: Any) -> InnerRule:
    return InnerRule(frozenset(kernel.split()), loss, run, **options)


RULES = (
    _rule("sums", "elementwise", bundle.solve),
    _rule("array", "quadratic", _ridge, pays=_same_costs),
    _rule("array", "box", _pairs),
    _rule("array", "smooth", _newton),
    _rule("array", "coupled", _coupled),
    _rule("rows", "box", _decomposition),
    # On a device a matrix of the features is made and factored quickly, if there is room for it.
    _rule("features block", "box", _feature_interior, pays=lambda work: work.K.table.can_factor(_n_columns(work))),
    _rule("block", "box", _blocks),
    _rule("features", "box", _coordinate_descent),
    _rule("features", "smooth", _feature_newton),
    _rule("block", "smooth", _newton_cg),
    _rule("features", "coupled", _coupled_cg),
    _rule("block", "coupled", _coupled_cg),
)
