"""Figures and findings in words."""

from __future__ import annotations

import math

from manykernels.reports.assessment import Assessment, Outcome
from manykernels.reports.baselines import CONSTANT
from manykernels.reports.intervals import Interval
from manykernels.reports.learned import Certificate, Learned

NOTHING = "\u2013"  # where there is no figure


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
    """Return a number with so many digits that count, a dash for NaN.

    Examples
    --------
    >>> from manykernels.reports.html.words import figure
    >>> figure(0.123456), figure(float("nan")), figure(1234567.0)
    ('0.1235', '–', '1.235e+06')
    """
    return NOTHING if math.isnan(value) else f"{value:.{digits}g}"


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
    """Return an accuracy in percent, an R2 as it is.

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
    """Return a difference and its interval, with signs: in points of percent for classes.

    Examples
    --------
    >>> from manykernels.reports.html.words import difference_words
    >>> from manykernels.reports.intervals import Interval
    >>> difference_words(Interval(0.02, -0.01, 0.05), True)
    ('+2.0 points', '−1.0 to +5.0')
    """
    factor, digits = (100, 1) if classes else (1, 3)
    value, low, high = (_signed(factor * x, digits, plus=True) for x in (interval.value, interval.low, interval.high))
    return f"{value} points" if classes else value, f"{low} to {high}"


def gap_words(gap: float) -> str:
    """Return a relative gap in percent, with two digits that count.

    Examples
    --------
    >>> from manykernels.reports.html.words import gap_words
    >>> gap_words(4.02e-4), gap_words(0.0), gap_words(1e-12)
    ('0.04%', '0%', '1e-10%')
    """
    return f"{100 * gap:.2g}%"


def kernels_sentence(learned: Learned) -> str:
    """Say how many kernels carry the weight.

    Examples
    --------
    >>> from manykernels import MKLClassifier
    >>> from manykernels.kernels import Gaussian
    >>> from manykernels.reports.html.words import kernels_sentence
    >>> from manykernels.reports.learned import describe
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
    if learned.is_family:
        return (
            f"{_upper(count(active, 'kernel'))} were selected from the family; {most} of them carry 90% of the weight."
        )
    if active == total and most > 0.8 * total:
        return f"All {total:,} kernels have about the same weight."
    verb = "carries" if active == 1 else "carry"
    whole = f"{active:,} of {total:,} kernels {verb} all the weight"
    return f"{whole}, and {most} of them carry 90% of it." if most < active else f"{whole}."


def view_sentence(learned: Learned) -> str:
    """Say which view has most of the weight."""
    if len(learned.by_view) < 2 or learned.n_active == 0:
        return ""
    first, second = learned.by_view[:2]
    if first.share - second.share < 0.1 * first.share:
        return (
            f"No view stands out: “{first.name}” has {percent(first.share)}, “{second.name}” {percent(second.share)}."
        )
    rest = f", “{second.name}” {percent(second.share)}" if second.share > 0 else ""
    return f"The view “{first.name}” has {percent(first.share)} of the weight{rest}."


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
    """Say whom the model beats, and whom it does not.

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
        f"{words} {_listed(by_verdict[key])}"
        for key, words in (
            ("this model is better", "better than"),
            ("this model is worse", "worse than"),
            ("no clear difference", "not clearly different from"),
        )
        if key in by_verdict
    ]
    return f"It is {', and '.join(parts)}." if parts else ""


def certificate_sentence(found: Certificate) -> str:
    """Say what the duality gap means.

    Examples
    --------
    >>> from manykernels.reports.html.words import certificate_sentence
    >>> from manykernels.reports.learned import Certificate
    >>> nan = float("nan")
    >>> certificate_sentence(Certificate(10.01, 10.0, 1e-3, 1e-2, True, True, 7, nan, nan, nan))
    'No other weights and no other predictor can make the objective more than 0.1% smaller. The fit met its tolerance.'
    """
    if not math.isnan(found.alignment):
        limit = "" if math.isnan(found.bound) else f"; no weights of these kernels can exceed {found.bound:.4f}"
        held = "" if math.isnan(found.held_out) else f" On samples held out it is {found.held_out:.4f}."
        return f"The kernel was learned by alignment with the target: {found.alignment:.4f} of at most 1{limit}.{held}"
    if math.isnan(found.gap):
        return "This combination of kernels has no duality gap: the solver stopped where its gradient was small."
    text = (
        f"No other weights and no other predictor can make the objective more than {gap_words(found.gap)} smaller. "
        f"The fit {convergence_words(found)}."
    )
    caution = " The search for the best kernel may have missed it, so the true gap may be larger."
    return text + ("" if found.exact else caution)


def convergence_words(found: Certificate) -> str:
    """Say why the fit ended; without a tolerance, it ended when it was told to.

    Examples
    --------
    >>> from manykernels.reports.html.words import convergence_words
    >>> from manykernels.reports.learned import Certificate
    >>> convergence_words(Certificate(10.01, 10.0, 1e-3, 0.0, False, True, 7, *[float("nan")] * 3))
    'stopped after 7 iterations, as asked'
    """
    if found.tol == 0 and not found.converged:
        return f"stopped after {count(found.n_iter, 'iteration')}, as asked"
    return "met its tolerance" if found.converged else "did not meet its tolerance"


def stability_sentence(learned: Learned) -> str:
    """Say how much the weights depend on the rows."""
    n_folds = learned.refits.shape[0]
    if n_folds == 0 or learned.n_active == 0:
        return ""
    active = learned.shares > 0
    always = active & (learned.used == n_folds)
    parts = [
        f"The model was fitted {n_folds} more times, each time without one part of the rows.",
        _always(int(always.sum()), learned.n_active, "kernel", float(learned.shares[always].sum())),
    ]
    if len(learned.by_view) > 1:
        views = [view for view in learned.by_view if view.share > 0]
        kept = [view.share for view in views if view.refits.min() > 0]
        parts.append(_always(len(kept), len(views), "view", sum(kept)))
    if learned.is_family:
        parts.append("A family is searched anew each time: a kernel with a slightly other parameter counts as new.")
    elif learned.twins:
        parts.append(
            "Near-duplicates, listed below, can take each other's place: the weight of a view is the safer figure."
        )
    return " ".join(parts)


def _always(number: int, total: int, noun: str, share: float) -> str:
    """Say how many of the kernels or views were used in every refit, and what part of the weight they have."""
    if number == 0:
        return f"None of the {count(total, noun)} with a positive weight was used every time."
    if number == total:
        return f"Every {noun} with a positive weight was used every time."
    was = "was used every time and has" if number == 1 else "were used every time and have"
    return f"{number:,} of the {count(total, noun)} with a positive weight {was} {percent(share)} of it."


def _the(name: str) -> str:
    return f"a {name}" if name == CONSTANT else f"the {name}"


def _listed(names: list[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def _upper(text: str) -> str:
    return text[:1].upper() + text[1:]


def _signed(value: float, digits: int, plus: bool = False) -> str:
    """Return a number with a true minus, and no sign at zero."""
    text = f"{value:+.{digits}f}"
    if float(text) == 0:
        return text[1:]
    return text.replace("-", "\u2212") if plus or value < 0 else text[1:]
