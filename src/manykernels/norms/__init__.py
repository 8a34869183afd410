"""Norms on the vector of component norms a_k = ||f_k||; the norm decides how sparse the kernel weights are."""

from manykernels.norms.lp import LpNorm

__all__ = ["LpNorm"]
