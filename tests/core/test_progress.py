"""Listeners and followers."""

import pytest

from manykernels.core.progress import emit, follow, is_listened_to, listen, reached, silent
from manykernels.core.results import Step


def step(iteration=1):
    return Step(iteration=iteration, seconds=0.0, objective=1.0, gap=0.5, n_active=3, tol=1e-3)


def test_listeners_hear_each_step_inside_the_block_only():
    heard, also = [], []
    emit(step(0))
    with listen(heard.append):
        emit(step(1))
        with listen(also.append):
            assert is_listened_to()
            emit(step(2))
        emit(step(3))
    emit(step(4))
    assert [s.iteration for s in heard] == [1, 2, 3]
    assert [s.iteration for s in also] == [2]
    assert not is_listened_to()


def test_silence_is_for_steps_and_points():
    heard = []
    with listen(heard.append), follow(lambda *point: heard.append(point)):
        with silent():
            emit(step(1))
            reached(1, 2, "inside")
        reached(2, 2, "outside")
    assert heard == [(2, 2, "outside")]


def test_a_listener_leaves_after_an_error():
    with pytest.raises(RuntimeError, match="stop"), listen(print):
        raise RuntimeError("stop")
    assert not is_listened_to()
