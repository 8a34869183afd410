"""The file that a command is to write: what prevents it is reported before the work, not after it."""

import os
from pathlib import Path


def check_output(flag: str, path: str | os.PathLike[str], inputs: list[str | os.PathLike[str]]) -> Path:
    """Return the path of a file that can be written.

    Parameters
    ----------
    flag : str
        The argument's name, for the error message.
    path : path
        The file to write.
    inputs : list of paths
        Files that the command reads, none of which may be overwritten.

    Returns
    -------
    path : Path

    Examples
    --------
    >>> check_output("--model", "people.mkl", ["people.csv"]).name
    'people.mkl'
    """
    path = Path(path)
    problem = _problem(path, [Path(given) for given in inputs])
    if problem:
        raise ValueError(f"{flag} must be a file that can be written; got '{path}', but {problem}.")
    return path


def _problem(path: Path, inputs: list[Path]) -> str:
    if path.is_dir():
        return "it is a folder"
    if not path.parent.is_dir():
        return f"there is no folder '{path.parent}'"
    if any(given.exists() and path.exists() and path.samefile(given) for given in inputs):
        return "that is a file to read, which would be lost"
    if path.exists() and not os.access(path, os.W_OK):
        return "it is protected"
    # A file is first written under another name in its folder; what is not a file, such as /dev/stdout, is not.
    folder = Path(os.path.realpath(path)).parent
    is_file = path.is_file() or not path.exists()
    return f"the folder '{folder}' is protected" if is_file and not os.access(folder, os.W_OK) else ""
