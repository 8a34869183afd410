"""Types as another program sees them: a strict check of one that uses the public names, and of mistakes in it."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

import manykernels

USAGE = Path(__file__).parent / "typed_usage.txt"
# scikit-learn has no types, so that its estimators may be anything besides; what we declare is known.
MISTAKES = (
    "count: int = model.gap_",
    "word: str = mkl_path('standard', X, y)[0].C",
    "length: int = searched.best_score_",
)


def strictly(path, cache):
    """Check a file as a program elsewhere would, which is not told of errors in the library."""
    options = ["--strict", "--follow-imports", "silent", "--cache-dir", str(cache)]
    command = [sys.executable, "-m", "mypy", *options, str(path)]
    environment = os.environ | {"MYPYPATH": str(Path(manykernels.__file__).parents[1])}
    return subprocess.run(command, capture_output=True, text=True, check=False, cwd=path.parent, env=environment)


def test_a_program_with_strict_types(tmp_path):
    pytest.importorskip("mypy")
    (tmp_path / "usage.py").write_text(USAGE.read_text())
    checked = strictly(tmp_path / "usage.py", tmp_path / "cache")
    assert checked.returncode == 0, checked.stdout
    (tmp_path / "wrong.py").write_text("\n".join([USAGE.read_text(), *MISTAKES]))
    wrong = strictly(tmp_path / "wrong.py", tmp_path / "cache")
    assert f"Found {len(MISTAKES)} errors" in wrong.stdout, wrong.stdout
