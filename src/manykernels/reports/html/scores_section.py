"""The section on how good the model is."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

import numpy as np
from sklearn.metrics import roc_curve

from manykernels.reports.assessment import Assessment, Outcome
from manykernels.reports.contestants import CONSTANT
from manykernels.reports.html import words
from manykernels.reports.html.charts import MAX_POINTS, N_COLORS, interval, roc, scatter
from manykernels.reports.html.page_tables import Cell, confusion, table
from manykernels.reports.intervals import Interval, area_under_roc

_HONEST = (
    "Every score is of models that have not seen the row: in each fold all models are fitted, tuned and chosen on the "
    "other folds. Intervals are at 95%; they account for the choice of the rows to predict, taken to be independent, "
    "but not for that of the training rows. Settings that were chosen earlier, such as C, are taken as they are."
)


def scores_section(assessment: Assessment, test_score: Interval | None = None, n_test: int = 0) -> str:
    """Return scores, those of simpler models to compare with, and where the errors are.

    Parameters
    ----------
    assessment : Assessment
    test_score : Interval, optional
        The score of the fitted model on test data.
    n_test : int
        Rows of the test data.
    """
    classes = assessment.classes is not None
    parts = [f"<p>{escape(words.score_sentence(assessment))} {escape(words.comparison_sentence(assessment))}</p>"]
    if test_score is not None:
        text = (
            f"On {words.count(n_test, 'row')} of test data, which it has not seen, the fitted model itself has "
            f"{words.metric_words(assessment)} {words.score_words(test_score.value, classes)} "
            f"(95% interval {words.interval_words(test_score, classes)})."
        )
        parts.append(f"<p>{escape(text)}</p>")
    parts.append(f'<p class="note">{assessment.n_folds}-fold cross-validation. {_HONEST}</p>')
    parts.append("<h3>Compared with simpler models</h3>" + _comparison(assessment))
    text = "The score of this model less that of the other one, paired on the same rows."
    parts.append(f"<h3>Differences</h3><p>{text}</p>" + _differences(assessment.outcomes[1:], classes))
    parts += [f'<p class="note">Not compared: {escape(n)}, since {escape(why)}.</p>' for n, why in assessment.skipped]
    parts.append(_class_errors(assessment) if classes else _number_errors(assessment))
    return "".join(parts)


def _comparison(assessment: Assessment) -> str:
    classes = assessment.classes is not None
    first, last = _ends(assessment)
    rows = []
    for place, outcome in enumerate(assessment.outcomes):
        score = outcome.score
        drawn = interval(score.value, score.low, score.high, first, last, strong=place == 0)
        figures = f"{words.score_words(score.value, classes)}<small>{words.interval_words(score, classes)}</small>"
        rows.append(
            [
                Cell(f"{escape(outcome.name)}<small>{escape(outcome.note)}</small>", is_markup=True),
                Cell(drawn, is_markup=True),
                Cell(figures, score.value, is_markup=True),
                *(Cell(words.figure(value, 3 if classes else 4), value) for value in outcome.beside.values()),
            ]
        )
    ends = "".join(f"<span>{words.score_words(end, classes)}</span>" for end in (first, last))
    heads: list[str | Cell] = [
        "model",
        Cell(f'<div class="ends">{ends}</div>', is_markup=True),
        f"{words.metric_words(assessment)} #",
        *(f"{name} #" for name in assessment.model.beside),
    ]
    return table("Scores on unseen rows, with their 95% intervals", heads, rows, kind="bars scores")


def _ends(assessment: Assessment) -> tuple[float, float]:
    """Return the ends of the axis; the score of a constant prediction, far below the others, may lie outside."""
    scores = [outcome.score for outcome in assessment.outcomes if outcome.name != CONSTANT]
    # A score far below 0 would flatten all others.
    first, last = max(min(score.low for score in scores), -1.0), max(score.high for score in scores)
    room = 0.08 * (last - first) or 0.05
    return first - room, min(last + room, 1.0)


def _differences(others: Sequence[Outcome], classes: bool) -> str:
    rows = []
    for outcome in others:
        value, span = words.difference_words(outcome.difference, classes)
        rows.append(
            [
                Cell(outcome.name),
                Cell(value, outcome.difference.value),
                Cell(span, outcome.difference.low),
                Cell(words.verdict(outcome)),
            ]
        )
    heads = ["compared with", "difference #", "95% interval #", "in words"]
    return table("Differences, paired on the same rows", heads, rows, kind="differences")


def _class_errors(assessment: Assessment) -> str:
    assert assessment.classes is not None
    model = assessment.model
    shown = confusion(assessment.classes, assessment.truth, model.predicted)
    wrong = int(np.sum(model.predicted != assessment.truth))
    verb = "is" if wrong == 1 else "are"
    text = f"{words.count(wrong, 'row')} of {assessment.truth.size:,} {verb} put into a wrong class."
    parts = [f"<h3>Which classes are confused</h3><p>{text}</p>{shown}"]
    if model.decisions is not None:
        parts.append(_roc(assessment.truth, assessment.classes, model.decisions))
    return "".join(parts)


def _roc(truth: np.ndarray, classes: np.ndarray, decisions: np.ndarray) -> str:
    binary = decisions.shape[1] == 1
    positives = classes[1:] if binary else classes
    areas = [area_under_roc(truth == c, decisions[:, t]) for t, c in enumerate(positives)]
    drawn = [(str(c), *roc_curve(truth == c, decisions[:, t])[:2]) for t, c in enumerate(positives[:N_COLORS])]
    if binary:
        text = (
            f"A row of class {classes[1]} gets a larger decision value than a row of class {classes[0]} in "
            f"{words.percent(areas[0])} of all pairs: this is the area under the curve, {areas[0]:.3f}. "
            "50% would be chance."
        )
        legend = ""
    else:
        text = (
            "Each class against the rest. The area under the curve is the chance that a row of the class gets the "
            f"larger decision value; it is {np.mean(areas):.3f} on average, and 0.5 would be chance."
        )
        more = f" The first {N_COLORS} classes are drawn." if len(positives) > N_COLORS else ""
        text += more
        legend = _legend(positives, areas)
    chart = roc(drawn, text)
    return (
        f"<h3>ROC curve</h3><p>{escape(text)} Decision values of all folds are pooled.</p>"
        f'<div class="side"><figure>{chart}</figure>{legend}</div>'
    )


def _legend(classes: np.ndarray, areas: list[float]) -> str:
    def key(place: int) -> str:
        if place >= N_COLORS:
            return ""
        return (
            f'<svg class="key" viewBox="0 0 24 8" aria-hidden="true"><path class="curve c{place}" d="M1 4H23"/></svg> '
        )

    rows = [
        [Cell(key(place) + escape(str(name)), is_markup=True), Cell(f"{area:.3f}", area)]
        for place, (name, area) in enumerate(zip(classes, areas, strict=True))
    ]
    return table("Area under the curve", ["class", "area #"], rows, kind="legend", sortable=True)


def _number_errors(assessment: Assessment) -> str:
    truth, predicted = assessment.truth, assessment.model.predicted
    missed = truth - predicted
    typical, mean, rms = float(np.median(np.abs(missed))), float(np.mean(missed)), float(np.sqrt(np.mean(missed**2)))
    text = (
        f"Half of the predictions are off by less than {words.figure(typical)}; the root mean squared error is "
        f"{words.figure(rms)}, the mean error {words.figure(mean, 2)}."
    )
    limit = f"{MAX_POINTS:,} of " if truth.size > MAX_POINTS else ""
    drawn = limit + words.count(truth.size, "point")
    against = scatter(
        truth,
        predicted,
        "Predicted against actual",
        f"{drawn}; {words.score_sentence(assessment)} The line is where both are equal.",
        ("actual", "predicted, on unseen rows"),
        "diagonal",
    )
    left = scatter(
        predicted,
        missed,
        "Residuals",
        f"Actual less predicted against predicted; {text} The line is zero.",
        ("predicted, on unseen rows", "actual less predicted"),
        "zero",
    )
    return (
        f"<h3>Where the errors are</h3><p>{escape(text)} A pattern in the residuals says that something is missing.</p>"
        f'<div class="pair"><figure>{against}<figcaption>Predicted against actual</figcaption></figure>'
        f"<figure>{left}<figcaption>Residuals against predicted</figcaption></figure></div>"
    )
