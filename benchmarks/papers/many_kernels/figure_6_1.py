"""Figure 6.1: drawing coordinates in proportion to the gradient against RCDM and RACDM (thesis, section 6.1.1).

    python -m benchmarks.papers.many_kernels.figure_6_1 [--steps 20000] [--out folder]

f(x) = 1/2 sum_i (x_i - 0.9^i)^2 with 10,000 variables; the objective divided by that at 0.
"""

from __future__ import annotations

import numpy as np

from benchmarks.papers.many_kernels.common import arguments, conclude, plot
from manykernels.literature.coordinate import gradient_sampling, racdm, rcdm


def main() -> None:
    options = arguments(__doc__, steps=20_000, size=10_000)
    target, start = 0.9 ** np.arange(1, options.size + 1), np.zeros(options.size)
    first = float(np.sum(target**2))
    curves: dict[str, tuple[list, list]] = {}

    def watcher(name: str):
        steps, values = curves.setdefault(name, ([0], [1.0]))
        every = max(1, options.steps // 40)

        def watch(k: int, x: np.ndarray) -> None:
            if k % every == 0:
                steps.append(k)
                values.append(float(np.sum((x - target) ** 2)) / first)

        return watch

    gradient_sampling(lambda x: x - target, start, options.steps, watch=watcher("in proportion to the gradient"))
    ones = np.ones(options.size)
    rcdm(lambda x, i: x[i] - target[i], start, ones, options.steps, watch=watcher("RCDM"))
    racdm(lambda x, i: x[i] - target[i], start, 1.0, options.steps, watch=watcher("RACDM"))
    print("objective / objective at 0 after     " + "".join(f"{k:>10d}" for k in curves["RCDM"][0][::8]))
    for name, (_, values) in curves.items():
        print(f"{name:36s} " + "".join(f"{value:10.2e}" for value in values[::8]))
    part = len(curves["RCDM"][0]) // 10
    early = {name: values[part] for name, (_, values) in curves.items()}
    own = early["in proportion to the gradient"]
    conclude("after a tenth of the steps, drawing by the gradient is ahead of both",
             own < min(early["RCDM"], early["RACDM"]))  # fmt: skip
    plot(options.out, "figure_6_1", curves, xlabel="steps", ylabel="objective / first", logy=True)


if __name__ == "__main__":
    main()
