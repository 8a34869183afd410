"""What is bound, how, and where: the three things that a bank is made of in addition to its kernels."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from manykernels.core.targets import Targets
from manykernels.kernels.approximate import Approximation

PRECISIONS: dict[str, type] = {"single": np.float32, "double": np.float64}
# Relative errors of values that are held so.
UNIT_ROUNDOFFS = {"single": 2.0**-24, "double": 2.0**-53}


@dataclass(frozen=True)
class Data:
    """Training data.

    Attributes
    ----------
    X : float array or CSR matrix of shape (n_samples, n_features)
        For features also anything that has a shape and whose selections of rows are such, as a memory map, or
        ``manykernels.banks.cluster.RowSource``, rows on workers.
    table : DataFrame or None
        Where column names are looked up, if not in X.
    weight : ndarray of shape (n_samples,) or None
        Weights for the means that normalization and centering learn; None is 1 for each.
    targets : Targets or None
        Of rows on workers, which are bound together with what there is to learn of them.
    """

    X: Any
    table: Any = None
    weight: np.ndarray | None = None
    targets: Targets | None = None

    @classmethod
    def of(cls, data: Any) -> Data:
        """Return data as such: an array stands for itself."""
        return data if isinstance(data, cls) else cls(data)

    @property
    def names_from(self) -> Any:
        """Where column names are looked up."""
        return self.X if self.table is None else self.table

    @property
    def weights(self) -> np.ndarray:
        """The weight of each sample."""
        if self.weight is None:
            return np.ones(self.X.shape[0])
        return np.asarray(self.weight, dtype=np.float64)

    def in_memory(self) -> Data:
        """Return the same data with X as a float64 array or a CSR matrix."""
        X = self.X.tocsr() if hasattr(self.X, "tocsr") else np.asarray(self.X, dtype=np.float64)
        return replace(self, X=X, table=self.names_from)


@dataclass(frozen=True)
class Recipe:
    """How kernels become one kernel.

    Attributes
    ----------
    normalize : {"mean_diag", "trace", "cosine", None}
    center : bool
    combination : {"sum", "product"} or ParametricKernel
    check : {"quick", "full"}
        How closely matrices and functions of a user's own are looked at: see ``manykernels.banks.definiteness``.
    """

    normalize: str | None = "mean_diag"
    center: bool = False
    combination: Any = "sum"
    check: str = "quick"

    @property
    def is_sum(self) -> bool:
        """Whether the kernels are added up; otherwise there is one kernel, whose parameters are learned."""
        return isinstance(self.combination, str) and self.combination == "sum"


@dataclass(frozen=True)
class Placement:
    """Where kernels are held, and in how much memory.

    Attributes
    ----------
    budget : int, str or None
        Memory for kernels: bytes, or a text such as "1GB"; None is half of what is free.
    device : str
        "cpu", or where torch is to hold them, "cuda", "cuda:1" or "mps"; they take what they need of the memory there,
        and the budget is for that of the CPU. "torch:cpu" is the same code on the CPU, for tests.
    client : distributed.Client or None
        Of the workers that hold them; with an approximation, X is rows on these workers.
    storage : {"auto", "packed", "factors", "recomputed", "rows"}
        "auto" chooses by the budget. With "rows" not even the combined kernel is a matrix: the budget is for a cache of
        its rows.
    precision : {"single", "double"}
        Of the values that are held, unless they leave the range of float32; sums are always in double.
    approximation : NystroemFeatures, FourierFeatures or None
        Features in the place of kernels.
    reserve : int
        Kernels that a solver wants to hold in addition to the bank, where the bank itself does not fit.
    spare : int or None
        Bytes for the solver, in addition to the kernels; None where nobody counts them.
    why : str
        How the plan came about, in one sentence.
    plan_on_cpu : function or None
        Returns the plan for the CPU, for kernels that turn out to be none for the device; None where nothing else than
        the device changes.
    """

    budget: Any = None
    device: str = "cpu"
    client: Any = None
    storage: str = "auto"
    precision: str = "single"
    approximation: Approximation | None = None
    reserve: int = 0
    spare: int | None = None
    why: str = ""
    plan_on_cpu: Callable[[], Placement] | None = None

    def on_cpu(self) -> Placement:
        """Return where the kernels go if the device cannot hold them, with the digits that they have here."""
        place = replace(self, device="cpu") if self.plan_on_cpu is None else self.plan_on_cpu()
        why = f"{self.device!r} lacks the double precision that they need" + (f"; {place.why}" if place.why else "")
        return replace(place, precision=self.precision, why=why)
