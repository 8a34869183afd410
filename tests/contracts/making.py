"""How banks of every kind are made, and what is the same question to all combined kernels.

Where banks come from and what a combined kernel looks like is known here alone: tests use :func:`make`, by the fixture
``make_bank``, and the functions below.
"""

from dataclasses import dataclass
from importlib.util import find_spec

import numpy as np
import pytest

from manykernels.compute.gpu import has_device
from manykernels.kernels import KernelBank, NystroemFeatures
from tests.binding import bind_with, features_of
from tests.contracts.truth import NORMALIZATIONS, SETS, train_and_test

FINITE = frozenset(
    {"combine", "centered_squares", "quad_forms", "derivative_forms", "matvecs", "inner_products", "rows", "diagonal"}
)
FINITE |= {"largest_diagonals", "peaks", "subset", "tail", "coefficients"}  # the last is not a method: they are arrays
FINITE |= {"kernel_products"}
TOGETHER = FINITE - {"kernel_products"}  # kernels that are known together, and not one by one
ON_DEMAND = TOGETHER - {"centered_squares", "matvecs", "inner_products", "peaks", "subset"}
FEATURES = ON_DEMAND - {"rows", "diagonal"}
ON_WORKERS = FEATURES - {"coefficients", "tail"}
PARAMETRIC = frozenset({"coefficients", "combine", "derivative_forms"})

# Factors of kernels are learned before they are held: where one holding has all of them, two are enough for another.
THOROUGH = ("auto", "rows", "ladder", "fourier", "product", "device auto")
EXACT = {"single": 1e-6, "double": 1e-12}
INTERPOLATED = {"single": 1e-5, "double": 1e-10}  # centering magnifies the error of interpolation
LANDMARKS = {
    "single": 1e-5,
    "double": 1e-6,
}  # the features of the last landmarks are differences of nearly equal numbers


@dataclass(frozen=True)
class Kind:
    """A kind of bank.

    ``can`` is what it offers, ``combined`` what its combined kernel can do, ``set`` the kernels that it is tested with.
    """

    name: str
    can: frozenset = FINITE
    combined: frozenset = frozenset({"array"})
    set: str = "list"
    centers: bool = True
    tolerance: dict = None
    slow: bool = False
    computes_in_double: bool = False

    @property
    def kernels(self):
        return SETS[self.set]

    @property
    def needs(self):
        """The optional package that it needs."""
        return {"device": "torch", "dask": "distributed"}.get(self.name.split()[0])

    @property
    def is_available(self):
        return has_device("torch:cpu") if self.needs == "torch" else self.needs is None or bool(find_spec(self.needs))

    @property
    def is_interpolated(self):
        return self.set in ("ladders", "both")

    @property
    def takes_arrays(self):
        """Whether coefficients are arrays: those of rows on workers are nowhere."""
        return "sums" not in self.combined

    @property
    def normalizations(self):
        return NORMALIZATIONS if self.name in THOROUGH else NORMALIZATIONS[::2]

    def allowed(self, precision):
        """The error that is allowed, relative to the size of the numbers that are added up."""
        return (self.tolerance or EXACT)[precision]


ROWS, BLOCK, FEATURED = frozenset({"rows"}), frozenset({"block"}), frozenset({"features"})
LADDER = {"can": TOGETHER, "set": "ladders", "tolerance": INTERPOLATED}
BOTH = {"can": TOGETHER, "set": "both", "tolerance": INTERPOLATED}
SMALL = {"can": FEATURES, "combined": FEATURED, "set": "small", "tolerance": LANDMARKS}
WAVES = {"can": FEATURES, "combined": FEATURED, "set": "waves"}
ON_DEVICE = {"combined": FEATURED | BLOCK}

KINDS = {
    kind.name: kind
    for kind in (
        Kind("auto"),
        Kind("packed"),
        Kind("factors"),
        Kind("recomputed"),
        Kind("rows", ON_DEMAND, ROWS),
        Kind("ladder", **LADDER),
        Kind("composite", **BOTH),
        Kind("nystroem", **SMALL),
        Kind("fourier", **WAVES),
        Kind("product", PARAMETRIC, set="gaussians", centers=False, computes_in_double=True),
        # On a device: torch's own CPU device, so that this runs anywhere.
        Kind("device auto"),
        Kind("device packed"),
        Kind("device factors"),
        Kind("device recomputed"),
        Kind("device rows", ON_DEMAND, BLOCK),
        Kind("device ladder", **LADDER),
        Kind("device composite", **BOTH),
        Kind("device nystroem", **SMALL | ON_DEVICE),
        Kind("device fourier", **WAVES | ON_DEVICE),
        Kind("dask kernels", TOGETHER, slow=True),
        Kind(
            "dask rows",
            FEATURES - {"coefficients", "tail"},
            frozenset({"sums"}),
            "small",
            tolerance=LANDMARKS,
            slow=True,
        ),
    )
}
LISTS = [kind.name for kind in KINDS.values() if kind.set == "list"]


def marked(kind, *rest, fails=()):
    """A parameter that is skipped where the kind's package is missing, and expected to fail where it is known to."""
    marks = [pytest.mark.skipif(not kind.is_available, reason=f"needs {kind.needs}")]
    if kind.name in fails:
        marks.append(pytest.mark.xfail(strict=True, reason="a known defect"))
    return pytest.param(kind, *rest, marks=marks, id="-".join([kind.name, *rest]))


def kinds_with(*capabilities, among=KINDS):
    """The kinds that offer all of these."""
    return [KINDS[name] for name in among if KINDS[name].can >= set(capabilities)]


def every_kind(*capabilities, among=KINDS, fails=()):
    """Run a test for each kind that offers all of these."""
    cases = [marked(kind, fails=fails) for kind in kinds_with(*capabilities, among=among)]
    return pytest.mark.parametrize("kind", cases)


def every_setting(*capabilities, among=KINDS, fails=()):
    """Run a test for each kind that offers all of these, raw and centered, in each precision."""
    cases = [
        marked(kind, center, precision, fails=fails)
        for kind in kinds_with(*capabilities, among=among)
        for center in ("raw", "centered")[: 1 + kind.centers]
        for precision in ("single", "double")
        if not (kind.slow and (center == "raw") == (precision == "double"))
        and not (kind.computes_in_double and precision == "single")
    ]
    return pytest.mark.parametrize(("kind", "center", "precision"), cases)


# --- making ----------------------------------------------------------------------------------------------------


def make(kind, kernels=None, X=None, *, workers=None, precision="single", **settings):
    """Make a bank.

    Settings are ``normalize``, ``center``, ``sample_weight`` and others of the function that binds. ``workers`` returns
    the client for kernels or rows on Dask workers.
    """
    X = train_and_test()[0] if X is None else X
    bank = KernelBank(kind.kernels.given if kernels is None else kernels)
    where, _, how = kind.name.rpartition(" ")
    if where == "dask":
        return on_workers(how, bank, X, workers(), precision=precision, **settings)
    device = {"device": "torch:cpu"} if where else {}
    if how == "product":
        return bind_with(bank, X, combination="product", **settings)
    if how in ("nystroem", "fourier"):
        options = {"approximation": features_of(how, 64), "random_state": 0, "precision": precision}
        return bind_with(bank, X, **options, **device, **settings)
    storage = how if how in ("packed", "factors", "recomputed", "rows") else "auto"
    return bind_with(bank, X, storage=storage, precision=precision, **device, **settings)


def on_workers(how, bank, X, client, *, precision, sample_weight=None, normalize="mean_diag", center=False, **settings):
    from manykernels.banks import cluster
    from manykernels.core.targets import Targets

    options = {"normalize": normalize, "center": center, "precision": precision, "client": client, **settings}
    if how == "kernels":
        return bind_with(bank, X, sample_weight=sample_weight, memory_budget=1, **options)
    source, _ = cluster.load_rows(client, X, np.arange(len(X)) % 2.0, sample_weight, False)
    approximation = {"approximation": NystroemFeatures(64), "random_state": 0}
    return bind_with(bank, source, targets=Targets(1.0), **approximation, **options)


# --- questions to all ------------------------------------------------------------------------------------------


def members_of(protocol):
    """The names that a protocol asks for, its own and those of the protocols that it extends."""
    return {name for one in protocol.__mro__[:-3] for name in vars(one) if not name.startswith("_")}


def matrix_of(K):
    """The combined kernel as an array."""
    return K.array if "array" in K.can else K.product(np.eye(K.n_samples))


def dual_of(bank, beta):
    """Dual coefficients (n_tasks, n) as the bank takes them."""
    if not hasattr(bank, "blocks"):
        return beta
    from manykernels.inner.bundle import Coefficients

    return Coefficients(beta @ features_on_workers(bank))


def features_on_workers(bank):
    """The features of all rows of a bank of rows on workers, (n, n_columns)."""
    return np.concatenate(bank.blocks.each(lambda block: block.Z)).astype(np.float64)


def matrix_on_workers(bank, K):
    """The combined kernel of rows on workers, from features that were fetched."""
    Z = features_on_workers(bank)
    return (Z * K.columns) @ Z.T
