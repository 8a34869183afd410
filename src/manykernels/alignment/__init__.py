"""Two stages: a kernel is learned by its alignment with the target, and then any learner is fitted with it."""

from manykernels.alignment.measures import (
    Target,
    alignment,
    alignment_scorer,
    alignments,
    centered_alignment,
    feature_space_measure,
    feature_space_measures,
    feature_space_scorer,
)

__all__ = [
    "Target",
    "alignment",
    "alignment_scorer",
    "alignments",
    "centered_alignment",
    "feature_space_measure",
    "feature_space_measures",
    "feature_space_scorer",
]
