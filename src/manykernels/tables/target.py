"""Find and check the column to predict."""

import difflib
import os
from typing import Any

import numpy as np
import pandas as pd

from manykernels.tables.cells import as_numbers, as_texts, spelled_as
from manykernels.tables.reading import written
from manykernels.tables.sentences import Sentence, Setting

# Nobody would read a message that lists more names than this.
_SHOWN = 8
MANY_CLASSES = 20
# The largest whole numbers that 64 bits hold exactly, as integers and as floats.
_LARGEST, _LARGEST_FLOAT = 2**63 - 1, 2**53


def take_target(
    table: pd.DataFrame, name: str, regression: bool, path: str | os.PathLike[str] | None = None, model: Any = None
) -> tuple[pd.DataFrame, np.ndarray]:
    """Split a table into its features and its target.

    Parameters
    ----------
    table : pandas.DataFrame
        As `read_table` gives it.
    name : str
        The column to predict.
    regression : bool
        Whether the target is a number, not a class.
    path : path, optional
        The file of the table, to say which word in it was taken for a missing value.
    model : estimator, optional
        A fitted model that the target belongs to: labels are spelled as its classes, and messages name the model.

    Returns
    -------
    features : pandas.DataFrame
    target : array of shape (n_rows,)
        Floats, or labels: integers where all of them are, text otherwise.

    Examples
    --------
    >>> table = pd.DataFrame({"age": [30, 50], "ill": ["no", "yes"]})
    >>> take_target(table, "ill", regression=False)[1].tolist()
    ['no', 'yes']
    """
    if name not in table.columns:
        if model is not None:
            raise ValueError(f"The table must hold the target {name!r}, which the model predicts.")
        problem = f" must name a column of the table; got {name!r}{_hint(name, list(table.columns))}."
        raise ValueError(Sentence(Setting("target"), problem))
    column, words = table[name], f"The target {name!r}"
    missing = np.flatnonzero(column.isna())
    if len(missing):
        word = written(path, int(missing[0]), list(table.columns).index(name)) if path else ""
        said = f", where {word!r} is taken for a missing value" if word else ""
        raise ValueError(
            f"{words} must have a value in every row; it lacks {len(missing)} of {len(column)} "
            f"(first in row {missing[0] + 1}{said})."
        )
    if regression:
        target = _numbers(words, column, asked=model is None)
    else:
        target = _labels(words, column, None if model is None else model.classes_)
    return table.drop(columns=name), target


def class_notes(target: np.ndarray) -> list[Sentence]:
    """Return a note if classes look like numbers to predict.

    Parameters
    ----------
    target : array of shape (n_rows,)
        Labels.

    Returns
    -------
    notes : list of Sentence
        One, or none.

    Examples
    --------
    >>> class_notes(np.arange(30))
    ['The target has 30 different whole numbers, each of which is a class: regression=True would predict a number.']
    """
    count = len(np.unique(target))
    if target.dtype.kind not in "iu" or count <= MANY_CLASSES:
        return []
    words = f"The target has {count} different whole numbers, each of which is a class: "
    return [Sentence(words, Setting("regression", True), " would predict a number.")]


def _hint(name: str, columns: list[str]) -> str:
    near = difflib.get_close_matches(name, columns, n=2, cutoff=0.6)
    near = near or [column for column in columns if column.lower() == name.lower()]
    if near:
        return f" (did you mean {' or '.join(repr(column) for column in near)}?)"
    shown = ", ".join(repr(column) for column in columns[:_SHOWN])
    return f" (the columns are {shown}{', ...' if len(columns) > _SHOWN else ''})"


def _numbers(words: str, column: pd.Series, asked: bool) -> np.ndarray:
    try:
        values = as_numbers(str(column.name), column)
    except ValueError as error:
        detail = str(error).split("; ")[-1].rstrip(".")
        purpose = (" for ", Setting("regression")) if asked else ()
        raise ValueError(Sentence(f"{words} must hold finite numbers", *purpose, f"; {detail}.")) from error
    if np.ptp(values) == 0:
        raise ValueError(f"{words} must vary; it is {values[0]:g} in every row.")
    return values


def _labels(words: str, column: pd.Series, known: np.ndarray | None) -> np.ndarray:
    if pd.api.types.is_float_dtype(column.dtype):
        _check_whole(words, column.to_numpy(dtype=np.float64), asked=known is None)
    whole = pd.api.types.is_numeric_dtype(column.dtype) and not pd.api.types.is_bool_dtype(column.dtype)
    if whole and column.max() <= _LARGEST:
        labels = column.to_numpy(dtype=np.int64)
    else:
        labels = np.array(as_texts(column).tolist(), dtype=np.str_)
    classes = np.unique(labels)
    if len(classes) < 2:
        raise ValueError(f"{words} must have at least two classes; it is {classes[0]} in every row.")
    return labels if known is None else _like(labels, known)


def _check_whole(words: str, values: np.ndarray, asked: bool) -> None:
    if np.isinf(values).any():
        raise ValueError(f"{words} must hold classes; it is infinite in some rows.")
    fractions = values[values % 1 != 0]
    if len(fractions):
        advice = (", so add ", Setting("regression", True), " to predict a number") if asked else ()
        problem = f"{words} must hold classes; it holds fractions such as {fractions[0]:g}"
        raise ValueError(Sentence(problem, *advice, "."))
    if np.abs(values).max() > _LARGEST_FLOAT:
        raise ValueError(f"{words} must hold classes; {np.abs(values).max():g} is too large to be told from others.")


def _like(labels: np.ndarray, known: np.ndarray) -> np.ndarray:
    """Return labels in the spelling and type of the classes of a model, if each is one of them."""
    classes = {str(label): label for label in known}
    texts = spelled_as(pd.Series(labels.astype(str), dtype=object), list(classes))
    return np.array([classes[text] for text in texts]) if texts.isin(classes).all() else labels
