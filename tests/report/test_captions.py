"""A caption says what its own picture shows: the numbers after "Here:" once more, from the rows of its card."""

from __future__ import annotations

import base64
import html
import json
import math
import re
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path

import pandas as pd
import pytest

from stabkit.figures.catalogue import FIGURES, SURFACES
from stabkit.figures.model_curves import OWN, WATCHED
from stabkit.report import order
from stabkit.words import short
from tests.figures.fake_runs import plausible, spec, step, sweep
from tests.report.pages import render

REPORTS = Path(__file__).parents[2] / "reports"
CARD = re.compile(
    r'<h3 id="figure-(?:[a-z]+[0-9a-z]*-)?([a-z_0-9]+)">.*?<p>([^<]*)</p>'
    r'.*?<script type="text/plain" data-packed>([^<]*)<',
    re.S,
)


def cards(page: str) -> Iterator[tuple[str, str, pd.DataFrame | None]]:
    """(name, caption, its rows) of every card of a page that has a caption of its own picture."""
    for name, caption, packed in CARD.findall(page):
        text = html.unescape(caption)
        if " Here: " in text:
            table = json.loads(zlib.decompress(base64.b64decode(packed)))["table"]
            yield name, text.partition(" Here: ")[2], None if table is None else unpacked(table)


def unpacked(table: dict) -> pd.DataFrame:
    """The CSV of a card, as a frame."""
    rows = [[*table["runs"][run], *(column[i] for column in table["cells"])] for i, run in enumerate(table["of"])]
    return pd.DataFrame(rows, columns=[*table["facts"], *table["columns"]])


def middle(values: list[float]) -> float:
    """As a page says it: the median, between two the geometric mean."""
    ordered = sorted(values)
    return math.sqrt(ordered[(len(ordered) - 1) // 2] * ordered[len(ordered) // 2])


def ratios(frame: pd.DataFrame) -> list[float]:
    """The lowest layer's gradient over the top layer's, a number a curve: the median over its seeds."""
    found = []
    for _, curve in frame[frame["outcome"] != "diverged"].groupby(["label", "condition", "depth"]):
        of_run = [
            float(run.loc[run["layer"].idxmin(), "grad_norm"]) / float(run.loc[run["layer"].idxmax(), "grad_norm"])
            for _, run in curve.groupby("run")
        ]
        found.append(0.0 if 0.0 in of_run else middle(of_run))
    return found


def ends(frame: pd.DataFrame, value: str) -> list[float]:
    """Each curve's last reading, the middle of its seeds."""
    last = [
        (key, float(run.sort_values("step")[value].iloc[-1]))
        for key, curve in frame.groupby(["label", "condition", "depth"])
        for _, run in curve.groupby("run")
    ]
    by: dict[tuple[str, ...], list[float]] = {}
    for key, end in last:
        by.setdefault(key, []).append(end)
    return [middle(of) for of in by.values()]


def below(frame: pd.DataFrame) -> str:
    """How many runs end below 0.98 of the unigram loss."""
    last = [run.sort_values("step").iloc[-1] for _, run in frame.groupby("run")]
    trains = [row["validation_loss"] < 0.98 * row["unigram_loss"] for row in last if row["outcome"] != "diverged"]
    return f"{sum(trains)} of {len(last)} runs"


def beyond(frame: pd.DataFrame) -> str:
    """In how many runs the gradient fell below its limit."""
    rows = frame[frame["link"] == "gradient"]
    return f"gradient ratio below 0.01 in {int((rows['step'] >= 0).sum())}"


def span(values: list[float]) -> list[str]:
    return [short(min(values)), short(max(values))]


CHECKED: dict[str, Callable[[pd.DataFrame], list[str]]] = {
    "grad_norm": lambda frame: span(ratios(frame)),
    "grad_start": lambda frame: span(ratios(frame)),
    "update": lambda frame: span(ends(frame[frame["outcome"] != "diverged"], "update")),
    "validation_loss": lambda frame: [below(frame)],
    "chain_order": lambda frame: [beyond(frame)],
}
"""{picture: what its caption has to say, computed otherwise}."""


def test_every_picture_that_stands_open_says_what_it_shows() -> None:
    asked = (order.SWEEP, order.JUDGED, order.SLOPE, order.LANDSCAPE)
    leads = {name for page in asked for name in page.leads[:3]} - {"table11"}
    here = {picture.name for picture in (*FIGURES, *SURFACES) if picture.here is not None}
    assert leads <= here and all(picture.here for picture in (*OWN.values(), *WATCHED))


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["early", "trained", "judged", "steps"])
def test_a_caption_is_computed_from_its_own_rows(kind: str) -> None:
    runs = {
        "early": sweep(),
        "trained": sweep((2, 6), seeds=(0, 1)),
        "judged": [plausible(spec(key, n), outcome="trains") for n in (2, 6) for key in ("post-ln", "deepnorm")],
        "steps": [step(key, n, 5.0 + n) for n in (6, 18, 50) for key in ("post-ln", "deepnorm")],
    }[kind]
    seen = [check(*card) for card in cards(render(runs, command="stabkit report"))]
    assert seen and (kind == "steps" or sum(seen) >= 4)


@pytest.mark.parametrize("page", sorted(REPORTS.rglob("*.html")), ids=lambda page: page.stem)
def test_no_caption_of_a_committed_page_contradicts_its_picture(page: Path) -> None:
    for card in cards(page.read_text(encoding="utf-8")):
        check(*card)


def check(name: str, said: str, frame: pd.DataFrame | None) -> bool:
    """Whether there was something to compare it with."""
    assert said and not re.search(r"\bnan\b", said)
    if name not in CHECKED or frame is None or not len(frame):
        return False
    for text in CHECKED[name](frame):
        assert text in said, f"{name}: {said}"
    return True
