"""The kernels of the command: on all features, and on each column of the table."""

from collections.abc import Sequence
from typing import Any

from manykernels.kernels import Gaussian, Linear, Polynomial
from manykernels.kernels.standard import STANDARD_DEGREES, STANDARD_WIDTHS

FEW_WIDTHS = (0.5, 2.0, 8.0)
MAX_KERNELS = 2000
ALL = "all features"


def make_kernels(sources: dict[str, list[int]]) -> tuple[list[Any], str]:
    """List the kernels for a table.

    Parameters
    ----------
    sources : dict
        From the name of each column to its features, as `TableEncoder.sources`.

    Returns
    -------
    kernels : list of kernels
        Each belongs to the group of its column.
    note : str
        What was shortened because there are many columns; empty if nothing was.

    Examples
    --------
    >>> kernels, note = make_kernels({"age": [0], "city": [1, 2, 3]})
    >>> len(kernels)
    39
    """
    if len(sources) == 1:
        # All features are the features of this column: one copy of each kernel is enough.
        return [kernel for item in sources.items() for kernel in _full(*item)], ""
    kernels = _full(ALL, None)
    count = len(kernels) * (1 + len(sources))
    if count <= MAX_KERNELS:
        return kernels + [kernel for item in sources.items() for kernel in _full(*item)], ""
    note = (
        f"{len(sources)} columns would make {count} kernels: each column gets a linear kernel and "
        f"{len(FEW_WIDTHS)} Gaussian ones, and only all features together get every kernel."
    )
    return kernels + [kernel for item in sources.items() for kernel in _few(*item)], note


def _full(name: str, columns: Sequence[int] | None) -> list[Any]:
    gaussians = [Gaussian(width=width, columns=columns, group=name, label=name) for width in STANDARD_WIDTHS]
    polynomials = [Polynomial(degree, columns=columns, group=name, label=name) for degree in STANDARD_DEGREES]
    return gaussians + polynomials


def _few(name: str, columns: Sequence[int]) -> list[Any]:
    linear = Linear(columns=columns, group=name, label=name)
    return [linear, *(Gaussian(width=width, columns=columns, group=name, label=name) for width in FEW_WIDTHS)]
