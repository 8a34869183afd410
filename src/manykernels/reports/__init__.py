"""Tables and plots made from plain results."""

from manykernels.reports.displays import (
    ContributionsDisplay,
    ConvergenceDisplay,
    KernelWeightsDisplay,
    LearnedKernelDisplay,
    PathDisplay,
)
from manykernels.reports.tables import alignment_table, certificate_table, kernels_table, scores_table

__all__ = [
    "ContributionsDisplay",
    "ConvergenceDisplay",
    "KernelWeightsDisplay",
    "LearnedKernelDisplay",
    "PathDisplay",
    "alignment_table",
    "certificate_table",
    "kernels_table",
    "scores_table",
]
