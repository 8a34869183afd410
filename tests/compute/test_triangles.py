"""Packed triangles against full matrices."""

import numpy as np
import pytest

from manykernels.compute import triangles

SIZES = [1, 2, 3, 7, 40]
every_size = pytest.mark.parametrize("n", SIZES)
every_dtype = pytest.mark.parametrize("dtype", [np.float32, np.float64])


def symmetric(n, m=1, seed=0):
    A = np.random.default_rng(seed).standard_normal((m, n, n))
    return A + A.transpose(0, 2, 1)


def pack(matrix):
    """The upper triangle, row after row, by the definition."""
    n = len(matrix)
    return np.array([matrix[i, j] for i in range(n) for j in range(i, n)])


@every_size
def test_sizes_and_offsets(n):
    assert triangles.triangle_size(n) == len(pack(np.zeros((n, n))))
    for i in range(n + 1):
        assert triangles.row_offset(i, n) == sum(n - row for row in range(i))


@every_size
@pytest.mark.parametrize("max_entries", [1, 5, 50, 10**6])
def test_blocks_cover_every_row_once(n, max_entries):
    for blocks in (triangles.row_blocks(n, max_entries), triangles.balanced_blocks(n, max_entries)):
        assert [row for start, stop in blocks for row in range(start, stop)] == list(range(n))
    for start, stop in triangles.row_blocks(n, max_entries):
        entries = triangles.row_offset(stop, n) - triangles.row_offset(start, n)
        assert entries <= max_entries or stop == start + 1


def test_no_rows_no_blocks():
    assert triangles.row_blocks(0, 10) == []


@every_size
@every_dtype
def test_pack_add_and_mirror(n, dtype):
    """In one segment and in several."""
    K = symmetric(n)[0].astype(dtype)
    for max_entries in (1, 10**6):
        full = np.full((n, n), np.nan)
        for start, stop in triangles.row_blocks(n, max_entries):
            first, last = triangles.row_offset(start, n), triangles.row_offset(stop, n)
            segment = np.empty(last - first, dtype)
            triangles.pack_rows(K[start:stop, start:], segment)
            np.testing.assert_array_equal(segment, pack(K)[first:last])
            triangles.add_block(K[start:stop, start:], segment)
            triangles.write_rows(segment, start, stop, full)
        for start, stop in triangles.row_blocks(n, max_entries):
            triangles.mirror_rows(full, start, stop)
        np.testing.assert_array_equal(full, 2 * K)


@every_dtype
@pytest.mark.parametrize("m", [1, 3, 4, 5, 9])
@pytest.mark.parametrize("n", [3, 80])
def test_add_weighted(n, m, dtype):
    """Any number of kernels, zero weights among them, any part of the triangle; 80 samples fill two chunks."""
    stack = np.array([pack(K) for K in symmetric(n, m)]).astype(dtype)
    rng = np.random.default_rng(1)
    for weights in (rng.random(m), rng.random(m) * (np.arange(m) % 2), np.zeros(m)):
        for first, size in ((0, stack.shape[1]), (2, stack.shape[1] - 3)):
            out = np.ones(size)
            triangles.add_weighted(stack, weights, first, out)
            expected = 1 + weights @ stack[:, first : first + size].astype(np.float64)
            np.testing.assert_allclose(out, expected, rtol=1e-13, atol=1e-13)


@every_dtype
@pytest.mark.parametrize("m", [1, 3, 4, 5, 17])
@every_size
def test_quad_forms(n, m, dtype):
    matrices = symmetric(n, m).astype(dtype)
    stack = np.array([pack(K) for K in matrices])
    beta = np.random.default_rng(2).standard_normal(n)
    for vector in (beta, beta * (np.arange(n) % 2), np.zeros(n)):
        expected = [vector @ K.astype(np.float64) @ vector for K in matrices]
        np.testing.assert_allclose(triangles.quad_forms(stack, vector), expected, rtol=1e-11, atol=1e-11)


@pytest.mark.parametrize("chosen", [[0], [5, 2, 2], [3, 1, 0, 4, 5]])
def test_chosen_kernels(chosen):
    matrices = symmetric(9, 6)
    stack, chosen = np.array([pack(K) for K in matrices]), np.array(chosen)
    beta = np.random.default_rng(3).standard_normal(9)
    expected = [beta @ matrices[k] @ beta for k in chosen]
    np.testing.assert_allclose(triangles.quad_forms(stack, beta, chosen), expected, rtol=1e-12, atol=1e-12)
    M = symmetric(9, seed=5)[0]
    expected = [np.sum(matrices[k] * M) for k in chosen]
    np.testing.assert_allclose(triangles.inner_products(stack, M, chosen), expected, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("m", [3, 4, 6])
def test_quad_forms_of_segments_add_up(m):
    n = 12
    stack = np.array([pack(K) for K in symmetric(n, m)])
    beta, out = np.random.default_rng(3).standard_normal(n), np.zeros(m)
    for start, stop in triangles.row_blocks(n, 20):
        rows = np.ascontiguousarray(stack[:, triangles.row_offset(start, n) : triangles.row_offset(stop, n)])
        triangles.segment_quad_forms(rows, np.arange(m), beta, start, stop, out)
    np.testing.assert_allclose(out, triangles.quad_forms(stack, beta), rtol=1e-12)


@every_size
@every_dtype
def test_matvec_of_segments_adds_up(n, dtype):
    K = symmetric(n)[0].astype(dtype)
    beta, out = np.random.default_rng(4).standard_normal(n), np.zeros(n)
    for start, stop in triangles.row_blocks(n, 2 * n):
        segment = pack(K)[triangles.row_offset(start, n) : triangles.row_offset(stop, n)]
        triangles.segment_matvec(segment, beta, start, stop, out)
    np.testing.assert_allclose(out, K.astype(np.float64) @ beta, rtol=1e-11, atol=1e-11)


@every_size
def test_unpack_rows(n):
    matrices = symmetric(n, 3)
    stack = np.array([pack(K) for K in matrices])
    kernels, rows = np.array([2, 0]), np.array([n - 1, 0, n // 2, 0])
    out = np.empty((2, 4, n))
    triangles.unpack_rows(stack, kernels, rows, n, out)
    np.testing.assert_array_equal(out, matrices[kernels][:, rows])


def test_sums_of_float32_are_accumulated_in_double():
    """A million entries that float32 could not add up."""
    n = 1413
    stack = np.full((1, triangles.triangle_size(n)), 0.1, np.float32)
    expected = float(np.float32(0.1)) * n * n
    assert triangles.quad_forms(stack, np.ones(n))[0] == pytest.approx(expected, rel=1e-12)
