"""Damaged and crafted model files: refused in one sentence or the same model; no code, no memory beyond a limit."""

import io
import os
import tracemalloc
import zipfile

import numpy as np
import pytest
import scipy.sparse as sp

from benchmarks.robust import crafted, damage
from manykernels import MKLClassifier, load
from manykernels.estimators import archive
from manykernels.kernels import Gaussian, Linear

RNG = np.random.default_rng(0)
X, NEW = RNG.standard_normal((40, 3)), RNG.standard_normal((9, 3))
CLASSES = np.digitize(X[:, 0], [-0.4, 0.4])
KERNELS = [Gaussian(1.0, columns=[0, 1]), Linear()]
# Of the limit while testing, so that bombs may be small, too.
LEAST, BOMB = 8 * 2**20, 40_000_000


@pytest.fixture(scope="module")
def models():
    return {
        "dense": MKLClassifier(KERNELS, norm=2).fit(X, CLASSES.astype(str).astype(object)),
        "sparse": MKLClassifier(KERNELS, norm=2).fit(sp.csr_matrix(X), CLASSES),
    }


@pytest.fixture(scope="module")
def files(models, tmp_path_factory):
    """Each model's bytes."""
    path, out = tmp_path_factory.mktemp("good") / "model.mkl", {}
    for name, model in models.items():
        model.save(path)
        out[name] = path.read_bytes()
    return out


def assert_harmless(path, model):
    """Refused in a sentence that names the file, or the same model."""
    try:
        found = load(path)
    except ValueError as error:
        message = str(error)
        assert path.name in message
        assert "\n" not in message
        assert message.endswith(".")
        return False
    np.testing.assert_array_equal(found.decision_function(NEW), model.decision_function(NEW))
    np.testing.assert_array_equal(found.predict(NEW), model.predict(NEW))
    assert found.objective_ == model.objective_
    return True


@pytest.mark.parametrize("name", ["dense", "sparse"])
@pytest.mark.parametrize("kind", crafted.KINDS)
def test_crafted_files(kind, name, files, models, tmp_path, monkeypatch):
    monkeypatch.setenv("MANYKERNELS_TRAP", str(tmp_path / "sprung"))
    monkeypatch.setattr(archive, "_LEAST", LEAST)
    try:
        data = crafted.KINDS[kind](files[name], *([BOMB] if kind in crafted.BOMBS else []))
    except crafted.DoesNotApplyError:
        pytest.skip("this model does not have what is changed")
    path = tmp_path / "crafted.mkl"
    path.write_bytes(data)
    tracemalloc.start()
    try:
        is_open = assert_harmless(path, models[name])
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak <= max(LEAST, 10 * len(data)) + 2**20  # what opening any file takes
    assert [found.name for found in tmp_path.iterdir()] == ["crafted.mkl"]
    assert is_open == (kind == "numbers too long to be numbers")  # of training samples, which predictions do not need


def test_the_trap_works(tmp_path, monkeypatch):
    import pickle

    monkeypatch.setenv("MANYKERNELS_TRAP", str(tmp_path / "sprung"))
    pickle.loads(pickle.dumps(crafted.Trap()))
    assert (tmp_path / "sprung").exists()


def test_ten_kinds_and_more():
    assert len(crafted.KINDS) >= 10
    assert len(crafted.BOMBS) >= 5


@pytest.mark.parametrize("kind", damage.KINDS)
def test_random_damages(kind, files, models, tmp_path):
    path = tmp_path / "damaged.mkl"
    for seed in range(12):
        random = np.random.default_rng(seed)
        name, other = ("dense", "sparse") if seed % 2 else ("sparse", "dense")
        data = damage.KINDS[kind](files[name], files[other], random)
        path.write_bytes(data)
        assert_harmless(path, models[other if data == files[other] else name])


def test_every_bit_of_the_manifest_counts(files, models, tmp_path):
    """Bits of the manifest and of its seal are found, whatever they say."""
    data = files["dense"]
    with zipfile.ZipFile(io.BytesIO(data)) as file:
        info = file.getinfo("manifest.json")
    start = info.header_offset + 30 + len(info.filename)
    path = tmp_path / "damaged.mkl"
    for place in [*range(start, start + info.compress_size, 37), *range(len(data) - 86, len(data))]:
        altered = bytearray(data)
        altered[place] ^= 1 << place % 8
        path.write_bytes(altered)
        is_open = assert_harmless(path, models["dense"])
        # Numbers of disks, and the count that the size of the table says again, are all that may differ.
        assert not is_open or len(data) - 82 <= place < len(data) - 74


# -- what is written can be read ------------------------------------------------------------------------------


def test_what_compresses_too_well_is_stored(tmp_path, monkeypatch):
    """Many zeros: a compressed file could not be told from a bomb."""
    rows = np.zeros((300, 500))
    rows[:, :3] = RNG.standard_normal((300, 3))
    model = MKLClassifier([Linear()], loss="squared_hinge").fit(rows, rows[:, 0] > 0)
    path = tmp_path / "model.mkl"
    model.save(path)
    small = path.stat().st_size
    assert small < rows.nbytes / 20
    monkeypatch.setattr(archive, "_LEAST", 2**18)
    with pytest.raises(ValueError, match="far more memory than its size explains"):
        load(path)
    model.save(path)
    assert path.stat().st_size > model.support_.size * 500 * 8
    np.testing.assert_array_equal(load(path).decision_function(rows), model.decision_function(rows))


def test_a_description_that_is_too_long_is_refused_by_save(models, tmp_path, monkeypatch):
    monkeypatch.setattr(archive, "_LEAST", 2**10)
    monkeypatch.setattr(archive, "_TIMES", 1)
    with pytest.raises(ValueError, match="too many kernels or names"):
        models["dense"].save(tmp_path / "model.mkl")
    assert list(tmp_path.iterdir()) == []


def test_large_zip_files(models, tmp_path, monkeypatch):
    """Files of many members or bytes have other records at their end."""
    path = tmp_path / "model.mkl"
    monkeypatch.setattr(zipfile, "ZIP_FILECOUNT_LIMIT", 3)
    models["dense"].save(path)
    assert b"PK\x06\x06" in path.read_bytes()
    assert assert_harmless(path, models["dense"])
    data = path.read_bytes()
    place = data.index(b"PK\x06\x06")
    path.write_bytes(data[:place] + b"PK\x00\x00" + data[place + 4 :])
    assert not assert_harmless(path, models["dense"])


@pytest.mark.parametrize(("part", "step"), [("_write_end_record", 1), ("open", 5)])
def test_an_error_in_the_middle_leaves_the_old_file_and_nothing_else(part, step, files, models, tmp_path, monkeypatch):
    path, calls, whole = tmp_path / "model.mkl", [], getattr(zipfile.ZipFile, part)
    path.write_bytes(files["sparse"])

    def fail(self, *arguments, **options):
        calls.append(part)
        if len(calls) == step:
            raise OSError("No space left on device")
        return whole(self, *arguments, **options)

    monkeypatch.setattr(zipfile.ZipFile, part, fail)
    with pytest.raises(OSError, match="No space left"):
        models["dense"].save(path)
    assert path.read_bytes() == files["sparse"]
    assert [found.name for found in tmp_path.iterdir()] == ["model.mkl"]


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no pipes here")
def test_what_is_no_file_is_refused(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(ValueError, match="pipe' is not a file"):
        load(tmp_path / "pipe")
    with pytest.raises(ValueError, match="is not a file"):
        load(tmp_path)
