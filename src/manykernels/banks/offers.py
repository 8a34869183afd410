"""What kernels offer, by how they are held: a solver that needs more is refused before any work.

The names are those of the methods of :class:`manykernels.core.protocols.Bank`; "coefficients" says that dual
coefficients are arrays.
"""

# Features of the samples.
FEATURES = frozenset({"coefficients", "combine", "quad_forms", "derivative_forms", "largest_diagonals", "tail"})
# Kernels of so many samples that not even the combined one is a matrix in memory.
ROWS = FEATURES | {"diagonal", "rows"}
# Kernels that are matrices, or could be, wherever they are: products with many vectors at once.
MATRICES = frozenset({"kernel_products"})
# A finite set of kernels.
LISTS = ROWS | {"centered_squares", "inner_products", "matvecs", "peaks", "subset"}
