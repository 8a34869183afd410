"""Joint losses one by one: two classes, no samples, and labels in a tree."""

import numpy as np
import pytest

from manykernels.losses import (
    Hinge,
    MulticlassHinge,
    OneVsRest,
)
from tests.contracts.test_joint_losses import Tree, targets, words


def test_two_classes_jointly_are_the_hinge_of_their_difference():
    rng = np.random.default_rng(6)
    y, z = rng.integers(0, 2, 30), rng.standard_normal((30, 2))
    margin = np.where(y == 1, 1.0, -1.0)
    np.testing.assert_allclose(MulticlassHinge(2).values(y, z), Hinge().value(margin, z[:, 1] - z[:, 0]), atol=1e-12)


@pytest.mark.parametrize("loss", [OneVsRest(Hinge(), 3), MulticlassHinge(3)], ids=words)
def test_no_sample_has_no_loss(loss):
    empty, C = np.zeros((0, 3)), np.zeros(0)
    y = np.zeros(0, int) if isinstance(loss, MulticlassHinge) else empty
    assert loss.values(y, empty).shape == (0,)
    assert loss.conjugates(y, empty, C).shape == (0,)


# --- structured labels -------------------------------------------------------------------------------------


def test_a_tree_costs_more_between_branches_than_inside_one():
    tree = Tree()
    assert (tree.cost("cat", "cat"), tree.cost("cat", "dog"), tree.cost("cat", "oak")) == (0.0, 0.5, 1.0)
    assert tree.best(np.zeros(5), "cat") == "oak"
    value, step = tree.descent("cat", np.zeros(5))
    assert value == 1.0
    np.testing.assert_array_equal(step, [1.0, -1.0, 1.0, 0.0, -1.0])


def test_a_label_that_wins_by_its_cost_has_no_loss():
    z = 2.0 * Tree().embed("dog")
    assert Tree().best(z) == "dog"
    value, step = Tree().descent("dog", z)
    assert value == 0.0
    np.testing.assert_array_equal(step, np.zeros(5))


def test_the_loss_of_a_structured_label_bounds_the_cost_of_the_prediction():
    """The hinge is an upper bound of what the predicted label costs: that is why it is learned."""
    rng = np.random.default_rng(7)
    tree = Tree()
    for y in targets(tree, 40, rng):
        z = rng.standard_normal(5)
        assert tree.descent(y, z)[0] >= tree.cost(y, tree.best(z)) - 1e-12


def test_the_conjugate_of_a_structured_loss_is_not_known():
    assert Tree().conjugates(["cat"], np.zeros((1, 5)), np.ones(1)) is None
