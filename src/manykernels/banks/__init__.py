"""Where the kernels of one fit are, and what can be asked of them.

:func:`plan` decides by arithmetic alone, :func:`bind` does it, and the bank that it returns is all that solvers see.
"""

from manykernels.banks.binding import bind, bind_family
from manykernels.banks.placement import Data, Placement, Recipe
from manykernels.banks.planning import plan

__all__ = ["Data", "Placement", "Recipe", "bind", "bind_family", "plan"]
