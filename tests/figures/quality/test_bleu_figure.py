"""BLEU against depth: what is put together, what is kept apart, and what the title says of it."""

from __future__ import annotations

import pytest

from stabkit.figures.quality import bleu
from stabkit.storage.store import Run
from tests.figures.fake_runs import ended, spec, translated


def said(right: float, encoder: int, decoder: int | None = None, method: str = "admin", **changes: object) -> Run:
    sentences = str(changes.pop("sentences", "test"))
    made = ended(spec(method, encoder, decoder, **{"warmup": 0, "steps": 250, **changes}))
    return translated(made, right, sentences=sentences)


def score(run: Run) -> float:
    return run.translations[0].score.bleu


def test_shapes_of_equally_many_layers_have_a_place_and_a_number_each() -> None:
    runs = [said(0.9, 60, 12), said(0.5, 12, 60), said(0.7, 36)]
    (axes,) = bleu.PICTURE.drawn(bleu.select(runs)).axes
    assert [text.get_text() for text in axes.get_xticklabels()] == ["12L-60L", "36L-36L", "60L-12L"]
    (line,) = (one for one in axes.lines if len(one.get_xdata()) == 3)
    assert line.get_ydata().tolist() == [pytest.approx(score(run)) for run in (runs[1], runs[2], runs[0])]
    assert bleu.title(runs) == f"ADMIN reaches BLEU {score(runs[0]):.1f} at 60L-12L"


def test_equal_stacks_stand_on_a_scale_of_layers() -> None:
    (axes,) = bleu.PICTURE.drawn(bleu.select([said(0.9, 6), said(0.8, 18)])).axes
    assert axes.get_xscale() == "log" and axes.lines[0].get_xdata().tolist() == [12, 36]


def test_the_title_is_of_the_deepest_place_that_translates() -> None:
    runs = [said(0.9, 6), said(0.0, 18)]
    assert bleu.title(runs) == f"ADMIN reaches BLEU {score(runs[0]):.1f} at 6L-6L"
    assert bleu.title([said(0.0, 6), said(0.0, 18)]).startswith("No model translates yet: the highest BLEU is 0")


def test_test_sets_are_conditions_and_never_averaged() -> None:
    """Two texts of one run are no seeds: the first saw other sentences than the second."""
    run = translated(said(0.9, 6, sentences="aaaaaaaa"), 0.5, sentences="bbbbbbbb")
    frame = bleu.select([run])
    assert frame["condition"].tolist() == ["test set aaaaaa", "test set bbbbbb"]
    assert all("to" not in bleu.words(own) for _, own in frame.groupby("condition"))
    assert len(bleu.PICTURE.drawn(frame).axes) == 2 and "test set aaaaaa" in bleu.PICTURE.described(frame)
