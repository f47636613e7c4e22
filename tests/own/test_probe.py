"""`stabkit probe`: what a factory may return, what is refused and in which words, what is kept."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
import torch

from stabkit.errors import UsageError
from stabkit.own.chain.reader import masks
from stabkit.own.probe.built_model import make
from stabkit.own.probe.loop import cell as loop_cell
from stabkit.own.probe.loop import record
from stabkit.own.sublayers.run import Call
from stabkit.results.own.judged import refuse
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


def test_a_short_training_ends_where_it_has_learnt_and_is_read_there():
    found = cell("alone", 2, lr=3e-3, steps=600)
    (last,) = {int(found.records[name].steps[-1]) for name in ("loss", "update", "gradient", "delta", "scores")}
    assert found.facts.steps == 600 and 16 < last < 590, "two layers learn a chain of words before that"
    seen = verdict([found]).trained
    assert seen is not None and seen.word == "trains" and seen.updates == last
    assert found.records["delta"].value("outside@relative", last) > 0, "the last step was held against the one before"
    whole = cell("alone", 2, lr=3e-3, steps=16)
    (updates,) = {int(whole.records[name].steps[-1]) for name in ("loss", "update")}
    assert updates == 16
