"""A column of free text as numbers: the words and pieces of words that it has, the informative ones weighted more."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pandas as pd
from sklearn.feature_extraction.text import TfidfVectorizer

from manykernels.tables.cells import as_texts
from manykernels.tables.column import Column

# The most words, and the most pieces, that are kept: together a row of a text column takes at most 16 kB of memory.
MAX_TERMS = 1000
PIECE = 3


@dataclass(frozen=True)
class TextColumn(Column):
    """Free text: tf-idf of its words, and of its pieces of three letters.

    Inner products of the pieces are a weighted spectrum kernel, which tolerates inflections and misspellings. Only the
    most frequent words and pieces count, and only those of at least two training rows; a missing text counts as empty.

    Parameters
    ----------
    words, pieces : list of str
        The vocabularies.
    word_idf, piece_idf : list of float
        How much each counts: the logarithm of how rare it is in training.
    """

    kind: ClassVar[str] = "text"
    word: ClassVar[str] = "text"
    plural: ClassVar[str] = "free text"
    useless: ClassVar[str] = "has no words that two rows share"
    words: list[str]
    word_idf: list[float]
    pieces: list[str]
    piece_idf: list[float]

    @classmethod
    def learn(cls, name: str, column: pd.Series) -> "TextColumn | None":
        """Return the encoding, or None when no two rows share a word or a piece of one."""
        texts = as_texts(column).fillna("").tolist()
        words, pieces = _vocabulary(texts, **_WORDS), _vocabulary(texts, **_PIECES)
        return cls(*words, *pieces) if words[0] or pieces[0] else None

    def encode(self, name: str, column: pd.Series) -> np.ndarray:
        """Return an array of shape (n_rows, n_words + n_pieces); the words of a row have length 1, so do the pieces."""
        texts = as_texts(column).fillna("").tolist()
        words = _weigh(texts, self.words, self.word_idf, **_WORDS)
        return np.hstack([words, _weigh(texts, self.pieces, self.piece_idf, **_PIECES)])

    def labels(self) -> list[str]:
        """Return what distinguishes the output columns of this column."""
        return [*self.words, *(f"...{piece}..." for piece in self.pieces)]

    def parts(self) -> dict[str, int]:
        """Return the words and the pieces with the number of their outputs."""
        return {"words of ": len(self.words), f"{PIECE}-letter pieces of ": len(self.pieces)}

    @classmethod
    def treatment(cls, columns: Mapping[str, "TextColumn"]) -> str:
        """Say in words what was done to columns of this kind."""
        words = sum(len(column.words) for column in columns.values())
        pieces = sum(len(column.pieces) for column in columns.values())
        return f"tf-idf of {words} words and of {pieces} pieces of {PIECE} characters, from the training rows"


_WORDS: dict[str, Any] = {"analyzer": "word"}
_PIECES: dict[str, Any] = {"analyzer": "char", "ngram_range": (PIECE, PIECE)}


def _vocabulary(texts: list[str], **options: Any) -> tuple[list[str], list[float]]:
    try:
        vectorizer = TfidfVectorizer(min_df=2, max_features=MAX_TERMS, **options).fit(texts)
    except ValueError:  # no word is in two rows
        return [], []
    return vectorizer.get_feature_names_out().tolist(), vectorizer.idf_.tolist()


def _weigh(texts: list[str], terms: list[str], idf: list[float], **options: Any) -> np.ndarray:
    if not terms or not texts:
        return np.zeros((len(texts), len(terms)))
    vectorizer = TfidfVectorizer(vocabulary=terms, **options)
    vectorizer.idf_ = np.array(idf)
    return vectorizer.transform(texts).toarray()
