"""Files are replaced whole: the old one or the new one is there at every moment."""

import os
import stat
import subprocess
import sys
import textwrap

import pytest

from manykernels.core.files import replacing


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def write_half(target, error):
    with replacing(target) as place:
        place.write_text("half of")
        raise error


def test_a_file_is_made_and_replaced(tmp_path):
    target = tmp_path / "a.txt"
    for text in ("old", "new, and longer"):
        with replacing(target) as place:
            place.write_text(text)
            assert place.parent == target.parent
        assert target.read_text() == text
        assert names(tmp_path) == ["a.txt"]


def test_the_old_file_stays_until_the_end(tmp_path):
    target = tmp_path / "a.txt"
    target.write_text("old")
    with replacing(str(target)) as place:
        place.write_text("new")
        assert target.read_text() == "old"


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt, MemoryError])
def test_an_error_leaves_the_old_file_and_nothing_else(tmp_path, error):
    target = tmp_path / "a.txt"
    target.write_text("old")
    with pytest.raises(error):
        write_half(target, error)
    assert target.read_text() == "old"
    assert names(tmp_path) == ["a.txt"]


def test_an_error_where_there_was_no_file_leaves_none(tmp_path):
    with pytest.raises(OSError, match="disk is full"):
        write_half(tmp_path / "a.txt", OSError("disk is full"))
    assert names(tmp_path) == []


@pytest.mark.parametrize("step", ["fsync", "replace"])
def test_an_error_of_the_disk_leaves_nothing_else(tmp_path, step, monkeypatch):
    """What the system refuses after the writing is as harmless as what it refuses before."""

    def fail(*_):
        raise OSError("disk is full")

    target = tmp_path / "a.txt"
    target.write_text("old")
    monkeypatch.setattr(os, step, fail)
    with pytest.raises(OSError, match="disk is full"), replacing(target) as place:
        place.write_text("new")
    assert target.read_text() == "old"
    assert names(tmp_path) == ["a.txt"]


def test_the_order_of_steps(tmp_path, monkeypatch):
    """The content is flushed before the name changes, the folder after it."""
    steps = []
    fsync, replace = os.fsync, os.replace

    def seen(handle):
        steps.append("folder" if stat.S_ISDIR(os.fstat(handle).st_mode) else os.fstat(handle).st_size)
        fsync(handle)

    monkeypatch.setattr(os, "fsync", seen)
    monkeypatch.setattr(os, "replace", lambda *paths: (steps.append("replace"), replace(*paths)))
    with replacing(tmp_path / "a.txt") as place:
        place.write_text("seven..")
    assert steps == [7, "replace", "folder"]


def test_a_link_still_leads_to_the_file(tmp_path):
    (tmp_path / "there").mkdir()
    target, link = tmp_path / "there" / "a.txt", tmp_path / "link.txt"
    target.write_text("old")
    link.symlink_to(target)
    with replacing(link) as place:
        place.write_text("new")
        assert place.parent == target.parent
    assert link.is_symlink()
    assert target.read_text() == "new"


def test_permissions_are_those_of_the_old_file_or_of_any_new_one(tmp_path):
    target, plain = tmp_path / "a.txt", tmp_path / "plain.txt"
    plain.write_text("")
    with replacing(target) as place:
        place.write_text("first")
    assert target.stat().st_mode == plain.stat().st_mode
    target.chmod(0o640)
    with replacing(target) as place:
        place.write_text("second")
    assert stat.S_IMODE(target.stat().st_mode) == 0o640


@pytest.mark.skipif(os.name != "posix" or os.geteuid() == 0, reason="nothing is protected from root")
def test_what_is_protected_stays(tmp_path):
    target = tmp_path / "a.txt"
    target.write_text("old")
    target.chmod(0o444)
    with pytest.raises(PermissionError, match="protected"), replacing(target):
        pass
    target.chmod(0o644)
    tmp_path.chmod(0o555)
    try:
        with pytest.raises(PermissionError, match=r"folder.*protected"), replacing(target):
            pass
    finally:
        tmp_path.chmod(0o755)
    assert target.read_text() == "old"


def test_a_protected_file_is_not_replaced(tmp_path, monkeypatch):
    target = tmp_path / "a.txt"
    target.write_text("old")
    monkeypatch.setattr(os, "access", lambda *_: False)
    with pytest.raises(PermissionError, match="protected"), replacing(target):
        pass
    assert names(tmp_path) == ["a.txt"]


@pytest.mark.skipif(os.name != "posix", reason="there are no such files")
def test_what_is_no_file_is_written_to(tmp_path):
    """A pipe, a terminal or /dev/null is not replaced by a file."""
    with replacing("/dev/null") as place:
        place.write_text("gone")
    assert not os.path.isfile("/dev/null")
    folder = tmp_path / "folder"
    folder.mkdir()
    with pytest.raises(IsADirectoryError), replacing(folder) as place:
        place.write_text("x")
    assert names(folder) == []


@pytest.mark.parametrize("letter", ["a", "\N{GRINNING FACE}"])
def test_long_names(tmp_path, letter):
    name = letter * (250 // len(letter.encode())) + ".csv"
    with replacing(tmp_path / name) as place:
        assert place.name.endswith(".csv")
        place.write_text("x")
    assert names(tmp_path) == [name]


@pytest.mark.skipif(os.name != "posix", reason="processes are killed otherwise")
@pytest.mark.parametrize(
    ("moment", "expected"),
    [
        ("before the writing", "old"),
        ("in the writing", "old"),
        ("after the writing", "old"),
        ("before the replacement", "old"),
        ("after the replacement", "new, and longer"),
    ],
)
def test_a_killed_process(tmp_path, moment, expected):
    """Whenever it is killed, the old file or the new one is there, and what is left behind does no harm."""
    script = """
        import os, signal, sys
        from manykernels.core.files import replacing

        target, moment = sys.argv[1:]

        def die(now):
            if now == moment:
                os.kill(os.getpid(), signal.SIGKILL)

        replace = os.replace

        def replace_and_die(*paths):
            die("before the replacement")
            replace(*paths)
            die("after the replacement")

        os.replace = replace_and_die
        with replacing(target) as place:
            die("before the writing")
            with open(place, "w") as file:
                file.write("new, ")
                file.flush()
                die("in the writing")
                file.write("and longer")
            die("after the writing")
    """
    target = tmp_path / "a.txt"
    target.write_text("old")
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(script), str(target), moment], check=False)
    assert done.returncode == -9
    assert target.read_text() == expected
    with replacing(target) as place:
        place.write_text("newest")
    assert target.read_text() == "newest"
