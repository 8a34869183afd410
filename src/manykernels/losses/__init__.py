"""Losses, each with its convex conjugate.

A loss measures one prediction; the training problem sums ``C_i * loss(y_i, z_i)``.
"""

from manykernels.losses.base import Loss, SmoothLoss
from manykernels.losses.joint import JointLoss, MulticlassHinge, OneVsRest, StructuredHinge
from manykernels.losses.piecewise import EpsilonInsensitive, Hinge
from manykernels.losses.smooth import Logistic, Squared, SquaredHinge

__all__ = [
    "EpsilonInsensitive",
    "Hinge",
    "JointLoss",
    "Logistic",
    "Loss",
    "MulticlassHinge",
    "OneVsRest",
    "SmoothLoss",
    "Squared",
    "SquaredHinge",
    "StructuredHinge",
]
