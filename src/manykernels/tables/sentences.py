"""Sentences that name settings, each of which a caller can spell as its users know it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Setting:
    """A setting of `prepare_table` that a sentence names.

    Parameters
    ----------
    name : str
        Of the parameter.
    value : object, optional
        What it is or could be set to, where the sentence says that.

    Examples
    --------
    >>> print(Setting("views"), Setting("balance", "no"))
    views balance='no'
    """

    name: str
    value: Any = None

    def __str__(self) -> str:
        return self.name if self.value is None else f"{self.name}={self.value!r}"


class Sentence(str):
    """A sentence made of words and settings; as a string it spells the settings as in a call from Python.

    Parameters
    ----------
    *parts : str or Setting

    Examples
    --------
    >>> sentence = Sentence("The target holds fractions, so add ", Setting("regression", True), ".")
    >>> sentence
    'The target holds fractions, so add regression=True.'
    >>> sentence.spelled(lambda setting: f"the option {setting.name!r}")
    "The target holds fractions, so add the option 'regression'."
    """

    parts: tuple[str | Setting, ...]

    def __new__(cls, *parts: str | Setting) -> Sentence:
        sentence = super().__new__(cls, "".join(map(str, parts)))
        sentence.parts = parts
        return sentence

    def spelled(self, spell: Callable[[Setting], str]) -> str:
        """Return the sentence with each setting as ``spell`` writes it."""
        return "".join(spell(part) if isinstance(part, Setting) else part for part in self.parts)
