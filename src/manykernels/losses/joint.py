"""Losses of all outputs of a sample at once: one against the rest, several classes jointly, structured outputs.

A sample has a score for each output, z of shape (n_outputs,); a loss is convex in z. Stochastic learning needs only
a subgradient at one sample: wherever the worst label in a structured set can be found, labels can be learned.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from scipy.optimize import brentq

from manykernels.losses.base import Loss
from manykernels.losses.codes import MULTICLASS_HINGE, Compiled, MayBeCompiled

# A pull that is taken where its step leads has this many digits.
_PULL_DIGITS = 1e-9


class JointLoss(MayBeCompiled, ABC):
    """A convex loss of the scores z, shape (n_outputs,), for the target y of any kind.

    Attributes
    ----------
    n_outputs : int
    gives_probabilities : bool
        Whether the sigmoids of the scores are the probabilities of the outputs.
    is_made_for_classes : bool
        Whether a classifier makes the loss for its classes, and asks for :meth:`targets_of` them. It is said by a class
        for itself alone: a subclass is a loss of the user's own, which takes targets as they are.
    """

    n_outputs: int
    gives_probabilities: bool = False
    is_made_for_classes: bool = False

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        cls.is_made_for_classes = vars(cls).get("is_made_for_classes", False)

    @abstractmethod
    def descent(self, y: Any, z: np.ndarray) -> tuple[float, np.ndarray]:
        """Return the loss of one sample and minus a subgradient in its scores, shape (n_outputs,)."""

    def step(self, y: Any, z: np.ndarray, score: Callable[[int, float], float]) -> tuple[float, float, np.ndarray]:
        """Return what a step at one sample needs: the loss, its part of the dual, and the step g, shape (n_outputs,).

        The part of the dual is a number a with loss(u) >= a - g'u for all scores u. ``score(c, g)`` is score c after a
        step by g in that score alone.
        """
        loss, g = self.descent(y, z)
        return loss, loss + float(g @ z), g

    def values(self, y: Any, z: np.ndarray) -> np.ndarray:
        """Return the losses of samples, shape (n,), for scores of shape (n, n_outputs)."""
        return np.array([self.descent(y[i], z[i])[0] for i in range(len(z))])

    def conjugates(self, y: Any, beta: np.ndarray, C: np.ndarray) -> np.ndarray | None:
        """Return sup_z (-beta'z - C loss(y, z)) of samples, shape (n,), for beta (n, n_outputs); None if not known."""
        return None

    def targets_of(self, codes: np.ndarray) -> np.ndarray:
        """Return the targets of samples of these classes, shape (n, n_targets), as the compiled steps take them."""
        raise TypeError(f"{self!r} is not made for classes.")

    def labels(self, z: np.ndarray) -> np.ndarray:
        """Return what is predicted for scores of shape (n, n_outputs), where the loss says so."""
        raise TypeError(f"{self!r} says no label for given scores: use decision_function.")


class OneVsRest(JointLoss):
    """The sum of a loss over the outputs, each with a target of its own: y has shape (n, n_outputs).

    Of two classes, the second is told from the first by one output.

    Examples
    --------
    >>> import numpy as np
    >>> from manykernels.losses import Hinge, OneVsRest
    >>> OneVsRest(Hinge(), 1).targets_of(np.array([0, 1])).tolist()
    [[-1.0], [1.0]]
    """

    is_made_for_classes = True

    def __init__(self, loss: Loss, n_outputs: int) -> None:
        self.loss, self.n_outputs = loss, n_outputs

    @property
    def gives_probabilities(self) -> bool:  # type: ignore[override]
        return self.loss.gives_probabilities

    def compiled(self) -> Compiled:
        return self.loss.compiled()

    def values(self, y: Any, z: np.ndarray) -> np.ndarray:
        return self.loss.value(y, z).sum(axis=1)

    def conjugates(self, y: Any, beta: np.ndarray, C: np.ndarray) -> np.ndarray:
        return self.loss.conjugate(y, beta, C[:, None]).sum(axis=1)

    def targets_of(self, codes: np.ndarray) -> np.ndarray:
        classes = np.arange(self.n_outputs) if self.n_outputs > 1 else np.array([1])
        return np.where(codes[:, None] == classes, 1.0, -1.0)

    def descent(self, y: Any, z: np.ndarray) -> tuple[float, np.ndarray]:
        # The pull toward the target is the dual point at which the loss is supported.
        return float(self.loss.value(y, z).sum()), self.loss.dual_pull(y, z, np.ones_like(z))[1]

    def step(self, y: Any, z: np.ndarray, score: Callable[[int, float], float]) -> tuple[float, float, np.ndarray]:
        """Return the same, with pulls that are not bounded taken where the step leads, not where it starts.

        With the first steps, which are long, they would grow without end.
        """
        one = np.ones_like(z)
        if np.all(np.isfinite(self.loss.domain(y, one))):
            return super().step(y, z, score)
        g = np.array([self._pull_ahead(y[c : c + 1], partial(score, c)) for c in range(z.size)])
        return float(self.loss.value(y, z).sum()), -float(self.loss.conjugate(y, g, one).sum()), g

    def _pull_ahead(self, y: np.ndarray, score: Callable[[float], float]) -> float:
        """Return the g that is the pull at the score after a step by g: the pull falls as the score rises."""

        def excess(g: float) -> float:
            return float(self.loss.dual_pull(y, np.array([score(g)]), np.ones(1))[1][0]) - g

        first = excess(0.0)
        # A step that changes the score by no more than rounding, or to what is not a number, is left as it is.
        if not excess(first) * first < 0.0:
            return first
        return float(brentq(excess, 0.0, first, rtol=_PULL_DIGITS, maxiter=1000))


class MulticlassHinge(JointLoss):
    """max over c != y of max(0, 1 - z_y + z_c): several classes jointly (Crammer and Singer, 2002).

    The target is the number of the class.

    Examples
    --------
    >>> import numpy as np
    >>> from manykernels.losses import MulticlassHinge
    >>> loss, scores = MulticlassHinge(3), np.array([0.5, 0.0, 0.25])
    >>> loss.descent(0, scores)  # class 2 comes too close to class 0
    (0.75, array([ 1.,  0., -1.]))
    """

    name = "multiclass_hinge"
    is_made_for_classes = True

    def __init__(self, n_outputs: int) -> None:
        self.n_outputs = n_outputs

    def compiled(self) -> Compiled:
        return Compiled(MULTICLASS_HINGE)

    def descent(self, y: Any, z: np.ndarray) -> tuple[float, np.ndarray]:
        margins = z + 1.0
        margins[y] = z[y]
        worst = int(margins.argmax())
        out = np.zeros(self.n_outputs)
        out[y] += 1.0
        out[worst] -= 1.0
        return float(margins[worst] - z[y]), out

    def values(self, y: Any, z: np.ndarray) -> np.ndarray:
        rows = np.arange(len(z))
        margins = z + 1.0
        margins[rows, y] = z[rows, y]
        return margins.max(axis=1) - z[rows, y]

    def conjugates(self, y: Any, beta: np.ndarray, C: np.ndarray) -> np.ndarray:
        """Return -beta_y: the dual points have beta_y in [0, C], the others <= 0, and sum 0."""
        return -beta[np.arange(len(beta)), y]

    def targets_of(self, codes: np.ndarray) -> np.ndarray:
        return codes[:, None].astype(np.float64)


class StructuredHinge(JointLoss):
    """max over labels l of cost(y, l) + <z, embed(l) - embed(y)>: labels with a structure, to be subclassed.

    A label is a vector, ``embed(label)`` of shape (n_outputs,), and its score the inner product of that vector with the
    outputs z(x). A subclass gives the vectors, the cost of a wrong label, and the label of the highest score.

    Examples
    --------
    Classes in a tree, where a mistake between branches costs more than one within a branch:

    >>> import numpy as np
    >>> from manykernels.losses import StructuredHinge
    >>> class Tree(StructuredHinge):
    ...     paths = {"cat": [1, 0, 1, 0, 0], "dog": [1, 0, 0, 1, 0], "oak": [0, 1, 0, 0, 1]}  # branches, then leaves
    ...     n_outputs = 5
    ...     def embed(self, label):
    ...         return np.array(self.paths[label], dtype=float)
    ...     def cost(self, label, other):
    ...         return 0.25 * np.abs(self.embed(label) - self.embed(other)).sum()
    ...     def best(self, z, y=None):
    ...         return max(self.paths, key=lambda l: z @ self.embed(l) + (0.0 if y is None else self.cost(y, l)))
    >>> tree = Tree()
    >>> tree.best(np.zeros(5), "cat")  # before anything is learned, the worst rival of a cat is a tree
    'oak'
    >>> tree.descent("cat", np.zeros(5))
    (1.0, array([ 1., -1.,  1.,  0., -1.]))
    """

    @abstractmethod
    def embed(self, label: Any) -> np.ndarray:
        """Return the vector of a label, shape (n_outputs,)."""

    @abstractmethod
    def cost(self, label: Any, other: Any) -> float:
        """Return what it costs to say ``other`` for ``label``: at least 0, and 0 for the label itself."""

    @abstractmethod
    def best(self, z: np.ndarray, y: Any = None) -> Any:
        """Return the label with the highest <z, embed(label)>, plus cost(y, label) when y is given."""

    def descent(self, y: Any, z: np.ndarray) -> tuple[float, np.ndarray]:
        rival = self.best(z, y)
        step = self.embed(y) - self.embed(rival)
        return float(self.cost(y, rival) - z @ step), step

    def labels(self, z: np.ndarray) -> np.ndarray:
        """Return the label with the highest score for each row of z."""
        return np.array([self.best(scores) for scores in z])
