"""The page of the table of 2026, as HTML and as Markdown, and what a command says of it."""

from __future__ import annotations

import csv
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from stabkit.claims import OF_TODAY
from stabkit.claims.base import ORDER, Finding
from stabkit.claims.verdict import judge
from stabkit.errors import StoreError
from stabkit.figures.catalogue import TODAY
from stabkit.figures.shared.words import percent, plain, short
from stabkit.methods.today import OUT
from stabkit.paper.studies import kept, today, today_tables, today_words
from stabkit.paper.studies.study import Study
from stabkit.paper.studies.today_tables import Costs, with_sign
from stabkit.report.cards import card
from stabkit.report.html import shell, template
from stabkit.results.forecast.model import ours
from stabkit.results.forecast.newcomers import TRUSTED, Newcomers, newcomers, to_json
from stabkit.results.forecast.rows import digest
from stabkit.results.today import Number, Today
from stabkit.storage.folder import write_file

COSTS = "today_cost.csv"
"""Beside the rows: `benchmarks/today_cost.py` writes it."""
TIMES = ("block", "method", "ratio", "low", "high")
"""What the page reads of it."""


@dataclass(frozen=True, kw_only=True)
class Content:
    """All that the page says, from the study's rows and the costs beside them."""

    study: Study
    found: Today
    cost: Costs
    searched: Newcomers
    """The search's runs by the forecast that has seen none of them."""
    tabled: Newcomers
    """The table's likewise: other seeds, one rate."""
    judged: Sequence[Finding]

    @cached_property
    def scores(self) -> list[tuple[str, Newcomers]]:
        return today_words.scores(self.searched, self.tabled)

    @cached_property
    def sentences(self) -> list[str]:
        """What the page says beside its first sentence."""
        blocks, depth = today_words.block_sentences(self.found), today_words.depth_sentence(self.found)
        return [text for text in (*blocks, depth, *self.forecast) if text]

    @cached_property
    def forecast(self) -> list[str]:
        """What it says of the forecast."""
        said = today_words.forecast_sentences(self.searched, self.tabled)
        return [text for text in (*said, today_words.given_sentence(ours().abstains)) if text]


def content(study: Study) -> Content:
    """Of a study as far as it has come."""
    found = today.read(study.rows)
    return Content(
        study=study,
        found=found,
        cost=costs(study.path.with_name(COSTS)),
        searched=newcomers(found.halved, ours().before, ours().highest),
        tabled=newcomers(found.table, ours().before, ours().highest),
        judged=findings(study),
    )


def write(study: Study, path: Path, command: str) -> dict[str, Any]:
    """Write the page; returns what it says, for `--json` and the terminal."""
    all_ = content(study)
    write_file(path, render(all_, command).encode())
    write_file(path.with_suffix(".md"), markdown(all_).encode())
    found = all_.found
    return {
        "answer": today_words.answer(found),
        "sentences": all_.sentences,
        "rows": str(study.path),
        "missing": len(study.missing),
        "table": [one.to_json() for one in found.cells],
        "exponents": [
            {"block": block, "method": method, "value": n.value, "low": n.low, "high": n.high}
            for (block, method), n in found.exponents.items()
        ],
        "cost": [
            {"block": b, "method": m, "value": n.value, "low": n.low, "high": n.high} for (b, m), n in all_.cost.items()
        ],
        "forecast": {name: to_json(own) for name, own in all_.scores},
        "claims": [{"id": one.claim.key, "verdict": one.verdict, "measured": one.measured} for one in all_.judged],
    }


def costs(path: Path) -> Costs:
    """{(block, method): a step's time over Pre-LN's}; nothing where it was not measured. Raises StoreError for a file
    that is none of `benchmarks/today_cost.py`."""
    if not path.exists():
        return {}
    try:
        with path.open(encoding="utf-8", newline="") as file:
            rows = csv.DictReader(file, strict=True)
            if not set(TIMES) <= set(rows.fieldnames or ()):
                raise ValueError(f"its first line must name {', '.join(TIMES)}")
            return {(row["block"], row["method"]): _ratio(row) for row in rows}
    except (OSError, UnicodeDecodeError, csv.Error, TypeError, ValueError) as error:
        raise StoreError(
            f"{path}: not the steps' times of benchmarks/today_cost.py ({type(error).__name__}: {error}); "
            "write it anew or move it away"
        ) from error


def _ratio(row: Mapping[str, str]) -> Number:
    value, low, high = (float(row[name]) for name in ("ratio", "low", "high"))
    if not 0 < low <= value <= high < math.inf:
        raise ValueError(f"{value:g} ({low:g} to {high:g}) is no ratio of two times within its interval")
    return Number(value, low, high)


def findings(study: Study) -> list[Finding]:
    """The claims of today's methods, judged on the table's runs, which no outcome has chosen; those that hold first."""
    runs = kept.runs(study, lambda spec: spec.seed != today.SEED)
    own = [claim for claim in OF_TODAY if claim.methods[0] in today.KEYS]
    return sorted((judge(claim, runs) for claim in own), key=lambda one: ORDER.index(one.verdict))


@np.errstate(all="ignore")
def render(all_: Content, command: str) -> str:
    """The page as one HTML file."""
    study, found = all_.study, all_.found
    return template(Path(__file__).with_name("today.html.j2")).render(
        **shell(study.item.title, command, today_words.answer(found)) | {"elsewhere": ""},  # it needs its text
        sentences=all_.sentences,
        tables=today_tables.tables(found, all_.cost),
        cards=[card(figure, figure.select(found), found) for figure in TODAY],
        judged=all_.judged,
        forecast=[(name, *scored(own)) for name, own in all_.scores],
        heads=FORECAST,
        out=[(one.label, one.formula, one.needs, one.source) for one in OUT.values()],
        scaled=study.item.scaled,
        trusted=TRUSTED,
        verdict=today.VERDICT,
        last=today.LAST,
        commands=[plain(line) for line in study.commands],
        rows=plain(str(study.path)),
        count=len(study.rows),
        digest=digest(study.rows),
        missing=len(study.missing),
        failed=[(plain(spec.run_id), plain(reason)) for spec, reason in study.failed],
        switches=[],
        group_switches=[],
        lit=(),
    )


def scored(own: Newcomers) -> tuple[str, ...]:
    """A row of the forecast's table, by FORECAST."""
    whole = own.whole
    low, high = own.skill_interval
    alike = whole.trained in (0, whole.n)
    skill = f"{with_sign(whole.skill)} ({with_sign(low)} to {with_sign(high)})"
    return (
        str(whole.n),
        percent(whole.base_rate),
        "–" if alike else short(whole.auc),
        "– (all end alike)" if alike else skill,
        percent(whole.coverage),
        percent(whole.accuracy),
    )


FORECAST = ("runs", "that train", "AUC", "Brier skill (95 %)", "likely, either way", "of these right")


def markdown(all_: Content) -> str:
    """The same as a page of `docs/`."""
    study, found = all_.study, all_.found
    lines = [
        f"# {study.item.title}",
        "",
        "Written by `stabkit paper today` from the rows beside it, [today.csv](today.csv), as a page with pictures "
        "([reports/today.html](../reports/today.html)) and as this file; no number here is typed by hand.",
        "",
        today_words.answer(found),
        *(
            ["", f"**Not whole yet**: {len(study.missing)} runs are next, and more may follow."]
            if study.missing
            else []
        ),
        *(f"\n{text}" for text in all_.sentences),
        "",
        study.item.scaled[:1].upper() + study.item.scaled[1:],
    ]
    for block, own in today_tables.tables(found, all_.cost).items():
        lines += ["", f"## {block.capitalize()} block"]
        for table in own:
            lines += [
                "",
                f"{table.caption}.",
                "",
                *_table(("method", *table.heads), [(label, *texts) for _, label, texts in table.rows]),
            ]
    lines += ["", "## What the papers say of their own methods", ""]
    lines += _table(
        ("verdict", "the paper says", "measured"),
        [(one.verdict, f"{one.claim.sentence} ({one.claim.source})", _measured(one)) for one in all_.judged],
    )
    lines += ["", "## Does the forecast hold for them?", "", *all_.forecast, ""]
    lines += _table(("of", *FORECAST), [(name, *scored(own)) for name, own in all_.scores])
    lines += ["", "## Not here yet", ""]
    lines += [f"- {one.label}: `{one.formula}`. It needs {one.needs} ({one.source})." for one in OUT.values()]
    return "\n".join(lines) + "\n"


def _measured(one: Finding) -> str:
    return " ".join(filter(None, (one.measured, f"({one.reason})" if one.reason else ""))).replace("|", "\\|")


def _table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    return [f"| {' | '.join(heads)} |", "|" + "---|" * len(heads), *(f"| {' | '.join(row)} |" for row in rows)]
