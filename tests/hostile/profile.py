"""How many examples: a few, and the same ones each time.

``MANYKERNELS_HOSTILE=20 pytest tests/hostile`` takes twenty times as many, and others each time.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from hypothesis import HealthCheck, Phase, settings

TIMES = int(os.environ.get("MANYKERNELS_HOSTILE", "1"))


def examples(count: int) -> Any:
    """Return the settings of a property: this many examples, times what the environment asks for.

    A few examples are not made simpler after a failure, since each trial is a fit; the reprs of cases are short enough.
    """
    few = TIMES == 1
    return settings(
        max_examples=count * TIMES,
        derandomize=few,
        deadline=None,
        database=None,
        print_blob=not few,
        phases=[Phase.explicit, Phase.generate] if few else [Phase.explicit, Phase.generate, Phase.shrink],
        suppress_health_check=list(HealthCheck),
    )


@contextmanager
def ended_after(seconds: float) -> Iterator[None]:
    """Turn an endless loop into a failure, after so much processor time (where the system has such a clock)."""
    if not hasattr(signal, "SIGPROF"):
        yield
        return

    def end(*_: Any) -> None:
        raise AssertionError(f"The fit took more than {seconds:g} s of processor time.")

    before = signal.signal(signal.SIGPROF, end)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)
