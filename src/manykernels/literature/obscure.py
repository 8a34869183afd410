"""OBSCURE: online-to-batch learning with p-norms, the baseline of UFO-MKL (Orabona, Jie and Caputo, 2010).

    minimize   lambda/2 ||a||_p^2 + mean_i loss(y_i, f(x_i)),   a_k = ||f_k||

Mirror descent with the map q/2 ||.||_p^2, 1/p + 1/q = 1: theta is shrunk and moved by a subgradient at each step, then
scaled back into a ball. A first stage without regularizer and scaling finds the region; its objective gives the radius
R of the ball. The second stage steps by q / (lambda t + s_t), where s_t grows with the length of the steps relative to
R. No weight is exactly zero.
"""

from __future__ import annotations

import time

import numpy as np

from manykernels.banks.pairs import PairValues
from manykernels.compute.compiled import njit
from manykernels.compute.threads import one_blas_thread
from manykernels.core.results import UNKNOWN, Certificate, Step
from manykernels.losses import JointLoss
from manykernels.losses.codes import CUSTOM, SQUARED, SQUARED_HINGE
from manykernels.outer import ufo_steps as steps
from manykernels.outer.ufo import UfoResult
from manykernels.outer.ufo_sample_theta import SampleTheta
from manykernels.outer.ufo_theta import make_rule

_MOST_ONLINE = 5


@one_blas_thread()
def obscure(
    pairs: PairValues,
    loss: JointLoss,
    y: np.ndarray,
    C: np.ndarray,
    *,
    power: float | None = None,
    max_iter: int = 10,
    random_state: int = 0,
) -> UfoResult:
    """Run both stages.

    Parameters
    ----------
    pairs : PairValues
        They must be held in memory.
    loss : JointLoss
        One of the compiled losses, with bounded subgradients.
    y : ndarray of shape (n, n_targets)
    C : ndarray of shape (n,)
        Weights of the losses.
    power : float in (1, 2], optional
        p of the norm of the lengths ||f_k||; default: that of UFO-MKL.
    max_iter : int
        Epochs of the second stage; the first ends when its objective no longer falls, after five at most.
    random_state : int

    Returns
    -------
    UfoResult
        Without a dual value; the trace has the epochs of both stages.

    Examples
    --------
    >>> import numpy as np
    >>> from manykernels.banks import bind
    >>> from manykernels.kernels import Gaussian, KernelBank
    >>> from manykernels.banks.pairs import PairValues
    >>> from manykernels.losses import Hinge, OneVsRest
    >>> from manykernels.literature.obscure import obscure
    >>> X = np.linspace(-3, 3, 60)[:, None]
    >>> pairs = PairValues(bind(KernelBank([Gaussian(w) for w in (0.1, 0.5, 10.0)]), X), 0.0, 10**9)
    >>> result = obscure(pairs, OneVsRest(Hinge(), 1), np.sign(np.sin(3 * X)), np.ones(60))
    >>> result.trace[-1].objective < result.trace[0].objective
    True
    """
    if loss.compiled().code in (CUSTOM, SQUARED, SQUARED_HINGE):
        raise ValueError(f"obscure needs a loss that is compiled in and has bounded subgradients, not {loss!r}.")
    if not pairs.is_held:
        raise MemoryError("obscure needs the values of all pairs in memory: raise memory_budget.")
    walk = _Walk(pairs, loss, y, C, power)
    rng = np.random.default_rng(random_state)
    lowest = np.inf
    for _ in range(_MOST_ONLINE):
        walk.epoch(rng.permutation(C.size), regularized=False)
        if walk.trace[-1].objective >= lowest:
            break
        lowest = walk.trace[-1].objective
    walk.set_radius(min(lowest, walk.trace[-1].objective))
    for _ in range(max_iter):
        walk.epoch(rng.permutation(C.size), regularized=True)
    coef, norms = walk.predictor()
    certificate = Certificate(walk.trace[-1].objective, UNKNOWN)
    return UfoResult(coef, norms, certificate, walk.trace, walk.theta.beta, None, False)


class _Walk:
    def __init__(self, pairs: PairValues, loss: JointLoss, y: np.ndarray, C: np.ndarray, power: float | None) -> None:
        self.lam = 1.0 / float(C.sum())
        rule = make_rule(loss, 0.0, 1.0, pairs.n_kernels, power)
        self.theta = SampleTheta(pairs, loss, y, C, rule)
        self.theta.walk.clock[steps.NOW] = rule.power  # so that coef is that of the map's inverse
        # The scale of theta, the sum s_t, the number of steps of the second stage, and the radius.
        self.state = np.array([1.0, 0.0, 0.0, np.inf])
        self.trace: list[Step] = []
        self._started = time.perf_counter()

    def epoch(self, order: np.ndarray, regularized: bool) -> None:
        theta = self.theta
        walk_obscure(
            theta.rule,
            theta.walk,
            theta.s,
            theta.pairs.triangle,
            theta.squares,
            theta.y,
            theta.gain,
            order,
            self.lam if regularized else 0.0,
            self.state,
        )
        theta.settle()
        seconds = time.perf_counter() - self._started
        objective = self.objective()
        self.trace.append(Step(len(self.trace) + 1, seconds, objective, np.nan, theta.walk.coef.size, 0.0))

    def set_radius(self, objective: float) -> None:
        """Take as radius a bound of the norm of the optimum, whose objective is lower than this."""
        self.state[3] = np.sqrt(2.0 * objective)

    def predictor(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the factors coef_k of sum_i beta_i phi_k(x_i), and the norms."""
        steps.refresh(self.theta.rule, self.theta.walk)
        coef = self.state[0] * self.theta.walk.coef
        return coef, coef * np.sqrt(np.maximum(self.theta.walk.squared, 0.0))

    def objective(self) -> float:
        coef, norms = self.predictor()
        values = self.theta.loss.values(self.theta.targets(), self.theta.s.scores @ coef)
        return self.theta.norm.value(norms) + float(self.theta.C @ values)


@njit(cache=True, nogil=True)
def walk_obscure(rule, walk, s, values, diagonal, y, gain, order, lam, state):
    """Take a step at each sample; with lam = 0 the steps are those of the first stage."""
    z, g = np.empty(s.beta.shape[1]), np.empty(s.beta.shape[1])
    q = rule.power
    for i in order:
        steps.catch_up(s, values, i, -1)
        steps.refresh(rule, walk)
        steps.outputs(s.scores[i], walk.coef, z)
        z *= state[0]
        steps.descent(rule, y[i], z, g)
        length = q
        if lam > 0.0:
            state[2] += 1.0
            before = lam * state[2] + state[1]
            steep = lam * dual_norm(walk.squared, q) * state[0] / q + dual_norm(diagonal[i], q) * np.sqrt(np.sum(g * g))
            state[1] += 0.5 * (np.sqrt(before**2 + q * steep**2 / state[3] ** 2) - before)
            length = q / (lam * state[2] + state[1])
            state[0] *= max(1.0 - lam * length / q, 1e-12)
        g *= gain[i] * length / state[0]
        if steps.move(walk, s.scores[i], diagonal[i], g):
            steps.enter(walk, s, i, g)
        if lam > 0.0:
            norm = dual_norm(walk.squared, q) * state[0] / q
            if norm > state[3]:
                state[0] *= state[3] / norm


@njit(cache=True, nogil=True)
def dual_norm(squared, q):
    """Return the q-norm of the square roots."""
    largest = np.sqrt(max(np.max(squared), 0.0))
    if largest == 0.0:
        return 0.0
    total = 0.0
    for k in range(squared.size):
        if squared[k] > 0.0:
            total += np.exp(q * np.log(np.sqrt(squared[k]) / largest))
    return largest * total ** (1.0 / q)
