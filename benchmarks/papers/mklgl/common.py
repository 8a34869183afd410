"""What the scripts of MKLGL (Xu, Jin, Yang, King and Lyu, 2010) share: splits, the choice of C, accuracies."""

from __future__ import annotations

import argparse
import warnings
from pathlib import Path

import numpy as np
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler

from benchmarks.framework import Setting
from manykernels import MKLClassifierCV, datasets
from manykernels.core.results import Result
from manykernels.kernels import KernelBank

CS = (1.0, 10.0, 100.0, 1000.0)
# What the SimpleMKL toolbox stops at.
GAP = 1e-2


def arguments(description: str, runs: int) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--runs", type=int, default=runs)
    parser.add_argument("--full", action="store_true", help="20 runs, as in the paper")
    parser.add_argument("--data", nargs="*", help="only these data sets")
    parser.add_argument("--out", type=Path, help="folder for tables and plots")
    own = parser.parse_args()
    own.runs = 20 if own.full else own.runs
    return own


def split(name: str, run: int, train_size: float) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Return X, y of a random training part and of the rest, standardized by the former."""
    data = datasets.load(name)
    X, y = np.asarray(data.data, dtype=float), np.asarray(data.target)
    return standardized(*train_test_split(X, y, train_size=train_size, random_state=run, stratify=y))


def standardized(X, Z, y, w):
    scaler = StandardScaler().fit(X)
    return scaler.transform(X), y, scaler.transform(Z), w


def signs(y: np.ndarray) -> np.ndarray:
    return np.where(y == np.unique(y)[-1], 1.0, -1.0)


def best_C(kernels: KernelBank, X: np.ndarray, y: np.ndarray, norm: float, cv: int = 3) -> float:
    """Choose C by cross-validation, with the fastest solver: the optimum is the same for all."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = MKLClassifierCV(kernels, Cs=list(CS), norms=[norm], normalize="trace", tol=GAP, cv=cv)
        return float(model.fit(X, y).C_)


def accuracy(setting: Setting, result: Result, Z: np.ndarray, w: np.ndarray) -> float:
    """Return the accuracy of a result on new samples, in percent."""
    kernel = setting.problem("double").bank.kernel(result.weights)
    decision = kernel.predict(Z, result.machine.beta)[0] + result.machine.intercept[0]
    return 100.0 * float(np.mean(np.where(decision > 0, 1.0, -1.0) == w))
