"""One look, equal bytes, and no text that breaks a picture."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from pathlib import Path

import matplotlib
import pytest
from hypothesis import given
from hypothesis import strategies as st
from matplotlib.figure import Figure

from stabkit.figures.drawing import lettering, style, svg
from stabkit.figures.drawing.line_ends import label_ends, spread, within
from tests.conftest import examples


def picture(text: str = "a") -> Figure:
    with style.look():
        figure, (axes,) = style.panels(1, columns=1, height=2.0)
        style.log_axis(axes, "y", 1e-3, 10)
        axes.plot([1, 2], [0.1, 1], color=style.colour("post-ln"), marker="o")
        lettering.entitle(axes, text)
        label_ends(axes, [(1.0, text, "#123456", "")], step=0.1)
        style.reference(axes, 1.0, "√(2d): ‖ΔF‖")
        return figure


def test_drawing_leaves_no_setting_behind() -> None:
    before = dict(matplotlib.rcParams)
    svg.to_page(picture())[0]
    assert dict(matplotlib.rcParams) == before


def test_the_ink_of_the_page_follows_the_page() -> None:
    drawn = svg.to_page(picture(), "update")[0]
    assert style.INK not in drawn and "currentColor" in drawn and "<text" in drawn
    assert "<style" not in drawn and "<metadata" not in drawn and "DejaVu" not in drawn


def test_ids_are_the_pictures_own_and_every_reference_has_its_id() -> None:
    root, other = (ET.fromstring(svg.to_page(picture(), name)[0]) for name in ("update", "other"))
    ids = [element.attrib["id"] for element in root.iter() if "id" in element.attrib]
    assert ids and len(set(ids)) == len(ids)
    assert not set(ids) & {element.attrib.get("id") for element in other.iter()}
    for element in root.iter():
        for value in (element.attrib.get("href", ""), element.attrib.get("clip-path", "")):
            assert not value or value.strip("url()").removeprefix("#") in ids


@examples(40)
@given(st.lists(st.floats(0, 1), min_size=1, max_size=12))
def test_names_beside_a_panel_stand_apart_and_within_it(wanted: list[float]) -> None:
    step = 1 / 12
    placed = within(spread(sorted(wanted), step), step)
    assert placed[0] >= 0 and placed[-1] <= 1 + 1e-9
    assert all(b - a >= step - 1e-9 for a, b in zip(placed, placed[1:], strict=False))


def test_equal_pictures_give_equal_bytes(tmp_path: Path) -> None:
    for kind in ("svg", "png", "pdf"):
        svg.save(picture(), tmp_path / f"one.{kind}")
        svg.save(picture(), tmp_path / f"two.{kind}")
        assert (tmp_path / f"one.{kind}").read_bytes() == (tmp_path / f"two.{kind}").read_bytes() != b""
    assert svg.to_page(picture(), "x") == svg.to_page(picture(), "x")


HOSTILE = [
    "<script>alert(1)</script>",
    "$\\frac{$",
    "\x1b]0;x",
    "a\0b",
    "$$",
    "漢字 🙂",
    "x" * 500,
    "\ud800",
    'style="#010203"',
]


@pytest.mark.parametrize("text", HOSTILE)
def test_no_text_breaks_a_picture(text: str) -> None:
    drawn = picture(text)
    root = ET.fromstring(svg.to_page(drawn)[0])
    assert not [element for element in root.iter() if element.tag.endswith("script")]
    for kind in ("svg", "pdf"):
        assert svg.to_bytes(drawn, kind)


@examples(50)
@given(st.text(max_size=20))
def test_the_font_can_draw_whatever_is_made_safe(text: str) -> None:
    glyphs = lettering._glyphs()
    assert all(ord(character) in glyphs for character in lettering.safe(text))


@given(st.lists(st.floats(0, 1), max_size=8), st.floats(0.01, 0.3))
def test_names_are_moved_apart_and_keep_their_order_and_their_middle(places: list[float], step: float) -> None:
    places = sorted(places)
    placed = spread(places, step)
    assert all(b - a >= step - 1e-9 for a, b in zip(placed, placed[1:], strict=False))
    assert sum(placed) == pytest.approx(sum(places), abs=1e-6)
    if all(b - a >= step for a, b in zip(places, places[1:], strict=False)):
        assert placed == pytest.approx(places)


@pytest.mark.parametrize(("value", "tick"), [(0.01, "0.01"), (1, "1"), (1e-7, "1e-7"), (1.5e-9, "1.5e-9")])
def test_ticks_are_written_without_formulas(value: float, tick: str) -> None:
    assert style.decade(value) == tick
