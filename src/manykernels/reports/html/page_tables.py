"""Tables of the page. All text from outside is escaped here, whatever a column of the data is called."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

import numpy as np

from manykernels.reports.html.charts import bar
from manykernels.reports.html.words import NOTHING, count, figure, percent
from manykernels.reports.summary import LearnedPart, LearnedSummary

# Kernels in the table without JavaScript, and the most kernels and letters with it, which keep the page small.
_FIRST, _LISTED, _LISTED_CHARACTERS = 25, 20_000, 1_000_000


@dataclass(frozen=True)
class Cell:
    """A cell: what it says (escaped unless it is markup), and what it is sorted by."""

    text: str
    value: float | None = None
    is_markup: bool = False

    def html(self, tag: str = "td") -> str:
        """Return the cell as markup; the tag is "td", or "th" for the name of the row."""
        words = self.text if self.is_markup else escape(self.text)
        if tag == "th":
            words = re.sub(r"(?<=\w)[(]", "(<wbr>", words)  # long names break where their parameters begin
            return f'<th scope="row">{words}</th>'
        if self.value is None:
            return f"<td>{words}</td>"
        return f'<td class="number" data-value="{self.value:.6g}">{words}</td>'


def table(
    caption: str, heads: Sequence[str | Cell], rows: Sequence[Sequence[Cell]], kind: str = "", sortable: bool = False
) -> str:
    """Return a table in a box in which it scrolls where the page is narrow.

    Parameters
    ----------
    caption : str
    heads : sequence of str or Cell
        A head that ends in " #" is above numbers; an empty one, or a cell, is above drawings.
    rows : sequence of sequences of Cell
        The first cell of a row names it.
    kind : str
        A class for the style sheet.
    sortable : bool
        Whether a script makes the heads buttons that sort.

    Examples
    --------
    >>> from manykernels.reports.html.page_tables import Cell, table
    >>> "&lt;script&gt;" in table("Names", ["name"], [[Cell("<script>")]])
    True
    """
    classes = " ".join(name for name in (kind, "sortable" if sortable else "") if name)
    head = "".join(_head(text) for text in heads)
    body = "".join(f"<tr>{row[0].html('th')}{''.join(cell.html() for cell in row[1:])}</tr>" for row in rows)
    return box(
        caption,
        f'<table class="{classes}"><caption>{escape(caption)}</caption><thead><tr>{head}</tr></thead>'
        f"<tbody>{body}</tbody></table>",
    )


def box(name: str, inside: str) -> str:
    """Return a box that scrolls by itself, also by the keyboard."""
    return f'<div class="scroll" role="region" tabindex="0" aria-label="{escape(name)}">{inside}</div>'


def definitions(pairs: Sequence[tuple[str, str]]) -> str:
    """Return names with their values.

    Examples
    --------
    >>> from manykernels.reports.html.page_tables import definitions
    >>> definitions([("rows", "569")])
    '<dl><div><dt>rows</dt><dd>569</dd></div></dl>'
    """
    inside = "".join(f"<div><dt>{escape(name)}</dt><dd>{escape(value)}</dd></div>" for name, value in pairs)
    return f"<dl>{inside}</dl>"


def bars(caption: str, head: str, parts: Sequence[LearnedPart], more: str = "") -> str:
    """Return shares as a table with a bar in each row, and a dot for each refit.

    Parameters
    ----------
    caption, head : str
        Of the table, and of its first column.
    parts : sequence of LearnedPart
    more : str
        What the rows that are not shown hold, if there are any.

    Examples
    --------
    >>> import numpy as np
    >>> from manykernels.reports.html.page_tables import bars
    >>> from manykernels.reports.summary import LearnedPart
    >>> bars("Views", "view", [LearnedPart("image", 0.5, np.array([0.4, 0.6]))]).count('class="dot"')
    2
    """
    largest = max([part.share for part in parts] + [float(part.refits.max(initial=0.0)) for part in parts] + [1e-12])
    rows = []
    for part in parts:
        drawn = Cell(bar(part.share, part.refits.tolist(), largest), is_markup=True)
        span = f"<small>{escape(_span(part.refits))}</small>" if part.refits.size else ""
        rows.append([Cell(part.name), drawn, Cell(escape(percent(part.share)) + span, part.share, is_markup=True)])
    note = f'<p class="note">{escape(more)}</p>' if more else ""
    label = "share, and in the refits #" if any(part.refits.size for part in parts) else "share #"
    return table(caption, [head, "", label], rows, kind="bars shares") + note


def confusion(classes: np.ndarray, truth: np.ndarray, predicted: np.ndarray) -> str:
    """Return how often each class was predicted as each, with the recall and the precision of each class.

    Examples
    --------
    >>> import numpy as np
    >>> from manykernels.reports.html.page_tables import confusion
    >>> y = np.array(["a", "a", "b"])
    >>> confusion(np.array(["a", "b"]), y, np.array(["a", "b", "b"])).count("<tr>")
    4
    """
    counts = np.array([[np.sum((truth == a) & (predicted == b)) for b in classes] for a in classes])
    heads = "".join(f'<th scope="col">{escape(str(name))}</th>' for name in classes)
    rows = []
    for name, row, hits in zip(classes, counts, np.diag(counts), strict=True):
        cells = "".join(f'<td class="number s{round(9 * cell / max(row.sum(), 1))}">{cell}</td>' for cell in row)
        recall = percent(hits / row.sum()) if row.sum() else NOTHING
        rows.append(f'<tr><th scope="row">{escape(str(name))}</th>{cells}<td class="number">{recall}</td></tr>')
    right = "".join(
        f'<td class="number">{percent(hits / total) if total else NOTHING}</td>'
        for hits, total in zip(np.diag(counts), counts.sum(axis=0), strict=True)
    )
    rows.append(f'<tr><th scope="row">of these right (precision)</th>{right}<td></td></tr>')
    caption = "Rows: the true class; columns: the predicted class"
    return box(
        caption,
        f'<table class="confusion"><caption>{caption}</caption><thead><tr><th scope="col">true</th>{heads}'
        f'<th scope="col">found (recall)</th></tr></thead><tbody>{"".join(rows)}</tbody></table>',
    )


def kernels(learned: LearnedSummary) -> str:
    """Return the table of kernels: the first rows as markup, all of them as data that a script sorts and filters.

    Parameters
    ----------
    learned : LearnedSummary

    Examples
    --------
    >>> from manykernels import MKLClassifier
    >>> from manykernels.reports.html.page_tables import kernels
    >>> from manykernels.reports.summary import describe
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> page = kernels(describe(MKLClassifier().fit(X, y), X))
    >>> 'id="kernel-data"' in page, 'type="search"' in page
    (True, True)
    """
    order = learned.order[:_LISTED]
    names = [learned.names[int(k)] for k in order]
    kept = int(np.searchsorted(np.cumsum([len(name) for name in names]), _LISTED_CHARACTERS)) + 1
    order, names = order[:kept], names[:kept]
    data = _kernel_data(learned, order, names)
    first = [_kernel_row(data, place) for place in range(min(_FIRST, len(names)))]
    heads = [head for head, _ in _columns(learned)]
    left_out = len(learned.names) - len(names)
    note = f"{count(left_out, 'kernel')} with smaller weights are left out of the table." if left_out else ""
    shown = f"The {len(first)} largest of {count(len(learned.names), 'kernel')}."
    return (
        '<div class="controls" hidden><label for="kernel-filter">Filter kernels and views</label>'
        '<input id="kernel-filter" type="search" autocomplete="off" placeholder="such as Gaussian, or a view"></div>'
        f'<p id="kernel-status" class="note" role="status">{shown} {note}</p>'
        + table("Kernels", heads, first, kind="kernels", sortable=True)
        + '<p class="controls" hidden><button id="kernel-more" type="button">Show more</button></p>'
        + f'<script id="kernel-data" type="application/json">{_json(data)}</script>'
    )


def _columns(learned: LearnedSummary) -> list[tuple[str, str]]:
    """Return the heads of the table of kernels, and the keys of its data."""
    columns = [("kernel", "names"), ("view", "view"), ("weight #", "weight"), ("share #", "share")]
    if learned.refits.shape[0]:
        columns += [("mean in refits #", "mean"), ("spread #", "spread"), ("used in refits #", "used")]
    columns += [("twins", "twins")] if learned.twins else []
    return [*columns, ("too narrow", "narrow")] if learned.narrow.any() else columns


def _kernel_data(learned: LearnedSummary, order: np.ndarray, names: list[str]) -> dict[str, Any]:
    """Return the columns of the table; views and twins as numbers into lists."""
    of_view = [learned.views[int(k)] for k in order]
    views = {name: place for place, name in enumerate(dict.fromkeys(of_view))}
    data: dict[str, Any] = {
        "total": len(learned.names),
        "folds": learned.refits.shape[0],
        "columns": [key for _, key in _columns(learned)],
        "views": list(views),
        "names": names,
        "view": [views[name] for name in of_view],
        "weight": _short(learned.weights[order]),
        "share": _short(learned.shares[order]),
    }
    if learned.refits.shape[0]:
        refits = learned.refits[:, order]
        data |= {"mean": _short(refits.mean(axis=0)), "spread": _short(refits.std(axis=0, ddof=1))}
        data["used"] = learned.used[order].tolist()
    if learned.twins:
        letter = {k: twin_name(i) for i, places in enumerate(learned.twins) for k in places}
        data["twins"] = [letter.get(int(k), "") for k in order]
    if learned.narrow.any():
        data["narrow"] = ["yes" if narrow else "" for narrow in learned.narrow[order].tolist()]
    return data


def _kernel_row(data: dict[str, Any], place: int) -> list[Cell]:
    cells = []
    for key in data["columns"]:
        value = data[key][place]
        if key == "view":
            cells.append(Cell(data["views"][value]))
        elif isinstance(value, str):
            cells.append(Cell(value))
        elif key == "used":
            cells.append(Cell(f"{value} of {data['folds']}", value))
        else:
            cells.append(Cell(figure(value) if key == "weight" else percent(value), value))
    return cells


def twin_name(number: int) -> str:
    """Return the name of a set of near-duplicates: A to Z, then numbers.

    Examples
    --------
    >>> from manykernels.reports.html.page_tables import twin_name
    >>> twin_name(0), twin_name(26)
    ('A', '27')
    """
    return chr(ord("A") + number) if number < 26 else str(number + 1)


def _short(values: np.ndarray) -> list[float]:
    """Return numbers with four digits, which is what is shown; zeros in one character."""
    return [float(f"{value:.4g}") if value else 0 for value in values.tolist()]


def _json(data: dict[str, Any]) -> str:
    """Return data as JSON that can stand in a script element."""
    text = json.dumps(data, separators=(",", ":"), ensure_ascii=False)
    for character in "<>&\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return text


def _span(refits: np.ndarray) -> str:
    return f"{percent(float(refits.min()))} to {percent(float(refits.max()))}"


def _head(head: str | Cell) -> str:
    if isinstance(head, Cell):
        return f'<td class="drawn">{head.text if head.is_markup else escape(head.text)}</td>'
    words, kind = head.removesuffix(" #"), ' class="number"' if head.endswith(" #") else ""
    return f'<th scope="col"{kind}>{escape(words)}</th>' if words else '<td class="drawn"></td>'
