"""Kernels, banks of kernels, and the kernel that was learned."""

from manykernels.kernels.approximate import FourierFeatures, NystroemFeatures
from manykernels.kernels.base import Dirichlet, Gaussian, Kernel, Linear, Polynomial
from manykernels.kernels.continuous_family import ContinuousFamily, DirichletFamily
from manykernels.kernels.feature_maps import Nothing, Nystroem, RandomFourier
from manykernels.kernels.gaussian_family import GaussianFamily
from manykernels.kernels.gaussian_product import ScaledGaussian
from manykernels.kernels.kernel_bank import KernelBank
from manykernels.kernels.ladder import GaussianLadder
from manykernels.kernels.overlap import Overlap
from manykernels.kernels.parametric import ParametricKernel
from manykernels.kernels.powers import PowerOfSum
from manykernels.kernels.precomputed import Precomputed
from manykernels.kernels.product_family import KernelProduct, ProductKernels
from manykernels.kernels.standard import standard_bank

# Every kernel that a fitted model may consist of: model files hold them by the names of their classes.
KERNELS: tuple[type[Kernel], ...] = (
    Dirichlet,
    Gaussian,
    KernelProduct,
    Linear,
    Nothing,
    Nystroem,
    Overlap,
    Polynomial,
    Precomputed,
    RandomFourier,
    ScaledGaussian,
)

__all__ = [
    "ContinuousFamily",
    "Dirichlet",
    "DirichletFamily",
    "FourierFeatures",
    "Gaussian",
    "GaussianFamily",
    "GaussianLadder",
    "Kernel",
    "KernelBank",
    "Linear",
    "Nystroem",
    "NystroemFeatures",
    "Overlap",
    "ParametricKernel",
    "Polynomial",
    "PowerOfSum",
    "Precomputed",
    "ProductKernels",
    "RandomFourier",
    "standard_bank",
]
