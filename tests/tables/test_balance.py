"""Uneven classes."""

import numpy as np
import pytest

from manykernels.tables.balance import weigh_classes


def classes(*sizes):
    return np.repeat([chr(ord("a") + place) for place in range(len(sizes))], sizes)


@pytest.mark.parametrize(
    ("sizes", "uneven", "weighted"),
    [
        ((50, 50), False, False),
        ((80, 20), False, False),
        ((81, 19), True, False),
        ((86, 14), True, True),
        ((40, 40, 20), False, False),
        ((44, 44, 12), True, False),
        ((46, 46, 8), True, True),
    ],
)
def test_auto(sizes, uneven, weighted):
    balance = weigh_classes(classes(*sizes), "auto")
    assert (balance.uneven, balance.weighted) == (uneven, weighted)
    assert balance.class_weight == ("balanced" if weighted else None)
    assert balance.metric == ("balanced_accuracy" if uneven else "accuracy")
    assert bool(balance.notes()) == uneven


def test_what_was_asked_for():
    assert weigh_classes(classes(50, 50), "yes").class_weight == "balanced"
    assert weigh_classes(classes(50, 50), "yes").notes() == [
        "As asked, errors are weighted so that all classes count alike."
    ]
    never = weigh_classes(classes(99, 1), "no")
    assert never.class_weight is None
    assert "class 'b' has 1 of 100 training rows (1%): look at the balanced accuracy" in never.notes()[0]
