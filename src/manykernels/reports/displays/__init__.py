"""Plots of fitted models, one class each; they need matplotlib (``pip install "manykernels[plot]"``).

They work like scikit-learn's displays: ``from_estimator`` computes and draws, ``plot`` draws again.
"""

from manykernels.reports.displays.contributions_display import ContributionsDisplay
from manykernels.reports.displays.convergence_display import ConvergenceDisplay
from manykernels.reports.displays.learned_kernel_display import LearnedKernelDisplay
from manykernels.reports.displays.path_display import PathDisplay
from manykernels.reports.displays.weights_display import KernelWeightsDisplay

__all__ = [
    "ContributionsDisplay",
    "ConvergenceDisplay",
    "KernelWeightsDisplay",
    "LearnedKernelDisplay",
    "PathDisplay",
]
