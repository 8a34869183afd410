"""What every estimator that learns from kernels shares: its kernels, checks of the data, prediction, files."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, is_classifier, is_regressor
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_array, check_is_fitted, validate_data

from manykernels.banks import on_workers
from manykernels.banks.learned import LearnedKernel
from manykernels.compute.threads import one_blas_thread
from manykernels.core.results import Step
from manykernels.core.rows import CheckedRows, is_dask, is_on_disk, refuse_row_source
from manykernels.estimators.predictor import Predictor
from manykernels.estimators.training import in_units, set_columns, table_of
from manykernels.kernels import KernelBank
from manykernels.kernels.family import Family
from manykernels.kernels.missing import CENTER_NEEDS_ALL, check_views, has_gaps
from manykernels.kernels.parametric import ParametricKernel
from manykernels.kernels.standard import as_bank, standardizes

_NOT_ACTIVE = "places must be of kernels in active_, got {}."


class KernelEstimator(BaseEstimator):
    """Base class; it has the parameters ``kernels`` and ``missing``, and once fitted ``_predictors``."""

    _predictors: list[Predictor]
    # What a fit sets; each estimator describes its own.
    n_features_in_: int
    feature_names_in_: np.ndarray
    column_means_: np.ndarray
    column_scales_: np.ndarray
    weights_: np.ndarray
    kernel_names_: Sequence[str]
    kernel_groups_: Sequence[str]
    group_names_: list[str]
    group_weights_: np.ndarray
    active_: np.ndarray
    feature_importances_: np.ndarray
    converged_: bool
    n_iter_: int
    trace_: list[Step]
    # Whether targets may be a matrix, with a column for each output.
    _takes_matrix: bool = False
    # Of estimators that have no such parameter.
    approximation: Any = None
    center: bool = False
    combination: Any = "sum"
    device: str = "cpu"
    cluster: Any = None

    def _bank(self, table: Any, *, tells: bool = False) -> KernelBank:
        """Return the kernels as a list; ``tells`` warns where the standard ones are not all that there could be."""
        return as_bank(self.kernels, table, tells=tells)

    @property
    def _has_family(self) -> bool:
        """Whether the kernels are a family, and no list."""
        return isinstance(self.kernels, Family)

    def _standardizes(self, table: Any) -> bool:
        """Return whether the kernels are for columns whose location and scale are taken off."""
        return standardizes(self.kernels, table) and not isinstance(self.combination, ParametricKernel)

    def _check_views(self, X: Any, table: Any, kernels: KernelBank | None = None) -> None:
        """Raise if NaN is allowed but a row has it in a part of a view only; rows on disk are checked when read.

        ``kernels`` are those of the table, where they are listed already.
        """
        if self.missing == "ignore" and not isinstance(X, CheckedRows):
            (self._bank(table) if kernels is None else kernels).check_views(X, table)

    @contextmanager
    def _all_or_nothing(self) -> Iterator[None]:
        """Leave the estimator as it was when the fit inside the block does not come to its end."""
        before = vars(self).copy()
        try:
            yield
        except BaseException:
            self.__dict__.clear()
            self.__dict__.update(before)
            raise

    def _forget(self) -> None:
        """Drop what an earlier fit has set: with other parameters, not all of it is set again."""
        for name in [name for name in vars(self) if name.endswith("_")]:
            delattr(self, name)

    @one_blas_thread()
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Learn the kernel weights and the predictor.

        Parameters
        ----------
        X : array, sparse matrix or DataFrame of shape (n_samples, n_features)
        y : array of shape (n_samples,), or whatever a loss of your own takes, one for each sample
            Or, for MKLRegressor, numbers of shape (n_samples, n_outputs), and for MKLClassifier 0 and 1 of shape
            (n_samples, n_labels).
        sample_weight : array of shape (n_samples,), optional
            Multiplies C; a weight of 2 counts like two copies of a sample.

        Returns
        -------
        self
        """
        with self._all_or_nothing():
            self._check_parameters()
            self._forget()
            self._fit(X, y, sample_weight)
        return self

    def _check_parameters(self) -> None:
        raise NotImplementedError

    def _fit(self, given: Any, y: Any, sample_weight: Any) -> None:
        raise NotImplementedError

    # -- use ------------------------------------------------------------------------------------------------

    @one_blas_thread()
    def _decisions(self, X: Any) -> np.ndarray:
        """Return the predictions of all tasks, shape (n, n_tasks); of Dask data where they are."""
        check_is_fitted(self)
        if is_dask(X):
            return on_workers.by_parts(self._decisions, X, self.cluster)
        if getattr(X, "ndim", 2) == 3:
            stack = self._check_stack(X)
            return np.hstack([predictor.decision_from_stack(stack) for predictor in self._predictors])
        X = self._checked(X)
        return np.hstack([predictor.decision(X, self.device) for predictor in self._predictors])

    def _checked(self, X: Any) -> Any:
        """Return new data as an array, with NaN only in rows that lack all columns of a view, if that is allowed."""
        if is_on_disk(X) and all(predictor.vectors is not None for predictor in self._predictors):
            rows = self._rows_on_disk(X, reset=False)
            if self.missing == "ignore":
                views = [(entry.name, entry.positions) for p in self._predictors for entry in p.kernel.bound]
                rows.check = lambda block: check_views(block, views)
            return in_units(self, rows)
        refuse_row_source(X)
        X = validate_data(self, X, reset=False, **self._data_rules())
        if self.missing == "ignore":
            if self.center and has_gaps(X):
                raise ValueError(CENTER_NEEDS_ALL)
            for predictor in self._predictors:
                check_views(X, [(entry.name, entry.positions) for entry in predictor.kernel.bound])
        return in_units(self, X)

    def _rows_on_disk(self, given: Any, reset: bool) -> CheckedRows:
        """Return a table on disk, whose rows are checked when they are read."""
        X = CheckedRows(given, allow_nan=self.missing == "ignore" and not self.center)
        if reset:
            if X.shape[0] < 1 or X.shape[1] < 1:
                raise ValueError(f"X must have at least one row and one column, got shape {X.shape}.")
            set_columns(self, X.shape[1], getattr(given, "columns", None))
            if self.missing == "ignore":
                kernels, table = self._bank(given), table_of(given, X)
                X.check = lambda block: kernels.check_views(block, table)
        elif X.shape[1] != self.n_features_in_:
            raise ValueError(
                f"X has {X.shape[1]} features, but {type(self).__name__} is expecting {self.n_features_in_} features."
            )
        return X

    def _data_rules(self) -> dict[str, Any]:
        """Return what scikit-learn's check of the data is told."""
        return {
            "accept_sparse": "csr",
            "dtype": np.float64,
            "ensure_all_finite": "allow-nan" if self.missing == "ignore" else True,
        }

    def _check_stack(self, stack: Any) -> np.ndarray:
        stack = check_array(stack, allow_nd=True, dtype=np.float64)
        expected = (len(self.kernel_names_), self._predictors[0].n_train)
        if (stack.shape[0], stack.shape[2]) != expected:
            raise ValueError(
                f"X is a stack of shape {stack.shape}, but must have shape "
                f"({expected[0]} kernels, test samples, {expected[1]} training samples)."
            )
        return stack

    @one_blas_thread()
    def kernel(self, X: Any, Z: Any = None) -> np.ndarray:
        """Return the learned kernel between the rows of X and those of Z.

        Parameters
        ----------
        X : array, sparse matrix or DataFrame of shape (n_samples_X, n_features)
        Z : the same, of shape (n_samples_Z, n_features), default X

        Returns
        -------
        ndarray of shape (n_samples_X, n_samples_Z)
            For one weight vector; of shape (n_classes, n_samples_X, n_samples_Z)
            when each class learned its own.
        """
        check_is_fitted(self)
        X = self._checked(_in_memory(X))
        Z = X if Z is None else self._checked(_in_memory(Z))
        kernels = [predictor.pairwise(X, Z) for predictor in self._predictors]
        return kernels[0] if len(kernels) == 1 else np.array(kernels)  # one predictor may hold those of all tasks

    @one_blas_thread()
    def kernel_matrices(self, X: Any, places: Any) -> np.ndarray:
        """Return kernels with a positive weight one by one, without their weights, between the rows of X.

        Parameters
        ----------
        X : array, sparse matrix or DataFrame of shape (n_samples, n_features)
        places : sequence of int
            Which ones: places in ``weights_``, of those in ``active_``.

        Returns
        -------
        ndarray of shape (len(places), n_samples, n_samples)
            Not normalized, but for ``normalize="cosine"``, and not centered.

        Examples
        --------
        >>> from manykernels import MKLClassifier
        >>> from sklearn.datasets import load_iris
        >>> X, y = load_iris(return_X_y=True)
        >>> model = MKLClassifier().fit(X, y)
        >>> model.kernel_matrices(X[:5], model.active_[:2]).shape
        (2, 5, 5)
        """
        check_is_fitted(self)
        wanted = {int(place): at for at, place in enumerate(places)}
        active = {int(k) for predictor in self._predictors for k in predictor.active}
        if not active >= set(wanted):
            raise ValueError(_NOT_ACTIVE.format(min(set(wanted) - active)))
        given = _in_memory(X)
        checked = self._checked(given)
        out = np.zeros((len(wanted), checked.shape[0], checked.shape[0]))
        for kernel, kernel_places in self._kernels_of(list(wanted), table_of(given, checked)):
            local = {j: k for j, k in enumerate(kernel_places) if k in wanted}
            for j, block in kernel.blocks(checked, checked, local):
                out[wanted[local[j]]] = block
        return out

    def _kernels_of(self, places: list[int], table: Any) -> Iterator[tuple[LearnedKernel, list[int]]]:
        """Yield kernels that have those of the list at these places among their parts, with the places of the parts."""
        if all(predictor.active.size == len(predictor.kernel.bound) for predictor in self._predictors):
            yield from ((predictor.kernel, predictor.active.tolist()) for predictor in self._predictors)
            return
        # The nodes of a ladder, or a product, stand for the kernels of the list.
        kernels = self._bank(table).written_out().kernels
        if len(kernels) != len(self.kernel_names_):
            raise ValueError("The model does not hold its kernels one by one.")
        bound = tuple(entry for k in places for entry in KernelBank([kernels[k]]).resolve(table))
        yield LearnedKernel(bound, np.ones(len(bound)), self.normalize == "cosine", None), places

    def kernel_columns(self, places: Any) -> list[np.ndarray]:
        """Return the columns of X that kernels with a positive weight see.

        Parameters
        ----------
        places : sequence of int
            Which kernels: places in ``weights_``, of those in ``active_``.

        Returns
        -------
        list of int arrays of shape (n_columns_of_the_kernel,)
            Rising numbers of columns. For a ladder that is summed on its nodes, those of all ladders in its group; with
            ``combination="product"`` or the like, those of the learned kernel.

        Examples
        --------
        >>> from manykernels import MKLClassifier
        >>> from manykernels.kernels import Gaussian, Linear
        >>> from sklearn.datasets import load_iris
        >>> X, y = load_iris(return_X_y=True)
        >>> model = MKLClassifier([Gaussian(1.0), Linear(columns=[2, 3])], norm=2).fit(X, y)
        >>> model.kernel_columns([0, 1])
        [array([0, 1, 2, 3]), array([2, 3])]
        """
        check_is_fitted(self)
        columns: dict[int, np.ndarray] = {}
        for predictor in self._predictors:
            columns |= predictor.columns(self.kernel_names_, self.kernel_groups_)
        for place in places:
            if int(place) not in columns:
                raise ValueError(_NOT_ACTIVE.format(int(place)))
        return [np.sort(columns[int(place)]) for place in places]

    def save(self, path: Any, extra: dict | None = None) -> None:
        """Write the fitted model to a file: a zip of JSON and .npy arrays that runs no code when opened.

        Parameters
        ----------
        path : str or path
        extra : dict, optional
            JSON-able data to keep with the model; ``load(path).extra_`` has it.
        """
        from manykernels.estimators.persistence import save  # noqa: PLC0415 - it knows the estimators

        save(self, path, extra)

    @available_if(lambda self: is_classifier(self) or is_regressor(self))
    def report(self, X: Any, y: Any, path: Any = None, **options: Any) -> Any:
        """Report on the fitted model in one HTML file: what it learned, how sure and how good it is.

        Parameters
        ----------
        X : array, sparse matrix or DataFrame of shape (n_samples, n_features)
            The training data, in the form that ``fit`` got, to cross-validate the settings on.
        y : array of shape (n_samples,)
        path : str or path, optional
            File to write.
        **options
            ``folds=5``, ``max_samples=5000``, ``random_state=0``, ``X_test``, ``y_test``, ``title`` and others: see
            :func:`manykernels.reports.make_report`, which also reports on pipelines.

        Returns
        -------
        manykernels.reports.Report
            ``html`` is the page, ``save(path)`` writes it, and a notebook shows it; ``learned`` and ``assessment`` have
            the figures.

        Examples
        --------
        >>> from manykernels import MKLClassifier
        >>> from sklearn.datasets import load_iris
        >>> X, y = load_iris(return_X_y=True)
        >>> report = MKLClassifier().fit(X, y).report(X, y, folds=3)
        >>> report.learned.by_view[0].name
        'x3'
        """
        from manykernels.reports import make_report  # noqa: PLC0415 - most fits need no report

        return make_report(self, X, y, path, **options)

    def _for_file(self) -> list[Predictor]:
        """Return the predictors as a model file holds them."""
        return self._predictors

    def _opened(self) -> None:
        """Restore what a model file does not hold but follows from what it holds."""

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.allow_nan = self.missing == "ignore"
        return tags


def _in_memory(X: Any) -> Any:
    """Return a table on disk as an array: whoever asks for a kernel matrix has room for its rows."""
    return np.array(X[:]) if is_on_disk(X) else X
