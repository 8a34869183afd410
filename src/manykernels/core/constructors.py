"""Kernels, norms and losses say with which arguments they were made: so they are shown, and written to files."""

from __future__ import annotations

import inspect
from functools import lru_cache
from typing import Any


class HasParameters:
    """A class that stores the arguments of its constructor under their own names.

    Examples
    --------
    >>> from manykernels.norms import LpPenalty
    >>> LpPenalty(2, strength=3.0).parameters()
    {'p': 2.0, 'strength': 3.0}
    """

    def parameters(self) -> dict[str, Any]:
        """Return the constructor's arguments, with which an equal object can be made."""
        kind: Any = type(self)
        return {name: getattr(self, name) for name in argument_names(kind)}


@lru_cache(maxsize=256)
def argument_names(kind: Any) -> tuple[str, ...]:
    """Return the names of a constructor's arguments.

    Examples
    --------
    >>> from manykernels.core.constructors import argument_names
    >>> from manykernels.losses import EpsilonInsensitive, Hinge
    >>> argument_names(EpsilonInsensitive), argument_names(Hinge)
    (('epsilon',), ())
    """
    arguments = inspect.signature(kind.__init__).parameters.values()
    # A class without a constructor has that of object: any arguments, none of which has a name.
    loose = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    return tuple(argument.name for argument in arguments if argument.name != "self" and argument.kind not in loose)
