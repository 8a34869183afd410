"""The way to a Dask cluster: which client a fit uses, and what to say where there is none."""

from __future__ import annotations

from typing import Any

import numpy as np

_INSTALL = 'pip install "manykernels[dask]"'


def distributed_library() -> Any:
    """Return the module ``distributed`` of Dask; raise ImportError with the extra to install where there is none."""
    try:
        import distributed  # noqa: PLC0415 - an optional dependency
    except ImportError as error:
        raise ImportError(f"n_jobs='dask' and Dask collections need Dask: {_INSTALL}") from error
    return distributed


def names_workers(n_jobs: Any) -> bool:
    """Return whether ``n_jobs`` stands for the workers of a cluster, and not for a number of threads or processes.

    Examples
    --------
    >>> from manykernels.banks.cluster.connection import names_workers
    >>> names_workers("dask"), names_workers(2), names_workers(None)
    (True, False, False)
    """
    return not (n_jobs is None or isinstance(n_jobs, (int, np.integer)))


def find_client(n_jobs: Any) -> Any:
    """Return the client that ``n_jobs`` names: itself, or with "dask" the active one; None for a number.

    Within a task of a cluster it is None, too: the task has its own part of the machine, and tasks that wait for other
    tasks could wait forever.

    Parameters
    ----------
    n_jobs : int, "dask", distributed.Client or None

    Returns
    -------
    distributed.Client or None

    Raises
    ------
    ImportError
        Where Dask is not installed.
    TypeError
        If n_jobs is none of these.
    RuntimeError
        If there is no client, or it is closed.
    """
    if not names_workers(n_jobs):
        return None
    library = distributed_library()
    if not (isinstance(n_jobs, library.Client) or (isinstance(n_jobs, str) and n_jobs == "dask")):
        raise TypeError(f"n_jobs must be a whole number, None, 'dask' or a dask.distributed.Client, got {n_jobs!r}.")
    if _is_in_task(library):
        return None
    if isinstance(n_jobs, str):
        try:
            client = library.Client.current(allow_global=True)
        except ValueError:
            raise RuntimeError(
                "n_jobs='dask' needs an active client; make one with: from dask.distributed import Client; client = "
                "Client() for the cores of this machine, or Client(address) for a cluster."
            ) from None
    else:
        client = n_jobs
    check_open(client)
    return client


def check_open(client: Any) -> None:
    """Raise RuntimeError if the client is closed."""
    if client.status != "running":
        raise RuntimeError(f"The Dask client is {client.status}, not running: make a new one, and fit again.")


def _is_in_task(library: Any) -> bool:
    """Return whether this code runs in a task of a worker."""
    try:
        library.get_worker()
    except ValueError:
        return False
    return True
