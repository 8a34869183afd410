"""Banks of every kind, each made once; the cluster starts when a bank first needs it."""

from contextlib import ExitStack
from functools import cache

import pytest

from tests.contracts import making


def local_client(stack):
    """A client of two workers in this process."""
    from distributed import Client, LocalCluster

    cluster = LocalCluster(n_workers=2, threads_per_worker=1, processes=False, dashboard_address=":0")
    client = Client(stack.enter_context(cluster), set_as_default=False)
    stack.callback(client.close)  # entered as a context, it would be the default for others
    return client


@pytest.fixture(scope="session")
def make_bank():
    """``make_bank(kind, kernels, X, **settings)``; see :func:`tests.contracts.making.make`.

    A bank of the kind's own kernels on the usual samples is made once, and shared.
    """
    with ExitStack() as stack:
        workers = cache(lambda: local_client(stack))
        shared = cache(lambda name, settings: making.make(making.KINDS[name], workers=workers, **dict(settings)))

        def of(kind, kernels=None, X=None, **settings):
            if kernels is None and X is None and "sample_weight" not in settings:
                return shared(kind.name, tuple(sorted(settings.items())))
            return making.make(kind, kernels, X, workers=workers, **settings)

        yield of
