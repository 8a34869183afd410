"""Tables and plots of fitted models, and the report."""

from manykernels.reports.displays import (
    ContributionsDisplay,
    ConvergenceDisplay,
    KernelWeightsDisplay,
    LearnedKernelDisplay,
    PathDisplay,
)
from manykernels.reports.report import Report, make_report
from manykernels.reports.tables import alignment_table, certificate_table, kernels_table, scores_table

__all__ = [
    "ContributionsDisplay",
    "ConvergenceDisplay",
    "KernelWeightsDisplay",
    "LearnedKernelDisplay",
    "PathDisplay",
    "Report",
    "alignment_table",
    "certificate_table",
    "kernels_table",
    "make_report",
    "scores_table",
]
