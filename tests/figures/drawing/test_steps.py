"""A path written in steps is the path, to a tenth of a unit."""

from __future__ import annotations

import math
import re

from hypothesis import given
from hypothesis import strategies as st

from stabkit.figures.drawing.svg import steps

PLACE = st.tuples(st.floats(-9e4, 9e4), st.floats(-9e4, 9e4))
PIECE = st.tuples(PLACE, st.lists(PLACE, max_size=8), st.booleans())


def walked(path):
    """Absolute places of a path of M, l and z, in tenths, by reading it as a browser does."""
    places, start, here = [], (0, 0), (0, 0)
    for command, given_ in re.findall(r"([Mlz])([^Mlz]*)", path):
        numbers = [round(10 * float(n)) for n in re.findall(r"-?(?:\d+\.?\d*|\.\d+)", given_)]
        for x, y in zip(numbers[::2], numbers[1::2], strict=True):
            here = (x, y) if command == "M" else (here[0] + x, here[1] + y)
            start = here if command == "M" else start
            places.append(here)
        here = start if command == "z" else here
    return places


def away(place, path):
    """How far a place is from the nearest line of a path, in tenths."""
    least = math.inf
    for (x, y), (to_x, to_y) in zip(path, path[1:], strict=False):
        length = (to_x - x) ** 2 + (to_y - y) ** 2
        along = ((place[0] - x) * (to_x - x) + (place[1] - y) * (to_y - y)) / length if length else 0.0
        along = min(1.0, max(0.0, along))
        least = min(least, math.hypot(place[0] - x - along * (to_x - x), place[1] - y - along * (to_y - y)))
    return least if len(path) > 1 else math.hypot(place[0] - path[0][0], place[1] - path[0][1])


@given(PIECE)
def test_no_rounding_adds_up_and_no_place_is_more_than_a_tenth_off_the_line_that_is_drawn(piece):
    first, rest, closed = piece
    tenths = [(round(10 * x), round(10 * y)) for x, y in (first, *rest)]
    drawn = walked(steps(f"M {first[0]!r} {first[1]!r} " + " ".join(f"L {x!r} {y!r}" for x, y in rest) + " Z" * closed))
    assert drawn[0] == tenths[0] and drawn[-1] == tenths[-1]
    there = iter(tenths)
    assert all(place in there for place in drawn), "places of the path, in its order"
    assert all(away(place, drawn) <= 1.000001 for place in tenths)


def test_every_piece_of_a_path_and_every_bend_is_drawn():
    assert steps("M 0 0 L 1 0 L 2 0 L 2 2 Z M 5 5 L 6 6") == "M0 0l2 0 0 2zM5 5l1 1"
    assert steps("M 0 0 L 10 0 L 4 0") == "M0 0l10 0-6 0", "there and back"
    arc = " L ".join(f"{100 * math.cos(a / 99):.3f} {100 * math.sin(a / 99):.3f}" for a in range(156))
    assert 20 < len(walked(steps(f"M {arc}"))) < 40, "a tenth off a circle of radius 100"


def test_a_path_with_curves_keeps_its_places():
    assert steps("M 0 3 C 0.8 3 1.55 2.68 2.12 2.12 Z") == "M0 3C0.8 3 1.6 2.7 2.1 2.1Z"


def test_numbers_are_as_short_as_they_can_be():
    assert steps("M 10.04 20 L 10.34 19.7 L 11 19.7") == "M10 20l.3-.3 .7 0"
