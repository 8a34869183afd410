"""Losses, each with its convex conjugate.

A loss measures one prediction; the training problem sums ``C_i * loss(y_i, z_i)``.
"""

from manykernels.losses.absolute import Absolute
from manykernels.losses.base import Loss, SmoothLoss
from manykernels.losses.huber import Huber
from manykernels.losses.joint import JointLoss, MulticlassHinge, OneVsRest, StructuredHinge
from manykernels.losses.piecewise import EpsilonInsensitive, Hinge
from manykernels.losses.quantile import Quantile
from manykernels.losses.smooth import Logistic, Squared, SquaredHinge
from manykernels.losses.threshold import OneClass

# Every loss that has a name, in the order in which names are listed. What a loss is for stands in its class.
LOSSES: tuple[type[Loss], ...] = (
    Hinge,
    SquaredHinge,
    Logistic,
    Squared,
    EpsilonInsensitive,
    Absolute,
    Quantile,
    Huber,
    OneClass,
)
# Those of all outputs of a sample at once, which are made for a number of classes.
JOINT_LOSSES: tuple[type[MulticlassHinge], ...] = (MulticlassHinge,)

__all__ = [
    "Absolute",
    "EpsilonInsensitive",
    "Hinge",
    "Huber",
    "JointLoss",
    "Logistic",
    "Loss",
    "MulticlassHinge",
    "OneClass",
    "OneVsRest",
    "Quantile",
    "SmoothLoss",
    "Squared",
    "SquaredHinge",
    "StructuredHinge",
]
