"""Two kernels for NVIDIA GPUs, in Triton: exponentials that are summed where they are computed.

Plain torch writes every 2^(rate * D) to memory and reads it again, several times over. Here a tile of the distances is
read once, and all widths of its set are done while it lies in the registers: then the rate of the exponentials is the
limit, not the memory. The plain twins are :meth:`manykernels.compute.gpu.Device.exp_forms` and ``exp_sum``.
"""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import Any

import numpy as np
import triton
import triton.language as tl

_KERNELS_AT_ONCE = 256  # widths that one program does with its tile
_PARTIAL_SUMS = 1 << 26  # that lie in memory at a time
_SUM_BLOCK = 1024
# (rows, columns, warps) of a tile: 32 entries a thread, so that they stay in the registers.
VECTOR_TILE = (1, 1024, 1)
SQUARE_TILE = (32, 128, 4)


@triton.jit
def _forms_kernel(
    D,
    left,
    right,
    rates,
    chunk_set,
    chunk_first,
    chunk_last,
    out,
    n_chunks,
    n_rows,
    n_columns,
    set_stride,
    tiles_across,
    n_out,
    HALF: tl.constexpr,
    ROWS: tl.constexpr,
    COLUMNS: tl.constexpr,
):
    """Write the sum over one tile, for the kernels of one chunk, to ``out[tile, kernel]``."""
    program = tl.program_id(0)
    tile = program // n_chunks
    chunk = program % n_chunks
    top = (tile // tiles_across) * ROWS
    start = (tile % tiles_across) * COLUMNS
    row = top + tl.arange(0, ROWS)
    column = start + tl.arange(0, COLUMNS)
    inside = (row < n_rows)[:, None] & (column < n_columns)[None, :]
    if HALF:  # a tile below the diagonal is not even read
        inside = inside & (column >= top)[None, :]
    a = tl.load(left + row, mask=row < n_rows, other=0.0)
    b = tl.load(right + column, mask=column < n_columns, other=0.0)
    w = a[:, None] * b[None, :]
    first = tl.load(chunk_first + chunk)
    last = tl.load(chunk_last + chunk)
    if HALF:  # what is below the diagonal counts above it
        w = tl.where(column[None, :] > row[:, None], 2.0 * w, w)
        w = tl.where(column[None, :] < row[:, None], 0.0, w)
        last = tl.where(start + COLUMNS <= top, first, last)
    set_start = tl.load(chunk_set + chunk).to(tl.int64) * set_stride
    offset = row.to(tl.int64)[:, None] * n_columns + column[None, :]
    d = tl.load(D + set_start + offset, mask=inside, other=0.0)
    where = tile.to(tl.int64) * n_out
    for k in range(first, last):
        rate = tl.load(rates + k)
        value = tl.exp2(d * rate) * w
        tl.store(out + where + k, tl.sum(tl.sum(value, axis=1), axis=0))


@triton.jit
def _sum_kernel(
    D, coefficients, rates, first, out, n_entries, n_sets, sets_at_once, ADD: tl.constexpr, BLOCK: tl.constexpr
):
    """Write sum_k c_k 2^(rate_k D) over some of the sets to ``out[part, entry]``, or add it; sums are compensated."""
    entry = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    part = tl.program_id(1)
    inside = entry < n_entries
    total = tl.zeros([BLOCK], dtype=tl.float32)
    lost = tl.zeros([BLOCK], dtype=tl.float32)
    low = part * sets_at_once
    high = tl.minimum(low + sets_at_once, n_sets)
    source = D + low.to(tl.int64) * n_entries + entry
    for s in range(low, high):
        d = tl.load(source, mask=inside, other=0.0)
        source += n_entries
        for k in range(tl.load(first + s), tl.load(first + s + 1)):
            term = tl.load(coefficients + k) * tl.exp2(d * tl.load(rates + k)) - lost
            raised = total + term
            lost = (raised - total) - term
            total = raised
    place = out + part.to(tl.int64) * n_entries + entry
    rounded = total.to(tl.float64) - lost.to(tl.float64)
    if ADD:
        rounded += tl.load(place, mask=inside, other=0.0).to(tl.float64)
    tl.store(place, rounded.to(out.dtype.element_ty), mask=inside)


def _chunks(first: np.ndarray, size: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Cut the kernels of each set into chunks; returns the set, the first and the last kernel of each."""
    counts = -(-np.diff(first) // size)
    sets = np.repeat(np.arange(counts.size), counts)
    place = np.arange(sets.size) - np.repeat(np.cumsum(counts) - counts, counts)
    start = first[:-1][sets] + size * place
    return sets, start, np.minimum(start + size, first[1:][sets])


def forms(
    device: Any,
    D: Any,
    left: Any,
    right: Any,
    rates: Any,
    first: np.ndarray,
    symmetric: bool,
    tile: tuple[int, int, int] | None = None,
) -> Any:
    """Return sum_rc left[r] right[c] 2^(rates[k] D[s_k, r, c]), shape (n_kernels,); see ``Device.exp_forms``."""
    D, left, right = D.contiguous(), left.contiguous(), right.contiguous()
    _, n_rows, n_columns = D.shape
    rows, columns, warps = tile or (VECTOR_TILE if n_rows == 1 else SQUARE_TILE)
    across = -(-n_columns // columns)
    tiles = -(-n_rows // rows) * across
    forms = device.zeros(rates.numel())
    chunks = _chunks(np.asarray(first), _KERNELS_AT_ONCE)
    at_once = max(1, _PARTIAL_SUMS // (tiles * _KERNELS_AT_ONCE))
    for low in range(0, chunks[0].size, at_once):
        sets, start, stop = (part[low : low + at_once] for part in chunks)
        begin, end = int(start[0]), int(stop[-1])
        places = [device.send(part, device.torch.int32) for part in (sets, start - begin, stop - begin)]
        out = device.zeros(tiles, end - begin, dtype=D.dtype)
        sizes = (sets.size, n_rows, n_columns, n_rows * n_columns, across, end - begin)
        with _on(device):
            _forms_kernel[(tiles * sets.size,)](
                *(D, left, right, rates[begin:end], *places, out, *sizes),
                HALF=symmetric,
                ROWS=rows,
                COLUMNS=columns,
                num_warps=warps,
            )
        forms[begin:end] = out.sum(0, dtype=device.wide)
    return forms


def add_sum(device: Any, D: Any, coefficients: Any, rates: Any, first: np.ndarray, out: Any, *, splits: bool) -> None:
    """Add sum_k c_k 2^(rates[k] D[s_k]) to ``out``; ``splits``: a program does one set, not all; see ``exp_sum``."""
    D, n_sets, n_entries = D.contiguous(), D.shape[0], out.numel()
    at_once = 1 if splits else n_sets
    parts = -(-n_sets // at_once)
    target = out if parts == 1 else device.zeros(parts, n_entries)
    places = device.send(first, device.torch.int32)
    with _on(device):
        _sum_kernel[(-(-n_entries // _SUM_BLOCK), parts)](
            *(D, coefficients, rates, places, target, n_entries, n_sets, at_once),
            ADD=parts == 1,
            BLOCK=_SUM_BLOCK,
            num_warps=4,
        )
    if parts > 1:
        out += target.sum(0).reshape(out.shape).to(out.dtype)


def _on(device: Any) -> AbstractContextManager:
    """Return a context in which kernels run on the device."""
    return device.torch.cuda.device(device.where) if device.where.type == "cuda" else nullcontext()
