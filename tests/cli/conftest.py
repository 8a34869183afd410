"""A table, a folder to work in, and two ways to run the command."""

import numpy as np
import pandas as pd
import pytest

from manykernels.cli.main import main


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """An empty current folder, so that default names of files are seen to lie in it."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def people(folder):
    """A table with gaps and a column of each kind, in which age and city decide the rest."""
    rng = np.random.default_rng(0)
    count = 120
    age, city = rng.normal(50, 10, count), rng.choice(["Rome", "Oslo", "Lima"], count)
    score = (age - 50) / 5 + 3.0 * (city == "Rome") + 0.1 * rng.normal(size=count)
    table = pd.DataFrame(
        {
            "id": [f"p{number}" for number in range(count)],
            "age [years]": np.where(rng.random(count) < 0.05, np.nan, age),
            "city": city,
            "smokes": rng.random(count) < 0.5,
            "score": score,
            "churn": np.where(score > 0.8, "yes", "no"),
        }
    )
    table.drop(columns="score").to_csv("people.csv", index=False)
    table.drop(columns="churn").to_csv("scores.csv", index=False)
    return table


@pytest.fixture
def run(capsys):
    """Run the command, which must succeed; return what it printed."""

    def run(*arguments):
        status = main([str(argument) for argument in arguments])
        printed = capsys.readouterr()
        assert status == 0, printed.err
        return printed

    return run


@pytest.fixture
def fail(capsys):
    """Run the command, which must fail as on bad input; return its one sentence."""

    def fail(*arguments):
        status = main([str(argument) for argument in arguments])
        lines = capsys.readouterr().err.strip().splitlines()
        assert status == 2
        assert len(lines) == 1
        assert lines[0].startswith("manykernels: error: ")
        return lines[0].removeprefix("manykernels: error: ")

    return fail
