"""What a bank and its combined kernels hold is free again when they are gone, without a search for cycles."""

import gc
import weakref
from contextlib import contextmanager

import numpy as np

from tests.contracts.making import dual_of, every_kind
from tests.contracts.truth import N_TRAIN

ARGUMENTS = {"subset": np.array([0]), "tail": N_TRAIN // 2, "centered_squares": np.ones(N_TRAIN)}


@contextmanager
def without_cycle_search():
    """Inside the block, objects that refer to each other stay."""
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def ask(bank, kind):
    """Ask what solvers ask, so that whatever is made or remembered on the way is there; return the combined kernel."""
    K, beta = bank.workspace(), np.random.default_rng(0).standard_normal((2, N_TRAIN))
    bank.combine(kind.kernels.weights, out=K)
    if "quad_forms" in kind.can:
        bank.quad_forms(dual_of(bank, beta))
    if "sums" not in kind.combined:
        K.product(beta)
        K.diagonal()
    if "rows" in kind.combined:
        K.cache.restrict(np.arange(N_TRAIN))
        K.cache.places(np.arange(3))
    if "block" in kind.combined:
        K.block(np.arange(4))
        K.columns_product(np.arange(4), np.ones(4))
    for name in kind.can & ARGUMENTS.keys():
        getattr(bank, name)(ARGUMENTS[name])
    return K


@every_kind()
def test_a_bank_goes_when_nobody_refers_to_it(make_bank, kind):
    ask(make_bank(kind, kind.kernels.given), kind)  # what is compiled in it refers to its arguments for a while
    with without_cycle_search():
        bank = make_bank(kind, kind.kernels.given)
        K = ask(bank, kind)
        left = [weakref.ref(each) for each in (bank, K, *(v for n, v in vars(K).items() if n in ("table", "cache")))]
        del bank, K
        assert [each() for each in left] == [None] * len(left)
