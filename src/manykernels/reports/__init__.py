"""Tables made from plain results."""

from manykernels.reports.tables import certificate_table, kernels_table, scores_table

__all__ = ["certificate_table", "kernels_table", "scores_table"]
