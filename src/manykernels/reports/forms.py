"""The form of a kernel: the part of its name before the features that it sees."""

from __future__ import annotations

import math
import re


def form_of(name: str, gather: bool) -> str:
    """Return the form of a kernel by its name.

    Parameters
    ----------
    name : str
    gather : bool
        Whether widths from each power of 2 to the next are taken together.

    Examples
    --------
    >>> from manykernels.reports.forms import form_of
    >>> form_of("Gaussian(width=3) on age", False), form_of("Gaussian(width=3) on age", True)
    ('Gaussian(width=3)', 'Gaussian(width 2 to 4)')
    """
    form = re.sub(r" on .*", "", name, flags=re.DOTALL)
    return re.sub(r"width=([\d.e+-]+)", _octave, form) if gather else form


def _octave(width: re.Match) -> str:
    low = 2.0 ** math.floor(math.log2(float(width[1])))
    return f"width {low:g} to {2 * low:g}"
