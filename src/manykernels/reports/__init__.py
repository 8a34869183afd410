"""Tables and plots of fitted models, and the report."""

from manykernels.reports.displays import (
    ContributionsDisplay,
    ConvergenceDisplay,
    KernelWeightsDisplay,
    LearnedKernelDisplay,
    PathDisplay,
)
from manykernels.reports.html_report import Report, make_report
from manykernels.reports.terminal_tables import alignment_table, certificate_table, kernels_table, scores_table

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
