"""No wording decides anything: with every outcome, label, condition, risk and reason reworded, a command ends with the
same colours, places, verdicts, exit code and next command; so do the pages of slope, ablate, landscape,
probe and watch, and every picture selects and draws the same."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from matplotlib.collections import Collection
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from stabkit import methods
from stabkit.claims import base
from stabkit.claims.deepnet import table1
from stabkit.claims.verdict import judge
from stabkit.cli import tables
from stabkit.figures.catalogue import FIGURES, SURFACES
from stabkit.figures.chain import chain_order, findings, layer_curves
from stabkit.report import json_document, sweep_document
from stabkit.report.own import document as own_document
from stabkit.report.own import probe as probe_page
from stabkit.report.own import watch as watch_page
from stabkit.report.summary import Summary, summarise
from stabkit.results import update_fit as depth_fit
from stabkit.results.conditions import Condition
from stabkit.results.landscape import Landscape, Normalisation
from stabkit.results.own.alarm import Alarm
from stabkit.results.own.judged import judged
from stabkit.results.surface import At, Plane, Surface, SurfaceSpec
from stabkit.running.plan import Done
from stabkit.running.probes import ProbeRequest
from stabkit.storage.watched import Watched
from stabkit.wording import answer, chain, legend, links
from tests.commands import TINY, stabkit
from tests.figures.fake_runs import at16, plane, plausible, spec, step, sweep
from tests.report.pages import render
from tests.results.test_own import made as cell

pytestmark = pytest.mark.slow

SUFFIX = " (reworded)"


@pytest.fixture
def reworded(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every text that is made of a value says one thing more."""

    def longer(owner: Any, name: str) -> None:
        plain = getattr(owner, name)
        monkeypatch.setattr(
            owner, name, lambda *given, **named: f"{told}{SUFFIX}" if (told := plain(*given, **named)) else told
        )

    longer(methods, "label_of")
    for name in ("warning", "outcomes", "word_of"):
        longer(legend, name)
    text = Condition.text.fget
    assert text is not None
    monkeypatch.setattr(Condition, "text", property(lambda self: f"{told}{SUFFIX}" if (told := text(self)) else told))
    monkeypatch.setattr(legend, "NO_SIGN", f"{legend.NO_SIGN}{SUFFIX}")
    verbs = {word: tuple(f"{verb}{SUFFIX}" for verb in both) for word, both in answer.VERBS.items()}
    monkeypatch.setattr(answer, "VERBS", verbs)
    spot = base.Spot.__init__

    def said(self: base.Spot, key: str, text: str) -> None:
        spot(self, key, f"{text}{SUFFIX}")

    monkeypatch.setattr(base.Spot, "__init__", said)
    whole = Normalisation.text.fget
    assert whole is not None
    monkeypatch.setattr(Normalisation, "text", property(lambda self: f"{whole(self)}{SUFFIX}"))
    for names in (depth_fit.STACKS, chain_order.LINKS, links.NAMES, links.UNLIKE, links.UNITS):
        for key in list(names):
            monkeypatch.setitem(names, key, f"{names[key]}{SUFFIX}")  # type: ignore[index]
    start, later = whens = tuple(f"a {when}{SUFFIX}" for when in reversed(layer_curves.WHENS))[::-1]
    for module, names in ((findings, ("START", "LATER")), (layer_curves, ("START", "LATER", "WHENS"))):
        for name in names:
            monkeypatch.setattr(module, name, {"START": start, "LATER": later, "WHENS": whens}[name])
    longer(chain, "why")


def runs() -> list[Any]:
    """Early, judged, diverged, at risk, with and without warm-up, at two rates, several seeds; two that failed."""
    cold = [
        plausible(spec(method, depth, seed=seed, warmup=0, steps=250, lr=lr), outcome=outcome)
        for method, outcome in (("post-ln", "stuck"), ("deepnorm", "trains"), ("admin", "trains"))
        for depth in (6, 18)
        for seed in (0, 1)
        for lr in (5e-4, 1e-3)
    ]
    lost = [plausible(spec("pre-ln", 18, seed=seed, warmup=0, steps=250), until=9) for seed in (0, 1)]
    return [*sweep((6, 18)), *cold, *lost, at16("r-fixup", 18, 3.0)]


def summary(reason: str) -> Summary:
    return summarise(runs(), [(spec("rezero", 18), reason), (spec("dlcl", 6), reason)])


class Skeleton(HTMLParser):
    """What a page is without its words: its elements with their classes, methods, links and places in an order."""

    KEPT = ("class", "data-method", "data-depth", "data-rank", "data-switch", "id", "href", "aria-pressed")

    def __init__(self, page: str) -> None:
        super().__init__()
        self.found: list[tuple[str, tuple[tuple[str, str | None], ...]]] = []
        self.feed(re.sub(r"<svg.*?</svg>", "", page, flags=re.S))  # names change how a picture is laid out

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, tuple(item for item in attrs if item[0] in self.KEPT)))


def document(plain: Summary) -> str:
    """What `--json` says of verdicts and claims."""
    claims = [sweep_document.claim(finding) for finding in plain.claims]
    return json_document.text({"cells": sweep_document.cells(plain.matrix), "claims": claims})


def values(document: str) -> Any:
    """A document without its sentences: what a program would act on."""
    words = {"answer", "label", "condition", "detail", "reason", "measured", "text", "where", "word", "report"}
    words |= {"why", "words", "run"}

    def kept(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: kept(inner) for key, inner in value.items() if key not in words}
        return [kept(inner) for inner in value] if isinstance(value, list) else value

    return kept(json.loads(document))


def test_colours_places_and_verdicts_stay(request: pytest.FixtureRequest) -> None:
    plain = summary("killed by signal 9")
    told = document(plain)
    request.getfixturevalue("reworded")
    after = summary(f"killed by signal 9{SUFFIX}")
    assert after.answer != plain.answer, "the words are other ones"
    pairs = [
        (mine, theirs)
        for ours, others in zip(plain.matrix.rows, after.matrix.rows, strict=True)
        for mine, theirs in zip(ours.cells, others.cells, strict=True)
    ]
    assert [row.method for row in plain.matrix.rows] == [row.method for row in after.matrix.rows]
    assert {legend.tint(mine) for mine, _ in pairs} >= {"stuck", "trains", "diverged", "risk", "failed", "missing"}
    for mine, theirs in pairs:
        assert (mine.run_ids, mine.verdict, mine.outcomes) == (theirs.run_ids, theirs.verdict, theirs.outcomes)
        assert legend.tint(mine) == legend.tint(theirs) and tables._colour(mine) == tables._colour(theirs)
    assert plain.matrix.lit == after.matrix.lit and plain.matrix.lowest == after.matrix.lowest
    found = [[(one.claim.key, one.verdict, len(one.places)) for one in each.claims] for each in (plain, after)]
    assert found[0] == found[1] and {"holds", "fails"} <= {verdict for _, verdict, _ in found[0]}
    keys = [[place.measured.key for one in each.claims for place in one.places] for each in (plain, after)]
    assert keys[0] == keys[1]
    assert values(told) == values(document(after))


def test_the_page_has_the_same_elements(undrawn: None, request: pytest.FixtureRequest) -> None:
    failed = summary("killed by signal 9").failed
    plain = render(runs(), command="x", failed=failed)
    request.getfixturevalue("reworded")
    page = render(runs(), command="x", failed=[(s, f"{reason}{SUFFIX}") for s, reason in failed])
    assert page.count(SUFFIX) > 100
    assert Skeleton(page).found == Skeleton(plain).found


def test_a_command_ends_with_the_same_code_and_the_same_next_one(
    tmp_path: Path, undrawn: None, request: pytest.FixtureRequest
) -> None:
    line = ("sweep", *TINY, "--models", "post-ln,deepnorm", "--warmup", "0,4", "--out", tmp_path)
    stabkit(*line)
    first = stabkit(*line)
    request.getfixturevalue("reworded")
    second = stabkit(*line)
    following = [
        next(text for text in done.stdout.splitlines() if text.startswith("next: ")) for done in (first, second)
    ]
    assert SUFFIX in second.stdout and first.returncode == second.returncode and following[0] == following[1]


def steps() -> list[Any]:
    """Single steps of SGD: three methods and a variant at three depths and two rates, of both stacks and of one."""
    options = {"deepnorm": ({},), "post-ln": ({},), "sub-ln": ({},), "admin": ({}, {"omega": "closed"})}
    return [
        step(method, depth, 4.0 * depth**power, rate, decoder=decoder, seed=seed, options=option)
        for method, power in (("post-ln", 1.0), ("deepnorm", 0.2), ("sub-ln", 0.1), ("admin", 0.5))
        for option in options[method]
        for depth in (6, 18, 50)
        for decoder in (None, 0)
        for rate in (1e-5, 4e-5)
        for seed in (0, 1)
    ]


def ablated() -> list[Any]:
    """DeepNorm with its factors scaled, and without one of its constants."""
    fates = {True: "trains", False: "diverged"}
    scaled = plane(lambda a, b: 0.1 * b / a, lambda a, b: fates[a >= 1 >= b], steps=250)
    lost = [
        plausible(spec("deepnorm", 6, steps=250, warmup=0, seed=seed, options=options), outcome=word)
        for seed in (0, 1)
        for options, word in (({}, "trains"), ({"alpha": "one"}, "diverged"), ({"beta": "one"}, "trains"))
    ]
    return [*scaled, *lost]


def landscape() -> Landscape:
    """Two methods at two depths, each measured along its own directions and along the other's: planes and cuts."""
    made = {(m, n): plausible(spec(m, n, steps=250, warmup=0)) for m in ("post-ln", "deepnorm") for n in (6, 18)}
    along = tuple(float(a) for a in np.linspace(-1, 1, 9))
    bowl = 5.0 + np.array(along) ** 2
    surfaces = []
    for (method, depth), run in made.items():
        origin = At(run=run.run_id, step=250)
        for whose in ("post-ln", "deepnorm"):
            donor = None if whose == method else At(run=made[whose, depth].run_id, step=250)
            waves = bowl + (0.3 if method == "post-ln" else 0.01) * np.cos(np.pi * np.arange(9))
            cut = SurfaceSpec(origin=origin, plane=Plane(kind="random", seed=1, of=donor), a=along)
            whole = SurfaceSpec(origin=origin, plane=Plane(kind="random", of=donor), a=along, b=along)
            surfaces += [
                Surface(cut, waves[None, :], {}, {}, ""),
                Surface(whole, waves[None, :] + waves[:, None], {}, {}, ""),
            ]
    return Landscape(list(made.values()), surfaces)


def shown(figure: Figure) -> list[Any]:
    """What is drawn, without its words: lines and areas with their colours, marks, dashes and points."""
    looks: list[Any] = []
    for axes in figure.axes:
        for artist in axes.get_children():
            if isinstance(artist, Line2D):
                line = artist.get_color(), artist.get_marker(), artist.get_linestyle(), artist.get_markerfacecolor()
                looks.append((*map(str, line), np.asarray(artist.get_xydata()).round(9).tolist()))
            elif isinstance(artist, Collection):
                looks.append((type(artist).__name__, np.asarray(artist.get_facecolor()).tolist()))
    return looks


KEYS = ("method", "variant", "outcome", "depth", "link", "shape", "axis", "group")
"""Columns of text that are no words of ours: keys, and what a depth reads as."""


SETS: dict[str, Callable[[], Any]] = {
    "sweep": lambda: [*sweep((6, 18, 50)), *sweep((6, 18), (0, 1), warmup=0, steps=250)],
    "slope": steps,
    "ablate": ablated,
}


def pictures(drawn: dict[str, str]) -> tuple[dict[str, str], dict[str, str]]:
    """({picture and set: its frame without its words}, {picture: what is drawn}): of the set in `drawn`, or of that
    which the picture shows most of."""
    frames, looks = {}, {}
    with np.errstate(all="ignore"):
        made = {name: make() for name, make in SETS.items()} | {"surfaces": landscape()}
        for figure in (*FIGURES, *SURFACES):
            own = ["surfaces"] if figure in SURFACES else list(SETS)
            found: dict[str, pd.DataFrame] = {name: figure.select(made[name]) for name in own}
            most = drawn.setdefault(figure.name, max(found, key=lambda name: len(found[name])))
            looks[figure.name] = json.dumps(shown(figure.drawn(found[most])))
            for name, frame in found.items():
                kept = [column for column in frame if column in KEYS or (frame[column].dtype.kind in "biuf")]
                frames[f"{figure.name} of {name}"] = frame[kept].to_csv()
    return frames, looks


def test_every_picture_selects_and_draws_the_same(request: pytest.FixtureRequest) -> None:
    drawn: dict[str, str] = {}
    plain = pictures(drawn)
    assert set(drawn.values()) == {*SETS, "surfaces"}
    request.getfixturevalue("reworded")
    for before, after in zip(plain, pictures(drawn), strict=True):
        assert [name for name in before if before[name] != after[name]] == []


def of(runs: Sequence[Any], surfaces: Sequence[Surface] = ()) -> tuple[Any, Any, Any]:
    """(elements of the page, values of the document, verdicts of the claims) of these runs."""
    summary = summarise(runs, [], surfaces)
    page = render(runs, command="x", surfaces=surfaces)
    body = json.loads(document(summary)) | sweep_document.slopes(summary.runs)
    told = values(json_document.text(body | {"surfaces": [sweep_document.surface(one) for one in surfaces]}))
    verdicts = [(one.claim.key, one.verdict, [p.measured.key for p in one.places]) for one in summary.claims]
    return [one for one in Skeleton(page).found if one != ("span", (("class", "whole"),))], told, verdicts


def every() -> dict[str, tuple[Any, Any, Any]]:
    drawn = landscape()
    return {"slope": of(steps()), "ablate": of(ablated()), "landscape": of(drawn.runs, drawn.surfaces)}


def test_slope_ablate_and_landscape_end_the_same(undrawn: None, request: pytest.FixtureRequest) -> None:
    plain = every()
    assert {verdict for _, verdict, _ in plain["slope"][2]} & {"holds", "fails"}
    request.getfixturevalue("reworded")
    for name, (elements, document, verdicts) in every().items():
        assert verdicts == plain[name][2], name
        assert document == plain[name][1], name
        assert elements == plain[name][0], name


def test_a_claim_in_parts_is_decided_by_their_keys(request: pytest.FixtureRequest) -> None:
    """The parts of a row of Table 1 were named when it was read, its places are when it is judged."""
    specs = [spec("deepnorm", depth, steps=250, warmup=0, seed=seed) for depth in table1.DEPTHS for seed in (0, 1)]
    trained = [plausible(one, outcome="trains") for one in specs]

    def verdicts() -> dict[str, str]:
        return {claim.key: judge(claim, trained).verdict for claim in table1.CLAIMS}

    plain = verdicts()
    assert plain["table1-deepnorm"] == "holds"
    request.getfixturevalue("reworded")
    assert verdicts() == plain


def cells() -> list[Any]:
    """A model whose update grows with depth and whose gradient is gone where it is deepest."""
    return [cell(n, seed, update=0.05 * n, ratio=1e-5 if n > 20 else 1.0) for n in (6, 12, 24) for seed in (0, 1)]


def test_a_probe_ends_the_same(request: pytest.FixtureRequest) -> None:
    made_of = dict(factory="a:b", here="", depths=(6, 12, 24), seeds=(0, 1), lrs=(0.0,), warmup=None, steps=5)
    asked = ProbeRequest(**made_of, blocks="", fresh=False, out=Path())  # type: ignore[arg-type]

    def ends() -> tuple[Any, Any, Any]:
        found = judged(cells())
        done: Done[Any, Any] = Done(results=list(found.cells), lost=[], reused=0)
        page = Skeleton(probe_page.render(found, done, "x")).found
        body = own_document.body(found, done, asked, Path("x.html"), 1.0)
        words = {name: (link.verdict, repr(link.level)) for name, link in found.worst.links.items()}
        return page, values(json_document.text(body)), (found.worst.word, words)

    plain = ends()
    assert plain[2][0] == "fails"
    request.getfixturevalue("reworded")
    assert ends() == plain


def test_a_watch_ends_the_same(request: pytest.FixtureRequest) -> None:
    def ends(suffix: str = "") -> Any:
        alarms = tuple(
            Alarm(step=step, link=link, sentence=f"it grew{suffix}", numbers={"ratio": 4.0})
            for step, link in ((9, "loss"), (3, "stream"))
        )
        watched = Watched(f"mine{suffix}", replace(cell(6)), alarms, f"stopped: why{suffix}")
        return Skeleton(watch_page.render(watched, "x")).found, watch_page.answer(watched).count("update 3")

    plain = ends()
    request.getfixturevalue("reworded")
    assert ends(SUFFIX) == plain
