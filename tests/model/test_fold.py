"""Folding back: torch.nn's own Post-LN layers with folded weights give the outputs of the run they come from."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.numpy import save as save_file
from safetensors.torch import load_file
from torch import nn

from stabkit import methods
from stabkit.cli import entry
from stabkit.cli.commands.fold import load, save
from stabkit.errors import UsageError
from stabkit.methods.base import Scale, sites
from stabkit.methods.support import folds
from stabkit.model.fold import EPS, Folded, batch, difference, fold, original, plain
from stabkit.results.records import jsonable
from stabkit.running import work
from stabkit.spec import ALGO_VERSION, RunSpec
from stabkit.storage import folder
from stabkit.storage.folder import CorruptFolder
from stabkit.storage.store import Run, Store
from stabkit.tasks import objective
from stabkit.tasks.base import Task
from stabkit.tasks.synthetic import Synthetic
from stabkit.training import train
from tests.commands import stabkit as command
from tests.commands import strict
from tests.conftest import files_of, tiny

Weights = dict[str, np.ndarray]


def spec_of(method: str, n: int, m: int, **changes: Any) -> RunSpec:
    """N and M layers, at a rate at which a few steps matter."""
    spec = tiny(method, steps=4, warmup=0, lr=5e-3, **changes)
    return replace(spec, model=replace(spec.model, encoder_layers=n, decoder_layers=m))


SPECS = {
    "deepnorm 3L-2L": spec_of("deepnorm", 3, 2),
    "deepnorm 2L-2L, α halved": spec_of("deepnorm", 2, 2, alpha_scale=0.5),
    "deepnorm, encoder only": spec_of("deepnorm", 3, 0),
    "deepnorm, decoder only": spec_of("deepnorm", 0, 3),
    "deepnorm 1L-1L in float64": spec_of("deepnorm", 1, 1, dtype="float64"),
    "admin 2L-3L": spec_of("admin", 2, 3),
    "admin 2L-3L, ω trained": spec_of("admin", 2, 3, options={"trainable": "yes"}),
    "admin, decoder only, ω trained": spec_of("admin", 0, 2, options={"trainable": "yes"}),
    "admin 2L-2L, closed form": spec_of("admin", 2, 2, options={"omega": "closed"}),
    "admin, encoder only": spec_of("admin", 2, 0),
    "post-ln 2L-2L": spec_of("post-ln", 2, 2),
    "ds-init 1L-2L": spec_of("ds-init", 1, 2),
}
EVERY = pytest.mark.parametrize("spec", SPECS.values(), ids=SPECS.keys())


def task_of(spec: RunSpec) -> Task:
    task = Synthetic(vocab=spec.task.vocab, max_tokens=spec.train.max_tokens)
    return objective.of(task, spec.model.encoder_layers, spec.model.decoder_layers)


@cache
def result_of(run_id: str) -> train.Result:
    spec = next(spec for spec in SPECS.values() if spec.run_id == run_id)
    return train.run(spec, task_of(spec))


@cache
def trained(run_id: str) -> Weights:
    """What a few real steps leave, with norms, biases and trained ω moved far from the 1 and 0 they began at."""
    weights, rng = dict(result_of(run_id).weights), np.random.default_rng(0)
    for name, array in weights.items():
        if name.endswith(".bias") or "norm_out" in name:
            weights[name] = (array + rng.normal(0, 0.3, array.shape)).astype(array.dtype)
        elif name.endswith(".omega"):
            one = name in ("layers.encoder_1_self.omega", "layers.decoder_1_self.omega")
            weights[name] = np.full_like(array, 1.37) if one else rng.uniform(0.4, 2.5, array.shape).astype(array.dtype)
    return weights


def run_of(spec: RunSpec, out: Path, weights: Weights | bytes | None = None) -> Run:
    """A stored run of this spec, with these weights or this file of weights in the place of its own."""
    files = work.files(spec, result_of(spec.run_id), {}) if spec in SPECS.values() else files_of(spec)
    if weights is not None:
        files["weights.safetensors"] = weights if isinstance(weights, bytes) else save_file(weights)
    store = Store(out)
    store.runs.mkdir(parents=True, exist_ok=True)
    folder.commit(store.runs / spec.run_id, store.runs / ".partial", files, ALGO_VERSION, lambda: False)
    return store.load(spec.run_id)


@EVERY
def test_torchs_own_layers_with_the_folded_weights_give_the_outputs_of_the_run(spec: RunSpec) -> None:
    weights = trained(spec.run_id)
    tokens = batch(spec)
    with torch.no_grad():
        ours = original(weights, spec)(*tokens)
        theirs = plain(fold(weights, spec)).eval()(*tokens)
    for a, b in zip(ours, theirs, strict=True):
        assert a.shape == b.shape and a.dtype == b.dtype == torch.float64 and bool(torch.isfinite(a).all())
        assert float((a - b).abs().max()) <= 1e-12 * float(a.abs().max())


@EVERY
def test_the_comparison_is_with_the_run_itself(spec: RunSpec) -> None:
    model = train.build(spec, task_of(spec), torch.device("cpu"))
    model.eval()
    tokens = batch(spec)
    with torch.no_grad():
        ours, again = model(*tokens)[1].double(), original(model.arrays(), spec)(*tokens)[1]
    assert float((ours - again).abs().max()) <= (1e-12 if spec.dtype == "float64" else 1e-5) * float(ours.abs().max())


def test_the_batch_has_padding_on_both_sides() -> None:
    for tokens in batch(SPECS["admin 2L-3L"]):
        assert 0.1 < float((tokens == 0).double().mean()) < 0.9 and bool((tokens[:, 0] != 0).all())
    assert [side.shape[1] for side in batch(SPECS["admin, encoder only"])] == [19, 0]


UNDO: dict[str, Callable[[str], bool]] = {
    "a norm": lambda name: ".norm" in name and name.startswith("decoder"),
    "what self-attention reads": lambda name: name.endswith("layers.1.self_attn.in_proj_weight"),
    "what cross-attention reads": lambda name: name.endswith("layers.1.multihead_attn.in_proj_weight"),
    "what the feed-forward reads": lambda name: name.endswith("layers.0.linear1.weight"),
    "the last matrix of the first sub-layer": lambda name: name.endswith("layers.0.self_attn.out_proj.weight"),
    "the last bias of the first sub-layer": lambda name: name.endswith("layers.0.self_attn.out_proj.bias"),
}


@pytest.mark.parametrize("undone", UNDO)
@pytest.mark.parametrize("name", ["deepnorm 3L-2L", "admin 2L-3L, ω trained"])
def test_every_part_of_the_folding_is_needed(name: str, undone: str) -> None:
    spec = SPECS[name]
    weights = trained(spec.run_id)
    folded = fold(weights, spec)
    ones = {n: np.ones_like(a) if n.endswith("omega") else a for n, a in weights.items()}
    as_trained = fold(ones, replace(spec, method="post-ln", options={}))
    arrays = {n: as_trained.arrays[n] if UNDO[undone](n) else a for n, a in folded.arrays.items()}
    largest, logit = difference(weights, spec, replace(folded, arrays=arrays))
    assert largest > 1e-4 * logit


@pytest.mark.parametrize("name", ["deepnorm 3L-2L", "admin 2L-3L, ω trained", "admin 2L-2L, closed form"])
def test_the_first_norms_eps_is_divided_by_the_square_of_omega_and_that_matters(name: str) -> None:
    spec = SPECS[name]
    weights = trained(spec.run_id)
    folded = fold(weights, spec)
    first = {"encoder.layers.0.norm1": 0, "decoder.layers.0.norm1": 2 * spec.model.encoder_layers}
    for norm, eps in folded.eps.items():
        own = weights["omega"][first[norm]] if norm in first else 1.0
        held = weights.get(f"layers.{norm.split('.')[0]}_1_self.omega") if norm in first else None
        assert eps == pytest.approx(EPS / (float(held[0]) if held is not None else own) ** 2, rel=1e-12)
    assert len(folded.eps) == len(weights["omega"])
    everywhere = replace(folded, eps=dict.fromkeys(folded.eps, EPS))
    exact, (largest, logit) = difference(weights, spec, folded)[0], difference(weights, spec, everywhere)
    assert largest > 1e-8 * logit > 1e3 * exact


def test_post_ln_folds_to_itself_and_nothing_handed_in_is_changed() -> None:
    spec = SPECS["post-ln 2L-2L"]
    folded = fold(trained(spec.run_id), spec)
    assert folded.omega == {} and set(folded.eps.values()) == {EPS}
    for name, array in folded.arrays.items():
        assert array.dtype == np.float64 and array.base is None or array.flags.owndata, name
    spec = SPECS["admin 2L-3L, ω trained"]
    weights = trained(spec.run_id)
    before = {name: array.copy() for name, array in weights.items()}
    state = torch.get_rng_state()
    difference(weights, spec, fold(weights, spec))
    assert torch.equal(state, torch.get_rng_state())
    assert all(np.array_equal(array, before[name]) for name, array in weights.items())


def test_query_key_and_value_stand_below_each_other_as_torch_has_them() -> None:
    spec = SPECS["post-ln 2L-2L"]
    weights = trained(spec.run_id)
    model, folded = original(weights, spec), fold(weights, spec)
    residuals = {site.name: residual for site, residual in model.residuals.items()}
    self_attention, cross = residuals["decoder.2.self"].g, residuals["decoder.2.cross"].g
    parts = [(self_attention.qkv, role) for role in ("query", "key", "value")]
    for name, held in (
        ("self_attn", parts),
        ("multihead_attn", [(cross.q, "query"), (cross.kv, "key"), (cross.kv, "value")]),
    ):
        rows = [linear.role(role).detach().reshape(16, 16).numpy() for linear, role in held]
        np.testing.assert_array_equal(folded.arrays[f"decoder.layers.1.{name}.in_proj_weight"], np.concatenate(rows))


def test_a_trained_vector_at_the_first_sub_layer_has_no_exact_way_and_says_so() -> None:
    spec = SPECS["admin 2L-3L, ω trained"]
    for stack in ("encoder", "decoder"):
        name = f"layers.{stack}_1_self.omega"
        weights = trained(spec.run_id)
        moved = weights[name] + np.eye(1, 16, dtype=np.float32)[0]
        with pytest.raises(
            UsageError, match=rf"ω of {stack}\.1\.self is not one number above 0 .*no exact way"
        ) as told:
            fold({**weights, name: moved}, spec)
        assert "1.37 to 2.37" in str(told.value) and "ADMIN with a fixed ω folds" in str(told.value)


REFUSED = {
    "pre-ln": "a norm stands before the branch",
    "sub-ln": "a norm stands before the branch",
    "normformer": "a norm stands before the branch",
    "dlcl": "a norm stands before the branch",
    "rezero": "no norm stands after the sum",
    "r-fixup": "no norm stands after the sum",
    "t-fixup": "no norm stands after the sum",
    "residual": "its wiring is not a chain: two streams",
    "reordered-norm": "a norm stands on the branch, before the sum",
}
BEFORE = (
    *("peri-ln", "sandwich-ln", "mix-ln", "keel", "layernorm-scaling", "dyt", "gpt2-init", "depth-mup", "completep"),
    *("derf", "gpas", "gated-attention", "value-residual", "nanochat", "siamesenorm", "attention-residuals"),
    *("hyper-connections", "mhc"),
)
REFUSED |= dict.fromkeys(BEFORE, "a norm stands before the branch")


@pytest.mark.parametrize("key", methods.KEYS)
def test_every_method_folds_or_is_refused_by_name_with_the_reason(key: str) -> None:
    spec = tiny(key)
    weights = train.build(spec, Synthetic(vocab=200, max_tokens=128), torch.device("cpu")).arrays()
    if key not in REFUSED:
        largest, logit = difference(weights, spec, fold(weights, spec))
        assert largest <= 1e-12 * logit
        return
    label = methods.DEFAULTS[methods.KEYS.index(key)].label
    with pytest.raises(UsageError, match=rf"{label} does not fold into a plain Post-LN model: {REFUSED[key]}"):
        fold(weights, spec)


def test_what_stands_in_the_way_is_asked_of_the_slots() -> None:
    plain, places = methods.build("post-ln", {}), sites(2, 2, 16)
    assert folds(plain, places) == ""
    for change, told in (
        ({"norm_branch": lambda site: site.name == "decoder.1.cross"}, "a norm stands on the branch, before the sum"),
        ({"kappa": lambda site: 0.5}, "the branch's input is scaled by κ"),
        ({"gamma": lambda site: Scale(init=2.0)}, "the branch is scaled by γ (at encoder.1.self)"),
        ({"gamma": lambda site: Scale(trainable=True)}, "the branch is scaled by γ"),
        ({"inner": lambda site, place: "norm" if place == "last" else ""}, "the branch has an inner part"),
        ({"final": lambda stack: "norm" if stack == "decoder" else ""}, "a norm stands after the decoder"),
        ({"wiring": "history, norm after"}, "history, norm after"),
        ({"gate": lambda site: "head"}, "its attention has a gate"),
        ({"value_residual": True}, "attention takes the first layer's values"),
    ):
        assert told in folds(replace(plain, **change), places)  # type: ignore[arg-type]


def damaged(name: str, change: Callable[[np.ndarray], Any]) -> Callable[[Weights], Weights]:
    return lambda weights: {n: np.asarray(change(a)) if n == name else a for n, a in weights.items()}


UNFIT: dict[str, tuple[Callable[[Weights], Weights], str]] = {
    "not finite": (damaged("layers.decoder_2_ffn.g.up.bias", lambda a: a * np.nan), "ffn.g.up.bias is not finite"),
    "ω not finite": (damaged("omega", lambda a: a * np.inf), "omega is not finite, as in a diverged run"),
    "ω is 0": (damaged("omega", lambda a: a * (np.arange(len(a)) != 4)), "ω of encoder.3.self has an entry that is 0"),
    "the first ω is below 0": (damaged("omega", lambda a: -a), "encoder.1.self is not one number above 0"),
    "one missing": (lambda w: {n: a for n, a in w.items() if ".kv.weight" not in n}, "shape (32, 16), but is missing"),
    "another shape": (damaged("embedding", lambda a: a[1:]), "shape (200, 16), but is float32 (199, 16)"),
    "another kind": (damaged("embedding", lambda a: a.astype(np.int32)), "but is int32 (200, 16)"),
    "too few ω": (damaged("omega", lambda a: a[:-1]), "omega must have shape (12,)"),
    "none": (lambda w: {}, "omega must have shape (12,), but is missing"),
}


@pytest.mark.parametrize("unfit", UNFIT)
def test_weights_that_cannot_be_folded_are_named(unfit: str) -> None:
    change, told = UNFIT[unfit]
    spec = SPECS["deepnorm 3L-2L"]
    with pytest.raises(UsageError) as error:
        fold(change(trained(spec.run_id)), spec)
    assert told in str(error.value) and "\n" not in str(error.value)


def test_a_spec_from_a_stranger_is_refused_in_words() -> None:
    spec = SPECS["deepnorm 3L-2L"]
    for other, told in (
        (replace(spec, method="deep"), "there is no method 'deep'"),
        (replace(spec, options={"x": "y"}), "there is no method 'deepnorm' with the options {'x': 'y'}"),
        (replace(spec, model=replace(spec.model, heads=3)), "a width of 16 does not divide into 3 heads"),
    ):
        with pytest.raises(UsageError, match=told):
            fold(trained(spec.run_id), other)


@EVERY
def test_what_is_saved_is_what_was_compared_and_comes_back(spec: RunSpec, tmp_path: Path) -> None:
    weights = trained(spec.run_id)
    config = save(run_of(spec, tmp_path, weights), tmp_path / "to")
    assert jsonable(config) == strict((tmp_path / "to" / "config.json").read_text())
    assert config["largest_difference"] == config["largest_difference_as_saved"] <= 1e-12 * config["largest_logit"]
    with torch.no_grad():
        ours, theirs = original(weights, spec)(*batch(spec))[1], load(tmp_path / "to")(*batch(spec))[1]
    assert float((ours - theirs).abs().max()) == config["largest_difference"]
    assert float(ours.abs().max()) == config["largest_logit"]


def outsider(where: Path, source: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
    """The logits by someone who has torch, the two files and nothing of stabkit; batch first, unlike ours."""
    config, weights = json.loads((where / "config.json").read_text()), load_file(where / "model.safetensors")
    d, table = config["hidden"], weights.pop("embedding.weight")
    angle = torch.arange(64).double()[:, None] * torch.exp(-torch.arange(0, d, 2).double() * math.log(10_000) / d)
    positions = torch.empty(64, d, dtype=torch.float64)
    positions[:, 0::2], positions[:, 1::2] = angle.sin(), angle.cos()
    positions = positions.float().to(table.dtype)
    pad, later = source == config["padding_token"], torch.ones(target.shape[1], target.shape[1]).triu(1).bool()
    x = torch.empty(0)
    for stack, tokens in (("encoder", source), ("decoder", target)):
        memory = x
        x = table[tokens] * config["embedding_factor"] + positions[: tokens.shape[1]] if stack in config else x
        for number in range(config[f"{stack}_layers"]):
            layer = getattr(nn, config[stack].removeprefix("torch.nn."))(
                d, config["heads"], config["ffn"], 0.0, config["activation"], batch_first=True, dtype=table.dtype
            )
            own = f"{stack}.layers.{number}."
            layer.load_state_dict({n.removeprefix(own): w for n, w in weights.items() if n.startswith(own)})
            for name, eps in config["eps"].items():
                if name.startswith(own):
                    layer.get_submodule(name.removeprefix(own)).eps = eps
            layer.eval()
            if stack == "encoder":
                x = layer(x, src_key_padding_mask=pad)
            elif isinstance(layer, nn.TransformerDecoderLayer):
                x = layer(x, memory, tgt_mask=later, memory_key_padding_mask=pad)
            else:
                x = layer(x, src_mask=later)
    return (x @ table.T).transpose(0, 1)


@EVERY
def test_the_two_files_are_enough_without_stabkit(spec: RunSpec, tmp_path: Path) -> None:
    weights, tokens = trained(spec.run_id), batch(spec)
    save(run_of(spec, tmp_path, weights), tmp_path / "to")
    with torch.no_grad():
        ours, theirs = original(weights, spec)(*tokens)[1], outsider(tmp_path / "to", *tokens)
    assert float((ours - theirs).abs().max()) <= 1e-12 * float(ours.abs().max())


def test_config_says_what_it_is(tmp_path: Path) -> None:
    spec = SPECS["admin 2L-3L, ω trained"]
    run = run_of(spec, tmp_path, trained(spec.run_id))
    config = save(run, tmp_path / "to")
    assert config["what"] == "Post-LN, folded from ADMIN (trainable=yes)" and config["options"] == {"trainable": "yes"}
    assert (config["run_id"], config["digest"], config["method"]) == (run.run_id, run.digest, "admin")
    sizes = {"encoder_layers": 2, "decoder_layers": 3, "hidden": 16, "ffn": 24, "heads": 2, "vocab": 200}
    assert sizes.items() <= config.items() and config["embedding_factor"] == 4.0 and config["dtype"] == "float64"
    assert list(config["omega"]) == [site.name for site in sites(2, 3, 16)]
    assert config["omega"]["encoder.1.self"] == pytest.approx(1.37)
    assert 0.4 < config["omega"]["decoder.2.cross"]["least"] < config["omega"]["decoder.2.cross"]["most"] < 2.5
    assert config["decoder"] == "torch.nn.TransformerDecoderLayer" and config["positions"]["count"] == 1024
    alone = SPECS["deepnorm, decoder only"]
    config = save(run_of(alone, tmp_path, trained(alone.run_id)), tmp_path / "alone")
    assert config["decoder"] == "torch.nn.TransformerEncoderLayer" and "encoder" not in config


def test_float32_rounds_the_file_and_says_what_that_costs(tmp_path: Path) -> None:
    spec = SPECS["deepnorm 3L-2L"]
    run = run_of(spec, tmp_path, trained(spec.run_id))
    config = save(run, tmp_path / "to", "float32")
    assert {tensor.dtype for tensor in load_file(tmp_path / "to" / "model.safetensors").values()} == {torch.float32}
    assert config["largest_difference"] <= 1e-12 * config["largest_logit"]
    assert 1e-9 < config["largest_difference_as_saved"] / config["largest_logit"] < 1e-5
    assert load(tmp_path / "to").embedding.weight.dtype == torch.float32


def test_a_number_too_large_for_the_file_is_refused_and_nothing_is_written(tmp_path: Path) -> None:
    spec = SPECS["deepnorm 1L-1L in float64"]
    name = "layers.decoder_1_ffn.norm_out.bias"
    weights = trained(spec.run_id)
    run = run_of(spec, tmp_path, {**weights, name: np.full_like(weights[name], 1e200)})
    assert save(run, tmp_path / "wide")["largest_logit"] > 1e199
    with pytest.raises(UsageError, match="are not finite"):
        save(run, tmp_path / "to", "float32")
    assert not (tmp_path / "to").exists()


SPOILED: dict[str, tuple[Callable[[Path], object], str]] = {
    "no config": (lambda to: (to / "config.json").unlink(), "No such file"),
    "no weights": (lambda to: (to / "model.safetensors").unlink(), "No such file"),
    "cut off": (lambda to: (to / "model.safetensors").write_bytes(b"x"), "is not the one that config.json describes"),
    "not JSON": (lambda to: (to / "config.json").write_text("{"), "not a folded model"),
    "another schema": (lambda to: (to / "config.json").write_text('{"schema": "x"}'), "its schema is 'x'"),
    "a list": (lambda to: (to / "config.json").write_text("[]"), "not a folded model"),
    "a key gone": (lambda to: edit(to, lambda c: c.pop("heads")), "heads"),
    "a layer more": (lambda to: edit(to, lambda c: c.update(encoder_layers=4)), "encoder.layers.3"),
    "eps of no norm": (lambda to: edit(to, lambda c: c["eps"].update(embedding=1.0)), "embedding is not a norm"),
    "eps of nothing": (lambda to: edit(to, lambda c: c["eps"].update(nowhere=1.0)), "nowhere"),
    "heads that do not divide": (lambda to: edit(to, lambda c: c.update(heads=3)), "not a folded model"),
}


def edit(to: Path, change: Callable[[dict[str, Any]], object]) -> None:
    config = json.loads((to / "config.json").read_text())
    change(config)
    (to / "config.json").write_text(json.dumps(config))


@pytest.mark.parametrize("spoiled", SPOILED)
def test_a_folder_that_is_not_a_folded_model_is_named(spoiled: str, tmp_path: Path) -> None:
    spec = SPECS["deepnorm 3L-2L"]
    save(run_of(spec, tmp_path, trained(spec.run_id)), tmp_path / "to")
    spoil, told = SPOILED[spoiled]
    spoil(tmp_path / "to")
    with pytest.raises(CorruptFolder) as error:
        load(tmp_path / "to")
    assert told in str(error.value) and "\n" not in str(error.value)


@pytest.fixture(scope="module")
def out(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store of really trained runs, and some that cannot be folded."""
    out = tmp_path_factory.mktemp("out")
    for spec in (tiny("deepnorm"), tiny("admin"), tiny("post-ln", seed=1), tiny("post-ln", seed=2), tiny("pre-ln")):
        run_of(spec, out)
    spec = tiny("admin", options={"trainable": "yes"}, seed=3)
    run_of(spec, out)
    spec = tiny("deepnorm", seed=4)
    run_of(spec, out, {"embedding": np.full((200, 16), np.nan), "omega": np.ones(10)})
    run_of(tiny("deepnorm", seed=5), out, b"junk")
    (run_of(tiny("deepnorm", seed=6), out).path / "weights.safetensors").unlink()
    (run_of(tiny("deepnorm", seed=7), out).path / "weights.safetensors").write_bytes(b"junk")
    (out / "file").write_text("")
    return out


def test_the_command_folds_a_run_says_what_it_did_and_writes_two_files(out: Path) -> None:
    done = command("fold", "deepnorm-2L-2L-s0", "--out", out)
    assert done.returncode == 0 and done.stderr == "", done.stderr
    run_id = tiny("deepnorm").run_id
    to = out / "folded" / run_id
    first, *lines = done.stdout.splitlines()
    assert first == f"{run_id}: Post-LN, folded from DeepNorm"
    assert "  folded   ω of 10 of 10 sub-layers, 1.006 to 1.565" in lines
    assert "  eps      9.88e-06  encoder.layers.0.norm1" in lines
    assert "           4.08e-06  decoder.layers.0.norm1" in lines and "           1e-05     every other norm" in lines
    assert lines[-1] == f"  saved    {to / 'model.safetensors'} (float64) and config.json"
    assert max(map(len, lines[:-1])) <= 80 and "in float64" in lines[-2]
    assert sorted(path.name for path in to.iterdir()) == ["config.json", "model.safetensors"]
    load(to)


Say = Callable[..., tuple[object, str, str]]


@pytest.fixture
def say(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Say:
    """`stabkit fold …` in this process: (exit code, standard output, standard error)."""

    def said(*arguments: object) -> tuple[object, str, str]:
        monkeypatch.setattr("sys.argv", ["stabkit", "fold", *map(str, arguments)])
        with pytest.raises(SystemExit) as ended:
            entry.main()
        return ended.value.code, *capsys.readouterr()

    return said


def test_the_commands_json_is_one_strict_document(out: Path, tmp_path: Path, say: Say) -> None:
    code, said, _ = say("admin-2L-2L-s0", "--out", out, "--to", tmp_path / "a" / "b", "--dtype", "float32", "--json")
    assert not code
    told = strict(said)
    assert told["schema"] == "stabkit/2" and told["folder"] == str(tmp_path / "a" / "b")
    assert told["config"] == strict((tmp_path / "a" / "b" / "config.json").read_text())
    assert "encoder.1.self" not in told["config"]["omega"] and set(told["config"]["eps"].values()) == {EPS}  # ω₁ = 1


@pytest.mark.parametrize(
    ("arguments", "code", "told"),
    [
        (["post-ln"], 2, "matches 2 runs"),
        (["nothing"], 2, "no run 'nothing'"),
        (["pre-ln"], 2, "Pre-LN does not fold into a plain Post-LN model: a norm stands before the branch"),
        (["admin-2L-2L-s3"], 2, "at the first sub-layer of a stack there is no exact way"),
        (["deepnorm-2L-2L-s4"], 2, "embedding is not finite"),
        (["deepnorm-2L-2L-s5"], 5, "weights.safetensors is not readable"),
        (["deepnorm-2L-2L-s6"], 5, "No such file"),
        (["deepnorm-2L-2L-s7"], 5, "weights.safetensors has changed since it was written"),
        (["deepnorm-2L-2L-s0", "--dtype", "float16"], 2, "--dtype: 'float16' is not one of float64, float32"),
        (["deepnorm-2L-2L-s0", "--to", "file"], 5, "cannot write"),
        (["deepnorm-2L-2L-s0", "--out", "none"], 2, "no runs in"),
        ([], 2, "Missing argument"),
    ],
)
def test_bad_input_is_one_clear_line(
    arguments: list[str], code: int, told: str, out: Path, monkeypatch: pytest.MonkeyPatch, say: Say
) -> None:
    monkeypatch.chdir(out)
    ended, said, error = say(*arguments)
    assert ended == code and said == ""
    assert error.startswith("error: ") and told in error and len(error.splitlines()) == 1


def test_a_link_in_the_place_of_the_folder_is_not_followed(tmp_path: Path, say: Say) -> None:
    run_of(tiny("deepnorm"), tmp_path)
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "folded").symlink_to(tmp_path / "elsewhere")
    code, _, error = say("deepnorm", "--out", tmp_path)
    assert code == 5 and "is a link or a file" in error and not list((tmp_path / "elsewhere").iterdir())


def test_rounding_a_folded_model_changes_nothing_else() -> None:
    spec = SPECS["deepnorm 3L-2L"]
    folded = fold(trained(spec.run_id), spec)
    rounded = folded.to("float32")
    assert isinstance(rounded, Folded) and rounded.eps == folded.eps and rounded.omega == folded.omega
    assert set(rounded.arrays) == set(folded.arrays) == set(plain(folded).state_dict())
