"""Tables, plots and the report made from plain results."""

from manykernels.reports.plots import plot_alpha_path
from manykernels.reports.report import Report, make_report
from manykernels.reports.tables import alignment_table, certificate_table, kernels_table, scores_table

__all__ = [
    "Report",
    "alignment_table",
    "certificate_table",
    "kernels_table",
    "make_report",
    "plot_alpha_path",
    "scores_table",
]
