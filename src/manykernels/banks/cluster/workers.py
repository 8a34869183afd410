"""Tasks on the workers of a cluster: where they run, sums over them in a fixed order, and what to do when data is lost.

All tasks are pure: the same key gives the same result wherever it is computed. So the scheduler computes anew what was
on a worker that died. It cannot do so for data that the driver had sent; where all copies of those are gone, the driver
sends them again and repeats what it had asked for.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import CancelledError
from typing import Any
from uuid import uuid4

from manykernels.banks.cluster.connection import check_open, distributed_library
from manykernels.compute.threads import at_most, one_blas_thread

# So many times the driver sends its data again before it gives up.
_ATTEMPTS = 5


class Workers:
    """The workers of a cluster, as seen when this object was made.

    Parameters
    ----------
    client : distributed.Client

    Attributes
    ----------
    addresses : list of str
        Sorted; what is put at place i goes to worker i, counted around, as long as it lives.
    """

    def __init__(self, client: Any) -> None:
        self.client = client
        self.addresses: list[str] = []
        self.look_around()

    def __len__(self) -> int:
        return len(self.addresses)

    def look_around(self) -> None:
        """Wait until there is a worker, and see which there are."""
        addresses: list[str] = []
        while not addresses:  # the last one may die just after it was counted
            self.client.wait_for_workers(1)
            addresses = sorted(self.client.nthreads())
        self.addresses = addresses

    def send(self, data: Any, to: int | None = None) -> Any:
        """Send data once to the worker at a place, or to all; returns a future."""
        only = None if to is None else [self._address(to)]
        try:
            # In a list of one, since the parts of a list or a tuple would be sent one by one.
            return self.client.scatter([data], workers=only, broadcast=to is None, hash=False)[0]
        except KeyError as gone:  # the scheduler does not know the address any more
            raise TimeoutError("A Dask worker has gone.") from gone

    def submit(self, place: int | None, function: Callable, *arguments: Any) -> Any:
        """Run ``function(*arguments)`` on the worker at a place, or on another if that is gone; returns a future.

        Without a place, it runs where its arguments are.
        """
        return self.client.submit(
            run_alone,
            function,
            *arguments,
            key=f"{function.__name__}-{uuid4().hex}",  # the scheduler learns how long tasks of one name take
            workers=None if place is None else [self._address(place)],
            allow_other_workers=place is not None,
        )

    def tree(self, add: Callable, parts: Sequence[tuple[int, Any]]) -> Any:
        """Return a future of the sum of futures, each with its place.

        Neighbors are added first, then neighbors of the sums, and so on: the order depends on the order of the parts
        alone, and so does the result, to the last bit.
        """
        level = list(parts)
        while len(level) > 1:
            pairs = [level[i : i + 2] for i in range(0, len(level), 2)]
            level = [
                (pair[0][0], self.submit(pair[0][0], add, pair[0][1], pair[1][1])) if len(pair) == 2 else pair[0]
                for pair in pairs
            ]
        return level[0][1]

    def gather(self, futures: Any) -> Any:
        """Return the results of futures."""
        return self.client.gather(futures)

    def persistent(self, ask: Callable[[], Any], restore: Callable[[], None]) -> Any:
        """Return ``ask()``; where data that cannot be computed anew were lost, call ``restore()`` and ask again."""
        lost = (CancelledError, TimeoutError, distributed_library().comm.CommClosedError)
        for attempt in range(_ATTEMPTS):
            check_open(self.client)
            try:
                if attempt > 0:
                    self.look_around()
                    restore()
                return ask()
            except lost as error:
                reason = error
        raise RuntimeError(f"The workers of the Dask cluster were lost {_ATTEMPTS} times in a row.") from reason

    def _address(self, place: int) -> str:
        return self.addresses[place % len(self.addresses)]


@one_blas_thread()
def run_alone(function: Callable, *arguments: Any) -> Any:
    """Run a task on as many threads as its worker has."""
    with at_most(distributed_library().get_worker().state.nthreads):
        return function(*arguments)
