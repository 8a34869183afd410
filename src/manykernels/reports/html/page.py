"""The page: its sections, in the order in which a reader asks."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from importlib.resources import files

import numpy as np

from manykernels.reports.assessment import Assessment
from manykernels.reports.html import words
from manykernels.reports.html.page_tables import Cell, bars, definitions, kernels, table, twin_name
from manykernels.reports.html.scores_section import scores_section
from manykernels.reports.intervals import Interval
from manykernels.reports.summary import LearnedPart, LearnedSummary

_SHOWN_VIEWS, _SHOWN_FORMS, _SHOWN_FEATURES, _SHOWN_STABLE = 15, 12, 20, 12
# From this share of the weight on, the top of the page says that kernels are too narrow.
_WORTH_SAYING = 0.05
_MUCH = 0.05
_DOTS = "Bars: this model. Dots and small figures: refits, each without one part of the rows."


@dataclass(frozen=True)
class Facts:
    """How the report was computed.

    Attributes
    ----------
    title : str
    date : str
    data : sequence of (name, value)
        Shape and kind of the data.
    settings : mapping from the name of each parameter to its value in words
    versions : mapping from the name of each package to its version
    times : sequence of (name, value)
    reproduce : str
        Code or a command that makes this report.
    notes : sequence of str
        What the reader should know.
    test_score : Interval or None
        Of the fitted model on test data that were given.
    n_test : int
    """

    title: str
    date: str
    data: Sequence[tuple[str, str]]
    settings: Mapping[str, str]
    versions: Mapping[str, str]
    times: Sequence[tuple[str, str]]
    reproduce: str
    notes: Sequence[str] = ()
    test_score: Interval | None = None
    n_test: int = 0


def render(learned: LearnedSummary, assessment: Assessment, facts: Facts) -> str:
    """Return the whole page.

    Parameters
    ----------
    learned : LearnedSummary
    assessment : Assessment
    facts : Facts

    Returns
    -------
    str
        HTML that runs only its own script, which its content policy ensures.
    """
    style, script = _asset("report.css"), _asset("report.js")
    policy = (
        f"default-src 'none'; style-src {_digest(style)}; script-src {_digest(script)}; "
        "base-uri 'none'; form-action 'none'"
    )
    sections = (
        ("learned", "What was learned", _learned_section(learned)),
        ("sure", "How sure it is", _sure_section(learned)),
        ("good", "How good it is", scores_section(assessment, facts.test_score, facts.n_test)),
        ("features", "Which features matter", _features_section(learned)),
        ("computed", "How it was computed", _computed_section(facts)),
    )
    links = "".join(f'<li><a href="#{key}">{name}</a></li>' for key, name, _ in sections)
    body = "".join(f'<section id="{key}"><h2>{name}</h2>{inside}</section>' for key, name, inside in sections)
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f'<meta name="color-scheme" content="light dark"><title>{escape(facts.title)}</title>'
        f"<style>{style}</style></head><body>"
        '<a class="skip" href="#main">Skip to the report</a>'
        f'<header><p class="eyebrow">manykernels report, {escape(facts.date)}</p><h1>{escape(facts.title)}</h1>'
        f"{_headline(learned, assessment)}{_cards(learned, assessment)}</header>"
        f'<nav aria-label="Sections"><ol>{links}</ol></nav><main id="main">{body}</main>'
        f"<footer>Made by manykernels {escape(facts.versions['manykernels'])}.</footer>"
        f"<script>{script}</script></body></html>\n"
    )


def _headline(learned: LearnedSummary, assessment: Assessment) -> str:
    sentences = (
        words.kernels_sentence(learned),
        words.view_sentence(learned),
        words.narrow_sentence(learned) if learned.too_narrow.share >= _WORTH_SAYING else "",
        words.score_sentence(assessment),
        words.comparison_sentence(assessment),
    )
    return f'<p class="lede">{escape(" ".join(text for text in sentences if text))}</p>'


def _cards(learned: LearnedSummary, assessment: Assessment) -> str:
    classes, certificate = assessment.classes is not None, learned.certificate
    score = assessment.model.score
    metric = f"{words.metric_words(assessment)} on unseen rows"
    cards = [
        (metric, words.score_words(score.value, classes), words.interval_words(score, classes)),
        ("kernels in use", f"{learned.n_active:,}", f"of {len(learned.names):,}"),
    ]
    if len(learned.by_view) > 1:
        cards.append(("largest view", words.percent(learned.by_view[0].share), learned.by_view[0].name))
    if not np.isnan(certificate.alignment):
        cards.append(("alignment", f"{certificate.alignment:.3f}", "with the target, on the training rows"))
    elif not np.isnan(certificate.gap):
        verdict = words.convergence_words(certificate)
        cards.append(("gap to the optimum, at most", words.gap_words(certificate.gap), verdict))
    inside = "".join(
        f'<div class="card"><dt>{escape(name)}</dt><dd><b>{escape(value)}</b> <span>{escape(note)}</span></dd></div>'
        for name, value, note in cards
    )
    return f'<dl class="cards">{inside}</dl>'


def _learned_section(learned: LearnedSummary) -> str:
    parts = [
        paragraph(
            "A kernel measures how alike two rows are, and a view is the set of features that it looks at. The model "
            "predicts from a weighted sum of kernels: the weights say what it looks at, and how much it counts."
        )
    ]
    if learned.n_vectors > 1:
        parts.append(paragraph(f"Each of the {learned.n_vectors} classes has its own weights; these are their means."))
    parts.append("<h3>Weight by view</h3>" + paragraph(words.narrow_sentence(learned)) + paragraph(_DOTS, "note"))
    parts.append(_top("Weight by view", "view", learned.by_view, _SHOWN_VIEWS, learned.too_narrow))
    if len(learned.by_form) > 1:
        text = "The same weight by the form of the kernel: which widths, degrees or parameters matter."
        parts.append("<h3>Weight by form and width</h3>" + paragraph(text))
        parts.append(_top("Weight by form and width", "form", learned.by_form, _SHOWN_FORMS))
    text = (
        "The weight is the kernel's factor in the learned sum, the share is its part of all weights. "
        "Mean and spread (standard deviation) are those of the share in the refits."
    )
    return "".join([*parts, "<h3>All kernels</h3>", paragraph(text), kernels(learned)])


def _top(caption: str, noun: str, parts: Sequence[LearnedPart], limit: int, last: LearnedPart | None = None) -> str:
    """Return the largest parts as bars and what the others hold in a sentence; one part may come last."""
    shown = [part for part in parts if _counts(part)][:limit]
    left, held = len(parts) - len(shown), sum(part.share for part in parts[len(shown) :])
    more = ""
    if left:
        verb = "has" if left == 1 else "have"
        more = f"{words.count(left, f'more {noun}')} {verb} {words.percent(held) if held else 'none'} of the weight."
    return bars(caption, noun, [*shown, *([last] if last is not None and last.share > 0 else [])], more)


def _counts(part: LearnedPart) -> bool:
    """Return whether a part is worth a row: one that reads as zero is, if a refit gave it much."""
    return part.share > 0 or part.refits.max(initial=0.0) >= _MUCH


def _sure_section(learned: LearnedSummary) -> str:
    return "".join(
        [
            "<h3>Certificate of the optimum</h3>",
            _certificate(learned),
            "<h3>Stability of the weights</h3>",
            paragraph(words.stability_sentence(learned)),
            _stability(learned),
            "<h3>Near-duplicate kernels</h3>",
            _twins(learned),
        ]
    )


def _certificate(learned: LearnedSummary) -> str:
    certificate = learned.certificate
    pairs = []
    if not np.isnan(certificate.primal):
        pairs += [("primal objective", f"{certificate.primal:.8g}"), ("dual objective", f"{certificate.dual:.8g}")]
    if np.isnan(certificate.alignment) and not np.isnan(certificate.gap):
        pairs += [("relative gap", f"{certificate.gap:.2e}"), ("tolerance", f"{certificate.tol:.2e}")]
    pairs += [("end", words.convergence_words(certificate)), ("iterations", f"{certificate.n_iter}")]
    between = "" if np.isnan(certificate.dual) else " The optimum lies between the two objectives."
    return paragraph(words.certificate_sentence(certificate) + between) + definitions(pairs)


def _stability(learned: LearnedSummary) -> str:
    top = [int(k) for k in learned.order[: min(_SHOWN_STABLE, learned.n_active)]]
    if not top or not learned.refits.shape[0]:
        return ""
    parts = [LearnedPart(learned.names[k], float(learned.shares[k]), learned.refits[:, k]) for k in top]
    return paragraph(_DOTS, "note") + bars("The largest kernels in the refits", "kernel", parts)


def _twins(learned: LearnedSummary) -> str:
    if not learned.twins:
        is_compared = learned.n_active >= 2 and "not compared" not in learned.twins_note
        return paragraph(("No near-duplicates were found. " if is_compared else "") + learned.twins_note)
    text = (
        "The kernels in a row say nearly the same (each has a centered alignment above 0.99 with another one of them). "
        "Their weights are interchangeable: read their sum, not how it is divided. "
    )
    rows = [
        [
            Cell(twin_name(number)),
            Cell("; ".join(learned.names[k] for k in places)),
            Cell(words.percent(float(learned.shares[list(places)].sum())), float(learned.shares[list(places)].sum())),
        ]
        for number, places in enumerate(learned.twins)
    ]
    heads = ["set", "kernels", "share together #"]
    return paragraph(text + learned.twins_note) + table("Near-duplicate kernels", heads, rows, sortable=True)


def _features_section(learned: LearnedSummary) -> str:
    text = (
        "The weight of each kernel is divided evenly over the features that it sees; the shares sum to 100%. "
        "This says where the model looks, not in which direction a feature acts, nor what causes what."
    )
    shown = _top("Importance of features", "feature", learned.by_feature, _SHOWN_FEATURES, learned.too_narrow)
    return paragraph(text) + shown


def _computed_section(facts: Facts) -> str:
    notes = "".join(f"<li>{escape(note)}</li>" for note in facts.notes)
    return "".join(
        [
            f'<div class="callout"><h3>Notes</h3><ul>{notes}</ul></div>' if notes else "",
            "<h3>Data</h3>",
            definitions(facts.data),
            "<h3>Time</h3>",
            definitions(facts.times),
            "<h3>Make this report again</h3>",
            f"<pre><code>{escape(facts.reproduce)}</code></pre>",
            "<h3>Settings</h3>",
            definitions(list(facts.settings.items())),
            "<h3>Versions</h3>",
            definitions(list(facts.versions.items())),
        ]
    )


def paragraph(text: str, kind: str = "") -> str:
    """Return a paragraph, or nothing if there is no text."""
    if not text.strip():
        return ""
    return f'<p class="{kind}">{escape(text.strip())}</p>' if kind else f"<p>{escape(text.strip())}</p>"


def _asset(name: str) -> str:
    return (files("manykernels.reports.html") / name).read_text(encoding="utf-8")


def _digest(text: str) -> str:
    """Return the digest by which the content policy admits a style sheet or script."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
