"""The page of `stabkit tolerance`: the sentence that answers, the table, the figure, how it was searched."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from stabkit.figures.depth.tolerance import PICTURE
from stabkit.figures.drawing import style
from stabkit.figures.shared.comparison import method_label
from stabkit.figures.shared.words import listed, plain, several, short
from stabkit.report import provenance
from stabkit.report.cards import card
from stabkit.report.files import page_name
from stabkit.report.frame import ASSETS, once, shell, template
from stabkit.report.html import chain_rows
from stabkit.report.verdict.answer import unseen
from stabkit.results.tolerance import COARSE, OUT_OF_RANGE, Exponent, Tolerance, exponents
from stabkit.results.words import fitting, scientific
from stabkit.running.request import Request
from stabkit.running.tolerance import Searched
from stabkit.spec import depth_text
from stabkit.storage.store import Run

WORTH = "in six of ten cells that were trained, twice that rate also trained"
"""What a rate that is likely to train is worth (docs/forecast.md)."""
TITLE, OVER_WIDTHS = "Which rate does each depth tolerate?", "Which rate does each width tolerate?"


def write(searched: Searched, asked: Request, command: str) -> Path:
    """Write the page; returns where."""
    path = asked.out / "reports" / page_name("tolerance", asked.specs)
    return once(asked.out, path, [len(searched.runs), len(searched.failed)], lambda: render(searched, command))


@np.errstate(all="ignore")
def render(searched: Searched, command: str) -> str:
    """The page as one HTML file."""
    fits = [*exponents(searched.found, "depth"), *exponents(searched.found, "width")]
    columns, table = cells(searched.found)
    one_depth = len({(one.encoder_layers, one.decoder_layers) for one in searched.found}) == 1
    environments = provenance.environments(searched.runs)
    return template(ASSETS / "tolerance.html.j2").render(
        **shell(
            OVER_WIDTHS if one_depth and len(columns) > 1 else TITLE,
            command,
            [in_short(searched.found), answer(searched.found, fits), caveat(searched.runs)],
            provenance.condition([run.spec for run in searched.runs]),
        ),
        swatch=style.colour,
        heads=columns,
        table=table,
        fits=[
            (fit.label, "N" if fit.axis == "depth" else "d", *map(short, (fit.p, fit.low, fit.high)), fit)
            for fit in fits
        ],
        card=card(PICTURE, PICTURE.select(searched.found), searched.found),
        failed=[(plain(spec.run_id), plain(reason)) for spec, reason in searched.failed],
        environments=environments,
        mixed=provenance.mixed(environments),
        wall=provenance.duration(sum(map(provenance.wall_seconds, searched.runs))),
        duration=provenance.duration,
        count=len(searched.runs),
        worth=WORTH,
        lowest=scientific(COARSE[0]),
        highest=scientific(COARSE[-1]),
        every_row=chain_rows(searched.runs, 16),
        switches=[],
        group_switches=[],
    )


def answer(searched: Sequence[Tolerance], fits: Sequence[Exponent]) -> str:
    """Who tolerates what where it is shallowest and deepest (narrowest and widest), and how the limit falls."""
    if not searched:
        return "No rate was searched."
    places = sorted({(one.depth, one.hidden) for one in searched})
    widths = len({hidden for _, hidden in places}) > 1
    parts: list[str] = []
    for depth, hidden in dict.fromkeys((places[0], places[-1])):
        tolerances = [one for one in searched if (one.depth, one.hidden) == (depth, hidden)]
        where = f"{depth} layer{'s' * (depth != 1)}{f' and width {hidden}' if widths else ''}"
        parts.append(f"{'at' if parts else 'At'} {where} {_said(tolerances)}")
    order = sorted(fits, key=lambda fit: fit.p)
    falls = [f"{fit.label}'s limit {_falls(fit)}" for fit in dict.fromkeys((*order[-1:], *order[:1]))]  # the extremes
    return "; ".join([*parts, *falls]) + "."


def caveat(runs: Sequence[Run]) -> str:
    """Of which methods the forecast's fit has no run; "" where it has of all."""
    new = dict.fromkeys(method_label(run.spec) for run in runs if run.forecast and run.forecast.unseen)
    return unseen(list(new), sorted({run.spec.train.optimizer for run in runs}))


def in_short(searched: Sequence[Tolerance]) -> str:
    """Who tolerates what where it is deepest (or widest), as far as a headline holds it."""
    if not searched:
        return "No rate was searched."
    depth, hidden = max((one.depth, one.hidden) for one in searched)
    there = [one for one in searched if (one.depth, one.hidden) == (depth, hidden)]
    width = f" and width {hidden}" if len({one.hidden for one in searched}) > 1 else ""
    where = f"At {depth} layer{'s' * (depth != 1)}{width}"
    ordered = sorted(there, key=lambda tolerance: tolerance.middle.height)
    most, least = ([one for one in ordered if one.text == end.text] for end in (ordered[-1], ordered[0]))
    ends = [*most, *(least if least != most else [])]
    return fitting(
        *(f"{where} {_said(some)}." for some in (there, ends, most)),
        f"{where} {len(there)} methods were searched.",
    )


def _said(members: Sequence[Tolerance]) -> str:
    """`DeepNorm tolerates 4e-3, Post-LN below 2e-4`, the highest first."""
    by: dict[str, list[str]] = {}
    ordered = sorted(members, key=lambda tolerance: tolerance.middle.height, reverse=True)
    for tolerance in ordered:
        if tolerance.limit != "unknown":
            by.setdefault(tolerance.text, []).append(tolerance.label)
    lost = [tolerance.label for tolerance in ordered if tolerance.limit == "unknown"]
    texts = [(several(labels, len(members)), len(labels), words) for words, labels in by.items()]
    parts = [f"{labels} {told}" for labels, _, told in texts]
    if texts:
        first, count, words = texts[0]
        parts[0] = f"{first} tolerate{'s' * (count == 1)} {words}"
    return ", ".join([*parts, *([f"no forecast for {several(lost, len(members))} ({OUT_OF_RANGE})"] if lost else [])])


def _falls(fit: Exponent) -> str:
    name, letter = ("depth", "N") if fit.axis == "depth" else ("width", "d")
    part = f" from {fit.ends[0]:g} to {fit.ends[1]:g}" if fit.left_out else ""
    if fit.seeds < 2:
        return f"scales as {letter}^{-fit.p:.2f}{part} in the only seed".replace("-", "−")
    if fit.low > 0:
        return f"falls as {letter}^−{short(fit.p)}{part} ({short(fit.low)} to {short(fit.high)} over {fit.seeds} seeds)"
    return f"does not fall with {name}{part}" if fit.high <= 0 else f"falls with {name}{part} in some seeds only"


def cells(tolerances: Sequence[Tolerance]) -> tuple[list[str], list[tuple[str, str, list[str]]]]:
    """(heads, (method, label, texts) of every row) of the table: `18L-18L`, of several widths `18L-18L, d 128`."""
    places = list(dict.fromkeys((one.encoder_layers, one.decoder_layers, one.hidden) for one in tolerances))
    wide = len({hidden for *_, hidden in places}) > 1
    heads = [listed(depth_text(n, m), f"d {hidden}" if wide else "") for n, m, hidden in places]
    rows = []
    for method, label in dict.fromkeys((one.method, one.label) for one in tolerances):
        mine = [tolerance for tolerance in tolerances if (tolerance.method, tolerance.label) == (method, label)]
        by_shape = {(limit.encoder_layers, limit.decoder_layers, limit.hidden): limit for limit in mine}
        rows.append((method, label, [_cell(by_shape.get(place)) for place in places]))
    return heads, rows


def _cell(tolerance: Tolerance | None) -> str:
    if tolerance is None:
        return "–"
    ends = [each.passes for each in tolerance.seeds if each.passes is not None]
    spread = f" ({scientific(min(ends))} to {scientific(max(ends))})" if ends and min(ends) < max(ends) else ""
    return tolerance.text + spread + ("" if tolerance.monotone else ", not monotone")
