"""Makes a page of each script in examples/: title and words from its docstring, source, and what it prints.

The scripts run while the site is built, so that the output on a page is that of this version.
"""

import ast
import contextlib
import io
import runpy
import warnings
from pathlib import Path

from sphinx.application import Sphinx

PAGE = """\
# {title}

{words}

```{{literalinclude}} /../examples/{name}.py
:language: python
:lines: {first}-
```

It prints:

```text
{output}
```

The script is {{download}}`examples/{name}.py </../examples/{name}.py>`.
"""


def setup(app: Sphinx) -> dict[str, bool]:
    """Write the pages before Sphinx looks for documents."""
    app.connect("builder-inited", _write_pages)
    return {"parallel_read_safe": True}


def _write_pages(app: Sphinx) -> None:
    folder = Path(app.srcdir) / "gallery"
    folder.mkdir(exist_ok=True)
    scripts = sorted((Path(app.srcdir).parent / "examples").glob("*.py"))
    for old in folder.glob("*.md"):
        if old.stem not in {script.stem for script in scripts}:
            old.unlink()
    for script in scripts:
        (folder / f"{script.stem}.md").write_text(_page(script), encoding="utf-8")


def _page(script: Path) -> str:
    docstring = ast.parse(script.read_text(encoding="utf-8")).body[0]
    title, _, words = ast.literal_eval(ast.unparse(docstring)).strip().partition("\n")
    first = (docstring.end_lineno or 0) + 2
    output = _printed_by(script).rstrip()
    return PAGE.format(title=title.rstrip("."), words=words.strip(), name=script.stem, first=first, output=output)


def _printed_by(script: Path) -> str:
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed), warnings.catch_warnings():
        warnings.simplefilter("error")
        runpy.run_path(str(script), run_name="__main__")
    return printed.getvalue()
