"""Norms on the component norms a_k = ||f_k||, and penalties of the weights: they decide how sparse the weights are."""

from manykernels.norms.base import Norm
from manykernels.norms.elastic import ElasticNorm
from manykernels.norms.lp import LpNorm
from manykernels.norms.mixed import MixedNorm
from manykernels.norms.penalty import LpPenalty, Penalty

# Every norm that can be made: model files hold them by the names of their classes.
NORMS: tuple[type[Norm], ...] = (ElasticNorm, LpNorm, LpPenalty, MixedNorm)

__all__ = ["ElasticNorm", "LpNorm", "LpPenalty", "MixedNorm", "Norm", "Penalty"]
