"""Views, which are columns that belong together, by the first part of their names or by a small file."""

import difflib
import re
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from manykernels.tables.encoder import WORDS
from manykernels.tables.sentences import Sentence, Setting

PREFIX = "prefix"
OTHER = "other"
_FIRST_PART = re.compile(r"[^_.:]+(?=[_.:])")
_SETTING = Setting("views")


@dataclass(frozen=True)
class Views:
    """What the user said about the columns: their views, and their kinds where these should not be guessed.

    Parameters
    ----------
    by_prefix : bool, default=False
        Columns with the same part before the first ``_``, ``.`` or ``:`` are a view.
    patterns : dict, default={}
        Names or patterns (``rna_*``) of the columns of each view, by its name. A column belongs to the first view
        that matches it.
    kinds : dict, default={}
        The kind of columns, by name or pattern.
    """

    by_prefix: bool = False
    patterns: dict[str, list[str]] = field(default_factory=dict)
    kinds: dict[str, str] = field(default_factory=dict)

    @property
    def wanted(self) -> bool:
        """Whether there are views; without them there may still be kinds."""
        return self.by_prefix or bool(self.patterns)

    def kinds_of(self, names: Sequence[str]) -> dict[str, str]:
        """Return the kind of each column that has one, and check that every pattern matches a column.

        Parameters
        ----------
        names : sequence of str
            All columns of the table but the target.

        Returns
        -------
        kinds : dict
            The kind of a column, by its name.

        Examples
        --------
        >>> Views(kinds={"zip*": "category"}).kinds_of(["age", "zip_code"])
        {'zip_code': 'category'}
        """
        for pattern in (*self.kinds, *(pattern for patterns in self.patterns.values() for pattern in patterns)):
            if not _matching(pattern, names):
                near = difflib.get_close_matches(pattern, names, n=1)
                hint = f" (did you mean {near[0]!r}?)" if near else ""
                problem = f" names {pattern!r}, but the table has no such column besides the target{hint}."
                raise ValueError(Sentence(_SETTING, problem))
        # In reverse, so that the first pattern for a column has the last word.
        return {name: kind for pattern, kind in reversed(self.kinds.items()) for name in _matching(pattern, names)}

    def assign(self, names: Sequence[str]) -> dict[str, list[str]]:
        """Divide columns into views.

        Parameters
        ----------
        names : sequence of str
            The columns that are used.

        Returns
        -------
        views : dict
            The columns of each view, by its name; columns without a view are in "other". Empty if no views are wanted.

        Examples
        --------
        >>> Views(by_prefix=True).assign(["rna_a", "rna_b", "clinical.age", "clinical.sex", "city"])
        {'rna': ['rna_a', 'rna_b'], 'clinical': ['clinical.age', 'clinical.sex'], 'other': ['city']}
        """
        if not self.wanted:
            return {}
        views = _by_prefix(names) if self.by_prefix else self._by_pattern(names)
        taken = {name for columns in views.values() for name in columns}
        unassigned = [name for name in names if name not in taken]
        if self.by_prefix and not views:
            needed = (
                " needs columns such as rna_1 and rna_2, with the same part before the first '_', '.' or ':'; "
                "no two columns of the table share one."
            )
            raise ValueError(Sentence(Setting("views", PREFIX), needed))
        if unassigned:
            views[OTHER] = views.get(OTHER, []) + unassigned
        return views

    def notes(self, views: Mapping[str, list[str]]) -> list[str]:
        """Return a note on each view that has no columns.

        Parameters
        ----------
        views : mapping from str to list of str
            What `assign` returned.

        Returns
        -------
        notes : list of str

        Examples
        --------
        >>> wanted = Views(patterns={"all": ["*"], "blood": ["lab_*"]})
        >>> wanted.notes(wanted.assign(["lab_hb", "age"]))
        ["View 'blood' has no columns: they are in earlier views, or left out."]
        """
        empty = [view for view in self.patterns if view not in views]
        return [f"View {view!r} has no columns: they are in earlier views, or left out." for view in empty]

    def _by_pattern(self, names: Sequence[str]) -> dict[str, list[str]]:
        views: dict[str, list[str]] = {}
        taken: set[str] = set()
        for view, patterns in self.patterns.items():
            columns = {name for pattern in patterns for name in _matching(pattern, names)} - taken
            taken |= columns
            if columns:
                views[view] = [name for name in names if name in columns]
        return views


def read_views(given: str | None) -> Views:
    """Read what a user says about views, in a word or in a file.

    Parameters
    ----------
    given : str or None
        "prefix", or a path that ends in .toml.

    Returns
    -------
    views : Views

    Examples
    --------
    >>> read_views("prefix").by_prefix
    True
    >>> read_views(None).wanted
    False
    """
    if given is None:
        return Views()
    if given == PREFIX:
        return Views(by_prefix=True)
    path = Path(given)
    if path.suffix.lower() != ".toml" or not path.is_file():
        problem = "there is no such file" if path.suffix.lower() == ".toml" else f"got '{given}'"
        raise ValueError(Sentence(_SETTING, f" must be 'prefix' or a file that ends in .toml; {problem}."))
    try:
        content = tomllib.loads(path.read_text(encoding="utf-8-sig"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise _refusal(path, f"is not a TOML file: {error}.") from error
    return _checked(content, path)


def _checked(content: dict[str, Any], path: Path) -> Views:
    extra = set(content) - {"views", "columns"}
    if extra or not content:
        problem = f"it has [{sorted(extra)[0]}]" if extra else "it is empty"
        raise _refusal(path, f"must have the parts [views] and [columns], or one of them; {problem}.")
    views, kinds = content.get("views", {}), content.get("columns", {})
    if not isinstance(views, dict) or not isinstance(kinds, dict):
        raise _refusal(path, "must have the parts [views] and [columns] as tables.")
    empty = next((section for section in content if not content[section]), None)
    if empty:
        raise _refusal(path, f"must say something in [{empty}], which is empty.")
    for view, patterns in views.items():
        if not isinstance(patterns, list) or not patterns or not all(isinstance(item, str) for item in patterns):
            raise _refusal(path, f'must give view {view!r} a list of columns, such as ["{view}_*"].')
    for name, kind in kinds.items():
        if kind not in WORDS:
            hint = "; names with dots need quotes" if isinstance(kind, dict) else ""
            words = ", ".join(WORDS)
            raise _refusal(path, f"must call column {name!r} one of {words}; got {kind!r}{hint}.")
    return Views(patterns=views, kinds=kinds)


def _refusal(path: Path, problem: str) -> ValueError:
    return ValueError(Sentence(_SETTING, f" '{path}' {problem}"))


def _matching(pattern: str, names: Iterable[str]) -> list[str]:
    """Return the column of this name, else those that match: "age [years]" is a name before it is a pattern."""
    names = list(names)
    return [pattern] if pattern in names else [name for name in names if fnmatchcase(name, pattern)]


def _by_prefix(names: Sequence[str]) -> dict[str, list[str]]:
    views: dict[str, list[str]] = {}
    for name in names:
        match = _FIRST_PART.match(name)
        if match:
            views.setdefault(match[0], []).append(name)
    return {view: columns for view, columns in views.items() if len(columns) > 1}
