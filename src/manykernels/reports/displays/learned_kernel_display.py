"""The learned kernel as a picture."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils import _safe_indexing, check_consistent_length

from manykernels.reports.displays.common import check_limit, counted, last_step, new_axes, of_task, pyplot, shortened

_MOST_LABELS = 25
_LEAST_SHARE = 0.02
# Without these limits the few largest and smallest values, such as a diagonal, would take up all colors.
_PERCENTILES = (1.0, 99.0)


class LearnedKernelDisplay:
    """The matrix of the learned kernel, with the samples in the order of their classes or of the target.

    Parameters
    ----------
    kernel : ndarray of shape (n_samples, n_samples)
    y : array of shape (n_samples,)
        Classes or values of the target.
    is_classes : bool, default True
        Whether y holds classes: then lines are drawn between them.

    Attributes
    ----------
    ax_, figure_ : matplotlib Axes and Figure
    image_ : matplotlib AxesImage
    order_ : ndarray of shape (n_samples,)
        The samples from top to bottom.

    Examples
    --------
    >>> from manykernels import MKLClassifier
    >>> from manykernels.reports import LearnedKernelDisplay
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> display = LearnedKernelDisplay.from_estimator(MKLClassifier().fit(X, y), X, y)
    >>> [label.get_text() for label in display.ax_.get_yticklabels()]
    ['0', '1', '2']
    """

    def __init__(self, *, kernel: Any, y: Any, is_classes: bool = True) -> None:
        self.kernel, self.y, self.is_classes = np.asarray(kernel, dtype=float), np.asarray(y), is_classes
        if self.kernel.shape != (self.y.size, self.y.size):
            raise ValueError(f"kernel must be of shape ({self.y.size}, {self.y.size}), got {self.kernel.shape}.")

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        y: Any,
        *,
        task: int | None = None,
        max_samples: int = 1000,
        random_state: int = 0,
        ax: Any = None,
    ) -> LearnedKernelDisplay:
        """Draw the kernel that a fitted estimator learned, on given samples.

        Parameters
        ----------
        estimator : fitted estimator, or a pipeline or search that ends with one
        X : array, sparse matrix or DataFrame of shape (n_samples, n_features)
        y : array of shape (n_samples,)
        task : int, optional
            The class whose kernel is drawn, where each has its own; default: their mean.
        max_samples : int, default 1000
            If there are more samples, this many are chosen at random.
        random_state : int, default 0
        ax : matplotlib Axes, optional
            Default: a new figure.

        Returns
        -------
        LearnedKernelDisplay
        """
        check_limit(max_samples, "max_samples")
        check_consistent_length(X, y)
        y = np.asarray(y)
        if y.size > max_samples:
            chosen = np.sort(np.random.default_rng(random_state).permutation(y.size)[:max_samples])
            X, y = _safe_indexing(X, chosen), y[chosen]
        model, X = last_step(estimator, X)
        kernel = model.kernel(X)
        kernel = of_task(kernel if kernel.ndim == 3 else kernel[None], task, "classes have kernels of their own")
        return cls(kernel=kernel, y=y, is_classes=hasattr(model, "classes_")).plot(ax)

    def plot(self, ax: Any = None) -> LearnedKernelDisplay:
        """Draw the matrix; see :meth:`from_estimator`."""
        self.ax_ = ax = new_axes(ax, width=6.4, height=5.4)
        self.figure_ = ax.figure
        self.order_ = np.argsort(self.y, kind="stable")
        low, high = np.percentile(self.kernel, _PERCENTILES)
        K = self.kernel[np.ix_(self.order_, self.order_)]
        self.image_ = ax.imshow(K, vmin=low, vmax=high if high > low else None, interpolation="nearest")
        self.figure_.colorbar(self.image_, ax=ax, extend="both", label="learned kernel")
        ax.grid(False)
        if self.is_classes:
            self._mark_classes()
        else:
            places = np.unique(np.linspace(0, self.y.size - 1, 6).astype(int))
            values = [f"{value:.3g}" for value in self.y[self.order_][places]]
            ax.set_xticks(places, values)
            ax.set_yticks(places, values)
            ax.set_xlabel("target")
        ax.set_title(f"{counted(self.y.size, 'sample')}", loc="left", fontsize="medium")
        return self

    def _mark_classes(self) -> None:
        """Draw lines between the classes, and write their names where there is room."""
        from matplotlib.patheffects import withStroke  # noqa: PLC0415 - an extra

        classes, sizes = np.unique(self.y, return_counts=True)
        ends = np.cumsum(sizes) - 0.5
        colors = pyplot().rcParams
        around = [withStroke(linewidth=2.5, foreground=colors["axes.facecolor"])]
        for end in ends[:-1]:
            for draw in (self.ax_.axhline, self.ax_.axvline):
                draw(end, color=colors["text.color"], linewidth=0.8, path_effects=around)
        roomy = [i for i in range(classes.size) if sizes[i] >= _LEAST_SHARE * self.y.size][:_MOST_LABELS]
        places, names = [ends[i] - 0.5 * sizes[i] for i in roomy], [shortened(classes[i], 16) for i in roomy]
        turned = max((len(name) for name in names), default=0) * len(names) > 40
        self.ax_.set_xticks(places, names, rotation=90 if turned else 0)
        self.ax_.set_yticks(places, names)
        self.ax_.set_xlabel("class")
