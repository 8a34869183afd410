"""Model files of the command, and what they hold in addition to the estimator."""

from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

from manykernels import load
from manykernels.tables.encoder import TableEncoder

# The key of the model file under which the command keeps what is not a part of the estimator.
EXTRA = "command"


@dataclass(frozen=True)
class TableSettings:
    """What the model file keeps in addition to the encoder: enough to find the held-out rows again.

    Attributes
    ----------
    target : str
    regression : bool
    test_size : float
    seed : int
        With ``hold_out`` these give the held-out rows again.
    balance : str or None
        What was asked for.
    weighted : bool
        Whether errors are weighted.
    rows : int
        Of the whole table, held-out ones included.
    cv : int or None
        Folds of the search for C and the norm.
    views : dict
        The columns of each view.
    classes : dict
        Training rows of each class.
    """

    target: str
    regression: bool
    test_size: float
    seed: int
    balance: Any
    weighted: bool
    rows: int
    cv: int | None
    views: dict[str, list[str]]
    classes: dict[str, int]

    def of_held_out(self) -> dict[str, Any]:
        """Return those that ``manykernels.tables.held_out.held_out`` takes."""
        return {name: getattr(self, name) for name in ("rows", "test_size", "seed", "regression")}

    def asked(self) -> dict[str, Any]:
        """Return the settings without those that the document of a fit has in other places."""
        elsewhere = ("rows", "cv", "views", "classes")
        return {name: value for name, value in asdict(self).items() if name not in elsewhere}


def open_model(path: str | Path) -> tuple[Any, TableEncoder, TableSettings]:
    """Open a model that ``manykernels fit`` wrote.

    Parameters
    ----------
    path : path
        The file of the model.

    Returns
    -------
    estimator : MKLClassifier or MKLRegressor
        Fitted.
    encoder : TableEncoder
        Turns a table into what the estimator takes.
    settings : TableSettings
    """
    path = Path(path)
    if not path.is_file():
        raise ValueError(f"MODEL must be a file that `manykernels fit` wrote; there is no file '{path}'.")
    model = load(path)
    kept = model.extra_.get(EXTRA)
    if kept is None:
        raise ValueError(
            f"MODEL must be a file that `manykernels fit` wrote; '{path}' comes from Python and does not "
            "say how to read a table."
        )
    names = {field.name for field in fields(TableSettings)}
    if not isinstance(kept, dict) or set(kept) != {"encoder", *names}:
        raise ValueError(f"MODEL must be a file that `manykernels fit` wrote; '{path}' lacks settings: fit it anew.")
    return model, TableEncoder.from_dict(kept["encoder"]), TableSettings(**{name: kept[name] for name in names})
