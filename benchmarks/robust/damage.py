"""Random damages of files, as disks, networks and careless programs do them."""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Callable

import numpy as np

KINDS: dict[str, Callable[[bytes, bytes, np.random.Generator], bytes]] = {}


def kind(words: str) -> Callable:
    """Enter a function of (file, another file, random numbers) into the list of kinds."""

    def enter(function: Callable) -> Callable:
        KINDS[words] = function
        return function

    return enter


def _flipped(data: bytes, places: np.ndarray, random: np.random.Generator) -> bytes:
    out = bytearray(data)
    for place in places:
        out[place] ^= 1 << int(random.integers(8))
    return bytes(out)


def _span(data: bytes, random: np.random.Generator) -> tuple[int, int]:
    low, high = np.sort(random.integers(0, len(data) + 1, 2))
    return int(low), int(min(high, low + 1 + random.integers(4096)))


@kind("one bit flipped")
def bit(data: bytes, other: bytes, random: np.random.Generator) -> bytes:
    return _flipped(data, random.integers(len(data), size=1), random)


@kind("several bits flipped")
def bits(data: bytes, other: bytes, random: np.random.Generator) -> bytes:
    return _flipped(data, random.integers(len(data), size=int(random.integers(2, 64))), random)


@kind("a bit flipped in the table of members")
def table_bit(data: bytes, other: bytes, random: np.random.Generator) -> bytes:
    start = data.find(b"PK\1\2")
    return _flipped(data, random.integers(start, len(data), size=1), random)


@kind("a bit flipped in the head of a member")
def head_bit(data: bytes, other: bytes, random: np.random.Generator) -> bytes:
    with zipfile.ZipFile(io.BytesIO(data)) as file:
        info = file.infolist()[int(random.integers(len(file.infolist())))]
    return _flipped(data, info.header_offset + random.integers(0, 30 + len(info.filename), size=1), random)


@kind("a byte replaced")
def byte(data: bytes, other: bytes, random: np.random.Generator) -> bytes:
    out = bytearray(data)
    out[int(random.integers(len(out)))] = int(random.integers(256))
    return bytes(out)


@kind("cut off")
def cut(data: bytes, other: bytes, random: np.random.Generator) -> bytes:
    return data[: int(random.integers(len(data)))]


@kind("a part of zeros")
def zeroed(data: bytes, other: bytes, random: np.random.Generator) -> bytes:
    low, high = _span(data, random)
    return data[:low] + bytes(high - low) + data[high:]


@kind("a part lost")
def lost(data: bytes, other: bytes, random: np.random.Generator) -> bytes:
    low, high = _span(data, random)
    return data[:low] + data[high:]


@kind("a part twice")
def doubled(data: bytes, other: bytes, random: np.random.Generator) -> bytes:
    low, high = _span(data, random)
    return data[:high] + data[low:]


@kind("random bytes put in")
def inserted(data: bytes, other: bytes, random: np.random.Generator) -> bytes:
    place = int(random.integers(len(data) + 1))
    return data[:place] + random.bytes(int(random.integers(1, 1000))) + data[place:]


@kind("begun by one model, ended by another")
def spliced(data: bytes, other: bytes, random: np.random.Generator) -> bytes:
    place = int(random.integers(min(len(data), len(other))))
    return data[:place] + other[place:]


@kind("overwritten in place by a shorter model")
def overwritten(data: bytes, other: bytes, random: np.random.Generator) -> bytes:
    short, long = sorted((data, other), key=len)
    return short + long[len(short) :]


def _rewritten(data: bytes, change: Callable[[dict[str, bytes]], None]) -> bytes:
    """Return a zip that is valid throughout, with the members changed and the old seal."""
    with zipfile.ZipFile(io.BytesIO(data)) as file:
        parts, comment = {name: file.read(name) for name in file.namelist()}, file.comment
    change(parts)
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as file:
        for name, content in parts.items():
            file.writestr(name, content)
        file.comment = comment
    return out.getvalue()


@kind("a bit flipped in a member, zipped anew")
def inner_bit(data: bytes, other: bytes, random: np.random.Generator) -> bytes:
    def change(parts: dict[str, bytes]) -> None:
        name = sorted(parts)[int(random.integers(len(parts)))]
        parts[name] = _flipped(parts[name], random.integers(len(parts[name]), size=1), random)

    return _rewritten(data, change)


@kind("two members swapped, zipped anew")
def swapped(data: bytes, other: bytes, random: np.random.Generator) -> bytes:
    def change(parts: dict[str, bytes]) -> None:
        names = sorted(parts)
        one, two = (names[int(i)] for i in random.choice(len(names), 2, replace=False))
        if parts[one] == parts[two]:
            one, two = "manifest.json", names[0]
        parts[one], parts[two] = parts[two], parts[one]

    return _rewritten(data, change)


@kind("a member of another model, zipped anew")
def foreign(data: bytes, other: bytes, random: np.random.Generator) -> bytes:
    with zipfile.ZipFile(io.BytesIO(other)) as file:
        theirs = {name: file.read(name) for name in file.namelist()}

    def change(parts: dict[str, bytes]) -> None:
        shared = sorted(name for name in set(parts) & set(theirs) if parts[name] != theirs[name])
        name = shared[int(random.integers(len(shared)))]
        parts[name] = theirs[name]

    return _rewritten(data, change)


@kind("a number in the manifest changed, zipped anew")
def other_number(data: bytes, other: bytes, random: np.random.Generator) -> bytes:
    def change(parts: dict[str, bytes]) -> None:
        manifest = json.loads(parts["manifest.json"])
        values = manifest["values"]
        name = ("objective_", "gap_", "n_features_in_")[int(random.integers(3))]
        values[name] = (values.get(name) or 0) + 1
        parts["manifest.json"] = json.dumps(manifest, indent=1).encode()

    return _rewritten(data, change)
