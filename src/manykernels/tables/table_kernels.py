"""The kernels of the command: on all columns and on each column of the table, or on each view of it."""

from collections.abc import Sequence
from typing import Any

from manykernels.kernels import Gaussian, Linear, Overlap, Polynomial
from manykernels.kernels.standard import STANDARD_DEGREES, STANDARD_WIDTHS
from manykernels.tables.encoder import Block

FEW_WIDTHS = (0.5, 2.0, 8.0)
# On the circle of the year, the week or the day, which has the radius 1.
CIRCLE_WIDTHS = (0.5, 2.0)
# On 0 and 1 every Gaussian says whether two rows agree; this width says nothing else.
FLAG_WIDTH = 0.5
MAX_KERNELS = 2000
# Linear kernels of single columns are held as columns, so that there can be more of them.
MAX_LINEAR = 20_000
ALL = "all features"
ALL_BUT_TEXT = "all columns but text"
ALL_CATEGORIES = "all categories"
SCALARS = ("number", "date")


def make_kernels(blocks: Sequence[Block], views: dict[str, list[str]] | None = None) -> tuple[list[Any], str]:
    """List the kernels for a table.

    Numbers and dates get Gaussian and polynomial kernels, categories the overlap kernel, free text linear kernels of
    its words and of its pieces of words.

    Parameters
    ----------
    blocks : sequence of Block
        The outputs of each column, as `TableEncoder.blocks`.
    views : dict, optional
        The columns of each view, by its name. With views there are kernels for each view, otherwise for each column
        and for all columns together.

    Returns
    -------
    kernels : list of kernels
        Each belongs to the group of its view or column.
    note : str
        What was shortened because there are many columns; empty if nothing was.

    Examples
    --------
    >>> age, city = Block("age", "number", [0], {"age": [0]}), Block("city", "category", [1, 2], {"city": [1, 2]})
    >>> kernels, note = make_kernels([age, city])
    >>> len(kernels)
    27
    """
    if views:
        named = {block.name: block for block in blocks}
        return [k for view, names in views.items() for k in _of_view([named[name] for name in names], view)], ""
    others = _of_all(blocks) + [kernel for block in blocks for kernel in _of_other(block)]
    scalars = [block for block in blocks if block.kind in SCALARS and not block.two_valued]
    count = len(others) + _SIZE * len(scalars)
    for kernels_of, size, limit, words in _CHOICES:
        if len(others) + size * len(scalars) <= limit:
            singles = [kernel for block in scalars for kernel in kernels_of(_value(block), block.name, block.name)]
            note = f"{len(blocks)} columns would make {count} kernels: each number or date gets {words} of its own."
            return others + singles, note if size < _SIZE else ""
    return others, f"{len(blocks)} columns would make {count} kernels: no number or date gets one of its own."


def _of_view(blocks: list[Block], view: str) -> list[Any]:
    structured, categories = _without_text(blocks)
    kernels: list[Any] = []
    # A single category needs only the overlap kernel.
    if len(structured) > (1 if structured == categories else 0):
        kernels += standard_kernels(_outputs(structured), view, view)
    if categories:
        kernels.append(Overlap(len(categories), _outputs(categories), view, view))
    return kernels + [kernel for block in blocks for kernel in _of_text(block, view)]


def _of_all(blocks: Sequence[Block]) -> list[Any]:
    """Kernels that see all columns but text at once, and all categories; a single column already has its own."""
    structured, categories = _without_text(blocks)
    group, but_text, overlap = (_unlike(label, blocks) for label in (ALL, ALL_BUT_TEXT, ALL_CATEGORIES))
    kernels: list[Any] = []
    if len(structured) > 1:
        label = group if len(structured) == len(blocks) else but_text
        kernels += standard_kernels(_outputs(structured), group, label)
    if len(categories) > 1:
        kernels.append(Overlap(len(categories), _outputs(categories), group, overlap))
    return kernels


def _without_text(blocks: Sequence[Block]) -> tuple[list[Block], list[Block]]:
    """Return the columns that can be compared as numbers, and the categories among them."""
    structured = [block for block in blocks if block.kind != "text"]
    return structured, [block for block in structured if block.kind == "category"]


def _unlike(label: str, blocks: Sequence[Block]) -> str:
    """Return a label that is not the name of a column."""
    names = {block.name for block in blocks}
    while label in names:
        label += " together"
    return label


def _of_other(block: Block) -> list[Any]:
    """Kernels of a column except for the value of a number or date; of numbers, only two-valued ones have any."""
    if block.kind == "category":
        return [Overlap(1, block.outputs, block.name, block.name)]
    if block.kind == "boolean" or block.two_valued:
        return [Gaussian(FLAG_WIDTH, block.outputs, block.name, block.name)]
    if block.kind == "date":
        circles = list(block.parts.items())[1:]
        return [
            kernel for label, outputs in circles for kernel in _gaussians(CIRCLE_WIDTHS, outputs, block.name, label)
        ]
    return _of_text(block, block.name)


def _of_text(block: Block, group: str) -> list[Any]:
    if block.kind != "text":
        return []
    return [Linear(outputs, group, label) for label, outputs in block.parts.items() if outputs]


def standard_kernels(columns: Sequence[int] | None, group: str, label: str) -> list[Any]:
    """Gaussian kernels of ten widths and polynomials of degree 1 to 3."""
    return _gaussians(STANDARD_WIDTHS, columns, group, label) + _polynomials(columns, group, label)


def _few(columns: Sequence[int], group: str, label: str) -> list[Any]:
    return _linear(columns, group, label) + _gaussians(FEW_WIDTHS, columns, group, label)


def _linear(columns: Sequence[int], group: str, label: str) -> list[Any]:
    return [Linear(columns, group, label)]


def _gaussians(widths: Sequence[float], columns: Sequence[int] | None, group: str, label: str) -> list[Any]:
    return [Gaussian(width, columns, group, label) for width in widths]


def _polynomials(columns: Sequence[int] | None, group: str, label: str) -> list[Any]:
    return [Polynomial(degree, columns=columns, group=group, label=label) for degree in STANDARD_DEGREES]


def _value(block: Block) -> list[int]:
    return next(iter(block.parts.values()))


def _outputs(blocks: Sequence[Block]) -> list[int]:
    return [output for block in blocks for output in block.outputs]


_SIZE = len(STANDARD_WIDTHS) + len(STANDARD_DEGREES)
# A function that makes the kernels of a number, how many it makes, the largest number of all kernels, and a name.
_CHOICES = (
    (standard_kernels, _SIZE, MAX_KERNELS, ""),
    (_few, 1 + len(FEW_WIDTHS), MAX_KERNELS, f"a linear kernel and {len(FEW_WIDTHS)} Gaussian ones"),
    (_linear, 1, MAX_LINEAR, "one linear kernel"),
)
