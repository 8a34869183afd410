"""Uneven classes: notice them, say so, and weight the errors if one class is rare."""

from dataclasses import dataclass

import numpy as np

from manykernels.tables.sentences import Sentence, Setting

# The smallest class relative to its size if all classes were equal (1/2 of the rows for two classes): below UNEVEN it
# counts as small, below RARE as rare.
UNEVEN, RARE = 0.4, 0.3


@dataclass(frozen=True)
class Balance:
    """The sizes of the classes in training, and what follows from them.

    Parameters
    ----------
    counts : dict
        The number of rows of each class, by its name as text.
    uneven : bool
        Whether the smallest class has less than 0.4 of its even share (of two classes: less than 20 % of the rows).
    weighted : bool
        Whether the errors are weighted, so that all classes count alike.
    """

    counts: dict[str, int]
    uneven: bool
    weighted: bool

    @property
    def class_weight(self) -> str | None:
        """The estimator's parameter."""
        return "balanced" if self.weighted else None

    @property
    def metric(self) -> str:
        """The score by which models are compared: where classes are uneven, accuracy says little."""
        return "balanced_accuracy" if self.uneven or self.weighted else "accuracy"

    def notes(self) -> list[Sentence]:
        """Return what was noticed and done, in sentences."""
        rare = min(self.counts, key=lambda label: self.counts[label])
        rows = sum(self.counts.values())
        share = f"class {rare!r} has {self.counts[rare]} of {rows} training rows ({self.counts[rare] / rows:.0%})"
        done = "errors are weighted so that all classes count alike"
        if self.uneven and self.weighted:
            words = f"The classes are uneven, {share}: {done}; "
            return [Sentence(words, Setting("balance", "no"), " lets all rows count alike.")]
        if self.uneven:
            words = f"The classes are uneven, {share}: look at the balanced accuracy, and consider "
            return [Sentence(words, Setting("balance", "yes"), ".")]
        return [Sentence(f"As asked, {done}.")] if self.weighted else []


def evenness(y: np.ndarray) -> float:
    """Return the size of the smallest class relative to the mean size.

    Examples
    --------
    >>> evenness(np.array(["a", "a", "a", "b"])), evenness(np.arange(4)) < UNEVEN
    (0.5, False)
    """
    counts = np.unique(y, return_counts=True)[1]
    return float(counts.min() / counts.mean())


def weigh_classes(target: np.ndarray, choice: str) -> Balance:
    """Look at the sizes of the classes.

    Parameters
    ----------
    target : array of shape (n_rows,)
        Labels of the training rows.
    choice : {"auto", "yes", "no"}
        Whether to weight errors; "auto" does so where the smallest class has less than 0.3 of its even share (of two
        classes: less than 15 % of the rows).

    Returns
    -------
    balance : Balance

    Examples
    --------
    >>> weigh_classes(np.array(["no"] * 19 + ["yes"]), "auto").class_weight
    'balanced'
    >>> weigh_classes(np.array(["no"] * 10 + ["yes"] * 9), "auto").uneven
    False
    """
    labels, counts = np.unique(target, return_counts=True)
    size = evenness(target)
    weighted = choice == "yes" or (choice == "auto" and size < RARE)
    return Balance(
        {str(label): int(count) for label, count in zip(labels, counts, strict=True)}, size < UNEVEN, weighted
    )
