"""Tables and plots made from plain results."""

from manykernels.reports.plots import plot_alpha_path
from manykernels.reports.tables import certificate_table, kernels_table, scores_table

__all__ = ["certificate_table", "kernels_table", "plot_alpha_path", "scores_table"]
