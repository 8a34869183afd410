"""Online: a stream of samples, memory that does not grow.

`partial_fit` learns from batches. The kernels have finite feature maps (`Linear`, `RandomFourier`), so that nothing of
the old samples is kept. Each batch is first predicted, then learned from. `alpha` decides how many kernels are left:
the linear one, which does not help here, is out.
"""

import numpy as np

from manykernels import UFOMKLClassifier
from manykernels.kernels import Linear, RandomFourier

kernels = [Linear(), *(RandomFourier(width, columns=view) for width in (0.5, 1.0, 2.0) for view in ([0, 1], [2, 3]))]
model = UFOMKLClassifier(kernels, alpha=0.02, C=10.0, expected_samples=10_000, random_state=0)

rng = np.random.default_rng(0)
for batch in range(20):
    X = rng.normal(size=(500, 4))
    y = X[:, 0] ** 2 + X[:, 1] ** 2 > 1.5
    if batch in (1, 4, 19):
        print(f"after {model.n_seen_:5d} samples: accuracy {model.score(X, y):.3f} on the next 500")
    model.partial_fit(X, y, classes=[False, True])

for k in model.weights_.argsort()[::-1]:
    print(f"{model.weights_[k]:.3f}  {model.kernel_names_[k]}")
