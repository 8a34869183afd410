"""The way to a Dask cluster: which client a fit uses, and what to say where there is none."""

from __future__ import annotations

from typing import Any

_INSTALL = 'pip install "manykernels[dask]"'


def distributed_library() -> Any:
    """Return the module ``distributed`` of Dask; raise ImportError with the extra to install where there is none."""
    try:
        import distributed  # noqa: PLC0415 - an optional dependency
    except ImportError as error:
        raise ImportError(f"cluster='dask' and Dask collections need Dask: {_INSTALL}") from error
    return distributed


def find_client(cluster: Any) -> Any:
    """Return the client that ``cluster`` names: itself, or with "dask" the active one; None for None.

    Within a task of a cluster it is None, too: the task has its own part of the machine, and tasks that wait for other
    tasks could wait forever.

    Parameters
    ----------
    cluster : None, "dask" or distributed.Client

    Returns
    -------
    distributed.Client or None

    Raises
    ------
    ImportError
        Where Dask is not installed.
    TypeError
        If cluster is none of these.
    RuntimeError
        If there is no client, or it is closed.
    """
    if cluster is None:
        return None
    library = distributed_library()
    if not (isinstance(cluster, library.Client) or (isinstance(cluster, str) and cluster == "dask")):
        raise TypeError(f"cluster must be None, 'dask' or a dask.distributed.Client, got {cluster!r}.")
    if _is_in_task(library):
        return None
    if isinstance(cluster, str):
        try:
            client = library.Client.current(allow_global=True)
        except ValueError:
            raise RuntimeError(
                "cluster='dask' needs an active client; make one with: from dask.distributed import Client; client = "
                "Client() for the cores of this machine, or Client(address) for a cluster."
            ) from None
    else:
        client = cluster
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
