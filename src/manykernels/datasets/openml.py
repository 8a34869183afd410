"""Well-known sets under our names, fetched from OpenML and brought into the form of our files."""

from dataclasses import dataclass
from urllib.error import URLError

import numpy as np
import pandas as pd
from sklearn.datasets import fetch_openml
from sklearn.utils import Bunch


@dataclass(frozen=True)
class OpenMLSet:
    """Where to find a set on OpenML.

    Parameters
    ----------
    name : str
    version : int
    regression : bool, default=False
        Whether the target is a number; OpenML stores some counts as classes.
    drop : tuple of str, default=()
        Columns that are not features of the set as it is usually used.
    """

    name: str
    version: int = 1
    regression: bool = False
    drop: tuple[str, ...] = ()


# Absent on purpose: OpenML's "liver-disorders" has another target than the usual benchmark.
OPENML_SETS = {
    "abalone": OpenMLSet("abalone", regression=True),
    "boston": OpenMLSet("boston", regression=True),
    "breast_wisconsin": OpenMLSet("breast-w"),
    "glass": OpenMLSet("glass"),
    "ionosphere": OpenMLSet("ionosphere"),
    "iris": OpenMLSet("iris"),
    "kin8nm": OpenMLSet("kin8nm", regression=True),
    "letter": OpenMLSet("letter"),
    "pima": OpenMLSet("diabetes"),
    "satimage": OpenMLSet("satimage"),
    "segment": OpenMLSet("segment"),
    "sonar": OpenMLSet("sonar"),
    "spambase": OpenMLSet("spambase"),
    "vehicle": OpenMLSet("vehicle"),
    "vowel": OpenMLSet("vowel", version=2, drop=("Train_or_Test", "Speaker_Number", "Sex")),
    "wdbc": OpenMLSet("wdbc"),
    "wine": OpenMLSet("wine"),
}


def fetch(name: str) -> Bunch:
    """Fetch a set from OpenML (scikit-learn keeps a copy for the next time).

    Rows with a missing value are left out, and categories become one column for each level. Which of two
    classes is +1 follows OpenML's order, and can differ from a file of the same name.

    Parameters
    ----------
    name : str
        A key of ``OPENML_SETS``.

    Returns
    -------
    dataset : Bunch
        As :func:`manykernels.datasets.load` describes it, without views and splits.

    Examples
    --------
    >>> fetch("sonar").data.shape  # doctest: +SKIP
    (208, 60)
    """
    where = OPENML_SETS[name]
    try:
        raw = fetch_openml(where.name, version=where.version, as_frame=True)
    except (URLError, TimeoutError, ConnectionError) as error:
        raise ValueError(
            f"The dataset {name!r} was not found in the folder named by MANYKERNELS_DATA, and OpenML "
            f"could not be reached ({error})."
        ) from error
    frame = raw.data.drop(columns=list(where.drop), errors="ignore")
    complete = frame.notna().all(axis=1).to_numpy() & raw.target.notna().to_numpy()
    columns = pd.get_dummies(frame[complete], dtype=float)
    target, target_names = _target(raw.target[complete], where.regression)
    return Bunch(
        name=name,
        data=columns.to_numpy(dtype=np.float64),
        target=target,
        views=None,
        feature_names=[str(column) for column in columns.columns],
        target_names=target_names,
        splits=None,
    )


def _target(values: pd.Series, regression: bool) -> tuple[np.ndarray, list[str] | None]:
    if regression:
        # Classes such as "15" are converted through text, as their codes are not their values.
        return pd.to_numeric(values.astype(str)).to_numpy(dtype=np.float64), None
    classes, codes = np.unique(values.astype(str), return_inverse=True)
    target = 2 * codes - 1 if len(classes) == 2 else codes
    return target.astype(np.int64), [str(label) for label in classes]
