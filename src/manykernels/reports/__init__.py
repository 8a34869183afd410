"""Tables and plots made from plain results."""

from manykernels.reports.plots import plot_alpha_path
from manykernels.reports.tables import alignment_table, certificate_table, kernels_table, scores_table

__all__ = ["alignment_table", "certificate_table", "kernels_table", "plot_alpha_path", "scores_table"]
