"""A leaner picture is the same picture: its paths end where they ended, and a browser paints the same pixels."""

from __future__ import annotations

import io
import re
import xml.etree.ElementTree as ET
from types import ModuleType
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stabkit.figures.chain import chain_order, grad_norm
from stabkit.figures.depth import update_depth
from stabkit.figures.drawing import svg
from stabkit.figures.drawing.lean import lean, steps
from stabkit.figures.quick.once import Runs
from tests.figures.fake_runs import sweep

_SIZES = {"m": 1, "l": 1, "q": 2, "c": 3, "z": 0}
places = st.tuples(*[st.floats(-2000, 2000).map(lambda value: round(value, 6))] * 2)
commands = st.one_of(
    st.tuples(st.sampled_from("ML"), st.tuples(places)),
    st.tuples(st.just("Q"), st.tuples(places, places)),
    st.tuples(st.just("C"), st.tuples(places, places, places)),
    st.tuples(st.just("z"), st.just(())),
)


def absolute(path: str) -> list[tuple[str, list[tuple[float, float]]]]:
    """A path of small letters read as the SVG grammar says, step by step, into absolute places."""
    found, here, start, last = [], (0.0, 0.0), (0.0, 0.0), ""
    tokens = re.findall(r"[a-z]|-?(?:\d+\.?\d*|\.\d+)", path)
    while tokens:
        command = tokens.pop(0) if tokens[0].isalpha() else {"m": "l"}.get(last, last)
        ends = []
        for _ in range(_SIZES[command]):
            ends.append((here[0] + float(tokens.pop(0)), here[1] + float(tokens.pop(0))))
        here = start if command == "z" else ends[-1]
        start = here if command == "m" else start
        found.append((command, ends))
        last = command
    return found


@given(places, st.lists(commands, max_size=40))
def test_steps_lead_to_the_places_the_path_named(first: tuple[float, float], rest: list) -> None:
    whole = [("M", (first,)), *rest]
    path = " ".join(" ".join([name, *(f"{x:.6f} {y:.6f}" for x, y in points)]) for name, points in whole)
    found = absolute(steps(path))
    near = 0.051 if len(path) > 400 else 0.0051
    assert [name.upper() for name, _ in found] == [name.upper() for name, _ in whole]
    for (_, ends), (_, points) in zip(found, whole, strict=True):
        assert len(ends) == len(points)
        assert all(
            abs(a - b) <= near for end, point in zip(ends, points, strict=True) for a, b in zip(end, point, strict=True)
        )


def test_a_path_in_another_grammar_is_left_alone() -> None:
    for path in ("M 0 0 A 5 5 0 0 1 10 10", "m 0 0 l 5 5", "M 0 0 H 5"):
        assert steps(path) == path


def made(inside: str, name: str = "") -> str:
    tree = ET.fromstring(f"<svg>{inside}</svg>")
    lean(tree, name)
    return ET.tostring(tree, encoding="unicode")


def test_what_cannot_be_seen_goes_and_a_style_is_said_once_for_neighbours() -> None:
    assert made('<g><path d="M 0 0" style="fill: none"/></g><defs/>') == "<svg />"
    pair = made('<g><path d="M 0 0" style="stroke: red"/><path d="M 1 1" style="stroke: red"/></g>')
    assert pair == '<svg><g style="stroke:red"><path d="m0 0" /><path d="m1 1" /></g></svg>'
    apart = made('<path d="M 0 0" style="opacity: 0.3"/><path d="M 1 1" style="opacity: 0.3"/>')
    assert apart.count("opacity") == 2, "a group's opacity would blend the two as one"


def test_a_tick_is_written_out_where_it_stands_and_a_larger_marker_is_used() -> None:
    uses = '<use href="#a" x="1" y="2"/><use href="#a" x="3.5" y="2"/>'
    tick = f'<defs><path id="a" d="M 0 0 L 0 3.5" style="stroke: red"/></defs><g style="fill: red">{uses}</g>'
    assert made(tick) == '<svg><g style="fill:red"><path d="M1 2l0 3.5M3.5 2l0 3.5" style="stroke:red" /></g></svg>'
    large = f'<defs><path id="a" d="M 0 0 {"L 10 10 " * 20}"/></defs>{uses}'
    assert made(large).count("<use") == 2 and made(large).count("<path") == 1


def test_ids_are_the_pictures_own() -> None:
    inside = '<clipPath id="p"><rect/></clipPath><path d="M 0 0 L 1 1" clip-path="url(#p)"/>'
    one, other = made(inside, "one"), made(inside, "other")
    assert one != other
    for text in (one, other):
        (key,) = re.findall(r'id="([^"]+)"', text)
        assert f"url(#{key})" in text


@pytest.mark.parametrize("figure", [grad_norm, update_depth, chain_order], ids=lambda one: one.NAME)
def test_a_browser_paints_the_same_picture(browser: Any, monkeypatch: pytest.MonkeyPatch, figure: ModuleType) -> None:
    frame = figure.select(Runs(sweep((6, 18))))
    after, _ = svg.to_page(figure.draw(frame), "one")
    monkeypatch.setattr(svg, "lean", lambda *tree: None)
    before, _ = svg.to_page(figure.draw(frame), "one")
    assert len(after) < 0.7 * len(before)
    first, second = (painted(browser, picture) for picture in (before, after))
    assert first.shape == second.shape and first.std() > 0.02
    unlike = np.abs(first - second).max(axis=2)
    assert (unlike > 0.25).mean() < 1e-3, "lines are where they were, but for the soft edge of some"


def painted(browser: Any, picture: str) -> np.ndarray:
    """The picture's pixels (height, width, channel), 0 to 1."""
    page = browser.new_page()
    page.set_content(f"<body style='margin: 0'>{picture}</body>")
    shot = plt.imread(io.BytesIO(page.locator("svg").screenshot()))
    page.close()
    return shot[..., :3]
