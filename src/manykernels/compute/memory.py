"""Memory budgets: how much a fit may use, in bytes."""

from __future__ import annotations

import math
import os
import re

from manykernels.core.checks import is_number

_UNITS = {
    "": 1,
    "k": 10**3,
    "m": 10**6,
    "g": 10**9,
    "t": 10**12,
    "ki": 2**10,
    "mi": 2**20,
    "gi": 2**30,
    "ti": 2**40,
}
_DEFAULT_SHARE = 0.5
_FALLBACK = 2 * 10**9


def budget_bytes(memory_budget: object) -> int:
    """Return a budget in bytes from a number of bytes, a text such as "1GB", or None (half of what is free).

    Examples
    --------
    >>> from manykernels.compute.memory import budget_bytes
    >>> budget_bytes("1.5 GB"), budget_bytes("512MiB"), budget_bytes(1000)
    (1500000000, 536870912, 1000)
    """
    if memory_budget is None:
        return int(_DEFAULT_SHARE * available_bytes())
    count = math.nan
    if isinstance(memory_budget, str):
        match = re.fullmatch(r"\s*([0-9]+\.?[0-9]*|\.[0-9]+)\s*(|[kmgt]i?)b?\s*", memory_budget.lower())
        if match is not None:
            count = float(match[1]) * _UNITS[match[2]]
    elif is_number(memory_budget):
        count = float(memory_budget)
    if not 1 <= count < math.inf:
        raise ValueError(f"memory_budget must be a positive number of bytes or look like '2GB', got {memory_budget!r}.")
    return int(count)


def shared_budget(memory_budget: object, n_jobs: int) -> int:
    """Return the bytes for each of some fits that run at the same time within one budget.

    Examples
    --------
    >>> from manykernels.compute.memory import shared_budget
    >>> shared_budget("1GB", 4)
    250000000
    """
    return max(1, budget_bytes(memory_budget) // max(1, n_jobs))


def available_bytes() -> int:
    """Return the memory that a new process could use, as far as the system tells."""
    try:
        with open("/proc/meminfo", encoding="ascii") as lines:
            for line in lines:
                if line.startswith("MemAvailable:"):
                    return int(line.split()[1]) * 1024
    except OSError:
        pass
    try:  # a Unix without /proc: half of what is installed
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2
    except (AttributeError, ValueError, OSError):
        return _FALLBACK


def human_bytes(count: float) -> str:
    """Return a size that a person can read.

    Examples
    --------
    >>> from manykernels.compute.memory import human_bytes
    >>> human_bytes(1_250_000_000), human_bytes(800)
    ('1.25 GB', '800 B')
    """
    for unit, size in (("TB", 1e12), ("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if count >= size:
            return f"{count / size:.3g} {unit}"
    return f"{count:.0f} B"
