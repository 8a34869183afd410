"""Newton's method on features ends where rounding does."""

from dataclasses import replace

from manykernels.inner import solve
from tests.hostile.cases import case_of_seed
from tests.hostile.judge import judge


def test_steps_end_where_they_change_nothing(monkeypatch):
    """Features of 1e15, C of 1e-6: no gradient is small, since the coefficients lack the digits."""
    numbers, newton = [], solve.solve_smooth

    def counted(*arguments, **options):
        solution = newton(*arguments, **options)
        numbers.append(solution.n_iter)
        return solution

    monkeypatch.setattr(solve, "solve_smooth", counted)
    assert judge(replace(case_of_seed(24903), max_iter=1, again="nothing")).faults == {}
    assert 0 < max(numbers) < 30
