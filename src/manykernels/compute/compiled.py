"""Compiled functions: made when they are first called, and kept on disk between processes where that can be done.

Numba itself is imported by the first call, too: most of what a user does before a fit needs none of it.

Numba keeps them next to the source or in the user's cache folder, and raises where it can write to neither: an
installation of another user's, a container without a home. Then they are kept in a temporary folder of this user's own,
or not at all, which costs the compilation (seconds to a minute in all) in every process.
"""

from __future__ import annotations

import os
import stat
import tempfile
import threading
from collections.abc import Callable, Iterator
from functools import lru_cache, update_wrapper
from pathlib import Path
from types import CodeType
from typing import Any

from manykernels.core.notices import warn

_making = threading.RLock()


def njit(cache: bool = False, **options: Any) -> Callable[[Callable], Any]:
    """Return the decorator that compiles a function with these options of ``numba.njit``; it never lacks a folder.

    Every compiled function of this package is made by it.

    Parameters
    ----------
    cache : bool
        Whether what was compiled is kept for other processes, where that can be done.
    **options
        Of ``numba.njit``.

    Examples
    --------
    >>> from manykernels.compute.compiled import njit
    >>> @njit(nogil=True)
    ... def twice(number):
    ...     return 2 * number
    >>> twice(4)
    8
    """
    return lambda function: Deferred(function, cache, options)


class Deferred:
    """A function that Numba compiles when it is first called.

    Other compiled functions that it calls are found under their names in its module. Numba knows its own functions
    only, so those take the place of these there.
    """

    def __init__(self, function: Callable, cache: bool, options: dict[str, Any]) -> None:
        update_wrapper(self, function)
        self._function, self._cache, self._options = function, cache, options
        self._made: Callable | None = None

    def __call__(self, *arguments: Any) -> Any:
        return (self._made or self.made())(*arguments)

    def made(self) -> Callable:
        """Return Numba's function."""
        with _making:
            if self._made is None:
                known = self._function.__globals__
                for name in _names_in(self._function.__code__):
                    if isinstance(known.get(name), Deferred):
                        known[name] = known[name].made()
                self._made = _compiled(self._function, self._cache, self._options)
        return self._made


def _names_in(code: CodeType) -> Iterator[str]:
    """Yield the names that a function looks up in its module."""
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _names_in(constant)


def _compiled(function: Callable, cache: bool, options: dict[str, Any]) -> Callable:
    import numba  # noqa: PLC0415 - it takes as long as all the rest of this package

    njit: Any = numba.njit
    try:
        return njit(cache=cache, no_cfunc_wrapper=True, **options)(function)
    except RuntimeError:  # there is no folder to write to
        return _kept_elsewhere(function, options)


def _kept_elsewhere(function: Callable, options: dict[str, Any]) -> Any:
    import numba  # noqa: PLC0415

    folder = _own_folder()
    if folder is None:
        return numba.njit(**options)(function)
    # Where a function is kept is settled here, once and for all: other packages keep theirs where they did.
    config: Any = numba.config
    before, config.CACHE_DIR = config.CACHE_DIR, folder
    try:
        return numba.njit(cache=True, **options)(function)
    except RuntimeError:  # it is full, or has been taken away
        return numba.njit(**options)(function)
    finally:
        config.CACHE_DIR = before


@lru_cache(maxsize=1)
def _own_folder() -> str | None:
    """Return a temporary folder of this user's own, None where there is none; and say which it is."""
    folder = _temporary_folder()
    where = "is compiled anew in every process" if folder is None else f"is kept in {folder}"
    warn(
        f"The compiled code of manykernels {where}, since neither its own folder nor the user's cache folder can be "
        "written to; set the environment variable NUMBA_CACHE_DIR to a folder that can."
    )
    return folder


def _temporary_folder() -> str | None:
    """Return the folder if nobody else can write to it: what is kept there is run."""
    user = os.getuid() if hasattr(os, "getuid") else None  # Windows has a temporary folder for each user
    try:
        folder = Path(tempfile.gettempdir()) / ("manykernels" if user is None else f"manykernels-{user}")
        folder.mkdir(mode=0o700, exist_ok=True)
        status = folder.lstat()
    except OSError:
        return None
    if not stat.S_ISDIR(status.st_mode):
        return None
    if user is not None and (status.st_uid != user or stat.S_IMODE(status.st_mode) & 0o077):
        return None
    return str(folder)
