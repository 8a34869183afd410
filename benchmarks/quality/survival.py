"""Concordance on the data sets of scikit-survival: MKLSurvival beside its Cox models and survival SVMs.

    pip install scikit-survival
    python -m benchmarks.quality.survival

Five folds, the same for all. All get the same columns: categories as 0 and 1, gaps filled with the median, each column
less its mean and divided by its deviation, as learned from the training part. Each has its strength (C or alpha, for
the kernel SVM also a width) chosen by three inner folds. FLChain is a random part of 1,000 people.
"""

from __future__ import annotations

import argparse
import time
import warnings
from typing import Any

import numpy as np
import pandas as pd
import sksurv.datasets
from sklearn.impute import SimpleImputer
from sklearn.model_selection import GridSearchCV, KFold, StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sksurv.linear_model import CoxnetSurvivalAnalysis, CoxPHSurvivalAnalysis
from sksurv.svm import FastKernelSurvivalSVM, FastSurvivalSVM

from manykernels import MKLSurvival

ALPHAS = [2.0**k for k in range(-12, 7, 3)]
CS = {"C": [0.003, 0.03, 0.3, 3.0]}
RIDGE = {"alpha": [0.1, 1.0, 10.0, 100.0, 1000.0]}
LASSO = {"alphas": [[alpha] for alpha in (0.003, 0.01, 0.03, 0.1, 0.3)]}
RBF = {"alpha": [1.0, 20.0, 400.0], "gamma": [0.003, 0.03]}  # with a smaller alpha a fit takes half a minute
CONTESTANTS: dict[str, tuple[Any, dict[str, Any]]] = {
    "MKLSurvival(norm=1)": (MKLSurvival(), CS),
    "MKLSurvival(norm=4/3, center=True)": (MKLSurvival(norm=4 / 3, center=True), CS),
    "MKLSurvival(norm=2, center=True)": (MKLSurvival(norm=2, center=True), CS),
    "CoxPHSurvivalAnalysis": (CoxPHSurvivalAnalysis(), RIDGE),
    "CoxnetSurvivalAnalysis": (CoxnetSurvivalAnalysis(l1_ratio=0.9), LASSO),
    "FastSurvivalSVM": (FastSurvivalSVM(max_iter=100, tol=1e-5, random_state=0), {"alpha": ALPHAS}),
    "FastKernelSurvivalSVM, rbf": (
        FastKernelSurvivalSVM(kernel="rbf", max_iter=100, tol=1e-5, random_state=0),
        RBF,
    ),
}
DATA = {
    "GBSG2": sksurv.datasets.load_gbsg2,
    "WHAS500": sksurv.datasets.load_whas500,
    "veterans": sksurv.datasets.load_veterans_lung_cancer,
    "breast cancer": sksurv.datasets.load_breast_cancer,
    "FLChain": sksurv.datasets.load_flchain,
}
LARGEST = 1000


def data_of(name: str) -> tuple[np.ndarray, np.ndarray]:
    """Return the encoded columns and the times of a data set."""
    table, y = DATA[name]()
    table = table.drop(columns=[column for column in ("chapter",) if column in table])  # the cause of death
    X = pd.get_dummies(table, drop_first=True).to_numpy(dtype=float)
    if len(X) > LARGEST:
        rows = np.random.default_rng(0).choice(len(X), LARGEST, replace=False)
        X, y = X[rows], y[rows]
    return X, y


def scores_of(model: Any, grid: dict[str, Any], X: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, float]:
    """Return the concordance of each split, and the seconds of all."""
    scores, start = [], time.perf_counter()
    for train, test in StratifiedKFold(5, shuffle=True, random_state=0).split(X, y[y.dtype.names[0]]):
        columns = make_pipeline(SimpleImputer(strategy="median"), StandardScaler()).fit(X[train])
        search = GridSearchCV(model, grid, cv=KFold(3, shuffle=True, random_state=0))
        search.fit(columns.transform(X[train]), y[train])
        scores.append(search.score(columns.transform(X[test]), y[test]))
    return np.array(scores), time.perf_counter() - start


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("names", nargs="*", default=list(DATA))
    for name in parser.parse_args().names:
        X, y = data_of(name)
        print(f"{name}: {X.shape[0]} samples, {X.shape[1]} columns, {y[y.dtype.names[0]].sum()} events", flush=True)
        for title, (model, grid) in CONTESTANTS.items():
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                scores, seconds = scores_of(model, grid, X, y)
            error = scores.std(ddof=1) / np.sqrt(scores.size)
            print(f"    {title:36s} {scores.mean():.4f} +- {error:.4f}  {seconds:6.1f} s", flush=True)


if __name__ == "__main__":
    main()
