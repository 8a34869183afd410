"""Find a dataset by its name: first in the data folder, then on OpenML."""

import difflib
import os
from pathlib import Path

from sklearn.utils import Bunch

from manykernels.datasets.npz_format import read_archive
from manykernels.datasets.openml import OPENML_SETS, fetch

FOLDER_VARIABLE = "MANYKERNELS_DATA"


def data_folder() -> Path | None:
    """Return the folder named by the environment variable ``MANYKERNELS_DATA``.

    Returns
    -------
    folder : pathlib.Path or None
        None when the variable is not set or is empty.

    Raises
    ------
    ValueError
        When the variable names something that is not a folder.

    Examples
    --------
    >>> from manykernels.datasets import data_folder
    >>> folder = data_folder()
    >>> folder is None or folder.is_dir()
    True
    """
    value = os.environ.get(FOLDER_VARIABLE, "")
    if not value:
        return None
    folder = Path(value).expanduser()
    if not folder.is_dir():
        raise ValueError(f"The environment variable {FOLDER_VARIABLE} must name a folder; it is {value!r}.")
    return folder


def available(folder: str | os.PathLike[str] | None = None) -> list[str]:
    """List the datasets in the data folder.

    Parameters
    ----------
    folder : path, default=None
        Where to look; None means :func:`data_folder`.

    Returns
    -------
    names : list of str
        In alphabetical order; empty when there is no data folder.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import numpy as np
    >>> from manykernels.datasets import available
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     np.savez(Path(folder) / "toy.npz", X=np.eye(2), y=np.array([-1, 1]))
    ...     available(folder)
    ['toy']
    """
    place = data_folder() if folder is None else Path(folder)
    return [] if place is None else sorted(path.stem for path in place.glob("*.npz"))


def load(name: str, *, folder: str | os.PathLike[str] | None = None) -> Bunch:
    """Load a dataset by its name.

    The file ``<name>.npz`` of the data folder is read if it exists (arrays only, never pickles).
    Otherwise some well-known sets are fetched from OpenML, which needs a network connection.

    Parameters
    ----------
    name : str
        For example ``"sonar"``.
    folder : path, default=None
        Where to look for ``<name>.npz``; None means :func:`data_folder`.

    Returns
    -------
    dataset : Bunch
        With the attributes

        - ``name``: the name asked for;
        - ``data``: array or CSR matrix of shape (n_samples, n_features); the views of a
          multi-view set are side by side in it;
        - ``target``: shape (n_samples,); -1 and +1 for two classes, 0 to n_classes - 1 for more, floats for
          regression; shape (n_samples, n_labels) for multi-label sets;
        - ``views``: None, or a dict from the name of a view to the slice of its columns, which a
          kernel takes as ``columns=``;
        - ``feature_names`` and ``target_names``: lists of str, or None where they are not known;
        - ``splits``: None, or the list of (train, test) index arrays that come with the data, which
          scikit-learn takes as ``cv=``;
        - every further array of the file under its own name.

    Raises
    ------
    ValueError
        When the name is not known or its file cannot be read.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import numpy as np
    >>> from manykernels.datasets import load
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     arrays = {"X_gene": np.ones((4, 3)), "X_lipid": np.ones((4, 2)), "y": np.array([-1, 1, -1, 1])}
    ...     np.savez(Path(folder) / "mice.npz", **arrays)
    ...     mice = load("mice", folder=folder)
    >>> mice.data.shape
    (4, 5)
    >>> mice.views["lipid"]
    slice(3, 5, None)
    """
    place = data_folder() if folder is None else Path(folder)
    local = available(folder)
    if place is not None and name in local:
        return read_archive(place / f"{name}.npz")
    if name in OPENML_SETS:
        return fetch(name)
    raise ValueError(_unknown(name, local, place))


def _unknown(name: str, local: list[str], folder: Path | None) -> str:
    near = difflib.get_close_matches(name, sorted({*local, *OPENML_SETS}), n=3, cutoff=0.5)
    hint = f" (did you mean {' or '.join(near)}?)" if near else ""
    lack = "but it is not set" if folder is None else f"but {folder} does not"
    return (
        f"There is no dataset named {name!r}{hint}: the environment variable {FOLDER_VARIABLE} must name "
        f"a folder that holds {name}.npz, {lack}."
    )
