"""Clusters of this machine: worker processes as a user has them, and threads where only the numbers matter."""

import pytest

pytest.importorskip("distributed")


def pytest_itemcollected(item):
    """All run in one of the processes that run tests: each would start a cluster of its own."""
    item.add_marker(pytest.mark.xdist_group("cluster"))


def cluster_of(n_workers, processes):
    from distributed import LocalCluster

    return LocalCluster(n_workers=n_workers, threads_per_worker=1, processes=processes, dashboard_address=":0")


@pytest.fixture(scope="session")
def processes():
    """A client of four worker processes."""
    from distributed import Client

    with cluster_of(4, True) as cluster, Client(cluster, set_as_default=False) as client:
        yield client


@pytest.fixture
def client(processes):
    """The same, as the active client."""
    with processes.as_current():
        yield processes


@pytest.fixture(scope="module")
def threads():
    """A client of three workers in this process."""
    from distributed import Client

    with cluster_of(3, False) as cluster, Client(cluster, set_as_default=False) as client:
        yield client
