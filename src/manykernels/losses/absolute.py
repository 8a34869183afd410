"""The absolute loss."""

from __future__ import annotations

from manykernels.losses.codes import EPSILON_INSENSITIVE, Compiled
from manykernels.losses.piecewise import EpsilonInsensitive


class Absolute(EpsilonInsensitive):
    """|y - z|: regression to the median, which outliers of any size pull no harder than others.

    It is the epsilon-insensitive loss without a tube.

    Examples
    --------
    >>> import numpy as np
    >>> from manykernels.losses import Absolute
    >>> Absolute().value(np.array([1.0, 1.0]), np.array([0.5, 4.0]))
    array([0.5, 3. ])
    """

    name = "absolute"

    def __init__(self) -> None:
        super().__init__(0.0)

    def compiled(self) -> Compiled:
        return Compiled(EPSILON_INSENSITIVE)

    def __repr__(self) -> str:
        return "Absolute()"
