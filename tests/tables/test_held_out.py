"""The rows that are held out of training."""

import numpy as np
import pytest

from manykernels.tables.held_out import hold_out


class TestHoldOut:
    def test_each_part_has_its_share_of_each_class(self):
        target = np.repeat(["a", "b"], [60, 20])
        train, test = hold_out(target, 0.25, seed=0, regression=False)
        assert np.unique(target[test], return_counts=True)[1].tolist() == [15, 5]
        np.testing.assert_array_equal(np.sort(np.concatenate([train, test])), np.arange(80))

    def test_the_seed_decides(self):
        target = np.arange(50.0)
        first, again, other = (hold_out(target, 0.2, seed=seed, regression=True)[1] for seed in (1, 1, 2))
        np.testing.assert_array_equal(first, again)
        assert first.tolist() != other.tolist()

    def test_nothing(self):
        train, test = hold_out(np.array(["a", "b"]), 0.0, seed=0, regression=False)
        assert (len(train), len(test)) == (2, 0)

    @pytest.mark.parametrize(
        ("target", "share", "regression", "message"),
        [
            (["a", "a", "a", "b"], 0.25, False, "class 'b' has one"),
            (["a", "a", "b", "b"], 0.25, False, "splits 4 rows into 3 and 1; each part needs at least 2"),
            ([1.0, 2.0], 0.5, True, "leaves 1 rows for training"),
        ],
    )
    def test_what_is_refused(self, target, share, regression, message):
        with pytest.raises(ValueError, match=message):
            hold_out(np.array(target), share, 0, regression)
