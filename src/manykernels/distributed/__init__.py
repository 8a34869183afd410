"""Kernels, and rows of features, that live on the workers of a Dask cluster. Dask is imported here and nowhere else."""

from manykernels.distributed.bank import DaskBank, bind
from manykernels.distributed.connection import find_client
from manykernels.distributed.loading import by_parts, class_counts, gathered, load_rows
from manykernels.distributed.row_bank import RowBank
from manykernels.distributed.row_block import Targets, check_views, moments_of
from manykernels.distributed.row_problem import row_problem

__all__ = [
    "DaskBank",
    "RowBank",
    "Targets",
    "bind",
    "by_parts",
    "check_views",
    "class_counts",
    "find_client",
    "gathered",
    "load_rows",
    "moments_of",
    "row_problem",
]
