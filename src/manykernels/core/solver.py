"""What a solver is: one record, read by everything that chooses, plans and refuses solvers."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from importlib import import_module
from typing import Any


@dataclass(frozen=True)
class Sizes:
    """The sizes of a problem: tasks that share their weights, samples and kernels."""

    n_tasks: int
    n_samples: int
    n_kernels: int


@dataclass(frozen=True)
class Need:
    """What a solver needs in addition to the bank.

    Attributes
    ----------
    n_bytes : int
        The bytes that it takes at least.
    last_resort : int
        The bytes with the method that it tries last, when all others have failed; 0 if it has no such method.
    works_on_few : bool
        Whether it holds a few kernels to work on, where the bank itself does not fit into memory.
    asks : frozenset of str
        What the bank must be able to do.
    smooth : bool
        Whether the loss is smooth.
    at_once : int
        How many problems are solved at the same time, each with these bytes.
    """

    n_bytes: int
    last_resort: int = 0
    works_on_few: bool = False
    asks: frozenset[str] = frozenset()
    smooth: bool = False
    at_once: int = 1

    @property
    def most(self) -> int:
        """Bytes with the last resort."""
        return max(self.n_bytes, self.last_resort)


def takes_all(norm: Any, loss: Any) -> None:
    """Refuse nothing."""


def check_offers(asker: str, needs: frozenset[str], can: frozenset[str]) -> None:
    """Raise TypeError if kernels that ``can`` do this are not enough for what a parameter asks for.

    Examples
    --------
    >>> from manykernels.core.solver import check_offers
    >>> check_offers("solver='mine'", frozenset({"quad_forms"}), frozenset({"combine", "quad_forms"}))
    """
    missing = sorted(needs - can)
    if missing:
        raise TypeError(f"{asker} needs kernels that offer {', '.join(missing)}; these do not.")


def needs_two_matrices(sizes: Sizes, norm: Any, loss: Any) -> Need:
    """Return what most methods need: the combined kernel, and a second matrix of that size for the inner solver."""
    return Need(2 * 8 * sizes.n_samples**2)


@dataclass(frozen=True)
class Solver:
    """An optimizer of the kernel weights.

    Attributes
    ----------
    name : str
        What ``solver=`` of an estimator takes.
    run : function, or str
        ``run(problem, *, tol, max_iter, start=None)`` returns a Result; for a family of kernels,
        ``run(problem, *, tol, max_iter)`` takes a FamilyProblem and returns a FamilyResult. "module:function" is
        imported when it is called.
    needs : frozenset of str
        What the bank must be able to do, or the family.
    refuses : function of (norm, loss)
        Returns why it cannot solve the problem, in one sentence, or None.
    need : function of (sizes, norm, loss)
        Returns the Need.
    draws : bool
        Whether it takes a ``random_state``: a seed, or None where nobody gave one.
    for_family : bool
        Whether it learns from a family of kernels, and not from a list.
    separate : Solver or None
        What learns many tasks at once, each with weights of its own, where it can; None: they are learned one by one.
        It returns a SeparateTasks.

    Examples
    --------
    >>> from manykernels.core.solver import Solver
    >>> solver = Solver("mine", lambda problem, *, tol, max_iter, start=None: None, frozenset({"quad_forms"}))
    >>> solver.can_do_with({"combine", "quad_forms"})
    True
    """

    name: str
    run: Callable[..., Any] | str
    needs: frozenset[str] = frozenset()
    refuses: Callable[[Any, Any], str | None] = takes_all
    need: Callable[[Sizes, Any, Any], Need] = needs_two_matrices
    draws: bool = False
    for_family: bool = False
    separate: Solver | None = None

    def __call__(self, problem: Any, **options: Any) -> Any:
        """Solve a problem that suits it; any other is refused before any work, here and not in the function."""
        self.require(problem)
        return self.function(problem, **options)

    @property
    def function(self) -> Callable[..., Any]:
        """The function that runs it, imported if it has not been."""
        if not isinstance(self.run, str):
            return self.run
        module, _, name = self.run.partition(":")
        return getattr(import_module(module), name)

    def need_for(self, sizes: Sizes, norms: Iterable[Any], loss: Any, at_once: int = 1) -> Need:
        """Return what it needs for the most demanding of these norms, with ``at_once`` problems at the same time."""
        needs = [self.need(sizes, norm, loss) for norm in norms]
        return Need(
            n_bytes=max(need.n_bytes for need in needs),
            last_resort=max(need.most for need in needs),
            works_on_few=any(need.works_on_few for need in needs),
            asks=self.needs,
            smooth=loss.smooth,
            at_once=at_once,
        )

    def can_do_with(self, can: Any) -> bool:
        """Return whether a bank that can do this is enough."""
        return self.needs <= set(can)

    def require(self, problem: Any) -> None:
        """Raise TypeError, before any work, if the kernels, the norm or the loss do not suit it."""
        self.check_kernels(problem.can)
        self.refuse(problem.norm, problem.loss)

    def check_kernels(self, can: frozenset[str]) -> None:
        """Raise TypeError if kernels that can do this are not enough."""
        check_offers(f"solver={self.name!r}", self.needs, can)

    def refuse(self, norm: Any, loss: Any) -> None:
        """Raise TypeError if it cannot solve the norm or the loss; this needs no kernels."""
        reason = self.refuses(norm, loss)
        if reason is not None:
            raise TypeError(f"solver={self.name!r} {reason}")
