"""Workers that die, clients that are closed, and no Dask at all."""

import os
import signal
import subprocess
import sys
import textwrap
from contextlib import suppress

import numpy as np
import pytest
from distributed import Client
from sklearn.datasets import make_classification

from manykernels import MKLClassifier
from manykernels.banks import Placement, bind
from manykernels.core.progress import listen
from manykernels.kernels import Gaussian, NystroemFeatures, standard_bank
from tests.banks.cluster.conftest import cluster_of


@pytest.fixture(scope="module")
def mortals():
    """A client of two worker processes of which some will be killed."""
    cluster = cluster_of(2, True)
    with Client(cluster, set_as_default=False) as client:
        yield client
    with suppress(KeyError):  # closing, Dask may look for a worker that was killed
        cluster.close()


def kill(client, count):
    """Kill worker processes; what they held is lost."""
    pids = sorted(client.run(os.getpid).values())
    for pid in pids[:count]:
        os.kill(pid, signal.SIGKILL)


@pytest.mark.parametrize(("count", "norm"), [(1, 1.0), (2, 1.5)], ids=["one", "all"])
def test_a_killed_worker_changes_nothing(mortals, count, norm):
    """In mid-fit, with all that it held; when all die, the driver sends the data again."""
    X, y = make_classification(80, 5, n_informative=4, n_redundant=0, flip_y=0.1, random_state=0)
    settings = {"kernels": standard_bank(X, widths=4, degrees=()), "norm": norm, "tol": 1e-8}
    killed = []

    def strike(step):
        if step.iteration == 2:
            killed.append(step)
            kill(mortals, count)

    mortals.wait_for_workers(2)
    undisturbed = MKLClassifier(**settings, cluster=mortals).fit(X, y)
    with listen(strike):
        model = MKLClassifier(**settings, cluster=mortals).fit(X, y)
    assert len(killed) == 1
    np.testing.assert_array_equal(model.weights_, undisturbed.weights_)
    np.testing.assert_array_equal(model.dual_coef_, undisturbed.dual_coef_)
    assert model.gap_ == undisturbed.gap_
    mortals.wait_for_workers(2)


def test_a_killed_worker_with_rows_changes_nothing(mortals):
    """Its rows had been sent by the driver, which sends them again."""
    X, y = make_classification(200, 4, n_informative=3, n_redundant=0, flip_y=0.1, random_state=0)
    settings = {"kernels": [Gaussian(1.0), Gaussian(3.0)], "approximation": NystroemFeatures(20), "norm": 1.5}
    killed = []

    def strike(step):
        if step.iteration == 2:
            killed.append(step)
            kill(mortals, 1)

    mortals.wait_for_workers(2)
    undisturbed = MKLClassifier(**settings, random_state=0, cluster=mortals).fit(X, y)
    with listen(strike):
        model = MKLClassifier(**settings, random_state=0, cluster=mortals).fit(X, y)
    assert len(killed) == 1
    np.testing.assert_array_equal(model.weights_, undisturbed.weights_)
    np.testing.assert_array_equal(model.decision_function(X), undisturbed.decision_function(X))
    mortals.wait_for_workers(2)


def test_a_closed_client_is_named():
    X = np.random.default_rng(0).normal(size=(20, 2))
    with cluster_of(1, False) as cluster:
        client = Client(cluster, set_as_default=False)
        bank = bind([Gaussian(1.0), Gaussian(2.0)], X, placement=Placement(client=client))
        client.close()
        with pytest.raises(RuntimeError, match=r"client is closed.*make a new one"):
            bank.combine(np.ones(2))
        with pytest.raises(RuntimeError, match=r"client is closed.*make a new one"):
            MKLClassifier(cluster=client).fit(X, X[:, 0] > 0)


def test_without_a_client_the_error_says_how_to_make_one():
    with pytest.raises(RuntimeError, match=r"client = Client\(\)"):
        MKLClassifier(cluster="dask").fit(np.eye(4), [0, 0, 1, 1])


def test_without_dask_all_else_works():
    """In a process where Dask cannot be imported."""
    script = """
        import sys
        sys.modules["dask"] = sys.modules["distributed"] = None
        import numpy as np
        from manykernels import MKLClassifier
        X = np.random.default_rng(0).normal(size=(20, 2))
        y = X[:, 0] > 0
        print(MKLClassifier().fit(X, y).converged_)
        try:
            MKLClassifier(cluster="dask").fit(X, y)
        except ImportError as error:
            print(error)
    """
    found = subprocess.run([sys.executable, "-c", textwrap.dedent(script)], capture_output=True, text=True, check=True)
    lines = found.stdout.strip().splitlines()
    assert lines[0] == "True"
    assert 'pip install "manykernels[dask]"' in lines[1]
