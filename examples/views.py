"""Views: which quarter of a picture tells a 3 from an 8?

Handwritten digits as four views, the quarters of the image, each seen by Gaussian kernels of three widths. With
`norm=1` few kernels are left: the left half of the picture, where a 3 is open and an 8 is closed.
"""

import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

from manykernels import MKLClassifier
from manykernels.kernels import Gaussian

digits = load_digits()
chosen = np.isin(digits.target, [3, 8])
X, y = digits.data[chosen] / 16.0, digits.target[chosen]

pixels = np.arange(64).reshape(8, 8)
views = {
    "upper left": pixels[:4, :4],
    "upper right": pixels[:4, 4:],
    "lower left": pixels[4:, :4],
    "lower right": pixels[4:, 4:],
}
kernels = [
    Gaussian(width, columns=part.ravel(), group=name, label=name)
    for name, part in views.items()
    for width in (0.5, 1.0, 2.0)
]

X_train, X_test, y_train, y_test = train_test_split(X, y, random_state=0, stratify=y)
model = MKLClassifier(kernels, norm=1.0, C=10.0).fit(X_train, y_train)
print(f"accuracy {model.score(X_test, y_test):.3f}, gap {model.gap_:.1e}")
for k in model.weights_.argsort()[::-1]:
    if model.weights_[k] > 0:
        print(f"{model.weights_[k]:6.3f}  {model.kernel_names_[k]}")
