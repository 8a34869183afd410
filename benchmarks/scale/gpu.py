"""What a GPU does: passes over a million kernels, passes over many samples, whole fits, and the same model as the CPU.

    [MANYKERNELS_DATA=<folder>] python -m benchmarks.scale.gpu [million] [passes] [fit] [agree] [where] [options]

    million   one full pass of true (not interpolated) quadratic forms over a million Gaussian kernels on Sonar
              (n = 208, 61 column sets); target: under 0.2 s. Then a whole fit, on the device and on the CPU
    passes    n = 20,000, m = 50: combine + quadratic forms, on the device and on the CPU of the same machine; target:
              20 times faster. Five column sets of ten widths, then fifty column sets of one width
    fit       n = 50,000, m = 10: whole fits from raw data, with their certificate
    agree     weights on the device and on the CPU; target: equal to 1e-4
    where     only if asked for: fits of n = 3,000 to 20,000 with the combined kernel as an array and on the device

Options: --device cuda, --n 50000 (of "fit"), --part 1.0 (of all sizes, to try the script). The device's own limits are
measured first: bytes copied per second, and exponentials per second in a loop without memory. It needs numpy, scipy,
scikit-learn, numba and torch. Sonar is read from the folder, or random data of the same shape are taken.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
from sklearn.datasets import make_classification

from manykernels import MKLClassifier
from manykernels.banks import Placement, bind, planning
from manykernels.compute.gpu import Device
from manykernels.compute.memory import available_bytes, human_bytes
from manykernels.compute.threads import n_threads
from manykernels.kernels import Gaussian, KernelBank, standard_bank

SECTIONS = ("million", "passes", "fit", "agree")


def say(*words: object) -> None:
    print(*words, flush=True)


def synchronize(device: Device) -> None:
    if device.where.type == "cuda":
        device.torch.cuda.synchronize(device.where)


def seconds(device: Device, run: Callable[[], object], repeats: int = 7) -> float:
    """Return the median time of ``run``, after one run that compiles and fills the caches."""
    run()
    times = []
    for _ in range(repeats):
        synchronize(device)
        start = time.perf_counter()
        run()
        synchronize(device)
        times.append(time.perf_counter() - start)
    return float(np.median(times))


# -- what the device can do --------------------------------------------------------------------------------------


class Limits:
    """Measured: bytes read and written in a copy, and exponentials in float32, both per second."""

    def __init__(self, device: Device, part: float) -> None:
        size = int(part * (1 << 31)) // 4
        source = device.torch.rand(size, device=device.where)
        target = device.torch.empty_like(source)
        self.bandwidth = 8 * size / seconds(device, lambda: target.copy_(source))
        self.exponentials = self._exponentials(device, part)
        fused = "fused kernels" if device.fused(device.torch.float32) is not None else "plain torch"
        say(f"{device.where}: copy {self.bandwidth / 1e12:.2f} TB/s, {self.exponentials / 1e12:.2f} T exp/s, {fused}")

    @staticmethod
    def _exponentials(device: Device, part: float) -> float:
        loops, size = 256, 1 << 22
        if device.fused(device.torch.float32) is None:
            x = device.torch.rand(int(part * (1 << 26)), device=device.where)
            return x.numel() / seconds(device, lambda: x.exp2_().neg_())
        from benchmarks.scale.exponentials import kernel

        out = device.torch.empty(size, device=device.where)
        return loops * size / seconds(device, lambda: kernel[(size // 1024,)](out, loops, BLOCK=1024, num_warps=1))

    def shares(self, spent: float, n_bytes: float, n_exponentials: float) -> str:
        bandwidth, rate = n_bytes / spent / self.bandwidth, n_exponentials / spent / self.exponentials
        return f"{100 * bandwidth:.0f}% of the bandwidth, {100 * rate:.0f}% of the exponentials"


# -- sections ----------------------------------------------------------------------------------------------------


def sonar() -> tuple[np.ndarray, np.ndarray, str]:
    """Return Sonar, each feature with mean 0 and variance 1, or random data of its shape."""
    path = Path(os.environ.get("MANYKERNELS_DATA", "")) / "sonar.npz"
    if os.environ.get("MANYKERNELS_DATA") and path.is_file():
        data = np.load(path)
        X, y, name = data["X"].astype(float), data["y"], "Sonar"
        y = np.where(y == np.max(y), 1, -1)
    else:
        X, y = make_classification(208, 60, n_informative=10, random_state=0)
        name = "random data of Sonar's shape"
    return (X - X.mean(axis=0)) / X.std(axis=0), y, name


def million(device: Device, limits: Limits, options: argparse.Namespace) -> None:
    X, y, name = sonar()
    bank = standard_bank(X, widths=max(200, int(options.part * 16_394)), degrees=())
    say(f"\n{len(bank):,} Gaussian kernels on {name}, n = {len(y)}")
    start = time.perf_counter()
    bound = bind(bank, X, placement=Placement(device=options.device))
    say(f"  bound in {time.perf_counter() - start:.2f} s: {bound.describe_storage()}")
    beta = np.random.default_rng(0).uniform(0.1, 1.0, len(y)) * y
    beta -= beta.mean()  # no sample has beta = 0: every pair counts
    found = bound.quad_forms(beta)
    spent = seconds(device, lambda: bound.quad_forms(beta))
    n_exponentials = len(bank) * len(y) * (len(y) - 1) / 2
    say(
        f"  quadratic forms, array to array: {1e3 * spent:.1f} ms (target 200): "
        f"{n_exponentials / spent / 1e12:.2f} T exp/s, {limits.shares(spent, 0.0, n_exponentials)}"
    )
    kernels_alone(device, limits, bound, beta, n_exponentials)
    plain = Device(options.device, fuses=False)
    bound._stack._device = plain
    again = bound.quad_forms(beta)
    say(f"  the same by plain torch: {1e3 * seconds(device, lambda: bound.quad_forms(beta), 3):.1f} ms")
    bound._stack._device = device
    size = np.abs(beta).sum() ** 2
    say(f"  fused and plain differ by {np.abs(found - again).max() / size:.1e} of (sum |beta|)^2")
    check_forms(bound, beta, found)
    weights = np.full(len(bank), 1.0 / len(bank))
    say(f"  sum of all kernels: {1e3 * seconds(device, lambda: bound.combine(weights)):.1f} ms")
    for where in (options.device, "cpu"):
        for p in (1.0, 4 / 3):
            MKLClassifier(bank, norm=p, device=where, max_iter=1000).fit(X, y)  # compiles
            start = time.perf_counter()
            model = MKLClassifier(bank, norm=p, device=where).fit(X, y)
            words = f"gap {model.gap_:.1e}, objective {model.objective_:.6f}, {model.active_.size:,} kernels"
            say(f"  fit on {where}, p = {p:.3g}: {time.perf_counter() - start:.2f} s, {words}")


def kernels_alone(device: Device, limits: Limits, bound, beta: np.ndarray, n_exponentials: float) -> None:
    """Time the fused kernel by itself, for several tiles."""
    fused = device.fused(device.torch.float32)
    if fused is None:
        return
    _, rates, first = bound._every
    D = bound._stack._pairs(np.arange(len(bound._stack.views)), np.arange(beta.size))
    top, right = np.triu_indices(beta.size, 1)
    ones = device.zeros(1, dtype=D.dtype) + 1.0
    pairs = device.send(beta[top] * beta[right], D.dtype)
    for tile in ((1, 512, 1), (1, 1024, 1), (1, 2048, 1), (1, 2048, 2), (1, 4096, 4)):
        spent = seconds(device, lambda tile=tile: fused.forms(device, D, ones, pairs, rates, first, False, tile))
        say(f"    kernel alone, tile {tile}: {1e3 * spent:.2f} ms, {limits.shares(spent, 0.0, n_exponentials)}")


def check_forms(bound, beta: np.ndarray, found: np.ndarray) -> None:
    """Compare with kernels computed one by one in double precision."""
    worst = 0.0
    for k in np.random.default_rng(1).choice(bound.n_kernels, 200, replace=False):
        entry = bound.bound_kernel(int(k))
        V = bound.X[:, entry.positions]
        worst = max(worst, abs(bound.scale[k] * (beta @ entry.kernel.compute(V, V) @ beta) - found[k]))
    say(f"  error of 200 forms beside double precision: {worst / found.max():.1e} of the largest form")


def passes(device: Device, limits: Limits, options: argparse.Namespace) -> None:
    n, m = max(500, int(options.part * 20_000)), 50
    rng = np.random.default_rng(0)
    X, beta, weights = rng.normal(size=(n, 50)), rng.normal(size=n), rng.random(m)
    widths = np.geomspace(0.5, 32.0, 10)
    shared = [Gaussian(w, columns=list(range(s, s + 10))) for s in range(0, 50, 10) for w in widths]
    single = [Gaussian(widths[s % 10], columns=[s]) for s in range(m)]
    cpu = None
    for words, kernels in (("5 column sets x 10 widths", shared), ("50 column sets", single)):
        bank = KernelBank(kernels)
        say(f"\nn = {n:,}, m = {m}: {words}")
        start = time.perf_counter()
        bound = bind(bank, X, placement=Placement(device=options.device, storage="rows"))
        K = bound.workspace()
        synchronize(device)
        say(f"  bound in {time.perf_counter() - start:.2f} s: {bound.describe_storage()}")
        flip = [weights, weights[::-1].copy()]

        def combine(bound=bound, K=K, flip=flip):
            flip.reverse()  # the same weights again would cost nothing
            bound.combine(flip[0], out=K)

        n_sets = len({str(kernel.columns) for kernel in kernels})
        combining = seconds(device, combine)
        forming = seconds(device, lambda bound=bound: bound.quad_forms(beta))
        n_bytes = 4.0 * n * n
        say(f"  combine {1e3 * combining:.1f} ms: {limits.shares(combining, (n_sets + 2) * n_bytes, m * n * n)}")
        say(f"  forms   {1e3 * forming:.1f} ms: {limits.shares(forming, n_sets * n_bytes / 2, m * n * n / 2)}")
        product = seconds(device, lambda K=K: K.product(beta[None]))
        say(f"  product with the combined kernel {1e3 * product:.2f} ms: {limits.shares(product, n_bytes, 0.0)}")
        if cpu is None:
            cpu = cpu_passes(device, kernels, X, beta, weights)
        say(f"  on {n_threads()} cores {1e3 * sum(cpu):.0f} ms: {sum(cpu) / (combining + forming):.0f} times longer")
        del bound, K
        device.release()


def cpu_passes(device: Device, kernels: list, X: np.ndarray, beta: np.ndarray, weights: np.ndarray) -> tuple:
    """Return the times of both passes on the CPU with all kernels in memory, or extrapolated where they do not fit."""
    n, m = X.shape[0], len(kernels)
    bind(KernelBank(kernels[:3]), X[:300]).quad_forms(beta[:300])  # compiles
    bind(KernelBank(kernels[:3]), X[:300]).combine(weights[:3])
    need = 2 * n * (n + 1) * m + 16 * n * n
    counts = [m] if need < 0.8 * available_bytes() else [m // 10, m // 5]
    times = []
    for count in counts:
        bound = bind(KernelBank(kernels[:count]), X, placement=Placement(storage="packed"))
        out = bound.workspace()
        forming = seconds(device, lambda bound=bound: bound.quad_forms(beta), 3)
        combining = seconds(device, lambda bound=bound, out=out, count=count: bound.combine(weights[:count], out), 3)
        times.append(np.array([combining, forming]))
        say(f"  CPU, {count} kernels ({bound.describe_storage()}): combine {combining:.3f} s, forms {forming:.3f} s")
    if len(counts) == 1:
        return tuple(times[0])
    slope = (times[1] - times[0]) / (counts[1] - counts[0])
    say(f"  (memory for {human_bytes(need)} is missing: extrapolated to {m} kernels)")
    return tuple(times[0] + slope * (m - counts[0]))


def fit(device: Device, limits: Limits, options: argparse.Namespace) -> None:
    n = int(options.part * options.n)
    X, y = make_classification(n + n // 5, 20, n_informative=10, n_redundant=0, flip_y=0.05, random_state=0)
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    kernels = [Gaussian(w, columns=c) for c in (None, list(range(10))) for w in (1.0, 2.0, 4.0, 8.0, 16.0)]
    say(f"\nwhole fits, n = {n:,}, m = {len(kernels)}, gap 1e-3, from raw data")
    MKLClassifier(kernels, norm=2, device=options.device).fit(X[:500], y[:500])  # compiles
    for loss, p in (("hinge", 2.0), ("hinge", 1.0), ("logistic", 2.0), ("squared", 2.0)):
        start = time.perf_counter()
        model = MKLClassifier(kernels, norm=p, loss=loss, device=options.device, verbose=options.verbose)
        model.fit(X[:n], y[:n])
        spent = time.perf_counter() - start
        start = time.perf_counter()
        score = model.score(X[n:], y[n:])
        say(
            f"  {loss}, p = {p:g}: {spent:.1f} s, gap {model.gap_:.1e}, {model.n_iter_} iterations, "
            f"{model.n_inner_solves_} solves, {model.support_.size:,} support vectors; {len(y) - n:,} predictions in "
            f"{time.perf_counter() - start:.2f} s, accuracy {score:.4f}"
        )


def agree(device: Device, limits: Limits, options: argparse.Namespace) -> None:
    n = max(200, int(options.part * 1500))
    X, y = make_classification(n, 10, n_informative=6, n_redundant=0, flip_y=0.1, random_state=0)
    views = (None, [0, 1, 2], [3, 4, 5, 6], [7, 8, 9])
    kernels = [Gaussian(w, columns=c) for c in views for w in (0.5, 1.0, 2.0, 4.0)]
    say(f"\nweights on {options.device} and on the CPU, n = {n:,}, m = {len(kernels)}")
    large, worst = planning.LARGE, 0.0
    for loss in ("hinge", "squared_hinge", "logistic", "squared"):
        for p in (1.0, 4 / 3, 2.0):
            found = []
            # The combined kernel as an array, in single precision; and on the device, in double, by the same solver:
            # at a gap of 1e-7 the weights themselves are known to about its root only.
            for planning.LARGE, tol, solver in (
                (large, 1e-5, "auto"),
                (100, 1e-7, "spg" if p == 1 else "group_lasso"),
            ):
                own = {"norm": p, "loss": loss, "tol": tol, "solver": solver}
                here = MKLClassifier(kernels, **own).fit(X, y)
                there = MKLClassifier(kernels, device=options.device, **own).fit(X, y)
                found.append(float(np.abs(there.weights_ - here.weights_).max()))
            worst = max(worst, *found)
            say(
                f"  {loss:13s} p = {p:.3g}: weights differ by {found[0]:.1e} at gap 1e-5; with the kernel on the "
                f"device by {found[1]:.1e} at gap 1e-7"
            )
    planning.LARGE = large
    say(f"  at most {worst:.1e} (target 1e-4)")


def where(device: Device, limits: Limits, options: argparse.Namespace) -> None:
    """Find out from what size on the combined kernel had better stay on the device: ``kernels.device.bank.LARGE``."""
    kernels = [Gaussian(w, columns=c) for c in (None, list(range(10))) for w in np.geomspace(0.5, 16.0, 10)]
    large = planning.LARGE
    for n in (int(options.part * size) for size in (3000, 6000, 12_000, 20_000)):
        X, y = make_classification(n, 20, n_informative=10, n_redundant=0, flip_y=0.05, random_state=0)
        for loss, p in (("hinge", 1.0), ("hinge", 2.0), ("logistic", 2.0)):
            times = []
            for planning.LARGE in (10**9, 0):
                start = time.perf_counter()
                MKLClassifier(kernels, norm=p, loss=loss, device=options.device).fit(X, y)
                times.append(time.perf_counter() - start)
            say(
                f"  n = {n:6,} {loss:8s} p = {p:g}: kernel as an array {times[0]:.1f} s, on the device {times[1]:.1f} s"
            )
    planning.LARGE = large


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("sections", nargs="*", choices=[*SECTIONS, "where", []], default=[])
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--n", type=int, default=50_000)
    parser.add_argument("--part", type=float, default=1.0)
    parser.add_argument("--verbose", type=int, default=0)
    options = parser.parse_args()
    device = Device(options.device)
    limits = Limits(device, min(options.part, 1.0))
    for section in options.sections or SECTIONS:
        start = time.perf_counter()
        globals()[section](device, limits, options)
        say(f"  [{section}: {time.perf_counter() - start:.0f} s]")


if __name__ == "__main__":
    main()
