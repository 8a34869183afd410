"""Figures and findings in words."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from manykernels.reports.assessment import Assessment, Outcome
from manykernels.reports.contestants import CONSTANT
from manykernels.reports.intervals import Interval
from manykernels.reports.summary import LearnedPart, LearnedSummary, Optimum

NOTHING = "\u2013"  # where there is no figure
# Weights are about the same if the largest is less than this many times the smallest.
_ALIKE = 1.5
# The share of a view is not stable if it moves by more than this, and by more than half of itself.
_WIDE = 0.1
# Weights are stable if this share of them is in parts that keep at least half of their share.
_STABLE = 0.8


def percent(share: float) -> str:
    """Return a share in percent; what is small but not zero does not read as zero.

    Examples
    --------
    >>> from manykernels.reports.html.words import percent
    >>> percent(0.5731), percent(0.0), percent(1e-5), percent(1.0)
    ('57.3%', '0%', '<0.1%', '100%')
    """
    if 0 < share < 5e-4:
        return "<0.1%"
    return f"{share:.0%}" if share in (0.0, 1.0) else f"{share:.1%}"


def figure(value: float, digits: int = 4) -> str:
    """Return a number with this many significant digits, or a dash for NaN.

    Examples
    --------
    >>> from manykernels.reports.html.words import figure
    >>> figure(0.123456), figure(float("nan")), figure(1234567.0)
    ('0.1235', '–', '1.235e+06')
    """
    return NOTHING if math.isnan(value) else f"{value:.{digits}g}"


def span(low: float, high: float) -> str:
    """Return two ends with enough digits to tell apart the values between them.

    Examples
    --------
    >>> from manykernels.reports.html.words import span
    >>> span(0.0, 2.5), span(1.7e9, 1.7e9 + 50)
    ('0 to 2.5', '1700000000 to 1700000050')
    """
    digits = min(max(4, 3 + math.ceil(math.log10(max(abs(low), abs(high)) / (high - low)))), 15)
    return f"{figure(low, digits)} to {figure(high, digits)}"


def count(number: int, noun: str) -> str:
    """Return a number with its noun.

    Examples
    --------
    >>> from manykernels.reports.html.words import count
    >>> count(1, "kernel"), count(10000, "kernel")
    ('1 kernel', '10,000 kernels')
    """
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def seconds(value: float) -> str:
    """Return a time in words.

    Examples
    --------
    >>> from manykernels.reports.html.words import seconds
    >>> seconds(0.04), seconds(12.34), seconds(200.0)
    ('0.04 s', '12.3 s', '3 min 20 s')
    """
    if value < 100:
        return f"{value:.2g} s" if value < 1 else f"{value:.1f} s"
    return f"{int(value) // 60} min {int(value) % 60} s"


def metric_words(assessment: Assessment) -> str:
    """Return the name of the score."""
    return assessment.metric.replace("R2", "R²")


def score_words(score: float, classes: bool) -> str:
    """Return an accuracy in percent, or an R2 as it is.

    Examples
    --------
    >>> from manykernels.reports.html.words import score_words
    >>> score_words(0.947, True), score_words(-0.0002, False), score_words(-0.5, False)
    ('94.7%', '0.000', '−0.500')
    """
    return f"{_signed(100 * score, 1)}%" if classes else _signed(score, 3)


def interval_words(interval: Interval, classes: bool) -> str:
    """Return the ends of a score's interval."""
    return f"{score_words(interval.low, classes)} to {score_words(interval.high, classes)}"


def difference_words(interval: Interval, classes: bool) -> tuple[str, str]:
    """Return a difference and its interval, with signs: in percentage points for classes.

    Examples
    --------
    >>> from manykernels.reports.html.words import difference_words
    >>> from manykernels.reports.intervals import Interval
    >>> difference_words(Interval(0.02, -0.01, 0.05), True)
    ('+2.0 points', '−1.0 to +5.0')
    >>> difference_words(Interval(0.02, 0.0004, 0.05), False)
    ('+0.0200', '+0.0004 to +0.0500')
    """
    factor, digits = (100, 1) if classes else (1, 3)
    if interval.excludes_zero:  # then neither end may read as zero
        nearest = factor * min(abs(interval.low), abs(interval.high))
        digits = max(digits, math.ceil(-math.log10(nearest)))
    value, low, high = (_signed(factor * x, digits, plus=True) for x in (interval.value, interval.low, interval.high))
    return f"{value} points" if classes else value, f"{low} to {high}"


def gap_words(gap: float) -> str:
    """Return a relative gap in percent, with two significant digits.

    Examples
    --------
    >>> from manykernels.reports.html.words import gap_words
    >>> gap_words(4.02e-4), gap_words(0.0), gap_words(1e-12)
    ('0.04%', '0%', '1e-10%')
    """
    return f"{100 * gap:.2g}%"


def kernels_sentence(learned: LearnedSummary) -> str:
    """Say how many kernels carry the weight.

    Examples
    --------
    >>> from manykernels import MKLClassifier
    >>> from manykernels.kernels import Gaussian
    >>> from manykernels.reports.html.words import kernels_sentence
    >>> from manykernels.reports.summary import describe
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> kernels_sentence(describe(MKLClassifier([Gaussian(1.0)]).fit(X, y), X))
    'There is one kernel, and it has all the weight.'
    """
    total, active, most = len(learned.names), learned.n_active, learned.carrying(0.9)
    if total == 1:
        return "There is one kernel, and it has all the weight."
    if active == 0:
        return f"None of the {total:,} kernels has a positive weight: the model predicts a constant."
    if active == total and learned.shares.max() < _ALIKE * learned.shares.min():
        return f"All {total:,} kernels have about the same weight."
    if learned.is_family:
        whole = f"{count(active, 'kernel')} {'was' if active == 1 else 'were'} selected from the family"
    elif active == total:
        whole = f"All {total:,} kernels have a positive weight"
    else:
        whole = f"{active:,} of {total:,} kernels {'carries' if active == 1 else 'carry'} all the weight"
    few = f", and {most:,} of them {'carries' if most == 1 else 'carry'} 90% of the weight" if most < active else ""
    return f"{whole}{few}."


def view_sentence(learned: LearnedSummary) -> str:
    """Say which view has most of the weight."""
    if len(learned.by_view) < 2 or learned.by_view[0].share == 0:
        return ""
    first, second = learned.by_view[:2]
    runner_up = f", “{second.name}” {percent(second.share)}" if second.share > 0 else ""
    if first.share - second.share < 0.1 * first.share:
        return f"No view stands out: “{first.name}” has {percent(first.share)}{_unstable(first)}{runner_up}."
    return f"The view “{first.name}” has {percent(first.share)} of the weight{_unstable(first)}{runner_up}."


def _unstable(part: LearnedPart) -> str:
    """Return the range of a part's share over the refits, if it is wide."""
    low, high = part.refits.min(initial=np.inf), part.refits.max(initial=-np.inf)
    if high - low <= max(_WIDE, part.share / 2):
        return ""
    return f" ({percent(float(low))} to {percent(float(high))} in the refits: not stable)"


def narrow_sentence(learned: LearnedSummary) -> str:
    """Say how many kernels are too narrow, and what that means, if there are any."""
    number = int(learned.narrow.sum())
    if number == 0:
        return ""
    are, they = ("is", "it acts") if number == 1 else ("are", "they act")
    return (
        f"{count(number, 'kernel')} with {percent(learned.too_narrow.share)} of the weight {are} so narrow that each "
        f"row is alike only to itself: {they} like a ridge, which smooths the fit, and say{'s' if number == 1 else ''} "
        "nothing about new rows."
    )


def score_sentence(assessment: Assessment) -> str:
    """Say how good the model is on rows that it has not seen."""
    score, classes = assessment.model.score, assessment.classes is not None
    around = f"(95% interval {interval_words(score, classes)})"
    if classes:
        cases = "of the cases of a class, on average over the classes"
        cases = cases if assessment.metric == "balanced accuracy" else "of the cases"
        return f"On rows it has not seen, it is right in {score_words(score.value, True)} {cases} {around}."
    return (
        f"On rows it has not seen, it explains {percent(max(score.value, 0.0))} of the variance "
        f"(R² {score_words(score.value, False)}, 95% interval {interval_words(score, False)})."
    )


def verdict(outcome: Outcome) -> str:
    """Say whether the model is better than another."""
    if not outcome.difference.excludes_zero:
        return "no clear difference"
    return "this model is better" if outcome.difference.value > 0 else "this model is worse"


def comparison_sentence(assessment: Assessment) -> str:
    """Say which models this one beats, and which it does not.

    Examples
    --------
    >>> from manykernels import MKLClassifier
    >>> from manykernels.reports.assessment import assess
    >>> from manykernels.reports.html.words import comparison_sentence
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> comparison_sentence(assess(MKLClassifier(), X, y, folds=3))
    'It is better than a constant prediction, and not clearly different from ...'
    """
    by_verdict: dict[str, list[str]] = {}
    for outcome in assessment.outcomes[1:]:
        by_verdict.setdefault(verdict(outcome), []).append(_the(outcome.name))
    parts = [
        f"{words} {listed(by_verdict[key])}"
        for key, words in (
            ("this model is better", "better than"),
            ("this model is worse", "worse than"),
            ("no clear difference", "not clearly different from"),
        )
        if key in by_verdict
    ]
    *first, last = parts
    return f"It is {', '.join(first)}, and {last}." if first else f"It is {last}."


def certificate_sentence(optimum: Optimum) -> str:
    """Say what the duality gap means.

    Examples
    --------
    >>> from manykernels.reports.html.words import certificate_sentence
    >>> from manykernels.reports.summary import Optimum
    >>> nan = float("nan")
    >>> certificate_sentence(Optimum(10.01, 10.0, 1e-3, 1e-2, True, True, 7, nan, nan, nan))
    'No other weights and no other predictor can make the objective more than 0.1% smaller. The fit met its tolerance.'
    """
    if not math.isnan(optimum.alignment):
        limit = "" if math.isnan(optimum.bound) else f"; no weights of these kernels can exceed {optimum.bound:.4f}"
        held = "" if math.isnan(optimum.held_out) else f" On samples held out it is {optimum.held_out:.4f}."
        return (
            f"The kernel was learned by alignment with the target: {optimum.alignment:.4f} of at most 1{limit}.{held}"
        )
    if math.isnan(optimum.gap):
        return "This combination of kernels has no duality gap: the solver stopped where its gradient was small."
    text = (
        f"No other weights and no other predictor can make the objective more than {gap_words(optimum.gap)} smaller. "
        f"The fit {convergence_words(optimum)}."
    )
    caution = " The search for the best kernel may have missed it, so the true gap may be larger."
    return text + ("" if optimum.exact else caution)


def convergence_words(optimum: Optimum) -> str:
    """Say why the fit ended: without a tolerance, it ended when it was told to.

    Examples
    --------
    >>> from manykernels.reports.html.words import convergence_words
    >>> from manykernels.reports.summary import Optimum
    >>> convergence_words(Optimum(10.01, 10.0, 1e-3, 0.0, False, True, 7, *[float("nan")] * 3))
    'stopped after 7 iterations, as asked'
    """
    if optimum.tol == 0 and not optimum.converged:
        return f"stopped after {count(optimum.n_iter, 'iteration')}, as asked"
    return "met its tolerance" if optimum.converged else "did not meet its tolerance"


def stability_sentence(learned: LearnedSummary) -> str:
    """Say how much the weights depend on the rows."""
    n_folds = learned.refits.shape[0]
    if n_folds == 0 or learned.n_active == 0:
        return ""
    active = learned.shares > 0
    parts = [
        f"The model was fitted {n_folds} more times, each time without one part of the rows.",
        _kept(learned.shares[active], learned.refits[:, active], "kernel"),
    ]
    views = [view for view in learned.by_view if view.share > 0]
    if len(learned.by_view) > 1 and views:
        parts.append(_kept(np.array([v.share for v in views]), np.array([v.refits for v in views]).T, "view"))
    if learned.is_family:
        parts.append("A family is searched anew each time: a kernel with a slightly different parameter counts as new.")
    elif learned.twins:
        parts.append(
            "Near-duplicates, listed below, can take each other's place: the weight of a view is the safer figure."
        )
    return " ".join(parts)


def _kept(shares: np.ndarray, refits: np.ndarray, noun: str) -> str:
    """Say how many kernels or views kept half of their share in every refit, and whether that is stable."""
    kept = refits.min(axis=0) >= shares / 2
    number, stable = int(kept.sum()), float(shares[kept].sum() / shares.sum())
    verdict = "stable" if stable >= _STABLE else "partly stable" if stable >= 1 - _STABLE else "not stable"
    if number in (0, shares.size):
        which = f"None of the {count(shares.size, noun)}" if number == 0 else f"Every {noun}"
        finding = f"{which} with a positive weight kept at least half of its share in every refit"
    else:
        has, its = ("has", "its") if number == 1 else ("have", "their")
        which = (
            f"{number:,} of the {count(shares.size, noun)} with a positive weight, which {has} {percent(stable)} of it,"
        )
        finding = f"{which} kept at least half of {its} share in every refit"
    return f"{finding}: the weights of the {noun}s are {verdict}."


def _the(name: str) -> str:
    return f"a {name}" if name == CONSTANT else f"the {name}"


def listed(names: Sequence[str]) -> str:
    """Return names as a list in a sentence.

    Examples
    --------
    >>> from manykernels.reports.html.words import listed
    >>> listed(["a", "b", "c"])
    'a, b and c'
    """
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def _signed(value: float, digits: int, plus: bool = False) -> str:
    """Return a number with a true minus sign, and without a sign at zero."""
    text = f"{value:+.{digits}f}"
    if float(text) == 0:
        return text[1:]
    return text.replace("-", "\u2212") if plus or value < 0 else text[1:]
