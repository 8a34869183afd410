"""Model files of the command, and what they hold in addition to the estimator."""

from pathlib import Path
from typing import Any

from manykernels import load
from manykernels.tables.encoder import TableEncoder

# The key of the model file under which the command keeps what is not a part of the estimator.
EXTRA = "command"
# What is kept under it, in addition to the encoder.
SETTINGS = ("target", "regression", "test_size", "seed", "rows", "cv", "views", "balance", "weighted", "classes")


def open_model(path: str | Path) -> tuple[Any, TableEncoder, dict[str, Any]]:
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
    settings : dict
        ``target``, ``regression``, ``test_size``, ``seed`` (with `hold_out` they give the held-out rows again),
        ``rows`` (of the whole table, held-out ones included), ``views`` (the columns of each view), ``balance``
        (what was asked for), ``weighted`` (whether errors are weighted) and ``classes`` (training rows of each class).
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
    if not isinstance(kept, dict) or set(kept) != {"encoder", *SETTINGS}:
        raise ValueError(f"MODEL must be a file that `manykernels fit` wrote; '{path}' lacks settings: fit it anew.")
    return model, TableEncoder.from_dict(kept["encoder"]), {key: kept[key] for key in SETTINGS}
