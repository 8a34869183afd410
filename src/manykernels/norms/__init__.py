"""Norms on the component norms a_k = ||f_k||, and penalties of the weights: they decide how sparse the weights are."""

from manykernels.norms.base import Norm
from manykernels.norms.elastic import ElasticNorm
from manykernels.norms.lp import LpNorm
from manykernels.norms.mixed import MixedNorm
from manykernels.norms.penalty import LpPenalty, Penalty

__all__ = ["ElasticNorm", "LpNorm", "LpPenalty", "MixedNorm", "Norm", "Penalty"]
