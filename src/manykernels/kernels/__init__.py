"""Kernels, banks of kernels, and the kernel that was learned."""

from manykernels.kernels.bank import KernelBank
from manykernels.kernels.base import Dirichlet, Gaussian, Kernel, Linear, Polynomial
from manykernels.kernels.ladder import GaussianLadder
from manykernels.kernels.parametric import ParametricKernel
from manykernels.kernels.precomputed import Precomputed
from manykernels.kernels.standard import standard_bank

__all__ = [
    "Dirichlet",
    "Gaussian",
    "GaussianLadder",
    "Kernel",
    "KernelBank",
    "Linear",
    "ParametricKernel",
    "Polynomial",
    "Precomputed",
    "standard_bank",
]
