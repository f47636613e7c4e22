"""The contract of the probes' table: each equals a slow recomputation, leaves no hook, changes no bit of training."""

import json
import math
import os
import re
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

import stabkit.probes as package
from stabkit.model.flat import Flat
from stabkit.model.transformer import tensors
from stabkit.probes import PROBES
from stabkit.probes.base import Pass
from stabkit.results import sites
from stabkit.results.chain import gradient_ratio
from stabkit.results.schedule import rate
from stabkit.streams import key
from stabkit.tasks.base import PAD
from stabkit.tasks.synthetic import Synthetic
from stabkit.training import train
from tests.conftest import tiny

SPEC = tiny("admin", layers=2, steps=3, warmup=0, lr=1e-3)
TASK = Synthetic(vocab=200, max_tokens=128)
KEEP = {
    "encoder": torch.from_numpy(TASK.probe().source != 0).t(),
    "decoder": torch.from_numpy(TASK.probe().target_out != 0).t(),
}


@pytest.fixture(scope="module")
def records():
    return train.run(SPEC, TASK).records


@pytest.fixture(scope="module")
def slow():
    """The same run by hand, with torch's own loop over parameters: models after 0 to 3 updates, gradients in place."""
    models = []
    for updates in range(SPEC.train.steps + 1):
        model = train.build(SPEC, TASK, torch.device("cpu"))
        model.train()
        adam = torch.optim.Adam(model.parameters(), betas=(0.9, 0.98), eps=1e-8, foreach=False)
        torch.manual_seed(key(SPEC.seed, "dropout"))
        for step in range(updates + 1):
            adam.zero_grad()
            source, target_in, target_out = tensors(TASK.train(0, step))
            logits = model(source, target_in)[1].transpose(0, 1)
            logp = torch.log_softmax(logits, -1)
            smooth = 0.9 * -logp.gather(-1, target_out[..., None])[..., 0] + 0.1 * -logp.mean(-1)
            loss = smooth[target_out != 0].mean()
            loss.backward()
            if step < updates:
                adam.param_groups[0]["lr"] = rate(step + 1, 1e-3, 0)
                adam.step()
        model.eval()
        models.append((model, float(loss.detach())))
    return models


def at_taps(model):
    """{site name: (branch, sum)} on the probe batch, by hooks of this test's own."""
    seen, handles = {}, []
    for site, residual in model.residuals.items():
        for tap in ("branch", "sum"):
            handles.append(
                getattr(residual, tap).register_forward_hook(
                    lambda m, i, o, k=(site.name, tap): seen.update({k: o.detach()})
                )
            )
    with torch.no_grad():
        states, logits = model(*tensors(TASK.probe())[:2])
    for handle in handles:
        handle.remove()
    return seen, states, logits


def assert_close(found, expected):
    assert found == pytest.approx(expected, rel=2e-4, abs=1e-7)


@torch.no_grad()
def test_update_is_the_mean_distance_of_the_states_from_the_first_ones(records, slow):
    outputs = [at_taps(model)[1:] for model, _ in slow]
    keep = KEEP["decoder"]
    for which, name in enumerate(("state", "logits")):
        for t in range(4):
            apart = (outputs[t][which] - outputs[0][which])[keep].norm(dim=-1)
            step = (outputs[t][which] - outputs[max(t - 1, 0)][which])[keep].norm(dim=-1)
            assert_close(records["update"].at(name)[t], float(apart.mean()))
            assert_close(records["update"].at(f"{name}@step")[t], float(step.mean()))
            assert_close(records["update"].at(f"{name}@frobenius")[t], float(apart.square().sum().sqrt()))


def test_update_is_exactly_zero_at_step_0_and_not_after(records):
    values = records["update"].values
    assert (values[0] == 0.0).all() and (values[1:] > 0).all()


def test_ln_input_is_the_norm_of_what_enters_the_norm_raw_and_over_omega(records, slow):
    for t, (model, _) in enumerate(slow):
        seen, _, _ = at_taps(model)
        for site, residual in model.residuals.items():
            expected = float(seen[site.name, "sum"][KEEP[site.stack]].norm(dim=-1).mean())
            assert_close(records["ln_input"].at(site.name)[t], expected)
            assert_close(records["ln_input"].at(f"{site.name}@omega")[t], expected / (residual.omega * math.sqrt(16)))


def test_branch_ratio_is_branch_over_shortcut(records, slow):
    for t, (model, _) in enumerate(slow):
        seen, _, _ = at_taps(model)
        for site in model.sites:
            branch, total = (seen[site.name, tap][KEEP[site.stack]] for tap in ("branch", "sum"))
            assert_close(
                records["branch_ratio"].at(site.name)[t],
                float((branch.norm(dim=-1) / (total - branch).norm(dim=-1)).mean()),
            )


def test_branch_and_shortcut_are_kept_as_mean_squares_an_entry(records, slow):
    for t, (model, _) in enumerate(slow):
        seen, _, _ = at_taps(model)
        for site in model.sites:
            branch, total = (seen[site.name, tap][KEEP[site.stack]] for tap in ("branch", "sum"))
            for name, x in (("branch", branch), ("shortcut", total - branch)):
                assert_close(records["branch_ratio"].at(f"{site.name}@{name}")[t], float(x.square().mean()))


@torch.no_grad()
def test_perturbation_is_how_far_every_output_moves_when_all_weights_move_by_1e_4(records):
    before, after = (train.build(SPEC, TASK, torch.device("cpu")).eval() for _ in range(2))
    flat = Flat(after, after.parts())
    signs = np.random.Generator(np.random.PCG64(key(0, "perturbation"))).integers(0, 2, len(flat.theta)) * 2 - 1
    flat.theta += 1e-4 * torch.from_numpy(signs).float()
    outputs = [{}, {}]
    for model, found in zip((before, after), outputs, strict=True):
        for site, residual in model.residuals.items():
            residual.register_forward_hook(lambda m, i, o, k=site.name, f=found: f.update({k: o[0]}))
        model(*tensors(TASK.probe())[:2])
    for site in before.sites:
        a, b = (found[site.name][KEEP[site.stack]] for found in outputs)
        expected = float(((b - a).norm(dim=-1) / a.norm(dim=-1)).mean())
        assert records["perturbation"].at(site.name)[0] == pytest.approx(expected, rel=1e-3)


def states_of(model):
    """{stack: the state that enters, and after every layer}, on the probe batch, by hooks of this test's own."""
    found, handles = {}, []
    for site, residual in model.residuals.items():
        own = found.setdefault(site.stack, [])
        if site.index == 1:
            handles.append(residual.register_forward_pre_hook(lambda m, i, own=own: own.append(i[0])))
        if site.index % (site.sublayers // site.depth) == 0:
            handles.append(residual.register_forward_hook(lambda m, i, o, own=own: own.append(o[0])))
    with torch.no_grad():
        model(*tensors(TASK.probe())[:2])
    for handle in handles:
        handle.remove()
    return found


def test_stream_is_the_rms_of_the_state_after_every_layer_and_before_the_first(records, slow):
    for t, (model, _) in enumerate(slow):
        for stack, states in states_of(model).items():
            for layer, x in enumerate(states):
                expected = float((x[KEEP[stack]].double().norm(dim=-1) / 4).mean())
                assert_close(records["stream"].at(f"{stack}.{layer}")[t], expected)


def test_cosine_is_between_the_states_before_and_after_a_layer(records, slow):
    for t, (model, _) in enumerate(slow):
        for stack, states in states_of(model).items():
            for layer, (x, y) in enumerate(zip(states, states[1:], strict=False), 1):
                a, b = x[KEEP[stack]].double(), y[KEEP[stack]].double()
                expected = ((a * b).sum(-1) / (a.norm(dim=-1) * b.norm(dim=-1))).mean()
                assert_close(records["cosine"].at(f"{stack}.{layer}")[t], float(expected))


def test_a_second_stream_has_sites_of_its_own():
    found = train.run(tiny("residual", layers=2, steps=1, warmup=0), TASK).records
    assert found["stream"].sites[:4] == ("encoder.0", "encoder.0:sum", "encoder.1", "encoder.1:sum")
    assert set(found["cosine"].sites) == {
        f"{s}.{n}{k}" for s in ("encoder", "decoder") for n in (1, 2) for k in ("", ":sum")
    }
    model = train.build(tiny("residual", layers=2), TASK, torch.device("cpu")).eval()
    branches = at_taps(model)[0]
    total = states_of(model)["decoder"][0]
    for site in model.sites:
        total = total + branches[site.name, "branch"] if site.stack == "decoder" else total
    expected = float((total[KEEP["decoder"]].double().norm(dim=-1) / 4).mean())
    assert_close(found["stream"].at("decoder.2:sum")[0], expected)
    np.testing.assert_allclose(found["stream"].at("decoder.2"), 1, rtol=1e-3)


@pytest.mark.parametrize(
    "changes", [{}, {"qk_norm": True, "positions": "rotary", "norm": "rms"}], ids=["classic", "changed"]
)
def test_the_attention_logit_is_the_largest_over_heads_queries_and_the_keys_they_see(changes):
    spec = tiny("deepnorm", layers=2, steps=0, warmup=0)
    spec = replace(spec, model=replace(spec.model, **changes))
    found = train.run(spec, TASK).records["attention_logit"]
    model = train.build(spec, TASK, torch.device("cpu")).eval()
    packed = {}
    for site, residual in model.residuals.items():
        if site.kind != "ffn":
            residual.g.scores.register_forward_pre_hook(lambda m, i, k=site: packed.update({k: i[:2]}))
    with torch.no_grad():
        model(*tensors(TASK.probe())[:2])
    assert found.sites == tuple(site.name for site in packed)
    for site, (queries, memory) in packed.items():
        t, b, _ = queries.shape
        if site.kind == "self":
            q, k, _ = queries.view(t, b, 2, 3, 8).unbind(3)
        else:
            q, k = queries.view(t, b, 2, 8), memory.view(-1, b, 2, 2, 8).unbind(3)[0]
        largest = -math.inf
        seen = KEEP["encoder" if site.kind == "cross" or site.stack == "encoder" else "decoder"]
        for sentence in range(b):
            for at in torch.nonzero(KEEP[site.stack][:, sentence]).flatten().tolist():
                keys = [
                    j
                    for j in range(len(k))
                    if seen[j, sentence] and (site.stack == "encoder" or site.kind == "cross" or j <= at)
                ]
                scores = torch.einsum("he,jhe->hj", q[at, sentence].double(), k[keys, sentence].double()) / math.sqrt(8)
                largest = max(largest, float(scores.max()))
        assert_close(found.at(site.name)[0], largest)


def test_gradient_norms_are_those_of_the_training_batch_at_the_same_weights(records, slow):
    for t, (model, _) in enumerate(slow):
        layers = {}
        for site, residual in model.residuals.items():
            square = sum(float(p.grad.double().square().sum()) for p in residual.parameters())
            assert_close(records["grad_norm"].at(site.name)[t], math.sqrt(square))
            layers[f"{site.stack}.{site.layer}"] = layers.get(f"{site.stack}.{site.layer}", 0.0) + square
        for layer, square in layers.items():
            assert_close(records["grad_norm"].at(layer)[t], math.sqrt(square))
        assert_close(records["grad_norm"].at("embedding")[t], float(model.embedding.grad.double().norm()))


def test_the_gradient_of_the_weights_leaves_biases_norms_and_omega_out_and_is_read_once(records, slow):
    model, _ = slow[0]
    table = records["weight_grad"]
    assert table.steps.tolist() == [0] and table.sites == tuple(site.name for site in model.sites)
    for site, residual in model.residuals.items():
        own = {name: p for name, p in residual.named_parameters() if name.endswith("weight") and "norm" not in name}
        matrices = [p for p in own.values() if p.dim() == 2]
        assert len(matrices) == len([p for p in residual.parameters() if p.dim() == 2]) >= 2
        square = sum(float(p.grad.double().square().sum()) for p in matrices)
        assert_close(table.at(site.name)[0], math.sqrt(square))
        assert table.at(site.name)[0] < records["grad_norm"].at(site.name)[0]


def test_the_gradient_ratio_of_the_outcome_is_that_of_the_first_and_last_decoder_layer(records, slow):
    def norm(model, layer):
        squares = (
            float(p.grad.double().square().sum()) for k in ("self", "cross", "ffn") for p in layer_of(model, layer, k)
        )
        return math.sqrt(sum(squares))

    def layer_of(model, layer, kind):
        return model.layers[f"decoder_{layer}_{kind}"].parameters()

    assert_close(gradient_ratio(records["grad_norm"]).tolist(), [norm(m, 1) / norm(m, 2) for m, _ in slow])


def test_the_gradient_of_a_ln_input_is_found_without_hooks_too(records):
    model = train.build(SPEC, TASK, torch.device("cpu"))
    last = model.residuals[model.sites[-1]]
    source, target_in, target_out = tensors(TASK.train(0, 0))
    seen = {}
    last.sum.register_forward_hook(lambda m, i, o: seen.update(x=o))
    logits = model(source, target_in)[1]
    loss = torch.nn.functional.cross_entropy(
        logits.flatten(0, 1), target_out.t().reshape(-1), ignore_index=0, label_smoothing=0.1
    )
    (gradient,) = torch.autograd.grad(loss, seen["x"])
    assert_close(records["grad_norm"].at("decoder.2@x")[0], float(gradient.norm()))


@torch.no_grad()
def test_parameter_update_is_the_distance_from_the_first_weights(records, slow):
    first = slow[0][0]
    for t, (model, _) in enumerate(slow):
        for (site, a), b in zip(model.residuals.items(), first.residuals.values(), strict=True):
            square = sum(
                float((p - q).double().square().sum()) for p, q in zip(a.parameters(), b.parameters(), strict=True)
            )
            assert_close(records["parameter_update"].at(site.name)[t], math.sqrt(square))


def test_loss_is_the_label_smoothed_loss_of_the_training_batch(records, slow):
    assert records["loss"].at("train").tolist() == pytest.approx([loss for _, loss in slow], rel=1e-5)


def test_every_probe_declares_its_sites_and_records_every_step(records):
    of_all = [probe for probe in PROBES if probe.name != "mixing"]
    assert set(records) == {probe.name for probe in of_all} | {"validation"}
    for probe in of_all:
        assert records[probe.name].steps.tolist() == ([0, 1, 2, 3] if probe.when == "recorded" else [0])
        table = records[probe.name]
        assert table.values.shape == (len(table.steps), len(table.sites)) == (len(table.steps), len(set(table.sites)))


@pytest.mark.parametrize("left_out", [(), *((probe,) for probe in PROBES)], ids=lambda p: p[0].name if p else "all on")
def test_no_probe_changes_a_bit_of_training(left_out, monkeypatch):
    spec = tiny("post-ln", layers=2, steps=4, warmup=0, dropout=0.1)
    with_all = train.run(spec, TASK)
    monkeypatch.setattr(train, "PROBES", tuple(p for p in PROBES if p not in left_out) if left_out else PROBES)
    monkeypatch.setattr(train, "judge", lambda *args, **kwargs: None)
    without = train.run(spec, TASK)
    for name, weight in with_all.weights.items():
        assert weight.tobytes() == without.weights[name].tobytes(), name


def test_hooks_are_gone_after_a_run(monkeypatch):
    kept = []
    build = train.build
    monkeypatch.setattr(train, "build", lambda *args, **kwargs: kept.append(build(*args, **kwargs)) or kept[0])
    train.run(tiny(steps=1), TASK)
    for module in kept[0].modules():
        assert not module._forward_hooks and not module._forward_pre_hooks and not module._backward_hooks
        for watching in (getattr(module, name, {}) for name in ("watchers", "lengths")):
            assert not any(watching.values())
        assert not getattr(module, "gradients", [])


def test_every_file_of_the_folder_has_its_row():
    files = {p.stem for p in Path(package.__file__).parent.glob("*.py")} - {"__init__", "base"}
    assert files == {probe.name for probe in PROBES} == {row.name for row in sites.PROBES}


def test_a_probe_imports_no_other():
    for path in Path(package.__file__).parent.glob("*.py"):
        imported = set(re.findall(r"stabkit\.probes\.(\w+)", path.read_text(encoding="utf-8")))
        assert imported <= {"base", "tools"}, path.name


@pytest.mark.parametrize("layers", [(2, 2), (0, 3), (3, 0)])
@pytest.mark.parametrize("method", ["post-ln", "dlcl", "sub-ln", "mhc", "siamesenorm"])
def test_a_probe_records_every_site_of_its_row(method, layers):
    spec = tiny(method, steps=1)
    spec = replace(spec, model=replace(spec.model, encoder_layers=layers[0], decoder_layers=layers[1]))
    model = train.build(spec, TASK, torch.device("cpu"))
    flat = Flat(model, model.parts())
    for probe in (probe for probe in PROBES if probe.applies(model)):
        assert set(sites.declared(probe.name, spec.model)) <= set(probe(model, flat).sites), probe.name


MEAN_WEIGHT = '''
"""The mean of all weights."""
import torch
from stabkit.probes.base import Pass, Probe
class MeanWeight(Probe):
    name = "mean_weight"
    watches = "probe"
    def __init__(self, model, flat):
        super().__init__(model, flat)
        self.flat = flat
    def read(self, seen):
        return self.flat.theta.mean().double()[None]
'''
ROW = '    TableSites("mean_weight", lambda at: ("all",)),\n'
RECORDED = """
from pathlib import Path
from stabkit.running import work
from stabkit.spec import from_json
from stabkit.storage.store import Store
import json, sys
spec = from_json(json.loads(sys.argv[1]))
work.do({"kind": "run", "out": sys.argv[2], "spec": spec.to_json(), "corpus": None, "device": "cpu"}, print)
run = Store(Path(sys.argv[2])).load(spec.run_id)
table = run.records["mean_weight"]
print(table.sites, table.steps.tolist(), run.lacks)
"""


@pytest.mark.slow
def test_a_new_probe_is_one_file_and_one_row(tmp_path):
    home = tmp_path / "package"
    shutil.copytree(Path(package.__file__).parents[1], home / "stabkit", ignore=shutil.ignore_patterns("__pycache__"))
    (home / "stabkit" / "probes" / "mean_weight.py").write_text(MEAN_WEIGHT)
    table = home / "stabkit" / "results" / "sites.py"
    before = '    TableSites("perturbation"'
    table.write_text(table.read_text(encoding="utf-8").replace(before, ROW + before, 1), encoding="utf-8")
    spec = json.dumps(tiny("deepnorm", steps=2).to_json())
    done = subprocess.run(
        [sys.executable, "-c", RECORDED, spec, str(tmp_path)],
        cwd=home,
        env={**os.environ, "PYTHONPATH": str(home)},
        capture_output=True,
        text=True,
    )
    assert done.stdout.splitlines()[-1:] == ["('all',) [0, 1, 2] ()"], done.stderr


def test_loss_and_accuracy_are_of_the_tokens_asked_for_alone():
    """Against torch's own cross-entropy with an index that it ignores."""
    logits = torch.randn(3, 2, 7, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    target = torch.tensor([[3, 6], [1, PAD], [5, PAD]])
    given = dict.fromkeys(("batch", "loss", "train_loss", "train_nll", "states"))
    seen = Pass(**given, logits=logits, target=target, keep={})
    theirs = torch.nn.functional.cross_entropy(logits.flatten(0, 1), target.flatten(), ignore_index=PAD)
    assert float(seen.nll()) == pytest.approx(float(theirs), rel=1e-12)
    right = [int(logits[at].argmax()) == int(target[at]) for at in ((0, 0), (0, 1), (1, 0), (2, 0))]
    assert float(seen.accuracy()) == sum(right) / 4
