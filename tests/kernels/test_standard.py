"""Which standard kernels wide and sparse data get, and the words for it."""

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.spatial.distance import pdist

from manykernels import MKLClassifier, MKLClassifierCV
from manykernels.kernels import standard_bank
from manykernels.kernels.standard import STANDARD_WIDTHS, as_bank, choose

RNG = np.random.default_rng(0)


def words(n=200, d=5000, per_text=60, seed=0):
    """A bag of words in which a few of them tell the classes apart."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 2, n)
    frequency = 1.0 / np.arange(1, d + 1)
    rows, columns = [], []
    for i in range(n):
        own = frequency.copy()
        own[100:140] *= 8.0 if y[i] else 1.0
        own[140:180] *= 1.0 if y[i] else 8.0
        columns.append(rng.choice(d, per_text, p=own / own.sum()))
        rows.append(np.full(per_text, i))
    counts = sp.csr_matrix((np.ones(n * per_text), (np.concatenate(rows), np.concatenate(columns))), shape=(n, d))
    counts.sum_duplicates()
    return counts, y


@pytest.mark.parametrize("kind", [np.asarray, sp.csr_matrix], ids=["dense", "sparse"])
@pytest.mark.parametrize("d", [2, 60, 100])
def test_few_columns_have_kernels_of_their_own(kind, d):
    table = kind(np.zeros((5, d)))
    assert len(as_bank("standard", table)) == 13 * (d + 1)
    assert choose(table).words == ""


def test_many_columns_of_few_samples_have_them_too():
    """Microarrays: a few dozen samples, thousands of genes."""
    assert len(as_bank("standard", np.zeros((72, 7129)))) == 13 * 7130


def test_a_large_dense_table_is_seen_as_a_whole():
    table = np.lib.stride_tricks.as_strided(np.zeros(1), (3000, 5000), (0, 0))
    choice = choose(table)
    assert choice.singles.size == 0
    assert choice.widths == STANDARD_WIDTHS
    assert choice.words.startswith("X has 3,000 samples and 5,000 columns, too many for kernels of their own: the 13 ")


def test_full_columns_among_sparse_ones_have_kernels_of_their_own():
    table = sp.hstack([RNG.normal(size=(80, 3)), sp.random(80, 500, 0.02, random_state=0)]).tocsr()
    np.testing.assert_array_equal(choose(table).singles, [0, 1, 2])
    with pytest.warns(UserWarning, match=r"the 46 standard kernels see all of them together and the 3 that are filled"):
        assert len(standard_bank(table)) == 7 + 3 * 13


def test_widths_of_wide_sparse_data_begin_at_the_typical_distance():
    counts, _ = words()
    distances = pdist(counts.toarray())
    np.testing.assert_allclose(choose(counts).widths, np.median(distances) * np.array([1, 2, 4, 8]), rtol=1e-12)
    np.testing.assert_allclose(choose(counts * 1e3).widths, np.array(choose(counts).widths) * 1e3, rtol=1e-9)
    assert choose(sp.csr_matrix((20, 500))).widths == (1.0, 2.0, 4.0, 8.0)


def test_what_is_asked_for_is_made():
    counts, _ = words(n=20, d=300)
    assert len(standard_bank(counts, per_feature=True, widths=[1.0], degrees=())) == 301
    assert len(standard_bank(counts, per_feature=False)) == 7
    assert [kernel.width for kernel in standard_bank(counts, per_feature=False, widths=[0.5], degrees=())] == [0.5]


def test_a_bag_of_words_is_learned_with_the_defaults():
    counts, y = words(n=400)
    train, test = np.arange(200), np.arange(200, 400)
    with pytest.warns(UserWarning, match=r"^X has 200 samples and 5,000 sparse columns"):
        model = MKLClassifier(C=10.0, memory_budget="50MB").fit(counts[train], y[train])
    assert len(model.kernel_names_) < 100
    assert model.score(counts[test], y[test]) > 0.85


@pytest.mark.filterwarnings("ignore:X has")
def test_all_folds_have_the_same_kernels():
    counts, y = words(n=90)
    table = sp.hstack([counts, sp.csr_matrix((np.arange(90) < 86).astype(float)[:, None])]).tocsr()
    model = MKLClassifierCV(Cs=[1.0, 10.0], norms=(1.0, 2.0), cv=3).fit(table, y)
    assert model.kernels == "standard"
    assert model.scores_.shape == (2, 2, 3)
