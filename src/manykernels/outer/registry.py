"""Our own optimizers of the kernel weights, by their names."""

from __future__ import annotations

from manykernels.outer.automatic import AUTO
from manykernels.outer.group_lasso import GROUP_LASSO
from manykernels.outer.mirror import MIRROR
from manykernels.outer.multilevel import MULTILEVEL
from manykernels.outer.newton import NEWTON
from manykernels.outer.spg import SPG

SOLVERS = {solver.name: solver for solver in (AUTO, NEWTON, MULTILEVEL, GROUP_LASSO, SPG, MIRROR)}
