"""A path written in steps is the path, to a tenth of a unit."""

from __future__ import annotations

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


@given(st.lists(PIECE, min_size=1, max_size=4))
def test_no_rounding_adds_up_and_only_steps_of_nothing_are_left_out(pieces):
    path, wanted = [], []
    for first, rest, closed in pieces:
        path.append(f"M {first[0]!r} {first[1]!r} " + " ".join(f"L {x!r} {y!r}" for x, y in rest) + " Z" * closed)
        tenths = [(round(10 * x), round(10 * y)) for x, y in (first, *rest)]
        wanted += [tenths[0]] + [
            b for i, (a, b) in enumerate(zip(tenths, tenths[1:], strict=False)) if a != b or i == 0
        ]
    assert walked(steps(" ".join(path))) == wanted


def test_a_path_with_curves_keeps_its_places():
    assert steps("M 0 3 C 0.8 3 1.55 2.68 2.12 2.12 Z") == "M0 3C0.8 3 1.6 2.7 2.1 2.1Z"


def test_numbers_are_as_short_as_they_can_be():
    assert steps("M 10.04 20 L 10.34 19.7 L 11 19.7") == "M10 20l.3-.3 .7 0"
