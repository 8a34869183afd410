"""Kernels, and rows of features, that live on the workers of a Dask cluster. Dask is imported here and nowhere else."""

from manykernels.distributed.bank import DaskBank, bind
from manykernels.distributed.connection import find_client, is_collection

__all__ = ["DaskBank", "bind", "find_client", "is_collection"]
