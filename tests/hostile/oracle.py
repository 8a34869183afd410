"""The referee: kernels, certificates and predictions by their definitions, in extended precision.

Nothing here imports the library. All sums and kernel values are ``numpy.longdouble`` (80 bits on x86), whose range
holds squares and powers of 1e160 and whose rounding is 2,000 times below that of what is judged; where a platform has
no more than 64 bits, the referee is as exact as a careful user.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from tests.hostile import build
from tests.hostile.cases import Case, KernelRecipe

Long = np.longdouble


def present_weight(data: build.Data) -> np.ndarray:
    """Return the sample weights; one below the least normal double counts as 0, as the library documents.

    Such a number has lost digits: half of 5e-324 is 0, so that no double holds the loss of its sample.
    """
    weight = np.ones(len(data.y)) if data.weight is None else data.weight
    return np.where(weight < np.finfo(float).tiny, 0.0, weight)


# ---------------------------------------------------------------------------------------------------------------------
# kernels


def raw_kernel(kernel: KernelRecipe, value: float, X: np.ndarray, Z: np.ndarray) -> np.ndarray:
    """Return k(x, z) for the rows of X and Z, by direct differences."""
    columns = slice(None) if kernel.columns is None else list(kernel.columns)
    X, Z = X[:, columns].astype(Long), Z[:, columns].astype(Long)
    if kernel.kind in ("gaussian", "ladder"):
        ratio = (X[:, None, :] - Z[None, :, :]) / Long(value)
        return np.exp(-np.sum(ratio**2, axis=2) / 2)
    if kernel.kind == "dirichlet":
        distance = np.sqrt(np.sum((X[:, None, :] - Z[None, :, :]) ** 2, axis=2))
        return 1 + 2 * np.cos(Long(value) * distance)
    inner = np.sum(X[:, None, :] * Z[None, :, :], axis=2)
    if kernel.kind == "polynomial":
        return (inner + Long(kernel.coef0)) ** kernel.degree
    return inner / 2 if kernel.kind == "overlap" else inner


@dataclass(frozen=True)
class Kernels:
    """The normalized kernels of a fit: on the training samples, and of new rows with them, (m, n, n) and (m, l, n).

    ``lost`` is, for each kernel, how many times its values are smaller than the numbers they are the difference of:
    above 1 only where kernels are centered.
    """

    train: np.ndarray
    new: np.ndarray
    lost: np.ndarray


def make_kernels(case: Case, data: build.Data) -> Kernels:
    """Return the kernels by the definition of the normalization; sample weights count as repetitions."""
    weight = present_weight(data)
    share = weight.astype(Long) / weight.astype(Long).sum()
    train, new, lost = [], [], []
    for kernel, value in build.written_out(case, data):
        K, L, own = _raw_matrices(case, kernel, value, data)
        K, L, times = _normalized(K, L, own, share, weight.astype(Long), case.normalize, case.center)
        train.append(K)
        new.append(L)
        lost.append(times)
    return Kernels(np.array(train), np.array(new), np.array(lost))


def _raw_matrices(
    case: Case, kernel: KernelRecipe, value: float, data: build.Data
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the kernel of the training samples, that of the new rows with them, and the new rows' diagonal."""
    n = case.n
    if kernel.kind.startswith("given"):
        whole = build.given_matrix(case, kernel, data).astype(Long)
        return whole[:n, :n], whole[n:, :n], np.diag(whole)[n:]
    new = data.plain_new
    own = np.array([raw_kernel(kernel, value, row[None], row[None])[0, 0] for row in new])
    return raw_kernel(kernel, value, data.plain, data.plain), raw_kernel(kernel, value, new, data.plain), own


def _normalized(K, L, own, share, weight, kind, center) -> tuple[np.ndarray, np.ndarray, float]:
    diagonal = np.diag(K)
    if kind == "cosine":
        root, new_root = (np.where(v > 0, 1 / np.sqrt(np.where(v > 0, v, 1)), 0) for v in (diagonal, own))
        K, L = K * root[:, None] * root, L * new_root[:, None] * root
    before = float(share @ np.diag(K))
    if center:
        means = K @ share
        L = L - (L @ share)[:, None] - means + share @ means
        K = K - means[:, None] - means + share @ means
    level = share @ np.diag(K)
    lost = float(before / level) if level > 0 else np.inf if before > 0 else 1.0
    if level <= 0:
        return np.zeros_like(K), np.zeros_like(L), lost
    factor = {"mean_diag": level, "trace": weight @ np.diag(K)}.get(kind, Long(1))
    return K / factor, L / factor, lost


# ---------------------------------------------------------------------------------------------------------------------
# losses and norms


def loss_value(name: str, y: np.ndarray, z: np.ndarray, epsilon: float) -> np.ndarray:
    """Return the loss of each sample."""
    margin, size = 1 - y * z, np.abs(y - z)
    near = np.minimum(size, 1)
    return {
        "hinge": lambda: np.maximum(0, margin),
        "squared_hinge": lambda: np.maximum(0, margin) ** 2,
        "logistic": lambda: np.logaddexp(Long(0), -y * z),
        "squared": lambda: size**2 / 2,
        "epsilon_insensitive": lambda: np.maximum(0, size - Long(epsilon)),
        "absolute": lambda: size,
        "quantile": lambda: size / 2,  # the median's
        "huber": lambda: near * (size - near / 2),
    }[name]()


def conjugate(name: str, y: np.ndarray, beta: np.ndarray, C: np.ndarray, epsilon: float) -> np.ndarray:
    """Return sup_z(-beta z - C loss(y, z)); infinite outside the domain, which is widened by 1e-9 C for rounding."""
    present = C > 0
    cost = np.where(present, C, Long(1))
    slack = Long(1e-9) * cost
    part = y * beta
    box = (part >= -slack) & (part <= cost + slack)
    if name == "hinge":
        value, inside = -part, box
    elif name == "squared_hinge":
        value, inside = -part + beta**2 / (4 * cost), part >= -slack
    elif name == "logistic":
        s = np.clip(part / cost, 0, 1)
        value, inside = cost * (_entropy(s) + _entropy_of_rest(s)), box
    elif name == "squared":
        value, inside = -part + beta**2 / (2 * cost), np.isfinite(beta)
    elif name == "huber":
        value, inside = -part + beta**2 / (2 * cost), np.abs(beta) <= cost + slack
    elif name == "epsilon_insensitive":
        value, inside = -part + Long(epsilon) * np.abs(beta), np.abs(beta) <= cost + slack
    else:
        value, inside = -part, np.abs(beta) <= (cost / 2 if name == "quantile" else cost) + slack
    value = np.where(inside, value, np.inf)
    return np.where(present, value, np.where(beta == 0, 0, np.inf))


def _entropy(s: np.ndarray) -> np.ndarray:
    return np.where(s > 0, s * np.log(np.where(s > 0, s, 1)), 0)


def _entropy_of_rest(s: np.ndarray) -> np.ndarray:
    """Return (1 - s) log(1 - s): beside a cost of 1e18, s is below the digits of 1 - s."""
    return np.where(s < 1, (1 - s) * np.log1p(-np.where(s < 1, s, 0)), 0)


def power_norm(values: np.ndarray, power: float) -> Any:
    """Return (sum v^power)^(1/power) of non-negative values."""
    top = values.max(initial=Long(0))
    if top == 0 or np.isinf(power):
        return top
    return top * np.sum((values / top) ** Long(power)) ** (1 / Long(power))


def regularizers(norm: tuple, groups: list[str], d: np.ndarray, q: np.ndarray) -> tuple[Any, Any]:
    """Return the regularizer at components of norm d sqrt(q), and the conjugate that the dual subtracts at q."""
    kind, *values = norm
    a, s = d * np.sqrt(q), np.sqrt(q)
    if kind == "lp":
        p = values[0]
        e = 2.0 if np.isinf(p) else 2 * p / (1 + p)
        return power_norm(a, e) ** 2 / 2, power_norm(q, _conjugate_power(p)) / 2
    if kind == "mixed":
        h = values[0]
        names = sorted(set(groups))
        sums = np.array([sum((a[k] for k in range(len(a)) if groups[k] == name), Long(0)) for name in names])
        tops = np.array([max(s[k] for k in range(len(a)) if groups[k] == name) for name in names])
        return power_norm(sums, 2 * h) ** 2 / 2, power_norm(tops, _conjugate_power(2 * h)) ** 2 / 2
    if kind == "penalty":
        p, strength = values
        return (d @ q) / 2 + Long(strength) / Long(p) * np.sum(d ** Long(p)), penalty_conjugate(q / 2, p, strength)
    e = elastic_power(len(a))
    beyond = np.maximum(s - Long(values[0]), 0)
    return power_norm(a, e) ** 2 / 2 + Long(values[0]) * a.sum(), power_norm(beyond, _conjugate_power(e)) ** 2 / 2


def penalty_conjugate(u: np.ndarray, p: float, strength: float) -> Any:
    """Return r*(u) of r(d) = strength/p sum d^p; for p = 1 the constraint u <= strength."""
    if p == 1:
        return Long(0) if np.all(u <= strength * (1 + Long(1e-9))) else Long(np.inf)
    other = Long(p) / (Long(p) - 1)
    return Long(strength) / other * np.sum((u / Long(strength)) ** other)


def elastic_power(m: int) -> float:
    """Return e = 2 ln m / (2 ln m - 1), and 2 for one or two kernels."""
    return 2.0 if m < 3 else 2 * np.log(m) / (2 * np.log(m) - 1)


def _conjugate_power(p: float) -> float:
    return np.inf if p == 1 else 1.0 if np.isinf(p) else p / (p - 1)


# ---------------------------------------------------------------------------------------------------------------------
# the certificate


@dataclass(frozen=True)
class Problem:
    """Targets and costs of the tasks, (t, n), with the offset that the intercept may take up subtracted."""

    Y: np.ndarray
    costs: np.ndarray
    offset: float


def make_problem(case: Case, data: build.Data, classes: np.ndarray | None) -> Problem:
    """Return targets and costs by their definitions."""
    weight = present_weight(data).astype(Long)
    if case.task == "regression":
        y = data.y.astype(Long)
        mean = np.clip((weight / weight.sum()) @ y, y.min(), y.max())
        offset = float(mean) if case.intercept else 0.0
        return Problem((y - Long(offset))[None], (Long(case.C) * weight)[None], offset)
    assert classes is not None
    factors = {c: Long(1) for c in classes}
    if case.class_weight == "balanced":
        factors = {c: weight.sum() / (len(classes) * weight[data.y == c].sum()) for c in classes}
    elif case.class_weight != "none" and 1 in factors:
        factors[1] = Long(float(case.class_weight))
    costs = Long(case.C) * weight * np.array([factors.get(c, Long(0)) for c in data.y])
    positive = classes[1:] if len(classes) == 2 else classes
    Y = np.array([np.where(data.y == c, Long(1), Long(-1)) for c in positive])
    return Problem(Y, np.broadcast_to(costs, Y.shape), 0.0)


@dataclass(frozen=True)
class Certificate:
    """Primal and dual value, and how far the rounding of doubles in K beta may move the primal value."""

    primal: float
    dual: float
    rounding: float

    @property
    def size(self) -> float:
        """The larger of the two in size."""
        return max(abs(self.primal), abs(self.dual))


def certificate(case: Case, problem: Problem, kernels: np.ndarray, weights, beta, intercept, lost=1.0) -> Certificate:
    """Return what any weights d, beta (t, n) and intercepts (t,) prove; kernel values may have lost digits."""
    groups = ["one" if case.norm == ("mixed", 0.5) else name for name in _groups(case)]
    d, B = np.asarray(weights).astype(Long), beta.astype(Long)
    products = np.array([[K @ b for b in B] for K in kernels])  # (m, t, n)
    q = np.maximum(np.sum(products * B, axis=(1, 2)), 0)
    decision = (
        np.einsum("k,ktn->tn", d, products) + (np.asarray(intercept).astype(Long) - Long(problem.offset))[:, None]
    )
    loss = build.loss_of(case)
    losses = np.sum(problem.costs * loss_value(loss, problem.Y, decision, case.epsilon))
    regularizer, subtracted = regularizers(case.norm, groups, d, q)
    conj = np.sum(conjugate(loss, problem.Y, B, problem.costs, case.epsilon))
    dual = -conj - subtracted
    if case.norm[0] == "penalty":
        dual = max(dual, _best_between(case, problem, B, q))
    # A quadratic form is a sum with terms of both signs.
    size = np.array([sum(np.abs(b) @ np.abs(K) @ np.abs(b) for b in B) for K in kernels])
    moved = regularizers(case.norm, groups, d, q + Long(2.0**-52) * size)
    pairs = zip(moved, (regularizer, subtracted), strict=True)
    changes = [after - before for after, before in pairs if np.isfinite(after) and np.isfinite(before)]
    if case.norm[0] == "penalty":
        changes.append(abs(dual - _best_between(case, problem, B, q + Long(2.0**-52) * size)))
    last_bits = np.abs(np.asarray(intercept).astype(Long))[:, None]
    rounding = _rounding(case, problem, kernels, d * lost, B, decision, last_bits)
    return Certificate(float(regularizer + losses), float(dual), rounding + float(sum(changes)))


def _groups(case: Case) -> list[str]:
    ladders = [k.group for k in case.kernels if k.kind == "ladder" for _ in range(build._RUNGS)]
    return [k.group for k in case.kernels if k.kind != "ladder"] + ladders


def _best_between(case: Case, problem: Problem, B: np.ndarray, q: np.ndarray) -> Any:
    """Return the largest dual value on the way from 0 to beta: all of it is feasible, and the function concave."""
    p, strength = case.norm[1:]
    end = Long(1)
    if p == 1 and q.max() > 0:
        end = min(end, np.sqrt(2 * Long(strength) / q.max()))

    def value(part: Any) -> Any:
        conj = np.sum(conjugate(build.loss_of(case), problem.Y, part * B, problem.costs, case.epsilon))
        return -conj - penalty_conjugate(part**2 * q / 2, p, strength)

    low, high = Long(0), end
    for _ in range(200):
        third = (high - low) / 3
        if value(low + third) < value(high - third):
            low = low + third
        else:
            high = high - third
    return max(value(end), value(low), value(high))


def _rounding(case: Case, problem: Problem, kernels, d, B, decision, added) -> float:
    """Return about how far an error of 2^-52 in each term of K beta moves the losses.

    An error e of a prediction moves a loss of slope s by s e, and one that is a square, bend r^2, by bend e^2 besides:
    where r is 0, that is all of it. So does half a unit in the last place of what is added: the intercept, or an
    offset that is not published.
    """
    moved = np.einsum("k,ktn->tn", d, np.array([[np.abs(K) @ np.abs(b) for b in B] for K in kernels]))
    errors = Long(2.0**-52) * moved + Long(2.0**-53) * abs(added)
    loss, y = build.loss_of(case), problem.Y
    bend = {"squared": Long(0.5), "huber": Long(0.5), "squared_hinge": Long(1)}.get(loss, Long(0))
    if loss == "squared":
        slope = np.abs(y - decision)
    elif loss == "huber":
        slope = np.minimum(np.abs(y - decision), 1)
    elif loss == "squared_hinge":
        slope = 2 * np.maximum(0, 1 - y * decision)
    else:
        slope = np.ones_like(y)
    return float(np.sum(problem.costs * (slope * errors + bend * errors**2)))


def ufo_certificate(
    case: Case, problem: Problem, kernels: np.ndarray, beta: np.ndarray, norms: np.ndarray
) -> tuple[Certificate, np.ndarray, np.ndarray]:
    """Return UFO-MKL's certificate at the dual point beta (t, n) with components of these norms along it.

    And the decisions there, with the sums of the sizes of their terms. A bias is a constant in each kernel, its mean
    diagonal: ``kernels`` hold it. The norms are asked for, since they follow from beta only up to rounding where all
    roots of quadratic forms are near the threshold.
    """
    B, a = beta.astype(Long), np.asarray(norms).astype(Long)
    products = np.array([[K @ b for b in B] for K in kernels])
    s = np.sqrt(np.maximum(np.sum(products * B, axis=(1, 2)), 0))
    mu = Long(case.alpha) * np.sum(problem.costs[0])
    e = elastic_power(len(kernels))
    coefficients = np.where(s > 0, a / np.where(s > 0, s, 1), 0)
    decision = np.einsum("k,ktn->tn", coefficients, products)
    sizes = np.einsum("k,kij,tj->ti", coefficients, np.abs(kernels), np.abs(B))
    loss = build.loss_of(case)
    losses = np.sum(problem.costs * loss_value(loss, problem.Y, decision, case.epsilon))
    primal = power_norm(a, e) ** 2 / 2 + mu * a.sum() + losses
    beyond = power_norm(np.maximum(s - mu, 0), _conjugate_power(e))
    dual = -np.sum(conjugate(loss, problem.Y, B, problem.costs, case.epsilon)) - beyond**2 / 2
    rounding = _rounding(case, problem, kernels, coefficients, B, decision, problem.offset)
    return Certificate(float(primal), float(dual), rounding), decision, sizes


def augmented(kernels: np.ndarray, weight: np.ndarray) -> np.ndarray:
    """Return each kernel plus its weighted mean diagonal."""
    share = weight.astype(Long) / weight.astype(Long).sum()
    return np.array([K + share @ np.diag(K) for K in kernels])


def alignment(K: np.ndarray, data: build.Data, classes: np.ndarray | None) -> tuple[float, float]:
    """Return the centered alignment of a kernel matrix with the target, and how many times centering shrinks it."""
    w = present_weight(data).astype(Long)
    w = w / w.max()
    if classes is None:
        top = np.abs(data.y).max() or 1.0
        targets = (data.y / top).astype(Long)[:, None]
    else:
        targets = (data.y[:, None] == classes).astype(Long)
    targets = targets - (w @ targets) / w.sum()
    E = np.eye(len(w), dtype=Long) - w / w.sum()
    root = np.sqrt(w)
    centered = root[:, None] * (E @ K @ E.T) * root
    T = root[:, None] * (targets @ targets.T) * root
    size, own = np.sqrt(np.sum(centered**2) * np.sum(T**2)), np.trace(centered)
    lost = float(w @ np.diag(K) / own) if own > 0 else np.inf
    return float(np.sum(centered * T) / size) if size > 0 else 0.0, lost
