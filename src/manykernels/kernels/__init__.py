"""Kernels, banks of kernels, and the kernel that was learned."""

from manykernels.kernels.bank import KernelBank
from manykernels.kernels.base import Dirichlet, Gaussian, Kernel, Linear, Polynomial
from manykernels.kernels.features import Nystroem, RandomFourier
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
    "Nystroem",
    "ParametricKernel",
    "Polynomial",
    "Precomputed",
    "RandomFourier",
    "standard_bank",
]
