"""The pictures of a user's model: exact frames, and drawn for one run, several rates and stacks, and what diverged."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from stabkit.figures.model_curves import OWN
from stabkit.figures.own_losses import LOSSES
from stabkit.results.own.cell import Broke, ModelCell
from stabkit.results.own.cure import cure
from stabkit.results.own.judged import Judged
from stabkit.results.own.verdict import verdict
from stabkit.results.records import Table
from tests.results.test_own import DEPTHS, made
from tests.results.test_own_looks import LEVEL, trained


def probed(cells):
    rates = sorted({cell.facts.lr for cell in cells})
    return Judged(cells, [verdict([c for c in cells if c.facts.lr == lr]) for lr in rates])


def lost():
    """A cell in which nothing is a number."""
    cell = made(6, broke=Broke(step=0, where="stream of stack.1.self"))
    for table in cell.records.values():
        table.values[:] = np.nan
    return cell


def at_rate(cell, lr):
    return ModelCell(replace(cell.facts, lr=lr), cell.records)


def climbed(depth):
    """A cell with a ramp, on which the scores come to tell a thousandth."""
    cell = made(depth)
    told = np.geomspace(1.0, 1e-3, 9)[:, None]
    cell.records["scores"] = Table(np.array([0]), ("information",), np.array([[1.0]]))
    cell.records["ramp_scores"] = Table(np.arange(16, 33, 2), ("information",), told)
    cell.records["ramp_loss"] = Table(np.arange(16, 33), ("train",), np.ones((17, 1)))
    return cell


FOUND = {
    "a ramp": [made(3), climbed(6)],
    "three seeds": [made(n, s, growth=n**0.5, update=0.1 * s + 0.1) for n in DEPTHS for s in range(3)],
    "one model": [made(None)],
    "two rates": [at_rate(made(n, s), lr) for n in DEPTHS for s in (0, 1) for lr in (1e-4, 1e-2)],
    "diverged": [lost()],
}


@pytest.mark.parametrize("figure", [*OWN.values(), LOSSES], ids=[*OWN, "losses"])
@pytest.mark.parametrize("cells", FOUND.values(), ids=FOUND)
@np.errstate(all="ignore")
def test_every_picture_is_drawn_and_told(figure, cells):
    found = probed(cells)
    frame = figure.select(found)
    assert tuple(frame.columns) == figure.columns and figure.title(found) and figure.described(frame)
    figure.drawn(frame)


def test_the_scores_are_drawn_against_the_rate_and_of_cells_with_a_ramp_alone():
    frame = OWN["scores"].select(probed([made(3), climbed(6)]))
    assert list(frame["depth"].unique()) == [6] and np.allclose(frame["value"], np.geomspace(1.0, 1e-3, 9))
    assert frame["x"].iloc[0] == 1 and frame["x"].iloc[-1] == pytest.approx(16) and frame["x"].is_monotonic_increasing
    assert OWN["scores"].here(frame) == "from 1.0 to 0.0010 at 16 times the rate, at 6 layers"
    for least, said in ((1e-4, "near 0 throughout, at most 1e-4, at 6 layers"), (1e-12, "0 throughout, at 6 layers")):
        silent = climbed(6)
        silent.records["ramp_scores"] = Table(np.arange(16, 33, 2), ("information",), np.full((9, 1), least))
        assert OWN["scores"].here(OWN["scores"].select(probed([climbed(3), silent]))) == said


def test_each_frame_holds_what_was_recorded():
    found = probed([made(6, growth=2.0, update=0.3, ratio=0.5)])
    assert OWN["stream"].select(found)[["x", "value"]].to_numpy().tolist() == [[0, 1], [0.5, 1], [1, 2]]
    assert OWN["update"].select(found)[["x", "value"]].to_numpy().tolist() == [[t, 0.3] for t in range(1, 6)]
    assert found.worst.gradient.step == 3
    assert OWN["gradient"].select(found)[["x", "value"]].to_numpy().tolist() == [[0, 1], [1, 0.5]]
    assert "right end: 6 layers: 0.50" in OWN["gradient"].described(OWN["gradient"].select(found))


def test_the_losses_are_means_of_ten_of_every_depth_and_of_changes_that_were_seen_to_train():
    cells = [made(2, steps=16), trained(3.0, 40, depth=6)]
    beside = [("", trained(3.0, 60, depth=6)), *((key, trained(1.0, 60, change=key)) for key in ("rate/3", "clip"))]
    cures = [replace(cure(cell, beside[0][1]), word="trains") for _, cell in beside[1:]]
    found = replace(probed(cells), beside=tuple(beside), cures=(cures[0], replace(cures[1], word="fails")))
    frame = LOSSES.select(found)
    ends = {name: (rows["x"].max(), rows["value"].iloc[-1]) for name, rows in frame.groupby("run", sort=False)}
    few = float(made(2, steps=16).records["loss"].at("train")[6:16].mean())
    assert ends == {
        "2L": (16, pytest.approx(few)),
        "6L": (60, 3.0),
        "rate/3": (60, 1.0),
        "frequencies": (60, LEVEL),
        "half way": (60, (LEVEL + 0.5) / 2),
        "all is learnt": (60, 0.5),
    }
    assert LOSSES.title(found) == "Loss: 3.00 at 6L after 60 updates, 1.00 with a third of the rate"
    shorter = replace(found, beside=(("", trained(math.nan, 40, depth=6)), *beside[1:]))
    assert LOSSES.title(shorter) == "Loss: diverged at 6L after 40 updates, 1.00 with a third of the rate"
    assert frame[frame["run"] == "6L"]["value"].iloc[0] == pytest.approx(cells[1].records["loss"].at("train")[0])
