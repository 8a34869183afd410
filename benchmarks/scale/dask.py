"""Kernels and rows on Dask workers: time and bytes of an iteration, against n, m, rank and workers, beside one machine.

    python -m benchmarks.scale.dask [--full]

A LocalCluster of worker processes with one thread each, so on a machine with few cores the workers share them, and the
times say what the cluster adds; bytes are those that the workers count when they send data, to one another and to the
driver. Kernels: an iteration is one combined kernel and one pass of quadratic forms. Expected bytes are W triangles of
n (n + 1) / 2 numbers and m numbers. Rows: the bytes of a whole fit, the sample of rows that the
first guess is made on among them, beside those of the features.
"""

from __future__ import annotations

import sys
import time

import numpy as np

SMALL = {"kernels": [(500, 40), (500, 160), (1000, 40)], "rows": [(5000, 50), (20000, 50), (20000, 100)]}
FULL = {
    "kernels": [(1000, 50), (1000, 200), (1000, 800), (2000, 200), (4000, 200)],
    "rows": [(20_000, 100), (80_000, 100), (320_000, 100), (80_000, 300)],
}


def bytes_sent(client) -> int:
    return sum(client.run(lambda dask_worker: dask_worker.transfer_outgoing_bytes_total).values())


def measured(client, run, repeats: int = 3) -> tuple[float, float]:
    """Return the seconds and the bytes of one run, after one that pays for compilation."""
    run()
    before, start = bytes_sent(client), time.perf_counter()
    for _ in range(repeats):
        run()
    return (time.perf_counter() - start) / repeats, (bytes_sent(client) - before) / repeats


def kernels(client, n: int, m: int) -> None:
    from manykernels.banks import Placement, bind
    from manykernels.kernels import Gaussian, KernelBank

    X = np.random.default_rng(0).normal(size=(n, 8))
    bank = KernelBank([Gaussian(w, columns=[c]) for c in range(8) for w in np.geomspace(0.5, 8.0, m // 8)])
    remote, local = bind(bank, X, placement=Placement(1, client=client)), bind(bank, X)
    beta, weights, K = np.random.default_rng(1).normal(size=n), np.full(m, 1.0 / m), local.workspace()

    def iterate(bound) -> None:
        bound.combine(weights, out=K)
        bound.quad_forms(beta)

    seconds, sent = measured(client, lambda: iterate(remote))
    iterate(local)
    start = time.perf_counter()
    iterate(local)
    here = time.perf_counter() - start
    workers = len(client.nthreads())
    expected = workers * 4 * n * (n + 1) + 8 * m
    print(
        f"kernels  n {n:6d}  m {m:4d}  workers {workers}  {1e3 * seconds:7.0f} ms  local {1e3 * here:7.0f} ms  "
        f"{sent / 1e6:8.3f} MB  {sent / expected:.3f} of expected",
        flush=True,
    )


def rows(client, n: int, rank: int) -> None:
    from sklearn.datasets import make_classification

    from manykernels import MKLClassifier
    from manykernels.kernels import FourierFeatures, Gaussian

    X, y = make_classification(n, 8, n_informative=6, n_redundant=0, flip_y=0.1, random_state=0)
    settings = {"kernels": [Gaussian(w) for w in (1.0, 2.0, 4.0, 8.0)], "approximation": FourierFeatures(rank)}
    settings |= {"norm": 1.5, "C": 100.0 / n, "random_state": 0, "tol": 1e-3}
    before, start = bytes_sent(client), time.perf_counter()
    model = MKLClassifier(**settings, cluster=client).fit(X, y)
    seconds, sent = time.perf_counter() - start, bytes_sent(client) - before
    start = time.perf_counter()
    local = MKLClassifier(**settings).fit(X, y)
    here = time.perf_counter() - start
    print(
        f"rows     n {n:6d}  D {4 * rank:5d}  workers {len(client.nthreads())}  {seconds:6.1f} s  "
        f"local {here:6.1f} s  {model.n_iter_:3d} iterations  {sent / 1e6:8.3f} MB in all (features "
        f"{n * 4 * rank * 4 / 1e6:.0f} MB)  objective {model.objective_ / local.objective_ - 1:+.1e}",
        flush=True,
    )


def main() -> None:
    from distributed import Client, LocalCluster

    sizes = FULL if "--full" in sys.argv else SMALL
    for n_workers in (2, 4):
        with (
            LocalCluster(n_workers=n_workers, threads_per_worker=1, processes=True, dashboard_address=":0") as cluster,
            Client(cluster) as client,
        ):
            for n, m in sizes["kernels"]:
                kernels(client, n, m)
            for n, rank in sizes["rows"]:
                rows(client, n, rank)


if __name__ == "__main__":
    main()
