"""The table of items: every row is whole, and its commands are commands."""

from __future__ import annotations

import pytest

from stabkit.claims import CLAIMS, OF_STEPS, OF_SURFACES
from stabkit.figures.catalogue import FIGURES, SURFACES
from stabkit.options import lines, ranges
from stabkit.options.commands import COMMANDS
from stabkit.paper.item import Item
from stabkit.paper.items import ITEMS, NOT_HERE

KEYS = {claim.key for claim in (*CLAIMS, *OF_STEPS, *OF_SURFACES)}
NAMES = {figure.name for figure in (*FIGURES, *SURFACES)}


@pytest.mark.parametrize("item", ITEMS, ids=lambda item: item.key)
def test_an_item_is_whole(item: Item) -> None:
    assert item.paper in ("DeepNet", "Very Deep Transformers", "stabkit")
    assert all((item.name, item.title, item.theirs, item.scaled, item.commands))
    assert set(item.figures) <= NAMES and {*item.claims, *item.beside} <= KEYS
    assert (item.claims and item.figures) or item.paper == "stabkit", "ours is no paper's claim"
    assert not set(item.claims) & set(item.beside)
    assert item.theirs.endswith((".", "?")) and item.scaled.endswith(".")
    for command in item.commands:
        name, chosen = lines.words(command)
        assert name in COMMANDS and set(chosen) <= set(COMMANDS[name])


def test_the_issues_figures_and_tables_are_all_there() -> None:
    names = [(item.paper, item.name) for item in ITEMS]
    deepnet = [*(f"Fig. {i}" for i in range(1, 10)), "Table 1", "Table 2", "Table 4", "Tables 6, 7", "Table 11"]
    assert [name for paper, name in names if paper == "DeepNet"] == deepnet
    very_deep = ["Fig. 2(a)", "Fig. 2(b)", "Table 1", "Table 3"]
    assert [name for paper, name in names if paper == "Very Deep Transformers"] == very_deep
    assert [item.key for item in ITEMS if item.paper == "stabkit"] == ["start"]


def test_what_is_out_of_reach_has_a_reason_and_is_no_item() -> None:
    named = {f"{item.paper} {item.name}" for item in ITEMS}
    assert NOT_HERE and all(what not in named and why for what, why in NOT_HERE)


def test_a_line_with_an_option_that_its_command_lacks_is_refused() -> None:
    with pytest.raises(ValueError, match="no --beams"):
        lines.words("sweep --beams 4")


@pytest.mark.parametrize("item", ITEMS, ids=lambda item: item.key)
def test_a_line_and_its_options_are_each_others_inverse(item: Item) -> None:
    for command in item.commands:
        name, chosen = lines.words(command)
        wished = {option: value for option, value in chosen.items() if value != ranges.text(COMMANDS[name][option])}
        assert lines.words(lines.line(name, chosen)) == (name, wished)
    assert lines.words(lines.line("sweep", {"data": "/my data"}))[1] == {"data": "/my data"}


READINGS = {claim.key for claim in (*CLAIMS, *OF_STEPS, *OF_SURFACES) if "stabkit's reading" in claim.sentence.lower()}


@pytest.mark.parametrize("item", ITEMS, ids=lambda item: item.key)
def test_our_own_readings_do_not_count_for_an_item(item: Item) -> None:
    assert not set(item.claims) & READINGS
