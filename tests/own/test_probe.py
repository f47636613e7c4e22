"""`stabkit probe`: what a factory may return, what is refused and in which words, what is kept."""

from __future__ import annotations

import json
import math
import sys
import time
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional

from stabkit.errors import UsageError
from stabkit.own.chain.reader import masks
from stabkit.own.probe import onward
from stabkit.own.probe.built_model import make
from stabkit.own.probe.level import Targets
from stabkit.own.probe.loop import cell as loop_cell
from stabkit.own.probe.loop import record
from stabkit.own.sublayers.run import Call
from stabkit.results.own import decided, looks
from stabkit.results.own.cure import SIDE_BY_SIDE
from stabkit.results.own.judged import refuse
from stabkit.results.own.measured import UPDATES
from stabkit.results.own.verdict import verdict
from stabkit.storage.probed import PROBE
from stabkit.storage.shelf import Shelf
from stabkit.wording.anatomy import uneven
from tests.own import probe_models as models
from tests.own.probing import cell, told

# — what it takes —


@pytest.mark.slow
def test_a_forecast_is_of_as_many_updates_as_it_was_fitted_on():
    for steps, axes in ((16, ()), (32, ("updates",)), (8, ("updates",))):
        found = verdict([cell("pre_ln", 4, lr=1e-3, steps=steps, ramped=True)])
        assert found.forecast.axes == axes and (found.forecast.probability is None) == bool(axes)


def test_an_optimizer_that_chooses_its_rate_is_out_of_range_and_keeps_it():
    """transformers' Adafactor has a rate of None."""

    class OwnRate(torch.optim.SGD):
        def step(self, closure=None):
            for group in self.param_groups:
                assert group["lr"] is None
                for p in group["params"]:
                    p.data.sub_(p.grad, alpha=1e-3)

    def factory(depth):
        model, loss = models.pre_ln(depth)
        optimizer = OwnRate(model.parameters(), lr=1e-3)
        for group in optimizer.param_groups:
            group["lr"] = None
        return model, loss, optimizer

    made = make(factory, "factory", 2, 0, 0.0)
    found = loop_cell(made, record(made, 16, ramped=True), factory="a:b", depth=2, lr=0.0, seed=0, steps=16)
    assert "ramp_loss" not in found.records and verdict([found]).forecast.axes == ("optimizer",)


def test_layers_that_share_their_weights_have_no_gradients_to_compare_and_a_forecast():
    found = verdict([cell("shared_weights", 4, lr=1e-3, ramped=True)])
    assert found.forecast.probability is not None and found.gradient.verdict == "cannot tell"


def test_a_model_alone_is_given_random_tokens_of_its_own_vocabulary():
    made = make(models.alone, "alone", 2, 0, 0.0)
    (tokens,) = made.call.args
    assert tokens.shape == (8, 32) and 80 < int(tokens.max()) < models.WORDS
    (note,) = made.notes
    assert note.startswith("the factory gives no loss: cross-entropy on new batches") and made.fresh
    again = make(models.alone, "alone", 4, 0, 0.0)
    assert (again.call.args[0] == tokens).all(), "the batch is the same at every depth"


def test_an_optimizer_of_its_own_keeps_its_rates_or_is_scaled_as_a_whole():
    def two(depth):
        model, loss = models.pre_ln(depth)
        first, *rest = model.parameters()
        return model, loss, torch.optim.SGD([{"params": [first], "lr": 0.1}, {"params": rest, "lr": 0.01}])

    assert [group["lr"] for group in make(two, "two", 2, 0, 0.0).optimizers[0].param_groups] == [0.1, 0.01]
    assert [group["lr"] for group in make(two, "two", 2, 0, 1.0).optimizers[0].param_groups] == pytest.approx(
        [1.0, 0.1]
    )


def test_training_with_a_probe_is_training_without():
    """Dropout draws, BatchNorm counts."""
    made = make(models.noisy, "noisy", 3, 0, 1e-3)
    record(made, 3)
    alone = make(models.noisy, "noisy", 3, 0, 1e-3)
    for step in range(1, 4):
        alone.optimizers[0].zero_grad()
        alone.objective.at(alone.model, step).backward()
        alone.optimizers[0].step()
    alone.objective.at(alone.model, 4)  # of the weights after the last update, which BatchNorm counts too
    for (name, ours), theirs in zip(made.model.state_dict().items(), alone.model.state_dict().values(), strict=True):
        assert torch.equal(ours, theirs), name


def test_half_precision_is_read_in_full_and_said():
    def half(depth):
        return models.Stack(depth).to(torch.bfloat16)

    made = make(half, "half", 2, 0, 1e-3)
    found = record(made, 2)
    assert "half precision" in " ".join(made.notes) and not found.broke
    assert found.records["update"].at("state")[0] == 0.0 < found.records["update"].at("state")[1]


def test_a_factory_without_a_depth_is_probed_once():
    assert cell("single", None, steps=2).facts.depth is None


def test_like_blocks_stand_for_sub_layers_where_there_are_no_sums():
    found = cell("gated", 4, steps=2)
    assert found.facts.how == "blocks 1.0 … 1.3" and "no sums" in found.facts.notes[-2]
    assert [own.name for own in found.facts.sublayers] == [f"blocks.{i}.block" for i in (1, 2, 3, 4)]
    assert (found.gradients("blocks") > 0).all() and found.growth("blocks") > 0


def test_blocks_can_be_named(tmp_path):
    folder = told("pre_ln", tmp_path, 3, blocks="blocks.*")["folder"]
    facts = Shelf(PROBE, tmp_path).load(folder).facts
    assert facts.how == "blocks blocks.0 … blocks.2" and len(facts.sublayers) == 3


# — what it refuses, in one line —


@pytest.mark.parametrize(
    ("name", "depth", "said"),
    [
        ("single", 4, "takes no depth; write it as factory(depth), or leave out --depths"),
        ("pre_ln", None, "takes 'depth'; give --depths"),
        (
            "wrong",
            4,
            "(model, loss), (model, loss, optimizer) or (model, loss, optimizer, scheduler), got str",
        ),
        ("fresh", 4, "at the same weights; its batch must be the same at the same step"),
        ("vector", 4, "must be a scalar tensor, got a tensor [4]"),
        ("detached", 4, "the loss has no gradient"),
        ("around", 4, "loss(model) never calls the model itself"),
        ("frozen", 4, "every parameter is frozen"),
        ("foreign", 4, "its optimizer holds none of the model's parameters"),
        ("closure", 4, "LBFGS steps by a closure"),
        ("stepping", 4, "optimiser steps were taken in one update"),
        ("cut_off", 4, "the loss's gradient reaches none of the model's parameters"),
        ("on_meta", 4, "is on the meta device"),
        ("slipped", 4, "NameError: name 'nowhere' is not defined (probe_models.py:"),
        ("nothing", 4, "no residual sums x + f(x) and no similar blocks"),
    ],
)
def test_a_factory_that_cannot_be_probed_is_told_why(name, depth, said, tmp_path):
    try:
        found = told(name, tmp_path, depth)["failed"]
    except UsageError as error:  # what no depth would change
        found = str(error)
        assert name in ("single", "pre_ln")
    assert said in found and "\n" not in found


def test_a_pattern_that_names_no_blocks_is_told_what_there_is(tmp_path):
    found = told("pre_ln", tmp_path, 3, blocks="h.*")["failed"]
    assert "'h.*' matches 0 modules; at least two are needed. Similar ones: blocks.0" in found


def test_blocks_that_run_more_than_once_are_refused(tmp_path):
    found = told("looped", tmp_path, 4, blocks="blocks.*")["failed"]
    assert "blocks ran 12 times in one pass, 4 blocks match blocks.*" in found


def test_a_users_exception_is_one_line_with_its_place_and_a_log(tmp_path):
    answer = told("raises", tmp_path)
    lines = Path(models.__file__).read_text().splitlines()
    line = next(i for i, text in enumerate(lines, 1) if "no such layer" in text)
    assert answer["failed"] == f"ValueError: no such layer (probe_models.py:{line})"
    assert "Traceback (most recent call last)" in Path(answer["log"]).read_text()


def test_what_the_users_code_prints_is_not_mixed_into_ours(tmp_path, capfd):
    assert "said aloud" in Path(told("talks", tmp_path)["log"]).read_text()
    assert capfd.readouterr() == ("", "")


def test_a_model_of_another_depth_than_asked_is_refused():
    with pytest.raises(UsageError, match="at depth 6 the model has 8 sub-layers, at depth 3 8"):
        refuse([cell("deaf", 3, steps=1), cell("deaf", 6, steps=1)])


def test_a_run_that_is_not_finite_is_a_finding_that_names_step_and_place():
    found = cell("exploding", 4, steps=3)
    assert found.facts.broke.step == 1


# — what it keeps —


def test_the_same_model_is_probed_once(tmp_path):
    first, second = (told("pre_ln", tmp_path) for _ in range(2))
    assert not first["reused"] and second["reused"] and first["folder"] == second["folder"]
    assert told("pre_ln", tmp_path, fresh=True)["reused"] is False
    assert told("pre_ln", tmp_path, seed=1)["folder"] != first["folder"]


def test_an_edit_that_leaves_the_weights_alone_is_another_model(tmp_path):
    """In a file beside the factory's: a detach."""
    for edit in ("x", "x.detach()"):
        (tmp_path / "net_of_mine.py").write_text(NET.replace("CHANGE", edit))
        (tmp_path / "fac_of_mine.py").write_text(
            "from net_of_mine import Net\n\ndef made(depth):\n    return Net(depth)\n"
        )
        for name in ("net_of_mine", "fac_of_mine"):
            sys.modules.pop(name, None)
        answers = [told("", tmp_path / "out", factory="fac_of_mine:made", here=str(tmp_path)) for _ in range(2)]
        assert [answer["reused"] for answer in answers] == [False, True]


NET = """
from torch import nn

class Net(nn.Module):
    def __init__(self, depth):
        super().__init__()
        self.embed, self.head = nn.Embedding(50, 16), nn.Linear(16, 50)
        self.f = nn.ModuleList(nn.Sequential(nn.Linear(16, 16), nn.ReLU(), nn.Linear(16, 16)) for _ in range(depth))

    def forward(self, tokens):
        x = self.embed(tokens)
        for f in self.f:
            x = x + f(CHANGE)
        return self.head(x)
"""


def test_a_damaged_folder_goes_to_quarantine_and_is_made_again(tmp_path):
    folder = tmp_path / "probes" / told("pre_ln", tmp_path)["folder"]
    facts = json.loads((folder / "facts.json").read_text())
    (folder / "facts.json").write_text(json.dumps({**facts, "seed": 5}))
    assert told("pre_ln", tmp_path)["reused"] is False
    assert list((tmp_path / "probes" / ".quarantine").iterdir())


def test_the_working_directory_is_the_users_while_his_code_runs(tmp_path):
    before = Path.cwd()
    assert str(tmp_path) in told("where", tmp_path, here=str(tmp_path))["failed"]
    assert Path.cwd() == before


def test_a_rule_of_updates_elsewhere_on_the_path_is_part_of_the_model(tmp_path, monkeypatch):
    """What no number at the start shows, in a package that does not stand where the command runs."""
    package = tmp_path / "elsewhere" / "pack_of_mine"
    package.mkdir(parents=True)
    monkeypatch.syspath_prepend(str(package.parent))
    (package / "__init__.py").touch()
    (package / "made.py").write_text(
        "from tests.own import probe_models\nfrom pack_of_mine.rule import Rule\n\n"
        "def made(depth):\n    model, loss = probe_models.pre_ln(depth)\n"
        "    return model, loss, Rule(model.parameters(), lr=0.1)\n"
    )
    for sign in "+-":
        (package / "rule.py").write_text(f"import torch\n\nclass Rule(torch.optim.SGD):\n    factor = {sign}5\n")
        for name in [name for name in sys.modules if name.startswith("pack_of_mine")]:
            sys.modules.pop(name)
        assert told("", tmp_path / "out", factory="pack_of_mine.made:made")["reused"] is False
    assert told("", tmp_path / "out", factory="pack_of_mine.made:made")["reused"] is True


# — what tried to make it lie —


def test_norms_in_a_list_of_their_own_are_no_stream(tmp_path):
    """A gated stream that explodes; the norms' outputs, of constant size, stand in a ModuleList."""
    assert "no similar blocks" in told("gated_boom", tmp_path)["failed"]


def test_frozen_layers_are_not_compared():
    found = cell("half_frozen", 4, steps=2)
    assert [own.parameters > 0 for own in found.facts.sublayers] == [False] * 4 + [True] * 4
    assert (found.gradient_ratio("stack") > 1e-3).all()


def test_a_layer_that_a_step_skips_is_no_vanished_gradient():
    ratio = cell("layer_drop", 4, steps=6).gradient_ratio("stack")
    assert not (ratio == 0).any()


def test_pictures_with_rows_of_zeros_are_read_by_their_channels():
    found = cell("pictures", 4, steps=2)
    assert found.facts.broke is None and found.facts.width == 8


def test_an_optimizer_without_a_rate_is_no_crash_of_ours(tmp_path):
    assert "folder" in told("no_rate", tmp_path)


def test_one_bad_depth_keeps_the_others(tmp_path):
    assert "no residual sums" in told("alone_at_one", tmp_path, 1)["failed"]
    assert "folder" in told("alone_at_one", tmp_path, 4)


def test_an_exception_without_words_is_told(tmp_path):
    assert "(it has no message)" in told("wordless", tmp_path)["failed"]


def test_a_model_whose_sub_layers_do_not_follow_the_depth_is_noted():
    odd = [cell("odd", depth, steps=1) for depth in (2, 4, 8)]
    assert uneven(odd) == "the number of sub-layers is not linear in the depth: 4 at 2, 8 at 4, 12 at 8"
    assert uneven(odd[:2]) == "", "through two points there is always a line"


def test_a_loss_that_overflows_is_a_finding(tmp_path):
    found = Shelf(PROBE, tmp_path).load(told("overflows", tmp_path)["folder"])
    assert str(found.facts.broke) == "step 1, the loss (53 of 53 gradients are not finite)" and found.records[
        "loss"
    ].at("train")[1] == float("inf")


@pytest.mark.filterwarnings("ignore:None of the inputs have requires_grad")
def test_reentrant_checkpointing_can_be_probed(tmp_path):
    assert "folder" in told("checkpointed", tmp_path)


def test_a_mask_is_found_by_place_and_by_name():
    model, mask = models.Masked(), torch.ones(2, 3, dtype=torch.bool)
    for call in (Call((mask, mask), {}), Call((mask,), {"attention_mask": mask})):
        assert list(masks(model, call)) == ["attention_mask"]


# — what it trains on —


def by_hand(factory, updates, read=UPDATES):
    """(losses, state) of so many updates; the batch after update `read` is looked at once more, as a probe does."""
    made = make(factory, "factory", 2, 0, 0.0)
    losses = []
    for step in range(1, updates + 1):
        made.optimizers[0].zero_grad()
        loss = made.objective.at(made.model, step)
        losses.append(float(loss.detach()))
        loss.backward()
        made.optimizers[0].step()
        made.schedule.step()
        if step == read:
            made.objective.at(made.model, step + 1)
    return losses, [value.clone() for value in made.model.state_dict().values()]


def noisy_and_scheduled(depth, rate=1e-3):
    """Dropout draws, BatchNorm counts, the model too; the rate falls."""
    model, loss = models.noisy(depth)
    model.calls = 0
    model.register_buffer("mean", torch.zeros(1))

    def counted(module, given, returned):
        if module.training:
            module.calls, module.mean = module.calls + 1, 0.9 * module.mean + 0.1 * returned.detach().mean()
        return returned * (1 + 0.01 * module.calls) - module.mean

    model.register_forward_hook(counted)
    optimizer = torch.optim.AdamW(model.parameters(), lr=rate)
    return model, loss, optimizer, torch.optim.lr_scheduler.LambdaLR(optimizer, lambda t: 1 / (1 + t))


def rate_in_a_tensor(depth):
    return noisy_and_scheduled(depth, torch.tensor(1e-3))


def scheduler_of_its_own(depth):
    class Falling:
        def __init__(self, optimizer):
            self.optimizer, self.t = optimizer, 0

        def step(self):
            self.t += 1
            self.optimizer.param_groups[0]["lr"] = 1e-3 / (1 + self.t)

    model, loss, optimizer, _ = noisy_and_scheduled(depth)
    return model, loss, optimizer, Falling(optimizer)


@pytest.mark.parametrize("factory", [noisy_and_scheduled, rate_in_a_tensor, scheduler_of_its_own])
def test_training_on_after_the_ramp_is_training_without_it_to_the_bit(factory):
    """Parameters, buffers, what Adam remembers, the schedule, chance."""
    made = make(factory, "factory", 2, 0, 0.0)
    own = loop_cell(made, record(made, UPDATES, ramped=True), factory="a:b", depth=2, lr=0.0, seed=0, steps=UPDATES)
    assert "ramp_loss" in own.records
    on = onward.trained(made, own, lambda step, loss: None, updates=24)
    losses, state = by_hand(factory, 24)
    assert decided.losses(on) == losses
    assert all(torch.equal(a, b) for a, b in zip(made.model.state_dict().values(), state, strict=True))


def ending(at, error):
    """(factory, a list to be filled before it raises this from an update on)."""
    armed = []

    def factory(depth):
        model, loss = models.pre_ln(depth)

        def short(model, step):
            if armed and step > at:
                raise error
            return loss(model, step)

        return model, short

    return factory, armed


@pytest.mark.parametrize(
    ("factory", "updates", "note", "diverges"),
    [
        (ending(20, ValueError("scale is negative")), 21, "update 21 raised ValueError: scale is negative", True),
        (ending(30, IndexError("no batch")), 30, "update 31 raised IndexError: no batch", False),
        ((models.loader, []), 20, "its 20 batches were used up", False),
    ],
)
def test_training_on_ends_with_a_note_where_the_users_code_or_its_batches_end(factory, updates, note, diverges):
    made = make(factory[0], "factory", 2, 0, 0.0)
    own = loop_cell(made, record(made, UPDATES, ramped=True), factory="a:b", depth=2, lr=0.0, seed=0, steps=UPDATES)
    factory[1].append(True)
    on = onward.trained(made, own, lambda step, loss: None, updates=60)
    assert f"{note}: it was trained no further" in on.facts.notes and len(decided.losses(on)) == updates
    assert decided.decided(on).diverges is diverges and not on.facts.within


def test_what_is_undecided_is_trained_on_until_a_look_is_firm_and_else_not(tmp_path):
    asked = {"steps": UPDATES, "ramped": True, "lr": 3e-3}
    seen = Shelf(PROBE, tmp_path).load(told("alone", tmp_path, 2, train="undecided", **asked)["folder"])
    found = decided.decided(seen)
    assert (found.word, found.basis) == ("trains", "seen") and UPDATES < found.updates == len(decided.losses(seen))
    quick = Shelf(PROBE, tmp_path).load(told("alone", tmp_path, 2, **asked)["folder"])
    assert "trained" not in quick.records and decided.decided(quick).basis == "forecast"
    assert np.array_equal(quick.records["loss"].values, seen.records["loss"].values)


def test_what_ended_by_time_is_trained_again_only_with_more_time(tmp_path):
    asked = {"steps": UPDATES, "ramped": True, "train": "always", "until": 0.0}
    first = told("pre_ln", tmp_path, 2, **asked)
    ended = Shelf(PROBE, tmp_path).load(first["folder"])
    assert ended.facts.within == 120.0 and "trained" not in ended.records
    assert all(told("pre_ln", tmp_path, 2, **asked | {"seconds": most})["reused"] for most in (120.0, 60.0))
    again = told("pre_ln", tmp_path, 2, **asked | {"until": 4e9}, seconds=300.0)
    assert not again["reused"] and again["folder"] == first["folder"]
    whole = Shelf(PROBE, tmp_path).load(again["folder"])
    assert not whole.facts.within and len(decided.losses(whole)) == SIDE_BY_SIDE
    assert told("pre_ln", tmp_path, 2, **asked, seconds=600.0)["reused"]


@pytest.mark.parametrize(("p", "updates"), [(0.4, 20), (0.6, 40)])
def test_a_third_of_the_time_is_left_for_changes_where_a_training_seems_to_fail(p, updates, monkeypatch):
    monkeypatch.setattr(looks.Looks, "decide", lambda rule, tens, given: looks.Decision("undecided", "seen", p, 10))
    monkeypatch.setattr(looks, "LAST", 40)
    made = make(models.pre_ln, "factory", 2, 0, 0.0)
    own = loop_cell(made, record(made, UPDATES, ramped=True), factory="a:b", depth=2, lr=0.0, seed=0, steps=UPDATES)
    on = onward.trained(made, own, lambda step, loss: None, until=time.time() + 30, within=120.0)
    assert len(decided.losses(on)) == updates and bool(on.facts.within) is (updates < 40)


# — what its loss costs who knows nothing —


def level(*losses):
    """(level, whether a regression) of some calls of a loss."""
    targets = Targets()
    for loss in losses:
        with targets:
            value = loss()
        targets.ended(float(value))
    return targets.level, targets.regression


def test_the_level_of_labels_is_the_entropy_of_their_frequencies():
    scores, labels = torch.randn(4000, 3), torch.tensor([0, 0, 1, 2]).repeat(1000)
    half = -(0.5 * math.log(0.5) + 0.5 * math.log(0.25))
    assert level(lambda: functional.cross_entropy(scores, labels))[0] == pytest.approx(half, abs=1e-3)
    assert level(lambda: nn.NLLLoss()(scores.log_softmax(-1), labels))[0] == pytest.approx(half, abs=1e-3)
    kept = level(lambda: nn.CrossEntropyLoss(ignore_index=0)(scores, labels))
    assert kept[0] == pytest.approx(math.log(2), abs=1e-3)
    twice = level(*(lambda part=part: functional.cross_entropy(scores[:2000], part) for part in labels.view(2, -1)))
    assert twice[0] == pytest.approx(half, abs=1e-3)
    mixed = 0.9 * torch.tensor([0.5, 0.25, 0.25]) + 0.1 / 3
    smooth = level(lambda: functional.cross_entropy(scores, labels, label_smoothing=0.1))
    assert smooth[0] == pytest.approx(float(-(mixed * mixed.log()).sum()), abs=1e-3)
    absent = level(lambda: functional.cross_entropy(torch.randn(1000, 4), labels[:1000], label_smoothing=0.1))
    mixed = 0.9 * torch.tensor([0.5, 0.25, 0.25, 0.0]) + 0.1 / 4
    assert absent[0] == pytest.approx(float(-(mixed * mixed.log()).sum()), abs=2e-3)


def test_the_level_of_a_regression_is_the_variance_of_each_place_over_all_answers():
    answers = torch.randn(2, 50, 3) * torch.tensor([1.0, 2.0, 3.0]) + torch.tensor([5.0, 0.0, -5.0])
    found, regression = level(*(lambda part=part: functional.mse_loss(torch.zeros(50, 3), part) for part in answers))
    assert regression and found == pytest.approx(float(answers.flatten(0, 1).var(0).mean()))


@pytest.mark.parametrize(
    "loss",
    [
        lambda x, y: functional.cross_entropy(x, y) + 0.1 * x.square().mean(),
        lambda x, y: functional.cross_entropy(x, y) + functional.cross_entropy(x, y),
        lambda x, y: functional.cross_entropy(x, y, reduction="sum"),
        lambda x, y: functional.cross_entropy(x, y, weight=torch.tensor([1.0, 2.0, 3.0])),
        lambda x, y: functional.cross_entropy(x, x.softmax(-1)),
        lambda x, y: 0.5 * functional.mse_loss(x[:, 0], y.float()),
        lambda x, y: functional.mse_loss(x[:, 0], y.float(), reduction="sum"),
        lambda x, y: -x.log_softmax(-1)[:, 0].mean(),
    ],
)
def test_no_level_is_known_of_a_loss_of_several_terms_or_of_another_kind(loss):
    assert level(lambda: loss(torch.randn(60, 3), torch.arange(60) % 3))[0] is None


def test_a_regression_of_ones_own_is_held_against_the_best_constant():
    def regression(depth):
        model = models.Stack(depth)
        model.head = nn.Linear(models.WIDTH, 1)
        return model, lambda model, step: functional.mse_loss(
            model(models.text(step))[..., 0], models.text(step).float() / 50
        )

    found = record(make(regression, "regression", 2, 0, 0.0), 4)
    answers = torch.cat([models.text(step) for step in range(1, 6)]).float() / 50
    assert found.regression and found.frequencies == pytest.approx(float(answers.double().var(0).mean()))
