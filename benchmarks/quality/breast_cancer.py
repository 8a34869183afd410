"""Accuracy on scikit-learn's breast-cancer data: MKLClassifier, tuned and as it comes, beside SVC with a tuned RBF.

    python -m benchmarks.quality.breast_cancer

5 times repeated 5-fold cross-validation; "tuned" is an inner 5-fold grid on each training part: over C and gamma for
SVC, over C and norm for MKLClassifier with the standard kernels on all features. Target: tuned MKL not below tuned SVC
by more than one standard error. The defaults, with kernels on single features too, stand below for comparison.
"""

from __future__ import annotations

import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import GridSearchCV, RepeatedStratifiedKFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from manykernels import MKLClassifier
from manykernels.kernels import standard_bank

SVC_GRID = {"svc__C": [0.1, 1, 10, 100], "svc__gamma": [0.001, 0.003, 0.01, 0.03, 0.1]}
MKL_GRID = {"mklclassifier__C": [0.1, 0.3, 1, 3, 10], "mklclassifier__norm": [1, 2]}


def main() -> None:
    X, y = load_breast_cancer(return_X_y=True)
    folds = RepeatedStratifiedKFold(n_splits=5, n_repeats=5, random_state=0)
    whole = standard_bank(X, per_feature=False)
    models = {
        "SVC, tuned RBF": GridSearchCV(make_pipeline(StandardScaler(), SVC()), SVC_GRID, cv=5),
        "MKLClassifier, tuned": GridSearchCV(make_pipeline(StandardScaler(), MKLClassifier(whole)), MKL_GRID, cv=5),
        "MKLClassifier()": make_pipeline(StandardScaler(), MKLClassifier()),
        "MKLClassifier(norm=2)": make_pipeline(StandardScaler(), MKLClassifier(norm=2)),
        "MKLClassifier(norm=inf)": make_pipeline(StandardScaler(), MKLClassifier(norm=np.inf)),
    }
    reference = None
    for name, model in models.items():
        scores = cross_val_score(model, X, y, cv=folds)
        reference = scores if reference is None else reference
        error = scores.std(ddof=1) / np.sqrt(scores.size)
        behind = (reference.mean() - scores.mean()) / (reference.std(ddof=1) / np.sqrt(scores.size))
        print(f"{name:26s} accuracy {scores.mean():.4f} +- {error:.4f}  behind SVC by {behind:+.2f} standard errors")


if __name__ == "__main__":
    main()
