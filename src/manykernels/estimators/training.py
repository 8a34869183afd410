"""Training data, read and checked: what every ``fit`` begins with."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from sklearn.base import is_classifier
from sklearn.utils import assert_all_finite, check_array, check_consistent_length, column_or_1d
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _check_sample_weight, validate_data

from manykernels.banks import Data
from manykernels.compute.column_units import ColumnMoments, ColumnScales
from manykernels.compute.scales import weighted_mean
from manykernels.core.rows import CheckedRows, is_on_disk, refuse_row_source
from manykernels.core.samples import LEAST_WEIGHT, Samples, distinct_samples

_ROWS = 8192  # of a table on disk, at a time


@dataclass(frozen=True)
class Training:
    """Training data after all checks.

    Attributes
    ----------
    table : DataFrame, array or CSR matrix
        Where kernels look up their columns: the DataFrame that was given, else X.
    X : array, CSR matrix or CheckedRows of shape (n_samples, n_features)
        In units of the columns, where the kernels are for such; the table is as it was given.
    y : sequence of n_samples targets, or ndarray of shape (n_samples, n_outputs)
        Of all rows: classes, or numbers in double precision, or whatever a loss of a user's own takes.
    weight : ndarray of shape (n_samples,)
    samples : Samples
        Those to learn from.
    is_on_workers : False
        Such rows are ``RowTraining``.
    """

    is_on_workers: ClassVar[bool] = False

    table: Any
    X: Any
    y: Any
    weight: np.ndarray
    samples: Samples

    @cached_property
    def class_counts(self) -> tuple[np.ndarray, np.ndarray]:
        """The classes of the samples to learn from, and the sum of the weights of each."""
        classes, codes = np.unique(self.target, return_inverse=True)
        return classes, np.bincount(codes, self.samples.weight)

    @property
    def n_outputs(self) -> int | None:
        """How many columns the targets have; None where they are one value for each sample."""
        return self.y.shape[1] if getattr(self.y, "ndim", 1) > 1 else None

    @property
    def mean(self) -> Any:
        """The mean of their targets, of each output if there are several."""
        return weighted_mean(self.target, self.samples.weight)

    @property
    def target(self) -> Any:
        """The targets of the samples to learn from."""
        return take(self.y, self.samples.rows)

    def data(self) -> Data:
        """Return what kernels are bound to."""
        return Data(self.samples.of(self.X), self.table, self.samples.weight)


def read_training(estimator: Any, given: Any, y: Any, sample_weight: Any) -> Training:
    """Return the data and the targets after scikit-learn's checks, and the distinct samples.

    A table on disk is not read, if the estimator can learn from its rows, and none of them is compared with another.
    """
    numeric = not is_classifier(estimator)
    if is_on_disk(given) and estimator.approximation is not None:
        X = estimator._rows_on_disk(given, reset=True)
        y = check_array(y, accept_sparse="csr", dtype=None) if is_matrix(estimator, y) else column_or_1d(y, warn=True)
        assert_all_finite(y, input_name="y")
        check_consistent_length(X, y)
    else:
        X, y = read_rows(estimator, given, y, numeric=numeric)
    y = numbers_of(y) if numeric else classes_of(y)
    values = y if numeric or y.ndim > 1 else np.unique(y, return_inverse=True)[1]
    return _distinct(estimator, given, X, y, values, sample_weight)


def read_unlabeled(estimator: Any, given: Any, sample_weight: Any) -> Training:
    """Return data without targets after scikit-learn's checks, and the distinct samples; all targets are 1."""
    if is_on_disk(given) and estimator.approximation is not None:
        X = estimator._rows_on_disk(given, reset=True)
    else:
        refuse_row_source(given)
        X = validate_data(estimator, given, **estimator._data_rules())
    y = np.ones(X.shape[0])
    return _distinct(estimator, given, X, y, y, sample_weight)


def _distinct(estimator: Any, given: Any, X: Any, y: Any, values: Any, sample_weight: Any) -> Training:
    """Return checked data and the samples that differ in X or in the values of the targets; on disk all count."""
    weight = read_weight(sample_weight, y)
    if isinstance(X, CheckedRows):
        if not np.all(weight >= LEAST_WEIGHT):
            raise ValueError("sample_weight must be positive for a table on disk: leave out the rows of weight 0.")
        return standardized(estimator, Training(table_of(given, X), X, y, weight, Samples.all_of(weight)))
    return standardized(estimator, Training(table_of(given, X), X, y, weight, distinct_samples(X, values, weight)))


def read_rows(estimator: Any, given: Any, y: Any, *, numeric: bool, reset: bool = True) -> tuple[Any, np.ndarray]:
    """Return X and y after scikit-learn's checks; ``reset`` is False for rows that follow others."""
    refuse_row_source(given)
    rules = {**estimator._data_rules(), "multi_output": is_matrix(estimator, y, numeric=numeric)}
    X, y = validate_data(estimator, given, y, reset=reset, y_numeric=numeric, **rules)
    return X, y.toarray() if hasattr(y, "tocsr") else y


def is_matrix(estimator: Any, y: Any, *, numeric: bool = True) -> bool:
    """Return whether targets are those of several outputs, and the estimator learns such: a matrix or nested lists.

    One column of numbers is a matrix, of classes it is the column that scikit-learn warns of.
    """
    if not estimator._takes_matrix:
        return False
    try:
        shape = y.shape if hasattr(y, "shape") else np.asarray(y).shape
    except ValueError:  # lists of unequal lengths: scikit-learn says what is wrong
        return False
    return len(shape) == 2 and (numeric or shape[1] != 1 or hasattr(y, "tocsr"))


def numbers_of(y: Any) -> np.ndarray:
    """Return targets that are numbers in double precision."""
    return np.asarray(y, dtype=np.float64)


def classes_of(y: np.ndarray) -> np.ndarray:
    """Return targets that are classes, or labels of which a sample may have many: a matrix of 0 and 1."""
    check_classification_targets(y)
    if y.ndim == 1:
        return y
    if y.dtype.kind not in "biuf" or not np.all((y == 0) | (y == 1)):
        raise ValueError(
            "y with several columns must be a matrix of labels, 1 where a sample has one and else 0; for columns of "
            "classes take sklearn.multioutput.MultiOutputClassifier."
        )
    return y.astype(np.int64)


def read_batch(
    estimator: Any, given: Any, y: Any, sample_weight: Any, *, numeric: bool, reset: bool = True
) -> Training:
    """Return samples of which each is learned from, in order: what a stream brings."""
    X, y = read_rows(estimator, given, y, numeric=numeric, reset=reset)
    y = numbers_of(y) if numeric else classes_of(y)
    weight = read_weight(sample_weight, X)
    return standardized(estimator, Training(table_of(given, X), X, y, weight, Samples.all_of(weight)), reset)


def read_any(estimator: Any, given: Any, y: Any, sample_weight: Any, reset: bool = True) -> Training:
    """Return samples whose targets may be anything, one for each: they cannot be compared, and all are learned from."""
    refuse_row_source(given)
    X = validate_data(estimator, given, reset=reset, **estimator._data_rules())
    if not hasattr(y, "__len__") or len(y) != X.shape[0]:
        many = len(y) if hasattr(y, "__len__") else "no"
        raise ValueError(f"y has {many} targets, but X has {X.shape[0]} samples.")
    weight = read_weight(sample_weight, X)
    # By place, whatever the index of a Series says.
    return standardized(estimator, Training(table_of(given, X), X, list(y), weight, Samples.all_of(weight)), reset)


def standardized(estimator: Any, training: Training, reset: bool = True) -> Training:
    """Return training data in units of the columns, if the kernels are for such; ``reset`` learns the units anew.

    They are those of a StandardScaler, and kept in ``column_means_`` and ``column_scales_``.
    """
    if reset:
        for name in ("column_means_", "column_scales_"):
            vars(estimator).pop(name, None)
        if not estimator._standardizes(training.table):
            return training
        scales = _moments(training).scales()
        estimator.column_means_, estimator.column_scales_ = scales.location, scales.scale
    return replace(training, X=in_units(estimator, training.X))


def _moments(training: Training) -> ColumnMoments:
    """Return the moments of the columns, of a table on disk block by block."""
    X, weight = training.X, training.weight
    if not isinstance(X, CheckedRows):
        return ColumnMoments.of(X, weight)
    starts = range(0, len(X), _ROWS)
    return ColumnMoments.total(ColumnMoments.of(X[i : i + _ROWS], weight[i : i + _ROWS]) for i in starts)


def in_units(estimator: Any, X: Any) -> Any:
    """Return data in the units of the columns that an estimator has learned, if it has."""
    if not hasattr(estimator, "column_scales_"):
        return X
    scales = ColumnScales(estimator.column_means_, estimator.column_scales_)
    return X.then(scales.of) if isinstance(X, CheckedRows) else scales.of(X)


def read_weight(sample_weight: Any, rows: Any) -> np.ndarray:
    """Return the weight of each of the rows; without any it is 1."""
    return _check_sample_weight(sample_weight, rows, dtype=np.float64, ensure_non_negative=True)


def take(y: Any, rows: np.ndarray) -> Any:
    """Return the targets of some rows: an array of an array, a list of anything else."""
    return y[rows] if isinstance(y, np.ndarray) else [y[i] for i in rows]


def table_of(given: Any, X: Any) -> Any:
    """Return what kernels look up their columns in: the DataFrame that was given, else the checked array."""
    return given if hasattr(given, "columns") else X


def set_columns(estimator: Any, n_features: int, names: Any = None) -> None:
    """Set what scikit-learn's check of the data would, of data that it does not see."""
    estimator.n_features_in_ = n_features
    if names is not None and all(isinstance(name, str) for name in names):
        estimator.feature_names_in_ = np.asarray(names, dtype=object)
    elif hasattr(estimator, "feature_names_in_"):
        del estimator.feature_names_in_


def columns_of(estimator: Any) -> dict[str, Any]:
    """Return what reading has set, for another estimator that learns from the same data."""
    read = ("n_features_in_", "feature_names_in_", "column_means_", "column_scales_")
    return {name: value for name, value in vars(estimator).items() if name in read}
