"""Files that are written whole or not at all."""

from __future__ import annotations

import os
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

# Of the name of the file, in that of the temporary one: names have a limit in bytes, of which a letter may take four.
_LETTERS = 40


@contextmanager
def replacing(path: Any) -> Iterator[Path]:
    """Give a place to write to, which takes the place of ``path`` when the block ends without an error.

    The content is written beside the old file, flushed to the disk, and then put in its place in one step: whoever
    looks at ``path``, even after the process was killed or the machine lost power, finds the old file or the new one.
    After an error the old file is as it was, and nothing else is left. A killed process may leave a hidden file
    whose name is twelve hexadecimal digits and that of the file; it does no harm and can be deleted.

    Parameters
    ----------
    path : str or path
        Where a link stands for the file, the file that it leads to is replaced. What is no file, such as
        ``/dev/stdout``, is written to directly.

    Yields
    ------
    path : Path
        The place to write to, in the same folder; its name ends like that of the file.

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
    """Return a new, empty file in the folder of the target, with the permissions of the target if it is there."""
    if target.exists() and not os.access(target, os.W_OK):
        raise PermissionError(f"The file '{target}' is protected: it cannot be replaced.")
    place = target.with_name(f".{secrets.token_hex(6)}-{target.name[-_LETTERS:]}")
    try:
        place.touch(exist_ok=False)
    except PermissionError:
        raise PermissionError(
            f"The folder '{target.parent}' is protected: '{target.name}' is written beside its place first, "
            "which needs the right to add files to the folder."
        ) from None
    if target.exists():
        shutil.copymode(target, place)
    return place


def _flush(place: Path) -> None:
    with open(place, "rb+") as file:
        os.fsync(file.fileno())


def _flush_folder(folder: Path) -> None:
    """Flush the folder's list of names: without that, the new name may be lost with the power."""
    if os.name != "posix":
        return  # others cannot open a folder
    handle = os.open(folder, os.O_RDONLY)
    try:
        with suppress(OSError):  # some network folders cannot; the file itself is flushed, and in its place
            os.fsync(handle)
    finally:
        os.close(handle)
