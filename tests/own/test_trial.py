"""One rate tried on a user's model, as a worker does it, against a plain loop; what is wrong with a factory."""

from __future__ import annotations

import json
import math
import statistics
from pathlib import Path
from typing import Any

import pytest
import torch

from stabkit.errors import UsageError
from stabkit.own import trial as trials
from stabkit.results.own.trial import ModelTrial
from stabkit.results.typed import read
from stabkit.storage.shelf import Shelf
from stabkit.storage.trials import TRIAL
from tests.own import carried_models

ROOT = str(Path(__file__).parents[2])


def answer(name: str, out: Path, **asked: Any) -> dict[str, Any]:
    body = {"id": name, "factory": f"tests.own.carried_models:{name}", "here": ROOT, "depth": 2, "width": None}
    body |= {"seed": 3, "lr": 1e-2, "warmup": None, "steps": 8, "out": str(out), **asked}
    body = {"smallest": [body["depth"], body["width"]], **body}
    events: list[Any] = []
    found = json.loads(trials.trial(body, events.append)[1])
    assert json.dumps(events, allow_nan=False)
    return found


def tried(name: str, out: Path, **asked: Any) -> ModelTrial:
    said = answer(name, out, **asked)
    assert "folder" in said, said
    return Shelf(TRIAL, out).load(said["folder"])


def held_out(model: torch.nn.Module, steps: int) -> float:
    with torch.no_grad():
        return statistics.fmean(float(carried_models.loss(model.eval(), steps + 1 + i)) for i in range(16))


def test_its_losses_are_those_of_a_plain_loop(tmp_path: Path) -> None:
    torch.manual_seed(3)
    model, loss = carried_models.tiny(2)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    start, losses = held_out(model, 8), []
    model.train()
    for step in range(1, 9):
        optimizer.zero_grad()
        value = loss(model, step)
        losses.append(value.item())
        value.backward()
        optimizer.step()
    made = tried("tiny", tmp_path)
    assert made.losses == pytest.approx(losses, rel=1e-6) and made.made == 8
    assert made.start == pytest.approx(start, rel=1e-6) and made.loss == pytest.approx(held_out(model, 8), rel=1e-5)
    assert made.fresh and made.trial.trains == (made.loss < made.start) and made.optimizer == "AdamW"


@pytest.mark.slow
def test_groups_and_schedulers_of_its_own_are_scaled_in_proportion(tmp_path: Path) -> None:
    torch.manual_seed(3)
    model, loss, optimizer, scheduler = carried_models.stepped(2)
    for group in optimizer.param_groups:
        group["lr"], group["initial_lr"] = 20 * group["lr"], 20 * group["initial_lr"]
    scheduler.base_lrs = [20 * rate for rate in scheduler.base_lrs]
    for step in range(1, 9):
        optimizer.zero_grad()
        loss(model, step).backward()
        optimizer.step()
        scheduler.step()
    made = tried("stepped", tmp_path, lr=2e-2)
    assert made.loss == pytest.approx(held_out(model, 8), rel=1e-5) and made.optimizer == "SGD"


def test_a_law_of_the_rate_in_the_depth_is_the_factorys_own(tmp_path: Path) -> None:
    """Its rate is 1e-2/depth: the rate asked for is that of the smallest, and the deeper keeps half of it."""
    torch.manual_seed(3)
    model, loss, optimizer = carried_models.shrinking(2)
    optimizer.param_groups[0]["lr"] = 1e-2
    for step in range(1, 9):
        optimizer.zero_grad()
        loss(model, step).backward()
        optimizer.step()
    made = tried("shrinking", tmp_path, lr=2e-2, smallest=[1, None])
    assert made.loss == pytest.approx(held_out(model, 8), rel=1e-5)
    alone = tried("shrinking", tmp_path, lr=2e-2)
    assert alone.loss != made.loss


@pytest.mark.parametrize("name", ["tensor_rate", "shrinking"])
def test_a_rate_is_scaled_whatever_it_is_held_in(name: str, tmp_path: Path) -> None:
    low, high = (tried(name, tmp_path, lr=lr).loss for lr in (1e-3, 1e-1))
    assert low != high


def test_an_optimiser_that_raises_is_a_loss_that_is_lost(tmp_path: Path) -> None:
    made = tried("strict", tmp_path)
    assert math.isinf(made.loss) and "LinAlgError" in made.notes[0] and "update 3" in made.notes[0]


@pytest.mark.parametrize(("name", "said"), [("three_batches", "there are 3"), ("one_batch", "there is one")])
def test_batches_that_come_again_are_noted(name: str, said: str, tmp_path: Path) -> None:
    made = tried(name, tmp_path)
    assert not made.fresh and any(
        "the loss is read on the training batches" in note and said in note for note in made.notes
    )


def test_every_seed_learns_the_same_where_the_factory_brings_no_loss(tmp_path: Path) -> None:
    first, second = (tried("bare", tmp_path, seed=seed) for seed in (0, 1))
    assert first.frequencies == second.frequencies and first.losses != second.losses


def test_what_is_stored_is_not_trained_again_and_comes_back_whole(tmp_path: Path) -> None:
    first, again = (answer("tiny", tmp_path) for _ in range(2))
    assert not first["reused"] and again == {**first, "reused": True}
    assert answer("tiny", tmp_path, lr=2e-2)["folder"] != first["folder"]
    made = Shelf(TRIAL, tmp_path).load(first["folder"])
    assert read(ModelTrial, json.loads(json.dumps(made.to_json(), allow_nan=False))) == made


def test_a_width_is_the_factorys_second_argument(tmp_path: Path) -> None:
    wide = tried("tiny", tmp_path, width=16)
    assert wide.width == 16 and wide.parameters > tried("tiny", tmp_path).parameters
    with pytest.raises(UsageError, match=r"write it as factory\(depth, width\)"):
        answer("stepped", tmp_path, width=16)


@pytest.mark.parametrize("name", ["exploding", "raising"])
def test_a_loss_that_is_lost_is_a_finding(name: str, tmp_path: Path) -> None:
    made = tried(name, tmp_path)
    assert math.isinf(made.loss) and not made.trial.trains and made.made < 8
    assert (name == "raising") == any("FloatingPointError" in note for note in made.notes)
    assert json.dumps(made.to_json(), allow_nan=False)


def test_a_fault_of_the_users_code_is_no_finding_about_the_rate(tmp_path: Path) -> None:
    for lr in (1e-4, 1e-2):
        assert "ValueError: 5 is not in list" in answer("faulty", tmp_path, lr=lr)["failed"]
    assert "not in list" in answer("faulty", tmp_path, steps=4)["failed"], "read where no update is made"


def test_an_assertion_on_numbers_that_have_grown_is_a_finding(tmp_path: Path) -> None:
    made = tried("asserting", tmp_path, lr=1e3)
    assert math.isinf(made.loss) and "loss exploded" in made.notes[0]


def test_what_is_wrong_with_a_factory_is_one_line(tmp_path: Path) -> None:
    assert "--lr scales the rates of its optimizer" in answer("unrated", tmp_path)["failed"]
    assert "SystemExit" in answer("leaving", tmp_path)["failed"]
    with pytest.raises(UsageError, match="has no 'nothing'"):
        answer("nothing", tmp_path)
