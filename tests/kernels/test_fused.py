"""The fused path against the Python path, against float64 and against finite differences; and when it steps aside."""

import copy
import gc
import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional

from stabkit import methods
from stabkit.kernels import fused, head
from stabkit.kernels.lease import Spare
from stabkit.methods.base import Method, Scale
from stabkit.methods.blocks import BLOCKS
from stabkit.model.bound import bound, places
from stabkit.model.flat import Flat
from stabkit.model.transformer import Transformer
from stabkit.probes.tools.hooks import on_gradients, on_lengths, on_taps
from stabkit.spec import ModelConfig
from stabkit.tasks.base import PAD
from stabkit.tasks.synthetic import Synthetic
from stabkit.training import train
from tests.conftest import tiny

pytestmark = pytest.mark.usefixtures("library")

V = 40
ELSE = {"norm": "dyt", "ffn_kind": "swiglu", "qk_norm": True, "tied": False, "positions": "rotary"}
"""What neither block has."""


def tokens() -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Source, target_in and target_out of five sentences, two with padding each; more keys than a row is padded to."""
    generator = torch.Generator().manual_seed(3)
    source, target, right = (torch.randint(4, V, (5, length), generator=generator) for length in (18, 7, 7))
    source[2, 13:], source[4, 17:], target[1, 5:], right[1, 5:] = PAD, PAD, PAD, PAD
    return source, target, right


SOURCE, TARGET, RIGHT = tokens()


def built(method: Method, kernels: str, n: int, m: int, dtype=torch.float64, dropout=0.0, stirred=True, **more):
    """The model and its gradient as one vector; every parameter moved a little, so that nothing is 0 or 1 by chance."""
    sizes = {"hidden": 24, "ffn": 40, "heads": 2} | more
    model = Transformer(ModelConfig(encoder_layers=n, decoder_layers=m, **sizes), method, V, 0, dropout, dtype, kernels)
    generator = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for p in model.parameters() if stirred else ():
            noise = torch.randn(p.shape, generator=generator, dtype=torch.float64).to(dtype)
            p.add_(noise, alpha=0.2 / math.sqrt(max(1, p.ndim)))
    return model, Flat(model, model.parts())


def step(method: Method, kernels: str, n: int, m: int, **more) -> dict[str, torch.Tensor]:
    """States, loss, −log p and every gradient of a training pass; states and loss of one in eval mode."""
    model, flat = built(method, kernels, n, m, **more)
    right = (RIGHT if m else SOURCE).t()
    torch.manual_seed(5)
    model.train()
    states, _, loss, nll = model.score(SOURCE, TARGET, right, 0.1, True)
    loss.backward()
    model.eval()
    with torch.no_grad():
        _, logits, after, _ = model.score(SOURCE, TARGET, right, 0.1, True)
    path = "python" if getattr(method, "key", "") in WITHOUT else kernels
    assert [name.split()[0] for name in model.ran] == [path]
    found = {"states": states.detach(), "loss": loss.detach(), "gradient": flat.grad, "logits": logits, "after": after}
    return found | ({"nll": nll} if nll is not None else {})


WITHOUT = ("derf", "gated-attention", "value-residual")
"""Methods with a part that `stack.cpp` does not have: the Python path serves, and is recorded."""


def apart(a: torch.Tensor, b: torch.Tensor) -> float:
    """‖a − b‖/‖b‖."""
    return float((a.double() - b.double()).norm() / b.double().norm())


@pytest.mark.slow
@pytest.mark.parametrize("stacks", [(2, 3), (2, 0), (0, 3)], ids=str)
@pytest.mark.parametrize("block", [*BLOCKS, "all else"])
@pytest.mark.parametrize("key", methods.KEYS)
def test_both_paths_give_the_same_for_every_method_block_and_architecture(key, block, stacks):
    """States, loss and gradients to 1e-11 in float64; in float32 the fused path is no further from that than the Python
    path, or within 1e-6 of it."""
    method = methods.build(key, {})
    if method.undefined(*stacks):
        return
    more = BLOCKS[block] if block in BLOCKS else ELSE
    python, fused_ = (step(method, kernels, *stacks, **more) for kernels in ("python", "fused"))
    for name, expected in python.items():
        assert apart(fused_[name], expected) < 1e-11, name
    single = {kernels: step(method, kernels, *stacks, dtype=torch.float32, **more) for kernels in ("python", "fused")}
    for name, expected in python.items():
        error = {kernels: apart(values[name], expected) for kernels, values in single.items()}
        assert error["fused"] < max(1e-6, 3 * error["python"]), (name, error)


@pytest.mark.parametrize("key", ["post-ln", "deepnorm", "pre-ln", "sub-ln", "peri-ln"])
def test_at_the_first_weights_of_the_papers_size_both_are_within_a_millionth_in_float32(key):
    both = [
        step(methods.build(key, {}), kernels, 6, 6, dtype=torch.float32, stirred=False, hidden=64, ffn=128)
        for kernels in ("python", "fused")
    ]
    for name in ("states", "gradient", "loss", "logits"):
        assert apart(both[1][name], both[0][name]) < 1e-6, name


EVERYTHING = Method(
    key="everything",
    label="Everything",
    source="no paper",
    omega=lambda s: Scale(init=0.7, trainable=True, vector=s.kind == "ffn"),
    gamma=lambda s: Scale(init=0.6, trainable=True, vector=s.kind != "ffn", shared="layer"),
    kappa=lambda s: 1.3,
    norm_in=lambda s: "layer",
    norm_branch=lambda s: "rms",
    norm_out=lambda s: "dyt",
    inner=lambda s, place: {
        "first": "scale shift",
        "mid": "layer",
        "last": "heads" if s.kind != "ffn" else "rms",
        "end": "shift",
        "query": "rms across heads",
        "key": "rms across heads",
        "value": "layer",
    }.get(place, ""),
)
"""A part at every place, and every kind of scale."""


@pytest.mark.parametrize("block", BLOCKS)
@pytest.mark.parametrize("stacks", [(2, 2), (0, 2), (2, 0)], ids=str)
def test_a_part_at_every_place_and_every_scale_at_once(stacks, block):
    python, fused_ = (step(EVERYTHING, kernels, *stacks, **BLOCKS[block]) for kernels in ("python", "fused"))
    for name, expected in python.items():
        assert apart(fused_[name], expected) < 1e-11, name


@pytest.mark.parametrize("block", BLOCKS)
def test_gradients_are_those_of_finite_differences(block):
    """Of what enters (torch's gradcheck), and of all parameters along three directions."""
    model, flat = built(EVERYTHING, "fused", 1, 2, hidden=8, ffn=12, **BLOCKS[block])
    stack = model._fused["decoder"]
    x, memory = (torch.randn(length, 3, 8, dtype=torch.float64, requires_grad=True) for length in (4, 5))
    turning = model.positions.table if model.positions.turning else None
    mask = torch.zeros(3, 5, dtype=torch.float64).index_put_(
        (torch.tensor([1]), torch.tensor([4])), torch.tensor(-math.inf).double()
    )
    run = stack.ready(mask, turning, 0.0, True)
    assert torch.autograd.gradcheck(lambda x, memory: run(0, 6, x, memory, True), (x, memory))

    def loss() -> torch.Tensor:
        return model.score(SOURCE, TARGET, RIGHT.t(), 0.1, True)[2]

    flat.grad.zero_()
    loss().backward()
    for seed in range(3):
        direction = torch.randn(len(flat.theta), dtype=torch.float64, generator=torch.Generator().manual_seed(seed))
        theta, small = flat.theta.clone(), 1e-8
        ends = []
        for sign in (1, -1):
            flat.theta.copy_(theta + sign * small * direction)
            ends.append(float(loss().detach()))
        flat.theta.copy_(theta)
        assert (ends[0] - ends[1]) / (2 * small) == pytest.approx(float(flat.grad @ direction), rel=1e-5)


def test_logits_and_loss_are_those_of_torch():
    torch.manual_seed(0)
    weight = nn.Parameter(torch.randn(V, 12, dtype=torch.float64))
    x = torch.randn(35, 12, dtype=torch.float64, requires_grad=True)
    right = RIGHT.reshape(-1)
    ours = head.scored(x, weight, right, PAD, 0.1, Spare())
    ours.loss.mul(1.7).backward()
    mine = x.grad, weight.grad
    x.grad, weight.grad = None, None
    logits = x @ weight.t()
    loss = functional.cross_entropy(logits, right, ignore_index=PAD, label_smoothing=0.1)
    loss.mul(1.7).backward()
    torch.testing.assert_close((ours.logits, ours.loss), (logits, loss))
    torch.testing.assert_close(ours.right, functional.cross_entropy(logits, right, ignore_index=PAD))
    torch.testing.assert_close(mine, (x.grad, weight.grad))


def note(values: dict[tuple[str, int], torch.Tensor], what: str, i: int, x: torch.Tensor) -> None:
    values[what, i] = x.detach().clone()


@pytest.mark.parametrize("key", ["post-ln", "residual", "dlcl", "pre-ln"])
def test_probes_see_the_same_on_both_paths(key):
    """What passes every tap in eval mode, its tokens' lengths, and the gradients of sums in training."""
    seen = []
    for kernels in ("python", "fused"):
        model, _ = built(methods.build(key, {}), kernels, 2, 2)
        states = {tap: i for i, tap in enumerate(model.states("sub-layer").values())}
        scores = {r.g.scores.logits: i for i, r in enumerate(model.residuals.values()) if hasattr(r.g, "scores")}
        values: dict[tuple[str, int], torch.Tensor] = {}

        def see(what, values=values):
            return lambda at, x: note(values, what, at, x)

        watched = [on_taps(states, "probe", see("state")), on_taps(scores, "probe", see("scores"))]
        watched += [on_taps(model.numbered(tap), "probe", see(tap)) for tap in ("branch", "sum")]
        watched += [on_lengths(model.numbered(tap), "probe", see(f"‖{tap}‖")) for tap in ("branch", "sum", "shortcut")]
        watched += [on_gradients(model.numbered("sum"), see("gradient"))]
        with watched[0], watched[1], watched[2], watched[3], watched[4], watched[5], watched[6], watched[7]:
            model.train().score(SOURCE, TARGET, RIGHT.t(), 0.1, True)[2].backward()
            with torch.no_grad():
                model.train(False).score(SOURCE, TARGET, RIGHT.t(), 0.1, True)
        seen.append(values)
        assert [name.split()[0] for name in model.ran] == [kernels]
    assert seen[0].keys() == seen[1].keys() and len(seen[0]) > 70
    for name, expected in seen[0].items():
        torch.testing.assert_close(seen[1][name], expected, rtol=1e-10, atol=1e-12, msg=str(name))


@pytest.mark.parametrize("key", ["post-ln", "peri-ln"])
def test_dropout_draws_the_same_on_both_paths(key):
    python, fused_ = (step(methods.build(key, {}), kernels, 2, 2, dropout=0.3) for kernels in ("python", "fused"))
    for name, expected in python.items():
        assert apart(fused_[name], expected) < 1e-11, name


def test_what_the_file_cannot_do_takes_the_python_path_and_is_recorded(monkeypatch):
    def ran(model: Transformer) -> list[str]:
        model.ran.clear()
        model(SOURCE, TARGET)
        return [name for name in model.ran if name.startswith("python")]

    model, _ = built(methods.build("post-ln", {}), "fused", 1, 1)
    assert ran(model) == []
    handle = model.residuals[model.sites[-1]].g.register_forward_hook(lambda *args: None)
    assert ran(model) == ["python (hooks)"]
    handle.remove()
    with on_lengths({tap: 0 for tap in model.states("sub-layer").values()}, "probe", lambda i, x: None):
        assert ran(model.train()) == []
        with torch.no_grad():
            assert ran(model.eval())[0] == "python (a probe that asks for what it does not give out)"
    with torch.autocast("cpu"):
        assert ran(model.train())[0].startswith("python (")
    with on_taps(model.numbered("sum"), "training", lambda i, x: None):
        assert ran(model.train()) == ["python (a probe that asks for the graph)"]
    for p in model.parameters():
        p.data = p.data.bfloat16()
    model.positions.table.data = model.positions.table.data.bfloat16()
    assert ran(model) == ["python (bfloat16 on cpu)"]
    other, _ = built(methods.build("post-ln", {}), "fused", 1, 1)
    monkeypatch.setattr(fused, "native", lambda: "not compiled")
    assert ran(other) == ["python (not compiled)"]
    assert other.path_taken() == "python (not compiled)"


def test_under_torch_func_the_python_path_is_taken():
    """Also where only some weights are a batch: x enters a stack as it is, and the first map is not the model's own."""
    model, _ = built(methods.build("post-ln", {}), "fused", 1, 1)
    where, first = places(model), model.residuals[model.sites[0]].g.qkv.weight
    with torch.no_grad():
        alone = model(SOURCE, TARGET, True)[0]

        def states(weight: torch.Tensor) -> torch.Tensor:
            tensors = {id(p): p.detach() for _, _, p in where} | {id(first): weight}
            with bound(where, tensors):
                return model(SOURCE, TARGET, True)[0]

        both = torch.vmap(states)(torch.stack([first.detach(), 2 * first.detach()]))
    torch.testing.assert_close(both[0], alone)
    assert not torch.allclose(both[1], alone)


def test_a_copy_has_kernels_of_its_own():
    model, _ = built(methods.build("deepnorm", {}), "fused", 1, 1)
    twin = copy.deepcopy(model)
    with torch.no_grad():
        before = model(SOURCE, TARGET)[0]
        for p in twin.parameters():
            p.zero_()
        assert not torch.equal(twin(SOURCE, TARGET)[0], before)
        assert torch.equal(model(SOURCE, TARGET)[0], before)


def test_a_scale_that_calibration_exchanges_arrives():
    model, _ = built(methods.build("post-ln", {}), "fused", 1, 1)
    twin, _ = built(methods.build("post-ln", {}), "python", 1, 1)
    for each in (model, twin):
        with torch.no_grad():
            each(SOURCE, TARGET)
        next(iter(each.residuals.values())).set_omega(3.0)
    with torch.no_grad():
        assert apart(model(SOURCE, TARGET)[0], twin(SOURCE, TARGET)[0]) < 1e-11


def test_a_graph_may_be_walked_twice_and_memory_goes_back():
    model, flat = built(methods.build("post-ln", {}), "fused", 2, 2)

    def loss() -> torch.Tensor:
        return model.score(SOURCE, TARGET, RIGHT.t(), 0.1, True)[2]

    first = loss()
    first.backward(retain_graph=True)
    once = flat.grad.clone()
    first.backward()
    torch.testing.assert_close(flat.grad, 2 * once)
    del first
    for _ in range(3):
        loss().backward()
    gc.disable()
    try:
        kept = {id(t) for stack in model._fused.values() for t in stack.spare.tensors}
        loss().backward()
        assert {id(t) for stack in model._fused.values() for t in stack.spare.tensors} <= kept
    finally:
        gc.enable()


def test_gradients_are_made_where_there_are_none_and_a_frozen_scale_has_none():
    model = Transformer(ModelConfig(encoder_layers=1, decoder_layers=1, hidden=8, ffn=8, heads=2), EVERYTHING, V, 0)
    frozen = Transformer(model.config, replace(EVERYTHING, gamma=lambda s: Scale(init=0.5, vector=True)), V, 0)
    for each in (model, frozen):
        each.score(SOURCE, TARGET, RIGHT.t(), 0.1, True)[2].backward()
        assert "fused" in each.path_taken()
        for name, p in each.named_parameters():
            assert (p.grad is None) == (not p.requires_grad), name
    assert any(not p.requires_grad for p in frozen.parameters())


def test_infinity_and_nan_arrive():
    """A diverged run is a finding: what no path can bear ends in a loss that is no number."""
    for bad in (math.inf, math.nan):
        model, flat = built(methods.build("deepnorm", {}), "fused", 2, 2)
        flat.theta[50] = bad
        assert not math.isfinite(model.score(SOURCE, TARGET, RIGHT.t(), 0.1, True)[2].detach())


def test_a_run_says_its_path_and_records_nearly_the_same_on_both():
    spec = tiny("deepnorm", layers=2, steps=6, warmup=0, lr=1e-3)
    task = Synthetic(vocab=spec.task.vocab, max_tokens=spec.train.max_tokens)
    by = {kernels: train.run(spec, task, kernels=kernels) for kernels in ("fused", "python")}
    assert by["python"].kernels == "python (asked for)"
    assert by["fused"].kernels.startswith("fused") and "python" not in by["fused"].kernels
    for name, table in by["python"].records.items():
        np.testing.assert_allclose(by["fused"].records[name].values, table.values, rtol=2e-3, atol=1e-5, err_msg=name)
