"""Compiled code where nothing can be written: it is kept in a folder of the user's own or nowhere, and that is said."""

import os
import re
import subprocess
import sys
from pathlib import Path

import numba
import pytest

import manykernels
from manykernels.compute import compiled

PACKAGE = Path(manykernels.__file__).parent


@pytest.fixture
def temporary(tmp_path, monkeypatch):
    """Let ``tmp_path`` be the folder of temporary files, and Numba find no folder of its own."""
    monkeypatch.setattr(compiled.tempfile, "gettempdir", lambda: str(tmp_path))
    compiled._own_folder.cache_clear()
    caching = numba.core.caching
    implementation = getattr(caching, "CacheImpl", None) or caching._CacheImpl
    monkeypatch.setattr(implementation, "_locator_classes", implementation._locator_classes[:1])
    monkeypatch.setattr(numba.config, "CACHE_DIR", "")
    yield tmp_path
    compiled._own_folder.cache_clear()


def double(x):
    return 2 * x


def own_folder(temporary):
    return temporary / (f"manykernels-{os.getuid()}" if hasattr(os, "getuid") else "manykernels")


def test_it_is_kept_in_a_folder_of_the_users_own(temporary):
    with pytest.warns(UserWarning, match=re.escape(f"is kept in {own_folder(temporary)}, since neither")) as said:
        assert [compiled.njit(cache=True, nogil=True)(double)(4) for _ in range(3)] == [8, 8, 8]
    assert len(said) == 1
    assert list(own_folder(temporary).rglob("*.nbi"))
    assert own_folder(temporary).stat().st_mode & 0o077 == 0
    assert numba.config.CACHE_DIR == ""


@pytest.mark.parametrize("how", ["open to all", "a link", "a file", "no folder"])
def test_a_folder_that_others_could_write_to_is_not_used(temporary, how, monkeypatch):
    folder = own_folder(temporary)
    if how == "open to all":
        folder.mkdir()
        folder.chmod(0o777)
    elif how == "a link":
        (temporary / "elsewhere").mkdir(mode=0o700)
        folder.symlink_to(temporary / "elsewhere")
    elif how == "a file":
        folder.write_text("")
    else:
        monkeypatch.setattr(compiled.tempfile, "gettempdir", lambda: str(temporary / "none"))
    with pytest.warns(UserWarning, match="is compiled anew in every process, since neither"):
        assert compiled.njit(cache=True)(double)(4) == 8
    assert not list(temporary.rglob("*.nbi"))


@pytest.mark.skipif(not hasattr(os, "getuid"), reason="users have numbers elsewhere")
def test_the_folder_of_another_user_is_not_used(temporary, monkeypatch):
    own_folder(temporary).mkdir(mode=0o700)
    (temporary / "manykernels-7").mkdir(mode=0o700)
    monkeypatch.setattr(compiled.os, "getuid", lambda: 7)
    assert compiled._temporary_folder() is None


def test_numba_is_imported_by_the_first_call():
    script = """
import sys
import manykernels
from manykernels.inner.smo import violation
manykernels.MKLClassifier, manykernels.UFOMKLClassifier, manykernels.load
print("numba" in sys.modules)
"""
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert run.stdout.split() == ["False"]


@compiled.njit()
def quadruple(x):
    return twice(twice(x))


@compiled.njit()
def twice(x):
    return 2 * x


def test_functions_that_call_others_find_them_whatever_the_order():
    assert quadruple(3) == 12
    assert twice(3) == 6


def test_nothing_is_kept_that_need_not_be(temporary, recwarn):
    assert compiled.njit()(double)(4) == 8
    assert not recwarn.list
    assert not list(temporary.iterdir())


def test_every_compiled_function_passes_here():
    for path in PACKAGE.rglob("*.py"):
        imports = re.findall(r"^\s*(?:from numba\b|import numba\b).*", path.read_text(encoding="utf-8"), re.MULTILINE)
        assert path.name in ("compiled.py", "threads.py") or not imports, path


SCRIPT = """
import numba
caching = numba.core.caching
implementation = getattr(caching, "CacheImpl", None) or caching._CacheImpl
implementation._locator_classes = implementation._locator_classes[:1]
import numpy as np
from manykernels import MKLClassifier
X = np.random.default_rng(0).standard_normal((20, 2))
print(MKLClassifier().fit(X, np.sign(X[:, 0])).converged_)
"""


def test_import_and_fit_without_a_folder(tmp_path):
    """The whole way; what one process compiled the next one finds."""
    without = {name: value for name, value in os.environ.items() if name != "NUMBA_CACHE_DIR"}
    environment = {**without, "TMPDIR": str(tmp_path), "TEMP": str(tmp_path), "PYTHONPATH": str(PACKAGE.parent)}
    kept = []
    for _ in range(2):
        command = [sys.executable, "-W", "always::UserWarning", "-c", SCRIPT]
        run = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
        assert run.returncode == 0, run.stderr
        assert run.stdout.split() == ["True"]
        assert run.stderr.count("The compiled code of manykernels is kept in") == 1
        assert run.stderr.startswith("<string>:9: UserWarning")
        kept.append({path: path.stat().st_mtime_ns for path in own_folder(tmp_path).rglob("*.nbc")})
    assert kept[0]
    assert kept[0] == kept[1]
