"""Checks that the pages load nothing from outside: no fonts, scripts or styles of other sites."""

import re
from pathlib import Path

from sphinx.application import Sphinx
from sphinx.util import logging

_SITE = r"((?:https?:)?//[^\"')]+)"
_LOADED = re.compile(rf"<(?:script|link|img|iframe|source)\b[^>]*?(?:src|href)=\"{_SITE}|url\(['\"]?{_SITE}")


def setup(app: Sphinx) -> dict[str, bool]:
    """Look at what was written when the build is done."""
    app.connect("build-finished", _warn_of_strangers)
    return {"parallel_read_safe": True}


def _warn_of_strangers(app: Sphinx, exception: Exception | None) -> None:
    for path in sorted(Path(app.outdir).rglob("*")):
        if path.suffix in (".html", ".css"):
            for found in _LOADED.finditer(path.read_text(encoding="utf-8")):
                logging.getLogger(__name__).warning("%s loads %s from outside", path.name, found[1] or found[2])
