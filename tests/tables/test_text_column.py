"""Free text as numbers."""

import json

import numpy as np
import pandas as pd
from sklearn.feature_extraction.text import TfidfVectorizer

from manykernels.tables import text_column
from manykernels.tables.text_column import TextColumn

NOTES = pd.Series(["The quick reply helped", "a slow reply", None, "Slow, slow service!", "quick and helpful service"])


def test_is_tf_idf_of_words_and_of_pieces():
    column = TextColumn.learn("note", NOTES)
    new = pd.Series(["a SLOW, slow reply from nowhere", None])
    X = column.encode("note", new)
    plain, later = NOTES.fillna("").tolist(), new.fillna("").tolist()
    words = TfidfVectorizer(min_df=2).fit(plain).transform(later).toarray()
    pieces = TfidfVectorizer(min_df=2, analyzer="char", ngram_range=(3, 3)).fit(plain).transform(later).toarray()
    np.testing.assert_allclose(X, np.hstack([words, pieces]), atol=1e-15)
    np.testing.assert_array_equal(X[1], 0.0)
    assert column.words == ["quick", "reply", "service", "slow"]
    assert column.parts() == {"words of ": 4, "3-letter pieces of ": len(column.pieces)}


def test_survives_json_to_the_last_digit():
    column = TextColumn.learn("note", NOTES)
    state = json.loads(json.dumps(column.to_dict()))
    assert state.pop("kind") == "text"
    np.testing.assert_array_equal(TextColumn(**state).encode("note", NOTES), column.encode("note", NOTES))


def test_the_vocabulary_is_bounded_by_the_most_frequent(monkeypatch):
    monkeypatch.setattr(text_column, "MAX_TERMS", 2)
    column = TextColumn.learn("note", pd.Series(["aa bb cc", "aa bb dd", "aa cc", "bb"]))
    assert column.words == ["aa", "bb"]
    assert len(column.pieces) == 2


def test_nothing_in_common():
    assert TextColumn.learn("note", pd.Series(["abc", "def", ""])) is None
    assert TextColumn.learn("note", pd.Series(["a b", "a b", "a b"])).words == []  # words have two letters


def test_no_rows():
    column = TextColumn.learn("note", NOTES)
    assert column.encode("note", NOTES[:0]).shape == (0, len(column.labels()))
