"""Who is told of each step of a fit, or of each point of a path: the listeners of the current context."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from manykernels.core.results import Step

_listeners: ContextVar[tuple[Callable[[Step], None], ...]] = ContextVar("listeners", default=())
_followers: ContextVar[tuple[Callable[[int, int, str], None], ...]] = ContextVar("followers", default=())


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
    """Tell nobody of the steps and points inside the block: they belong to a problem that nobody asked about."""
    listeners, followers = _listeners.set(()), _followers.set(())
    try:
        yield
    finally:
        _listeners.reset(listeners)
        _followers.reset(followers)


def emit(step: Step) -> None:
    """Tell every listener of this step."""
    for callback in _listeners.get():
        callback(step)


def is_listened_to() -> bool:
    """Return whether someone watches the fit."""
    return bool(_listeners.get())


@contextmanager
def follow(callback: Callable[[int, int, str], None]) -> Iterator[None]:
    """Call ``callback(done, total, what)`` at each point of the paths and cross-validations inside the block.

    Examples
    --------
    >>> from manykernels import mkl_path
    >>> from manykernels.core.progress import follow
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> with follow(lambda done, total, what: print(f"{done} of {total}: {what}")):
    ...     path = mkl_path("standard", X[:100], y[:100], Cs=[1.0, 10.0])
    1 of 2: C=1, norm=1
    2 of 2: C=10, norm=1
    """
    token = _followers.set((*_followers.get(), callback))
    try:
        yield
    finally:
        _followers.reset(token)


def reached(done: int, total: int, what: str) -> None:
    """Tell every follower that a point is reached."""
    for callback in _followers.get():
        callback(done, total, what)
