"""Losses, each with its convex conjugate.

A loss measures one prediction; the training problem sums ``C_i * loss(y_i, z_i)``.
"""

from manykernels.losses.base import Loss, SmoothLoss
from manykernels.losses.joint import JointLoss, MulticlassHinge, OneVsRest, StructuredHinge
from manykernels.losses.piecewise import EpsilonInsensitive, Hinge
from manykernels.losses.smooth import Logistic, Squared, SquaredHinge

# Every loss that has a name, in the order in which names are listed. What a loss is for stands in its class.
LOSSES: tuple[type[Loss], ...] = (Hinge, SquaredHinge, Logistic, Squared, EpsilonInsensitive)
# Those of all outputs of a sample at once, which are made for a number of classes.
JOINT_LOSSES: tuple[type[MulticlassHinge], ...] = (MulticlassHinge,)

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
