"""Kernels, and rows of features, that live on the workers of a Dask cluster. Dask is imported here and nowhere else."""

from manykernels.banks.cluster.bank import DaskBank, bind_on_workers
from manykernels.banks.cluster.connection import find_client
from manykernels.banks.cluster.loading import by_parts, gathered, load_rows
from manykernels.banks.cluster.row_bank import RowBank

__all__ = [
    "DaskBank",
    "RowBank",
    "bind_on_workers",
    "by_parts",
    "find_client",
    "gathered",
    "load_rows",
]
