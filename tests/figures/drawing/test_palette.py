"""Any two methods are told apart, by whoever looks and however the page is printed."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from matplotlib.colors import to_rgb

from stabkit import methods
from stabkit.figures.drawing.palette import HUES, OTHERS, hue

SEEN_BY = {
    "normal": np.eye(3),
    "protanopia": [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]],
    "deuteranopia": [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]],
    "grey print": [[0.2126, 0.7152, 0.0722]] * 3,
}
"""Linear sRGB as it reaches each: Machado et al. 2009, table of severity 1.0; luminance for print."""

EVERY = {**HUES, **{f"OTHERS[{i}]": pair for i, pair in enumerate(OTHERS)}}


def lab(colour, eye):
    """CIE L*a*b* under D65 of a colour as an eye sees it."""
    rgb = np.array(to_rgb(colour))
    linear = np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)
    linear = np.clip(np.array(SEEN_BY[eye]) @ linear, 0, 1)
    to_xyz = [[0.4124564, 0.3575761, 0.1804375], [0.2126729, 0.7151522, 0.0721750], [0.0193339, 0.1191920, 0.9503041]]
    x, y, z = (
        v ** (1 / 3) if v > (6 / 29) ** 3 else v * (29 / 6) ** 2 / 3 + 4 / 29
        for v in (np.array(to_xyz) @ linear / (0.95047, 1, 1.08883)).tolist()
    )
    return np.array([116 * y - 16, 500 * (x - y), 200 * (y - z)])


def test_lab_is_the_published_one():
    assert lab("#FF0000", "normal") == pytest.approx([53.24, 80.09, 67.20], abs=0.02)


@pytest.mark.parametrize("eye", SEEN_BY)
def test_two_methods_of_one_sign_lie_ten_apart_in_normal_vision_protanopia_deuteranopia_and_grey(eye):
    """Colour pairs below ΔE 10 must differ in their sign."""
    close = [
        (one, other)
        for (one, (first, sign)), (other, (second, other_sign)) in combinations(EVERY.items(), 2)
        if sign == other_sign and np.linalg.norm(lab(first, eye) - lab(second, eye)) < 10
    ]
    assert not close


def test_no_two_colours_look_alike_to_the_normal_eye():
    assert (
        min(
            np.linalg.norm(lab(one, "normal") - lab(other, "normal"))
            for (one, _), (other, _) in combinations(EVERY.values(), 2)
        )
        > 8
    )


@pytest.mark.parametrize("method", EVERY)
def test_a_colour_stands_on_white_and_on_the_dark_page(method):
    assert 40 <= lab(EVERY[method][0], "normal")[0] <= 73


def test_every_built_in_method_has_a_row_and_a_stranger_none_of_theirs():
    assert [key for key in HUES if ":" not in key] == list(methods.KEYS)
    assert [key for key in HUES if ":" in key] == list(methods.PAINTED)
    for variant in methods.PAINTED:
        assert methods.variant_of(*methods.parse(variant)) == variant, "as a run's variant is written"
    assert hue("never heard of") in OTHERS
