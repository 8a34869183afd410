"""Kernels, banks of kernels, and the kernel that was learned."""

from manykernels.kernels.base import Dirichlet, Gaussian, Kernel, Linear, Polynomial
from manykernels.kernels.continuous_family import ContinuousFamily, DirichletFamily, GaussianFamily
from manykernels.kernels.feature_maps import Nystroem, RandomFourier
from manykernels.kernels.kernel_bank import KernelBank
from manykernels.kernels.ladder import GaussianLadder
from manykernels.kernels.overlap import Overlap
from manykernels.kernels.parametric import ParametricKernel
from manykernels.kernels.powers import PowerOfSum
from manykernels.kernels.precomputed import Precomputed
from manykernels.kernels.product_family import ProductKernels
from manykernels.kernels.standard import standard_bank

__all__ = [
    "ContinuousFamily",
    "Dirichlet",
    "DirichletFamily",
    "Gaussian",
    "GaussianFamily",
    "GaussianLadder",
    "Kernel",
    "KernelBank",
    "Linear",
    "Nystroem",
    "Overlap",
    "ParametricKernel",
    "Polynomial",
    "PowerOfSum",
    "Precomputed",
    "ProductKernels",
    "RandomFourier",
    "standard_bank",
]
