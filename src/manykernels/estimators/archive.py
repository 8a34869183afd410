"""The container of a model file: a zip of .npy arrays and a manifest; nothing in it is believed before it is checked.

    arrays/*.npy    numbers and text, never objects
    manifest.json   what the arrays mean; under "members" the size and the SHA-256 of each
    comment         of the zip: the SHA-256 of the manifest

What is read follows from what was checked before it, in this order: the end of the file, the size of the table of
members, the manifest, the sizes of all members, the types and shapes of all arrays; only then is an array made, and its
checksum compared. Everything that a file makes the reader allocate is counted beforehand, and the sum has a limit that
grows with the file. The writer stores without compression what would exceed it, so that what is saved can be opened.
"""

from __future__ import annotations

import hashlib
import io
import json
import math
import os
import re
import struct
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import numpy as np

from manykernels.core.files import replacing

FORMAT, VERSION = "manykernels-model", 2
MANIFEST = "manifest.json"
# Memory that opening a file may take: so many times its size, and at least so many bytes.
_TIMES, _LEAST = 10, 2**29
_NAME = re.compile(r"arrays/\w+\.npy")
_DIGEST = re.compile(rb"[0-9a-f]{64}")
_KINDS = "biufU"  # of arrays: truth values, whole numbers, numbers, text
_METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)  # others may ask for memory as they like
_MAGIC = b"\x93NUMPY\x01\x00"
_LONGEST_HEADER = 10_000
_CHUNK = 1 << 20
# Bytes of Python's objects: for a byte of the zip's table, for a piece of text, and for each sign of JSON.
_PER_TABLE_BYTE, _PER_TEXT = 13, 108
_PER_SIGN = {b"{": 150, b"[": 90, b",": 72, b":": 84}
# The records at the end of a zip file, the second and third where it is large.
_END, _LOCATOR, _LARGE_END = struct.Struct("<4s4H2LH"), struct.Struct("<4sLQL"), struct.Struct("<4sQ2H2L4Q")


class BadModelError(Exception):
    """A file that cannot be read as a model; the message completes the sentence "file ..."."""


class _TooLargeError(BadModelError):
    """A file that would take more memory than it may."""


@dataclass(frozen=True)
class _Layout:
    """How an array lies in its member: after ``start`` bytes of header."""

    dtype: np.dtype
    shape: tuple[int, ...]
    order: Any
    start: int


class _Allowance:
    """The memory that opening a file of this many bytes may still take."""

    def __init__(self, size: int) -> None:
        self.left = max(_LEAST, _TIMES * size)

    def spend(self, size: int) -> None:
        """Count memory before it is taken, or raise."""
        self.left -= size
        if self.left < 0:
            raise _TooLargeError(
                "would take far more memory than its size explains: it is damaged, or made to do harm."
            )


# -- write ----------------------------------------------------------------------------------------------------


def write_archive(path: Any, manifest: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
    """Write a model file; the file that was there is replaced when all is done, or stays.

    Parameters
    ----------
    path : str or path
    manifest : dict
        JSON-able; the entries "format", "version" and "members" are added.
    arrays : dict of ndarray
        By names of letters, digits and underscores.
    """
    for name, array in arrays.items():
        if array.dtype.kind not in _KINDS:
            raise ValueError(f"{name} holds values of the type {array.dtype}: only numbers and text can be saved.")
    json.dumps(manifest)  # an error in it comes before any work
    with replacing(path) as place:
        _write(place, manifest, arrays, zipfile.ZIP_DEFLATED)
        if not place.is_file() or _is_modest(place):
            return
        _write(place, manifest, arrays, zipfile.ZIP_STORED)
        if not _is_modest(place):
            raise ValueError(
                f"The model has too many kernels or names for a file: its description alone is "
                f"{len(json.dumps(manifest)):,} letters long."
            )


def _is_modest(place: Path) -> bool:
    """Return whether opening the file takes no more memory than it may."""
    try:
        with open(place, "rb") as raw:
            _inspect(raw)
    except _TooLargeError:
        return False
    return True


def _write(place: Any, manifest: dict[str, Any], arrays: dict[str, np.ndarray], method: int) -> None:
    members = {}
    with zipfile.ZipFile(place, "w", method) as file:
        for name, array in arrays.items():
            members[f"arrays/{name}.npy"] = _write_array(file, f"arrays/{name}.npy", np.asarray(array))
        whole = {"format": FORMAT, "version": VERSION, **manifest, "members": members}
        data = json.dumps(whole, indent=1).encode("ascii")
        file.writestr(MANIFEST, data)
        file.comment = hashlib.sha256(data).hexdigest().encode("ascii")


def _write_array(file: zipfile.ZipFile, name: str, array: np.ndarray) -> list:
    """Write an array; returns the size of its member and the SHA-256."""
    header = io.BytesIO()
    np.lib.format.write_array_header_1_0(header, np.lib.format.header_data_from_array_1_0(array))
    is_fortran = array.flags.f_contiguous and not array.flags.c_contiguous
    data = np.ascontiguousarray(array.T if is_fortran else array).reshape(-1).view(np.uint8)
    digest = hashlib.sha256(header.getvalue())
    digest.update(data)
    with file.open(name, "w", force_zip64=data.size > 2**30) as stream:
        stream.write(header.getvalue())
        for low in range(0, data.size, _CHUNK):
            stream.write(data[low : low + _CHUNK])
    return [len(header.getvalue()) + data.size, digest.hexdigest()]


# -- read -----------------------------------------------------------------------------------------------------


def read_archive(raw: IO[bytes]) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """Return the manifest and the arrays of an open model file, or raise BadModelError."""
    file, manifest, layouts = _inspect(raw)
    arrays = {}
    for name, layout in layouts.items():
        array, digest = _read_array(file, name, layout)
        if digest != manifest["members"][name][1]:
            raise BadModelError(f"was altered: {name} does not match its checksum.")
        arrays[name.removeprefix("arrays/").removesuffix(".npy")] = array
    return manifest, arrays


def _inspect(raw: IO[bytes]) -> tuple[zipfile.ZipFile, dict[str, Any], dict[str, _Layout]]:
    """Return the zip file, its manifest and the layout of each array, after all checks that need no array."""
    size = os.fstat(raw.fileno()).st_size
    allowance = _Allowance(size)
    seal, table_size = _read_end(raw, size)
    allowance.spend(_PER_TABLE_BYTE * table_size)
    file = zipfile.ZipFile(raw)
    members = {info.filename: info for info in file.infolist()}
    if len(members) < len(file.infolist()):
        raise BadModelError("has two members of one name: it is damaged, or made to do harm.")
    if MANIFEST not in members:
        raise BadModelError("is a zip file, but not a manykernels model.")
    if any(info.compress_type not in _METHODS or info.flag_bits & 1 for info in members.values()):
        raise BadModelError("is compressed in a way that model files are not: it is damaged, or made to do harm.")
    manifest = _read_manifest(file, members.pop(MANIFEST), seal, allowance)
    _check_sizes(manifest.get("members"), members, allowance)
    layouts = {name: _read_layout(file, info) for name, info in members.items()}
    for layout in layouts.values():
        if layout.dtype.kind == "U":
            allowance.spend(math.prod(layout.shape) * (_PER_TEXT + layout.dtype.itemsize))
    return file, manifest, layouts


def _read_end(raw: IO[bytes], size: int) -> tuple[bytes, int]:
    """Return the comment of a zip file, which is the checksum of the manifest, and the size of its table of members."""
    length = _END.size + 64
    if size < length:
        raise BadModelError("is not a manykernels model, or it is truncated.")
    raw.seek(size - length)
    end = raw.read(length)
    mark, *_, table_size, _, comment_length = _END.unpack(end[: _END.size])
    comment = end[_END.size :]
    if mark != b"PK\x05\x06" or comment_length != 64 or not _DIGEST.fullmatch(comment):
        raise BadModelError("is not a manykernels model, or it is truncated.")
    before = _LOCATOR.size + _LARGE_END.size
    raw.seek(max(0, size - length - before))
    large, locator = raw.read(_LARGE_END.size), raw.read(_LOCATOR.size)
    if locator.startswith(b"PK\x06\x07"):
        if not large.startswith(b"PK\x06\x06"):
            raise BadModelError("is damaged: the end of it is not that of a zip file.")
        table_size = _LARGE_END.unpack(large)[-2]
    if table_size > size:
        raise BadModelError("is damaged: its table of members is larger than the file.")
    return comment, table_size


def _read_manifest(file: zipfile.ZipFile, info: zipfile.ZipInfo, seal: bytes, allowance: _Allowance) -> dict[str, Any]:
    allowance.spend(2 * info.file_size)
    data = file.read(info)
    if hashlib.sha256(data).hexdigest().encode("ascii") != seal:
        raise BadModelError(f"was altered: {MANIFEST} does not match its checksum.")
    if not data.isascii():
        raise BadModelError("has a manifest that is not JSON in ASCII: the file is damaged.")
    # An escaped letter may make a text four times as wide.
    allowance.spend((4 * len(data) if b"\\u" in data else 0) + sum(data.count(s) * c for s, c in _PER_SIGN.items()))
    try:
        manifest = json.loads(data)
    except (ValueError, RecursionError):
        raise BadModelError("has a manifest that is not JSON: the file is damaged.") from None
    if not isinstance(manifest, dict) or manifest.get("format") != FORMAT:
        raise BadModelError("is a zip file, but not a manykernels model.")
    version = manifest.get("version")
    if version != VERSION or isinstance(version, bool):
        newer = isinstance(version, (int, float)) and version > VERSION
        raise BadModelError(
            f"was written in the model format {str(version)[:20]!r}; this manykernels reads format {VERSION}: "
            + ("upgrade manykernels to open it." if newer else "save the model anew.")
        )
    return manifest


def _check_sizes(stated: Any, members: dict[str, zipfile.ZipInfo], allowance: _Allowance) -> None:
    """Raise unless the members are those that the manifest states, each of its size, and there is room for them."""
    if not isinstance(stated, dict) or stated.keys() != members.keys():
        raise BadModelError("is damaged: its members are not those that its manifest states.")
    for name, info in members.items():
        if not _NAME.fullmatch(name):
            raise BadModelError(f"has a member of the name {name[:80]!r}: it is damaged, or made to do harm.")
        entry = stated[name]
        if not (isinstance(entry, list) and len(entry) == 2) or entry[0] != info.file_size:
            raise BadModelError(f"is damaged: {name} is not of the size that the manifest states.")
        allowance.spend(2 * info.file_size)  # some arrays are copied by those who use them


def _read_layout(file: zipfile.ZipFile, info: zipfile.ZipInfo) -> _Layout:
    """Return the type and the shape of an array, which must fill its member."""
    with file.open(info) as stream:
        start = stream.read(len(_MAGIC) + 2)
        length = int.from_bytes(start[len(_MAGIC) :], "little")
        if not start.startswith(_MAGIC) or length > _LONGEST_HEADER:
            raise BadModelError(f"is damaged: {info.filename} is not an array.")
        header = io.BytesIO(start[len(_MAGIC) :] + stream.read(length))
    shape, is_fortran, dtype = np.lib.format.read_array_header_1_0(header, max_header_size=_LONGEST_HEADER)
    if dtype.kind not in _KINDS or dtype.hasobject or dtype.itemsize == 0:
        raise BadModelError(f"holds an array of the type {dtype} in {info.filename}: only numbers and text are read.")
    start_at = len(start) + length
    if any(size < 0 for size in shape) or start_at + math.prod(shape) * dtype.itemsize != info.file_size:
        raise BadModelError(f"is damaged: the shape {shape} of {info.filename} does not fit its size.")
    return _Layout(dtype, shape, "F" if is_fortran else "C", start_at)


def _read_array(file: zipfile.ZipFile, name: str, layout: _Layout) -> tuple[np.ndarray, str]:
    """Return an array and the checksum of its member."""
    flat: np.ndarray = np.empty(math.prod(layout.shape), layout.dtype)
    digest, place, target = hashlib.sha256(), 0, flat.view(np.uint8)
    with file.open(name) as stream:
        digest.update(stream.read(layout.start))
        for chunk in _chunks(stream):
            digest.update(chunk)
            target[place : place + len(chunk)] = np.frombuffer(chunk, np.uint8)
            place += len(chunk)
    if place != target.size:
        raise BadModelError(f"is damaged: {name} ends too early.")
    return flat.reshape(layout.shape, order=layout.order), digest.hexdigest()


def _chunks(stream: IO[bytes]) -> Iterator[bytes]:
    while chunk := stream.read(_CHUNK):
        yield chunk
