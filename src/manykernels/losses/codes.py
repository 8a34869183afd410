"""What the compiled steps of UFO-MKL know losses by."""

from __future__ import annotations

from typing import Any, NamedTuple

# CUSTOM is any loss that is not compiled in: it is asked in Python, sample by sample.
CUSTOM, HINGE, SQUARED_HINGE, LOGISTIC, SQUARED, EPSILON_INSENSITIVE, MULTICLASS_HINGE = range(7)


class Compiled(NamedTuple):
    """The number of a loss in compiled code, and half the width of the tube inside which a residual costs nothing."""

    code: int = CUSTOM
    epsilon: float = 0.0


class MayBeCompiled:
    """A class of losses that says whether it is compiled in, for itself alone: a subclass may have other mathematics.

    Examples
    --------
    >>> from manykernels.losses import EpsilonInsensitive, Hinge
    >>> EpsilonInsensitive(0.2).compiled()
    Compiled(code=5, epsilon=0.2)
    >>> class Steep(Hinge):
    ...     def value(self, y, z):
    ...         return 2 * super().value(y, z)
    >>> Steep().compiled()
    Compiled(code=0, epsilon=0.0)
    """

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if "compiled" not in vars(cls):
            cls.compiled = MayBeCompiled.compiled  # type: ignore[method-assign]

    def compiled(self) -> Compiled:
        """Return what compiled code knows the loss by; a subclass with the same mathematics repeats it."""
        return Compiled()
