"""Banks from settings by name, for tests that pass many of them on."""

from __future__ import annotations

from typing import Any

from manykernels.banks import Data, Placement, Recipe, bind
from manykernels.kernels.approximate import APPROXIMATIONS, Approximation, find_approximation

_RECIPE = {"normalize": "normalize", "center": "center", "combination": "combination", "check_kernels": "check"}
_PLACEMENT = {name: name for name in ("device", "client", "storage", "precision", "reserve")}


def features_of(name: str | None, rank: float) -> Approximation | None:
    """Return the approximation of this name and rank; None stands for none."""
    return {None: None, **{kind.name: kind(rank) for kind in APPROXIMATIONS}}[name]


def bind_with(kernels: Any, X: Any, **settings: Any) -> Any:
    """Return ``bind(kernels, Data(X, ...), Recipe(...), Placement(...), seed)`` with the settings where they belong."""
    data = Data(X, *(settings.pop(name, None) for name in ("source", "sample_weight", "targets")))
    recipe = Recipe(**{field: settings.pop(name) for name, field in _RECIPE.items() if name in settings})
    place = {field: settings.pop(name) for name, field in _PLACEMENT.items() if name in settings}
    place["budget"] = settings.pop("memory_budget", None)
    if "approximation" in settings:
        place["approximation"] = find_approximation(settings.pop("approximation"))
    seed = settings.pop("random_state", None)
    assert not settings, f"unknown settings {sorted(settings)}"
    return bind(kernels, data, recipe, Placement(**place), seed)
