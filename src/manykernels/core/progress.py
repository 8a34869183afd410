"""Who wants to see each step of a fit: listeners of the current context."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from manykernels.core.results import Step

_listeners: ContextVar[tuple[Callable[[Step], None], ...]] = ContextVar("listeners", default=())


@contextmanager
def listen(callback: Callable[[Step], None]) -> Iterator[None]:
    """Call ``callback(step)`` at each outer iteration of the fits inside the block.

    While someone listens, Ctrl-C ends a fit early and leaves the best model
    so far, instead of raising.

    Examples
    --------
    >>> from manykernels import MKLClassifier
    >>> from manykernels.core.progress import listen
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> steps = []
    >>> with listen(steps.append):
    ...     model = MKLClassifier(norm=2).fit(X[:100], y[:100])
    >>> len(steps) == model.n_iter_
    True
    """
    token = _listeners.set((*_listeners.get(), callback))
    try:
        yield
    finally:
        _listeners.reset(token)


@contextmanager
def silent() -> Iterator[None]:
    """Keep the steps inside the block from the listeners: they belong to a problem that nobody asked about."""
    token = _listeners.set(())
    try:
        yield
    finally:
        _listeners.reset(token)


def emit(step: Step) -> None:
    """Tell every listener of this step."""
    for callback in _listeners.get():
        callback(step)


def is_listened_to() -> bool:
    """Return whether someone watches the fit."""
    return bool(_listeners.get())
