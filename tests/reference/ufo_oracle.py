"""UFO-MKL from the paper, in plain loops, and the optimum of its problem by a general solver.

Nothing here imports the library. Orabona and Jie (2011), Algorithm 1, with a weight C_i for the loss of each sample:

    minimize   lambda/2 ||a||_p^2 + alpha ||a||_1 + 1/n sum_i g_i loss_i,   lambda = 1 / sum C,   g_i = n C_i / sum C

where a_k = ||f_k||. Divided by lambda this is 1/2 ||a||_p^2 + alpha sum C ||a||_1 + sum_i C_i loss_i: what
:func:`optimum` solves. f_k is a sum over samples, with coefficients of shape (n_samples, n_outputs). A target is a
vector (n_outputs,), or the number of the class for the loss "multiclass_hinge" (Crammer and Singer).
"""

import cvxpy as cp
import numpy as np
from scipy.optimize import brentq
from scipy.special import expit

from tests.reference import oracle

LOSSES = ("hinge", "squared_hinge", "logistic", "squared", "epsilon_insensitive", "multiclass_hinge")
UNBOUNDED = ("squared", "squared_hinge")  # their gradients are taken where the step leads


def dual_power(m):
    """Line 2: q = 2 ln F; for one or two kernels, where that is below 2, q = 2."""
    return 2.0 * np.log(m) if m >= 3 else 2.0


def primal_power(m, p=None):
    """p with 1/p + 1/q = 1."""
    return dual_power(m) / (dual_power(m) - 1.0) if p is None else p


def loss_value(name, y, z, epsilon=0.1):
    """Loss of one sample with the outputs z."""
    if name == "multiclass_hinge":
        return max([0.0] + [1.0 - z[y] + z[c] for c in range(len(z)) if c != y])
    return sum(float(oracle.loss_value(name, y[c], z[c], epsilon)) for c in range(len(z)))


def descent(name, y, z, epsilon=0.1):
    """Minus a subgradient of the loss of one sample in its outputs z."""
    g = np.zeros(len(z))
    if name == "multiclass_hinge":
        rivals = [c for c in range(len(z)) if c != y]
        worst = max(rivals, key=lambda c: z[c])
        if 1.0 - z[y] + z[worst] > 0.0:
            g[y], g[worst] = 1.0, -1.0
        return g
    for c in range(len(z)):
        if name == "hinge":
            g[c] = y[c] if y[c] * z[c] < 1.0 else 0.0
        elif name == "squared_hinge":
            g[c] = 2.0 * y[c] * max(0.0, 1.0 - y[c] * z[c])
        elif name == "logistic":
            g[c] = y[c] * expit(-y[c] * z[c])
        elif name == "squared":
            g[c] = y[c] - z[c]
        elif name == "epsilon_insensitive":
            g[c] = np.sign(y[c] - z[c]) if abs(y[c] - z[c]) > epsilon else 0.0
        else:
            raise ValueError(f"unknown loss {name!r}")
    return g


class NaiveWalk:
    """Algorithm 1, one sample after the other.

    ``theta`` (n, n_outputs) holds the coefficients of the dual vector, ``w`` those of the predictor for each kernel;
    ``visited`` the predictors that the steps so far have looked at, ``losses`` what they lost there, and ``offsets``
    where the tangents of these losses meet the axis: loss(u) >= offset - g'u for every u.
    """

    def __init__(self, grams, y, C, loss, alpha, n_outputs=1, q=None, epsilon=0.1):
        self.grams, self.y, self.loss, self.epsilon = grams, y, loss, epsilon
        self.alpha, self.lam = alpha, 1.0 / np.sum(C)
        self.gain = np.asarray(C) * len(C) / np.sum(C)
        self.q = dual_power(len(grams)) if q is None else q
        self.theta, self.t = np.zeros((len(C), n_outputs)), 0
        self.w = self.primal(self.theta, 0)
        self.visited, self.losses, self.offsets = [], [], []

    def primal(self, theta, t):
        """Lines 6 and 7: the coefficients of w^j, a list over the kernels of (n, n_outputs)."""
        if t == 0:
            return [np.zeros_like(theta) for _ in self.grams]
        norms = [component_norm(K, theta) for K in self.grams]
        v = np.array([max(norm - self.alpha * t, 0.0) for norm in norms])
        size = np.sum(v**self.q) ** (1.0 / self.q)
        return [
            v[j] * theta / (t * self.lam * norms[j]) * (v[j] / size) ** (self.q - 2.0) if v[j] > 0 else 0.0 * theta
            for j in range(len(v))
        ]

    def outputs(self, i, w):
        """The scores of sample i, (n_outputs,)."""
        return sum(K[i] @ part for K, part in zip(self.grams, w, strict=True))

    def implicit_residual(self, i, c, step):
        """Minus the gradient at the output after the step, minus the step: its root is the implicit step."""
        moved = self.theta.copy()
        moved[i, c] += self.gain[i] * step
        z = self.outputs(i, self.primal(moved, self.t + 1))
        return descent(self.loss, self.y[i], z)[c] - step

    def implicit_step(self, i):
        """Minus the gradient where the step leads, for each output by itself."""
        out = []
        for c in range(self.theta.shape[1]):
            # The output rises with the step, so that the root lies between 0 and the residual at 0.
            start = self.implicit_residual(i, c, 0.0)
            out.append(0.0 if start == 0.0 else brentq(lambda s: self.implicit_residual(i, c, s), 0.0, start))  # noqa: B023
        return np.array(out)

    def step(self, i, g=None):
        """Lines 4 to 7 for sample i; ``g``, minus a subgradient, may be chosen elsewhere."""
        z = self.outputs(i, self.w)
        self.visited.append(self.w)
        self.losses.append(loss_value(self.loss, self.y[i], z, self.epsilon))
        if g is None:
            g = self.implicit_step(i) if self.loss in UNBOUNDED else descent(self.loss, self.y[i], z, self.epsilon)
        self.offsets.append(self.losses[-1] + g @ z)
        self.theta[i] += self.gain[i] * g
        self.t += 1
        self.w = self.primal(self.theta, self.t)

    def run(self, order):
        for i in order:
            self.step(i)
        return self

    def norms(self):
        """||w^j|| of each kernel."""
        return component_norms(self.grams, self.w)

    def every_output(self):
        """The scores of all samples, (n, n_outputs)."""
        return np.array([self.outputs(i, self.w) for i in range(len(self.theta))])

    def mean(self, first=0):
        """Mean of the predictors that were looked at from step ``first`` on, (n_kernels, n, n_outputs)."""
        return np.mean([np.stack(w) for w in self.visited[first:]], axis=0)


def component_norm(K, coef):
    """||sum_i coef_i phi(x_i)||, summed over outputs."""
    return np.sqrt(max(sum(column @ K @ column for column in coef.T), 0.0))


def component_norms(grams, w):
    return np.array([component_norm(K, part) for K, part in zip(grams, w, strict=True)])


def regularizer(a, strength, p):
    """1/2 ||a||_p^2 + strength ||a||_1."""
    return 0.5 * np.sum(a**p) ** (2.0 / p) + strength * a.sum()


def conjugate(slopes, strength, q):
    """1/2 ||(slopes - strength)_+||_q^2: what Theorem 3 is the gradient of."""
    return 0.5 * np.sum(np.maximum(slopes - strength, 0.0) ** q) ** (2.0 / q)


def objective(grams, y, C, loss, w, strength, p=None, epsilon=0.1):
    """1/2 ||a||_p^2 + strength ||a||_1 + sum_i C_i loss_i of a predictor given by its coefficients."""
    p = primal_power(len(grams), p)
    z = sum(K @ part for K, part in zip(grams, w, strict=True))
    losses = [loss_value(loss, y[i], z[i], epsilon) for i in range(len(C))]
    return regularizer(component_norms(grams, w), strength, p) + float(np.dot(C, losses))


def optimum(grams, y, C, loss, strength, n_outputs=1, p=None, epsilon=0.1):
    """Smallest value of that objective, by CVXPY and Clarabel.

    The component f_k takes the values L_k w_k on the samples, K_k = L_k L_k', and has norm ||w_k||.
    """
    n, p, C = len(C), primal_power(len(grams), p), np.asarray(C, dtype=float)
    unit = min(1.0, C.mean())  # numbers near 1 are easier to solve for
    a = cp.Variable(len(grams), nonneg=True)
    constraints, z = [], np.zeros((n, n_outputs))
    for k, K in enumerate(grams):
        L = oracle._factor(K)
        w = cp.Variable((L.shape[1], n_outputs))
        constraints.append(oracle._frobenius(w) <= a[k])
        z = z + L @ w
    norm, cones = (cp.norm(a, 2), []) if p == 2 else oracle._power_cone_norm(a, p)
    losses = _loss_expressions(loss, y, z, epsilon)
    value = 0.5 / unit * cp.square(norm) + strength / unit * cp.sum(a) + (C / unit) @ losses
    return unit * oracle._solve(cp.Problem(cp.Minimize(value), constraints + cones))


def _loss_expressions(name, y, z, epsilon):
    """CVXPY vector of the losses of the samples."""
    if name == "multiclass_hinge":
        own = np.eye(z.shape[1])[np.asarray(y)]
        return cp.max(z + (1.0 - own), axis=1) - cp.sum(cp.multiply(own, z), axis=1)
    return cp.sum(oracle._loss_expression(name, np.asarray(y), z, epsilon), axis=1)
