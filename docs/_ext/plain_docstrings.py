"""Docstrings of this library are plain text with formulas; this makes them reStructuredText.

Indented blocks before the first section are formulas, and bars are absolute values, not substitutions. Members that
come from scikit-learn are left to its own documentation.
"""

import re
from itertools import chain
from typing import Any

from sphinx.application import Sphinx

_LITERAL = re.compile(r"(``.*?``)")


def setup(app: Sphinx) -> dict[str, bool]:
    """Connect to autodoc, before numpydoc reads the sections."""
    app.connect("autodoc-process-docstring", _to_rst, priority=100)
    app.connect("autodoc-skip-member", _skip_strangers)
    return {"parallel_read_safe": True}


def _to_rst(app: Sphinx, what: str, name: str, obj: Any, options: Any, lines: list[str]) -> None:
    sections = (place for place, line in enumerate(lines) if place and re.fullmatch(r"-{3,}", line))
    end = next(sections, len(lines) + 1) - 1
    lines[:] = chain(_with_literal_formulas(lines[:end]), map(_with_plain_bars, lines[end:]))


def _with_literal_formulas(lines: list[str]) -> list[str]:
    """Mark indented blocks as literal, so that no sign in them means anything."""
    found: list[str] = []
    inside = False
    for line in lines:
        indented = line.startswith("    ")
        if indented and not inside:
            found += ["::", ""]
        if line.strip():
            inside = indented
        found.append(line if indented else _with_plain_bars(line))
    return found


def _with_plain_bars(line: str) -> str:
    if line.lstrip().startswith((">>>", "...")):
        return line
    return "".join(part if part.startswith("``") else part.replace("|", r"\|") for part in _LITERAL.split(line))


def _skip_strangers(app: Sphinx, what: str, name: str, obj: Any, skip: bool, options: Any) -> bool | None:
    source = getattr(obj, "fget", obj)
    module = getattr(source, "__module__", None) or "manykernels"
    return None if module.startswith("manykernels") else True
