"""Several optimisers under one watch or probe: an update is over when each has stepped."""

from __future__ import annotations

import warnings
from contextlib import nullcontext
from importlib.util import find_spec
from types import SimpleNamespace

import pytest
import torch
from torch import nn

import stabkit
from stabkit.errors import UsageError
from stabkit.own.chain.updates import WAITING, several
from stabkit.own.probe.built_model import make
from stabkit.own.probe.loop import record
from stabkit.own.watch.journal import StabilityWarning
from stabkit.storage.watched import WatchShelf
from tests.conftest import need
from tests.own import probe_models as models
from tests.own.test_watch import loss_of, tokens

STEPS = 6


def parted(model):
    """(matrices of the blocks, the rest), as Muon's users part them."""
    matrices = [p for p in model.blocks.parameters() if p.dim() == 2]
    rest = [p for p in model.parameters() if all(p is not matrix for matrix in matrices)]
    return matrices, rest


def muon_and_adamw(model, **more):
    matrices, rest = parted(model)
    return [torch.optim.Muon(matrices, lr=0.02), torch.optim.AdamW(rest, lr=1e-3, **more)]


def made():
    torch.manual_seed(0)
    model = models.Stack(2)
    return model, muon_and_adamw(model)


def train(model, optimizers, steps=STEPS, seen=lambda loss: None, scaler=None):
    norms = []
    for step in range(steps):
        for optimizer in optimizers:
            optimizer.zero_grad()
        loss = loss_of(model, tokens(step))
        (scaler.scale(loss) if scaler else loss).backward()
        factor = scaler.get_scale() if scaler else 1.0
        norms.append(float(torch.stack([p.grad.double().norm() / factor for p in model.parameters()]).norm()))
        seen(loss)
        for optimizer in optimizers:
            (scaler.step(optimizer) if scaler else optimizer.step())
        if scaler:
            scaler.update()
    return [p.detach().clone() for p in model.parameters()], norms


def held(out):
    (watch,) = (WatchShelf(out).load(name) for name in WatchShelf(out).ids())
    return watch


@pytest.mark.slow
@pytest.mark.parametrize("scaled", ["", "scaler", "fused scaler"])
@pytest.mark.parametrize("pack", [list, lambda both: SimpleNamespace(optimizers=both)], ids=["list", "container"])
def test_muon_and_adamw_train_as_without_and_gradients_are_those_of_both(scaled, pack, tmp_path):
    def begin():
        torch.manual_seed(0)
        model = models.Stack(2)
        scaler = torch.amp.GradScaler("cpu", init_scale=64.0) if scaled else None
        return model, muon_and_adamw(model, fused="fused" in scaled), scaler

    model, optimizers, scaler = begin()
    alone, norms = train(model, optimizers, scaler=scaler)
    model, optimizers, scaler = begin()
    with stabkit.watch(model, pack(optimizers), out=tmp_path) as watch:
        watched, _ = train(model, optimizers, seen=watch.loss, scaler=scaler)
    assert all(torch.equal(ours, theirs) for ours, theirs in zip(watched, alone, strict=True))
    assert watch.steps == STEPS and watch.ended == "closed" and watch.warnings == []
    found = held(tmp_path)
    gradient = found.cell.records["gradient"]
    assert gradient.steps.tolist() == list(range(STEPS))
    assert ((gradient.values**2).sum(axis=1) ** 0.5).tolist() == pytest.approx(norms, rel=1e-6)
    assert found.cell.facts.optimizer == "Muon + AdamW"
    assert any("their rates: Muon 0.02, AdamW 0.001" in note for note in found.cell.facts.notes)


def test_what_an_update_moved_is_what_both_moved(tmp_path):
    model, optimizers = made()
    before = [p.detach().clone() for p in model.parameters()]
    with stabkit.watch(model, optimizers, out=tmp_path):
        after, _ = train(model, optimizers, steps=1)
    moved = sum(float((a - b).double().norm()) ** 2 for a, b in zip(after, before, strict=True)) ** 0.5
    row = held(tmp_path).cell.records["delta"]
    sites = [name for name in row.sites if "@" not in name]
    assert (row.select(sites)[0] ** 2).sum() ** 0.5 == pytest.approx(moved, rel=1e-6)


@pytest.mark.parametrize("skips", [0, 1])
def test_one_that_a_scaler_skips_belongs_to_the_update_that_ends_next(skips, tmp_path):
    """Its gradients were not finite, the other's were: no reading lies between the two."""
    model, optimizers = made()
    with stabkit.watch(model, optimizers, out=tmp_path) as watch:
        for step in range(4):
            for optimizer in optimizers:
                optimizer.zero_grad()
            loss_of(model, tokens(step)).backward()
            for i, optimizer in enumerate(optimizers):
                if (step, i) != (1, skips):
                    optimizer.step()
        assert watch.steps == 3
        weights = [p.detach().clone() for p in model.parameters()]
    assert "did not step in turn" in " ".join(held(tmp_path).cell.facts.notes)
    assert all(torch.equal(p, w) for p, w in zip(model.parameters(), weights, strict=True))


def test_a_critic_that_steps_oftener_is_said_and_an_update_is_over_when_both_have(tmp_path):
    model, (first, second) = made()
    with stabkit.watch(model, [first, second], out=tmp_path) as watch:
        for step in range(6):
            loss_of(model, tokens(step)).backward()
            first.step()
            if step % 3 == 2:
                second.step()
        assert watch.steps == 2
    assert any("one stepped 3 times in one update" in note for note in held(tmp_path).cell.facts.notes)


def test_one_that_never_steps_is_named(tmp_path):
    model, (first, second) = made()
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        with stabkit.watch(model, [first, second], out=tmp_path, probe=tokens(0)) as watch:
            for step in range(WAITING):
                loss_of(model, tokens(step)).backward()
                second.step()
    (said,) = [str(one.message) for one in seen if issubclass(one.category, StabilityWarning)]
    assert f"AdamW has stepped {WAITING} times, Muon has not" in said and watch.steps == 0


def test_what_no_optimizer_given_steps_is_named_in_one_line(tmp_path):
    model, (muon, adamw) = made()
    with pytest.warns(StabilityWarning, match="no given optimizer steps .*, although trainable") as seen:
        with stabkit.watch(model, muon, out=tmp_path, probe=tokens(0)) as watch:
            loss_of(model, tokens(0)).backward()
            muon.step()
    (said,) = [str(one.message) for one in seen]
    assert "embedding" in said and "norm tensors" in said and "head" in said and "\n" not in said
    assert watch.warnings[0].link == "owned" and watch.warnings[0].step == 0


def test_a_probe_takes_several_as_its_third_value():
    def factory(depth):
        model, loss = models.pre_ln(depth)
        return model, loss, muon_and_adamw(model)

    built = make(factory, "factory", 3, 0, 0.0)
    assert "the factory's own Muon + AdamW" in built.notes
    found = record(built, 3)
    again = make(factory, "factory", 3, 0, 0.0)
    for step in range(1, 4):
        for optimizer in again.optimizers:
            optimizer.zero_grad()
        again.objective.at(again.model, step).backward()
        for optimizer in again.optimizers:
            optimizer.step()
    assert all(torch.equal(a, b) for a, b in zip(built.model.parameters(), again.model.parameters(), strict=True))
    assert found.records["update"].steps.tolist() == [0, 1, 2, 3]
    scaled = make(factory, "factory", 3, 0, 0.04)
    assert [own.param_groups[0]["lr"] for own in scaled.optimizers] == pytest.approx([0.04, 2e-3])


def test_a_probe_names_what_its_optimizers_leave_out():
    def factory(depth):
        model, loss = models.pre_ln(depth)
        return model, loss, torch.optim.Muon(parted(model)[0], lr=0.02)

    assert any(
        "stepped by no optimizer given: embed.weight and" in note for note in make(factory, "f", 2, 0, 0.0).notes
    )


def test_bad_lists_of_optimizers_are_refused(tmp_path):
    model, (muon, adamw) = made()
    for given, said in (
        ([muon, muon], "the same optimizer is given twice"),
        ([muon, "adamw"], "must be a torch.optim.Optimizer, not str"),
        ([muon, torch.optim.SGD([nn.Parameter(torch.ones(2))], lr=1.0)], "SGD holds none of the model's parameters"),
        ([], "without an optimizer, give a probe batch"),
    ):
        with pytest.raises(UsageError, match=said):
            stabkit.watch(model, given, out=tmp_path)
    with pytest.raises(UsageError, match="the optimizer reports its own steps"):
        stabkit.watch(model, [muon, adamw], out=tmp_path, probe=tokens(0)).step()


def test_one_whose_parameters_are_all_frozen_is_said_and_steps_with_the_others(tmp_path):
    model, (muon, adamw) = made()
    for group in adamw.param_groups:
        for parameter in group["params"]:
            parameter.requires_grad_(False)
    with stabkit.watch(model, [muon, adamw], out=tmp_path, probe=tokens(0)) as watch:
        for step in range(2):
            loss_of(model, tokens(step)).backward()
            muon.step()
            adamw.step()
        assert watch.steps == 2
    assert "all model parameters in AdamW are frozen" in held(tmp_path).cell.facts.notes


def test_wrappers_give_what_steps():
    model, both = made()
    nested = SimpleNamespace(optimizer=SimpleNamespace(optimizers=[both[0], SimpleNamespace(optimizer=both[1])]))
    assert several(nested) == tuple(both) and several(None) == () and several([both, []]) == tuple(both)


class Packed(torch.optim.Optimizer):
    """Keeps its moments as bytes and numbers of Python, as optimisers of 8 bits do."""

    def __init__(self, parameters, lr):
        super().__init__(parameters, {"lr": lr})

    @torch.no_grad()
    def step(self, closure=None):
        for group in self.param_groups:
            for p in group["params"]:
                if p.grad is None:
                    continue
                state = self.state[p]
                scale = float(p.grad.abs().max()) or 1.0
                state["moment"] = {"codes": (p.grad / scale * 127).to(torch.int8).flatten()[:7], "scale": scale}
                state["calls"] = state.get("calls", 0) + 1
                p.add_(p.grad.sign(), alpha=-group["lr"])


def of_torch(name, **more):
    return lambda model: [getattr(torch.optim, name)(model.parameters(), **more)]


def of_library(name, **more):
    def made(model):
        need("libraries", find_spec("pytorch_optimizer") is not None, "pytorch-optimizer")
        import pytorch_optimizer

        return [getattr(pytorch_optimizer, name)(model.parameters(), **more)]

    return made


OPTIMIZERS = {
    "Muon + AdamW": muon_and_adamw,
    "SGD": of_torch("SGD", lr=0.1, momentum=0.9),
    "AdamW": of_torch("AdamW", lr=1e-3),
    "Adafactor": of_torch("Adafactor", lr=1e-3),
    "NAdam": of_torch("NAdam", lr=1e-3),
    "RAdam": of_torch("RAdam", lr=1e-3),
    "Packed": lambda model: [Packed(model.parameters(), lr=1e-4)],
}
LIBRARY = {
    "Lion": of_library("Lion", lr=1e-4),
    "SOAP": of_library("SOAP", lr=1e-3),
    "ScheduleFreeAdamW": of_library("ScheduleFreeAdamW", lr=1e-3),
    "AdaFactor": of_library("AdaFactor", lr=1e-3),
    "Shampoo": of_library("Shampoo", lr=1e-3),
}


def looking_ahead(model):
    need("libraries", find_spec("pytorch_optimizer") is not None, "pytorch-optimizer")
    import pytorch_optimizer

    return [pytorch_optimizer.Lookahead(torch.optim.SGD(model.parameters(), lr=0.1), k=2)]


def one_for_both(model):
    """A Muon that steps everything, each group in its way."""
    need("libraries", find_spec("pytorch_optimizer") is not None, "pytorch-optimizer")
    import pytorch_optimizer

    matrices, rest = parted(model)
    groups = [{"params": matrices, "use_muon": True}, {"params": rest, "use_muon": False}]
    return [pytorch_optimizer.Muon(groups, lr=1e-3)]


LIBRARY.update({"Lookahead": looking_ahead, "Muon of pytorch-optimizer": one_for_both})


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", [*OPTIMIZERS, *(pytest.param(n, marks=pytest.mark.libraries) for n in LIBRARY)])
def test_whatever_the_optimizer_training_is_as_without_and_is_recorded(name, tmp_path):
    build = {**OPTIMIZERS, **LIBRARY}[name]
    ends = []
    for out in ("", tmp_path):
        torch.manual_seed(0)
        model = models.Stack(2)
        optimizers = build(model)
        for optimizer in optimizers:
            getattr(optimizer, "train", lambda: None)()  # schedule-free ones ask for it
        with stabkit.watch(model, optimizers, out=out) if out else nullcontext() as watch:
            ends.append(train(model, optimizers, steps=4)[0])
    assert all(torch.equal(ours, theirs) for ours, theirs in zip(*ends, strict=True))
    assert watch.steps == 4 and watch.ended == "closed"
    found = held(tmp_path).cell
    assert found.records["gradient"].steps.tolist() == [0, 1, 2, 3] and (found.gradients("stack") > 0).all()
    assert (found.records["delta"].at("stack.1.self")[1:] > 0).all()  # SOAP's first step fills its preconditioner
