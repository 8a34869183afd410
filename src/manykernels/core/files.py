"""Write files completely or not at all."""

from __future__ import annotations

import os
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

# Letters of the file's name in the temporary name: names are limited in bytes, and a letter may take four.
_LETTERS = 40


@contextmanager
def replacing(path: Any) -> Iterator[Path]:
    """Give a temporary file to write to, which replaces ``path`` when the block ends without an error.

    The content is written next to the old file, flushed to the disk, and then put in its place in one step: whoever
    looks at ``path``, even after the process was killed or the machine lost power, finds the old file or the new one.
    After an error the old file is as it was, and nothing else is left. A killed process may leave a hidden file
    whose name is twelve hexadecimal digits and the name of the file; it does no harm and can be deleted.

    Parameters
    ----------
    path : str or path
        If it is a link, the file that it leads to is replaced. What is not a regular file, such as ``/dev/stdout``,
        is written to directly.

    Yields
    ------
    path : Path
        The file to write to, in the same folder; its name ends like that of ``path``.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from manykernels.core.files import replacing
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     target = Path(folder) / "numbers.txt"
    ...     with replacing(target) as place:
    ...         _ = place.write_text("1 2 3")
    ...     target.read_text(), [path.name for path in Path(folder).iterdir()]
    ('1 2 3', ['numbers.txt'])
    """
    target = Path(os.path.realpath(path))
    if target.exists() and not target.is_file():
        yield target
        return
    place = _create_beside(target)
    try:
        yield place
        _flush(place)
        os.replace(place, target)
    except BaseException:
        with suppress(FileNotFoundError):
            place.unlink()
        raise
    _flush_folder(target.parent)


def _create_beside(target: Path) -> Path:
    """Return a new, empty file in the folder of the target, with the permissions of the target if that exists."""
    if target.exists() and not os.access(target, os.W_OK):
        raise PermissionError(f"The file '{target}' is protected: it cannot be replaced.")
    place = target.with_name(f".{secrets.token_hex(6)}-{target.name[-_LETTERS:]}")
    try:
        place.touch(exist_ok=False)
    except PermissionError:
        raise PermissionError(
            f"The folder '{target.parent}' is protected: '{target.name}' is written under another name first, "
            "which needs the right to add files to the folder."
        ) from None
    if target.exists():
        shutil.copymode(target, place)
    return place


def _flush(place: Path) -> None:
    with open(place, "rb+") as file:
        os.fsync(file.fileno())


def _flush_folder(folder: Path) -> None:
    """Flush the folder's list of names: without that, the new name may be lost when the power fails."""
    if os.name != "posix":
        return  # other systems cannot open a folder
    handle = os.open(folder, os.O_RDONLY)
    try:
        with suppress(OSError):  # some network folders cannot do this; the file itself is flushed and in its place
            os.fsync(handle)
    finally:
        os.close(handle)
