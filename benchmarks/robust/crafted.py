"""Model files that are made to do harm: bombs, lies, traps. Each kind is a function of a good file's bytes.

What a careful attacker can do is done: checksums, sizes and the seal of the manifest are right unless they are the lie.
"""

from __future__ import annotations

import copy
import hashlib
import io
import json
import os
import pickle
import struct
import zipfile
import zlib
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

MANIFEST = "manifest.json"
# Bytes that a bomb unpacks to.
BOMB = 1_500_000_000


@dataclass
class Entry:
    """A member of a zip file as it is written, whatever it claims."""

    name: str
    data: bytes  # as it lies in the file
    method: int = 0
    crc: int | None = None
    size: int | None = None
    flags: int = 0
    offset: int | None = None  # of the member's head, where another's is claimed
    head: bool = True

    def fields(self) -> tuple[int, int, int]:
        """Return crc, size in the file and size unpacked."""
        crc = zlib.crc32(self.data) if self.crc is None else self.crc
        return crc, len(self.data), len(self.data) if self.size is None else self.size


def raw_zip(entries: list[Entry], comment: bytes) -> bytes:
    """Return the bytes of a zip file with exactly these members."""
    out, table = bytearray(), bytearray()
    for entry in entries:
        name, common = entry.name.encode(), (20, entry.flags, entry.method, 0, 33, *entry.fields())
        offset = len(out) if entry.offset is None else entry.offset
        if entry.head:
            out += struct.pack("<4s5H3L2H", b"PK\3\4", *common, len(name), 0) + name + entry.data
        table += struct.pack("<4s6H3L5H2L", b"PK\1\2", 20, *common, len(name), 0, 0, 0, 0, 0, offset) + name
    count = min(len(entries), 0xFFFE)
    end = struct.pack("<4s4H2LH", b"PK\5\6", 0, 0, count, count, len(table), len(out), len(comment))
    return bytes(out + table) + end + comment


@dataclass
class Model:
    """A good model file, taken apart."""

    manifest: dict[str, Any]
    arrays: dict[str, bytes] = field(default_factory=dict)

    @classmethod
    def of(cls, data: bytes) -> Model:
        with zipfile.ZipFile(io.BytesIO(data)) as file:
            parts = {name: file.read(name) for name in file.namelist()}
        return cls(json.loads(parts.pop(MANIFEST)), parts)

    def put(self, name: str, data: bytes) -> None:
        """Put a member in, with its size and checksum in the manifest."""
        self.arrays[name] = data
        self.manifest["members"][name] = [len(data), hashlib.sha256(data).hexdigest()]

    def entries(self) -> list[Entry]:
        return [Entry(name, data) for name, data in self.arrays.items()]

    def close(self, entries: list[Entry] | None = None, text: bytes | None = None, **manifest: Any) -> bytes:
        """Return the bytes of the file, sealed."""
        text = json.dumps(self.manifest | manifest).encode() if text is None else text
        seal = hashlib.sha256(text).hexdigest().encode()
        return raw_zip([*(self.entries() if entries is None else entries), Entry(MANIFEST, text)], seal)


KINDS: dict[str, Callable[..., bytes]] = {}
# Those that unpack to as much as one asks for.
BOMBS: list[str] = []


class DoesNotApplyError(Exception):
    """A model lacks what this kind changes."""


def kind(words: str) -> Callable:
    """Enter a function into the list of kinds."""

    def enter(function: Callable) -> Callable:
        KINDS[words] = function
        if function.__code__.co_argcount > 1:
            BOMBS.append(words)
        return function

    return enter


def npy(array: np.ndarray, **options: Any) -> bytes:
    buffer = io.BytesIO()
    np.save(buffer, array, **options)
    return buffer.getvalue()


def npy_with(header: str, data: bytes = b"", version: bytes = b"\1\0") -> bytes:
    """Return an .npy file with this text as its header."""
    text = header.encode().ljust(118) + b"\n"
    length = struct.pack("<H" if version == b"\1\0" else "<L", len(text))
    return b"\x93NUMPY" + version + length + text + data


def header_of(descr: str, shape: str) -> str:
    return f"{{'descr': {descr}, 'fortran_order': False, 'shape': {shape}, }}"


class Trap:
    """Unpickling it leaves a file whose name is in the environment."""

    def __reduce__(self) -> tuple:
        return os.system, ('touch "$MANYKERNELS_TRAP"',)


def deflated(pieces: list[bytes]) -> tuple[bytes, int, int]:
    """Return pieces as one deflated member: its data, checksum and size."""
    packer, out, crc, size = zlib.compressobj(1, zlib.DEFLATED, -15), bytearray(), 0, 0
    for piece in pieces:
        out += packer.compress(piece)
        crc, size = zlib.crc32(piece, crc), size + len(piece)
    return bytes(out + packer.flush()), crc, size


def packed(name: str, pieces: list[bytes]) -> Entry:
    data, crc, size = deflated(pieces)
    return Entry(name, data, 8, crc, size)


def blocks(block: bytes, size: int) -> list[bytes]:
    return [block] * (size // len(block))


# -- bombs ----------------------------------------------------------------------------------------------------


@kind("a member that unpacks to gigabytes")
def array_bomb(good: bytes, size: int = BOMB) -> bytes:
    model, name = Model.of(good), "arrays/weights_.npy"
    zeros = blocks(bytes(1 << 20), size)
    entry = packed(name, [npy_with(header_of("'<f8'", f"({len(zeros) << 17},)")), *zeros])
    model.manifest["members"][name] = [entry.size, "0" * 64]
    return model.close([own for own in model.entries() if own.name != name] + [entry])


@kind("a thousand members that unpack to gigabytes together")
def many_bombs(good: bytes, size: int = BOMB) -> bytes:
    model, zeros = Model.of(good), blocks(bytes(1 << 13), size // 1000)
    one = packed("", [npy_with(header_of("'<f8'", f"({len(zeros) << 10},)")), *zeros])
    entries = model.entries()
    for i in range(1000):
        entries.append(Entry(f"arrays/more{i}.npy", one.data, 8, one.crc, one.size))
        model.manifest["members"][entries[-1].name] = [one.size, "0" * 64]
    return model.close(entries)


@kind("members that share one bomb")
def overlapping_bomb(good: bytes, size: int = BOMB) -> bytes:
    model, zeros = Model.of(good), blocks(bytes(1 << 13), size // 100)
    first = packed("arrays/more.npy", [npy_with(header_of("'<f8'", f"({len(zeros) << 10},)")), *zeros])
    entries = [first, *model.entries()]
    model.manifest["members"][first.name] = [first.size, "0" * 64]
    for i in range(100):
        entries.append(Entry(f"arrays/more{i}.npy", first.data, 8, first.crc, first.size, offset=0, head=False))
        model.manifest["members"][entries[-1].name] = [first.size, "0" * 64]
    return model.close(entries)


@kind("a manifest that unpacks to gigabytes")
def manifest_bomb(good: bytes, size: int = BOMB) -> bytes:
    model = Model.of(good)
    pieces = [json.dumps(model.manifest).encode(), *blocks(b" " * (1 << 20), size)]
    digest = hashlib.sha256()
    for piece in pieces:
        digest.update(piece)
    return raw_zip([*model.entries(), packed(MANIFEST, pieces)], digest.hexdigest().encode())


@kind("a manifest of millions of empty lists")
def list_bomb(good: bytes, size: int = BOMB) -> bytes:
    model = Model.of(good)
    text = json.dumps(model.manifest | {"extra": {"a": []}}).encode()
    return _packed_manifest(model, text.replace(b'"a": []', b'"a": [' + b"[]," * (size // 24) + b"0]"))


@kind("a manifest of millions of keys")
def key_bomb(good: bytes, size: int = BOMB) -> bytes:
    model = Model.of(good)
    model.manifest["extra"] = {f"{i:x}": 0 for i in range(size // 160)}
    return _packed_manifest(model, json.dumps(model.manifest).encode())


@kind("a manifest of lists in lists in lists")
def deep_json(good: bytes) -> bytes:
    model = Model.of(good)
    text = json.dumps(model.manifest | {"extra": {"a": []}}).encode()
    return model.close(text=text.replace(b"[]", b"[" * 200_000 + b"]" * 200_000))


@kind("millions of labels of one letter each")
def text_bomb(good: bytes, size: int = BOMB) -> bytes:
    model, name = Model.of(good), "arrays/classes_.npy"
    model.manifest["texts"]["classes_"] = "object"
    letters = blocks(np.full(1 << 18, "\u4e00").tobytes(), size // 16)
    entry = packed(name, [npy_with(header_of("'<U1'", f"({len(letters) << 18},)")), *letters])
    digest = hashlib.sha256(npy_with(header_of("'<U1'", f"({len(letters) << 18},)")))
    for letter in letters:
        digest.update(letter)
    model.manifest["members"][name] = [entry.size, digest.hexdigest()]
    return model.close([own for own in model.entries() if own.name != name] + [entry])


@kind("a million members without content")
def table_bomb(good: bytes, size: int = BOMB) -> bytes:
    model, count = Model.of(good), size // 1500
    return model.close([*model.entries(), *(Entry(f"{i:x}", b"", head=False, offset=0) for i in range(count))])


def _packed_manifest(model: Model, text: bytes) -> bytes:
    seal = hashlib.sha256(text).hexdigest().encode()
    return raw_zip([*model.entries(), packed(MANIFEST, [text])], seal)


# -- arrays that are none -------------------------------------------------------------------------------------


@kind("a pickle in an array, which runs a command")
def pickled_array(good: bytes) -> bytes:
    model = Model.of(good)
    model.put("arrays/weights_.npy", npy(np.array([Trap()], dtype=object), allow_pickle=True))
    return model.close()


@kind("a pickle for a manifest, which runs a command")
def pickled_manifest(good: bytes) -> bytes:
    return Model.of(good).close(text=pickle.dumps(Trap(), protocol=0))


@kind("a pickle for a model, which runs a command")
def pickled_file(good: bytes) -> bytes:
    return pickle.dumps(Trap())


@kind("code in the head of an array")
def code_in_header(good: bytes) -> bytes:
    model = Model.of(good)
    model.put("arrays/weights_.npy", npy_with("__import__('os').system('touch \"$MANYKERNELS_TRAP\"')"))
    return model.close()


def _with_header(words: str, header: str, data: bytes = bytes(16), version: bytes = b"\1\0") -> None:
    @kind(words)
    def make(good: bytes) -> bytes:
        model = Model.of(good)
        model.put("arrays/weights_.npy", npy_with(header, data, version))
        return model.close()


_with_header("an array of a trillion numbers in 16 bytes", header_of("'<f8'", "(1000000000000,)"))
_with_header("an array whose size overflows to what is there", header_of("'<f8'", f"({2**61 + 2},)"))
_with_header("an array of a negative number of rows", header_of("'<f8'", "(-1, -2)"))
_with_header("an array of no rows of a trillion columns", header_of("'<f8'", "(0, 1000000000000)"), b"")
_with_header("an array of objects in fields", header_of("[('a', 'O')]", "(2,)"))
_with_header("an array of bytes without meaning", header_of("'|V8'", "(2,)"))
_with_header("an array of texts without letters", header_of("'<U0'", "(1000000000000,)"), b"")
_with_header("an array with a head of four gigabytes", "x", version=b"\3\0")
_with_header("an array in brackets upon brackets", "(" * 9000)


# -- members --------------------------------------------------------------------------------------------------


@kind("two members of one name")
def duplicate_members(good: bytes) -> bytes:
    model = Model.of(good)
    other = npy(np.array([99.0]))
    return model.close([*model.entries(), Entry("arrays/intercept_.npy", other)])


@kind("two manifests")
def duplicate_manifest(good: bytes) -> bytes:
    model = Model.of(good)
    return model.close([Entry(MANIFEST, json.dumps(model.manifest | {"trace": []}).encode()), *model.entries()])


@kind("names that lead out of the folder")
def path_names(good: bytes) -> bytes:
    model = Model.of(good)
    for name in ("../../escaped.npy", "/tmp/escaped.npy", "arrays/../../escaped.npy", "C:\\escaped.npy"):
        model.put(name, npy(np.ones(1)))
    return model.close()


@kind("a member that the manifest does not state")
def stowaway(good: bytes) -> bytes:
    model = Model.of(good)
    return model.close([*model.entries(), Entry("arrays/more.npy", npy(np.ones(1)))])


@kind("a member that is not there")
def missing_member(good: bytes) -> bytes:
    model = Model.of(good)
    return model.close(model.entries()[1:])


@kind("two members that changed places")
def swapped_members(good: bytes) -> bytes:
    model = Model.of(good)
    names = sorted(name for name in model.arrays if name.endswith(("_coef.npy", "_rows.npy")))
    one, two = names[0], names[1]
    model.arrays[one], model.arrays[two] = model.arrays[two], model.arrays[one]
    return model.close()


@kind("a manifest that states other sizes")
def wrong_sizes(good: bytes) -> bytes:
    model = Model.of(good)
    for entry in model.manifest["members"].values():
        entry[0] += 8
    return model.close()


@kind("a table that states other sizes")
def wrong_table(good: bytes) -> bytes:
    model = Model.of(good)
    entries = model.entries()
    for entry in entries:
        entry.size = 4_000_000_000
        model.manifest["members"][entry.name][0] = entry.size
    return model.close(entries)


@kind("a member that holds less than it states")
def short_member(good: bytes) -> bytes:
    model, name = Model.of(good), "arrays/weights_.npy"
    whole = npy_with(header_of("'<f8'", "(1000000,)"))
    model.manifest["members"][name] = [len(whole) + 8_000_000, "0" * 64]
    short = Entry(name, deflated([whole])[0], 8, zlib.crc32(whole), len(whole) + 8_000_000)
    return model.close([entry for entry in model.entries() if entry.name != name] + [short])


@kind("an encrypted member")
def encrypted(good: bytes) -> bytes:
    model = Model.of(good)
    return model.close([Entry(entry.name, entry.data, flags=1) for entry in model.entries()])


@kind("members packed by other methods")
def other_methods(good: bytes) -> bytes:
    model, out = Model.of(good), io.BytesIO()
    text = json.dumps(model.manifest).encode()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_LZMA) as file:
        for name, data in [*model.arrays.items(), (MANIFEST, text)]:
            file.writestr(name, data)
        file.comment = hashlib.sha256(text).hexdigest().encode()
    return out.getvalue()


@kind("a model before and after other bytes")
def padded(good: bytes) -> bytes:
    return bytes(100) + good + bytes(100)


@kind("the manifest of another model")
def foreign_manifest(good: bytes) -> bytes:
    model = Model.of(good)
    text = json.dumps(model.manifest | {"trace": [], "extra": {"other": True}}).encode()
    true = hashlib.sha256(json.dumps(model.manifest).encode()).hexdigest().encode()
    return raw_zip([*model.entries(), Entry(MANIFEST, text)], true)


# -- manifests that lie ---------------------------------------------------------------------------------------


def _with_manifest(words: str, change: Callable[[dict], Any]) -> None:
    @kind(words)
    def make(good: bytes) -> bytes:
        model = Model.of(good)
        model.manifest = copy.deepcopy(model.manifest)
        change(model.manifest)
        return model.close()


def _first_kernel(manifest: dict) -> dict:
    return manifest["predictors"][0]["kernels"][0]


_with_manifest("an estimator that is a command", lambda m: m.update(estimator="os.system"))
_with_manifest("a kernel that is a command", lambda m: _first_kernel(m).update({"class": "eval"}))
_with_manifest("a kernel with parameters it does not have", lambda m: _first_kernel(m).update(parameters={"x": 1}))
_with_manifest("a kernel of an array that is not there", lambda m: _first_kernel(m).update(array="predictor9"))
_with_manifest("a kernel on columns that are not there", lambda m: m["predictors"][0].update(views=[[10**9]]))
_with_manifest("a kernel on columns from the end", lambda m: m["predictors"][0].update(views=[[-1]]))
_with_manifest("a kernel on no columns", lambda m: m["predictors"][0].update(views=[[]]))
_with_manifest("an attribute that is the class", lambda m: m["values"].update(__class__=1))
_with_manifest("a parameter that is a method", lambda m: m["parameters"].update(__init__=1))
_with_manifest("numbers too long to be numbers", lambda m: m["predictors"][0].update(n_train=10**4000))
_with_manifest("fewer training samples than rows", lambda m: m["predictors"][0].update(n_train=0))
_with_manifest("more features than columns", lambda m: m["values"].update(n_features_in_=10**12))
_with_manifest("names that are not names", lambda m: m["values"].update(kernel_names_=10**9))
_with_manifest("no predictors", lambda m: m.update(predictors=[]))
_with_manifest("a newer format", lambda m: m.update(version=10**6))
_with_manifest("a format without a number", lambda m: m.update(version="\u0665" * 1000))


def _with_array(words: str, name: str, change: Callable[[np.ndarray], np.ndarray]) -> None:
    @kind(words)
    def make(good: bytes) -> bytes:
        model = Model.of(good)
        member = f"arrays/predictor0_{name}.npy"
        if member not in model.arrays:
            raise DoesNotApplyError
        model.put(member, npy(change(np.load(io.BytesIO(model.arrays[member])))))
        return model.close()


_with_array("support vectors in another number", "X", lambda X: X[1:])
_with_array("support vectors as text", "X", lambda X: X.astype(str))
_with_array("support vectors of an index outside", "X_indices", lambda indices: indices + 10**6)
_with_array("support vectors of a negative index", "X_indices", lambda indices: indices - 10**6)
_with_array("support vectors of rows that overlap", "X_indptr", lambda starts: starts[::-1].copy())
_with_array("coefficients of other kernels", "coefficients", lambda values: np.append(values, 1.0))
_with_array("coefficients of other samples", "coef", lambda values: values[..., 1:])
_with_array("rows outside the training data", "rows", lambda rows: rows + 10**6)
_with_array("active kernels that are not there", "active", lambda active: active + 10**6)
_with_array("an intercept for each of a million classes", "intercept", lambda values: np.zeros(10**6))
