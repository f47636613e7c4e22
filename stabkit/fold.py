"""Folding back: a trained ADMIN or DeepNorm model as a plain Post-LN Transformer with the same outputs.

    x_i = LN_i(ω_i ⊙ x_{i−1} + f_i(x_{i−1}))        x_{i−1} = γ_{i−1} ⊙ n + ν_{i−1}, a norm's output, for i ≥ 2

    i ≥ 2    γ_{i−1} ← ω_i ⊙ γ_{i−1},  ν_{i−1} ← ω_i ⊙ ν_{i−1}, and the columns of what reads x_{i−1} in f_i divided by
             ω_i: W_Q, W_K, W_V of self-attention, W_Q alone of cross-attention, W₁ of the feed-forward
    i = 1    x_0 is the embedding, which is tied to the softmax. There W_O and b_O are divided by ω₁, one number, and
             the eps of LN_1 by ω₁², since LN_eps(ω·u) = LN_{eps/ω²}(u)

The last norm of a stack stays: cross-attention and the softmax read it without an ω. A sub-layer of a trained vector ω
folds too, but not the first of a stack, where LN does not undo a vector.

Liu et al. 2020 and Wang et al. 2020 §3 say that ω can be folded back; DeepNorm's α (DeepNet §3.3) is such an ω. Equal
are the outputs, not the gradients with respect to the weights: training does not go on from here as it would have.

    OUT/folded/<run_id>/    model.safetensors: `embedding.weight`, and every layer's weights as torch.nn names them
                            config.json: what that is, and all else that its outputs depend on
"""

from __future__ import annotations

import hashlib
import json as jsonlib
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from stabkit import __version__, console, document, folder, methods
from stabkit.errors import UsageError, nearest
from stabkit.folder import CorruptFolder
from stabkit.methods.base import ONE, PLACES, Kind, Method, Site, sites
from stabkit.model.plain import Plain
from stabkit.model.transformer import MAX_POSITIONS, Transformer
from stabkit.spec import ModelConfig, RunSpec
from stabkit.store import Run
from stabkit.streams import stream
from stabkit.surface.weights import arrays as stored
from stabkit.tasks.base import PAD

SCHEMA = "stabkit-folded/1"
DTYPES = ("float64", "float32")
EPS = 1e-5
"""Of every norm while it was trained: torch.nn.LayerNorm's own."""
MAPS: Mapping[Kind, tuple[tuple[str, ...], tuple[str]]] = {
    "self": (("qkv",), ("out",)),
    "cross": (("q", "kv"), ("out",)),
    "ffn": (("up",), ("down",)),
}
"""The first and the last linear map of a branch, by our names (`model/branch.py`)."""

Arrays = Mapping[str, NDArray[Any]]


@dataclass(frozen=True, slots=True)
class Folded:
    """A plain Post-LN model: weights and eps of its norms by torch.nn's names, and the ω that went into them."""

    model: ModelConfig
    arrays: Arrays
    eps: Mapping[str, float]
    omega: Mapping[str, NDArray[np.float64]]
    """By sub-layer, () or (d,); only those that were not 1."""

    def to(self, dtype: str) -> Folded:
        """The same with its weights rounded."""
        return replace(self, arrays={name: array.astype(dtype) for name, array in self.arrays.items()})


def fold(weights: Arrays, spec: RunSpec) -> Folded:
    """The plain Post-LN model with the outputs of this run's, in float64; `weights` as a run's file has them.

    Raises UsageError for a method that is not LN(ω·x + f(x)), for weights that are not this spec's or not finite, and
    for an ω that cannot be folded.
    """
    method = _method(spec)
    config = spec.model
    places = sites(config.encoder_layers, config.decoder_layers, config.hidden, config.base_init)
    if why := obstacle(method, places):
        raise UsageError(f"{method.label} does not fold into a plain Post-LN model: {why}")
    if config.hidden % config.heads:
        raise UsageError(f"a width of {config.hidden} does not divide into {config.heads} heads")
    omegas = _omegas(weights, method, places)
    arrays = _unfused(weights, spec, method, places)
    eps = {_names(site)[2]: EPS for site in places}
    norm_before = ""
    for site in places:
        omega = omegas[site.name]
        first, last, norm = _names(site)
        if site.index > 1:
            for part in ("weight", "bias"):
                arrays[f"{norm_before}.{part}"] *= omega
            reads = arrays[f"{first}weight"]
            reads[: config.hidden if site.kind == "cross" else None] /= omega  # keys and values read the memory
        else:
            for part in ("weight", "bias"):
                arrays[f"{last}{part}"] /= omega
            eps[norm] = float(EPS / omega**2)
        norm_before = norm
    return Folded(config, arrays, eps, {name: omega for name, omega in omegas.items() if np.any(omega != 1.0)})


def obstacle(method: Method, places: tuple[Site, ...]) -> str:
    """Why this method is not x ← LN(ω·x + f(x)) and nothing else; "" where it is."""
    for site in places:
        reasons = {
            "a norm stands before the branch": method.norm_in(site),
            "a norm stands on the branch, before the sum": method.norm_branch(site),
            "no norm stands after the sum": not method.norm_out(site),
            "the branch is scaled by γ": method.gamma(site) != ONE,
            "something stands inside the branch": any(method.inner(site, place) for place in PLACES),
        }
        for reason, holds in reasons.items():
            if holds:
                return f"{reason} (at {site.name})"
    for stack in dict.fromkeys(site.stack for site in places):
        if end := method.final(stack):
            return f"a {end} stands after the {stack}"
    return "" if method.wiring == "chain" else "a layer reads not only the one before it, but all before it"


def _method(spec: RunSpec) -> Method:
    method = methods.of(spec)
    if method is None:
        raise UsageError(f"there is no method {spec.method!r} with the options {dict(spec.options)} here")
    return method


def _taken(weights: Arrays, name: str, *shape: int) -> NDArray[np.float64]:
    """A copy of one tensor of a run, in float64."""
    held = weights.get(name)
    if held is None or held.dtype.kind != "f" or held.shape != shape:
        came = "missing" if held is None else f"{held.dtype} {held.shape}"
        raise UsageError(f"these weights are not those of this run: {name} is to be of shape {shape}, and is {came}")
    if not np.isfinite(held).all():
        raise UsageError(f"there is nothing to fold: {name} is not finite, as the weights of a diverged run are")
    return np.array(held, dtype=np.float64)


def _omegas(weights: Arrays, method: Method, places: tuple[Site, ...]) -> dict[str, NDArray[np.float64]]:
    """{sub-layer: ω}, () or (d,). Raises UsageError for one that has no exact way."""
    fixed, found = _taken(weights, "omega", len(places)), dict[str, NDArray[np.float64]]()
    for site, number in zip(places, fixed, strict=True):
        scale, omega = method.omega(site), np.array(number)
        if scale.trainable or scale.vector:
            layer = [other for other in places if (other.stack, other.layer) == (site.stack, site.layer)]
            holder = layer[0] if scale.shared == "layer" else site
            shape = (site.width,) if scale.vector else ()
            omega = _taken(weights, f"layers.{holder.name.replace('.', '_')}.omega", *shape)
        least, most = float(omega.min()), float(omega.max())
        if least == most:
            omega = np.array(most)
        if site.index == 1 and (omega.shape or most <= 0):
            raise UsageError(
                f"ω of {site.name} is not one number above 0 (its entries: {least:.6g} to {most:.6g}), and at the "
                f"first sub-layer of a stack there is no exact way to fold it; {method.label} with a fixed ω folds"
            )
        if not omega.all():
            raise UsageError(f"ω of {site.name} has an entry that is 0: what the branch reads there would be lost")
        found[site.name] = omega
    return found


def _names(site: Site) -> tuple[str, str, str]:
    """What the names of a sub-layer's first and last maps begin with, and its norm, in torch.nn's layers."""
    layer = f"{site.stack}.layers.{site.layer - 1}"
    norm = f"{layer}.norm{site.index - (site.layer - 1) * (site.sublayers // site.depth)}"
    if site.kind == "ffn":
        return f"{layer}.linear1.", f"{layer}.linear2.", norm
    attention = f"{layer}.{'self_attn' if site.kind == 'self' else 'multihead_attn'}"
    return f"{attention}.in_proj_", f"{attention}.out_proj.", norm


def _unfused(
    weights: Arrays, spec: RunSpec, method: Method, places: tuple[Site, ...]
) -> dict[str, NDArray[np.float64]]:
    """Copies of a run's weights by torch.nn's names."""
    found = {"embedding.weight": _taken(weights, "embedding", spec.task.vocab, spec.model.hidden)}
    for site in places:
        ours, (first, last, norm) = f"layers.{site.name.replace('.', '_')}", _names(site)
        for names, to in zip(MAPS[site.kind], (first, last), strict=True):
            maps = [_map(weights, f"{ours}.g", name, spec.model, method.bias(site)) for name in names]
            found[f"{to}weight"] = np.concatenate([weight for weight, _ in maps])
            found[f"{to}bias"] = np.concatenate([bias for _, bias in maps])
        for part in ("weight", "bias"):
            found[f"{norm}.{part}"] = _taken(weights, f"{ours}.norm_out.{part}", site.width)
    return found


def _map(
    weights: Arrays, ours: str, name: str, config: ModelConfig, biased: bool
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """One linear map of ours: weight and bias, zeros where it has none.

    Where it holds several roles, ours stand head by head (`model/branch.py`); torch.nn's are all of q, then k, then v.
    """
    d, heads, parts = config.hidden, config.heads, {"qkv": 3, "kv": 2}.get(name, 1)
    rows, columns = config.ffn if name == "up" else parts * d, config.ffn if name == "down" else d
    weight = _taken(weights, f"{ours}.{name}.weight", rows, columns)
    bias = _taken(weights, f"{ours}.{name}.bias", rows) if biased else np.zeros(rows)
    if parts > 1:
        weight = weight.reshape(heads, parts, d // heads, columns).swapaxes(0, 1).reshape(rows, columns)
        bias = bias.reshape(heads, parts, d // heads).swapaxes(0, 1).reshape(rows)
    return weight, bias


def plain(folded: Folded) -> Plain:
    """The folded model, ready to run."""
    return Plain(folded.model, folded.arrays, folded.eps)


def original(weights: Arrays, spec: RunSpec) -> Transformer:
    """The run's own model with these weights, in float64 and eval mode."""
    model = Transformer(spec.model, _method(spec), spec.task.vocab, spec.seed).double()
    model.load(weights)
    model.eval()
    return model


def batch(spec: RunSpec) -> tuple[torch.Tensor, torch.Tensor]:
    """Random tokens, (6, 19) and (6, 23), with padding on the right: what outputs are compared on."""
    rng = stream(0, "fold")
    held = []
    for layers, length in ((spec.model.encoder_layers, 19), (spec.model.decoder_layers, 23)):
        tokens = rng.integers(min(PAD + 1, spec.task.vocab - 1), spec.task.vocab, (6, length if layers else 0))
        for row, sentence in enumerate(tokens):
            sentence[length - 3 * row :] = PAD
        held.append(torch.from_numpy(tokens))
    return held[0], held[1]


@torch.no_grad()
def difference(weights: Arrays, spec: RunSpec, folded: Folded) -> tuple[float, float]:
    """(the largest difference between the two models' logits on `batch`, the largest logit), computed in float64."""
    tokens = batch(spec)
    ours, theirs = original(weights, spec)(*tokens)[1], plain(folded).double().eval()(*tokens)[1]
    return float((ours - theirs).abs().max()), float(ours.abs().max())


def home(out: Path, run: Run) -> Path:
    """Where a run of this output directory goes when it is folded; StoreError where a link stands in the way."""
    return folder.own(folder.own(out, "folded"), run.run_id)


def save(run: Run, to: Path, dtype: str = "float64") -> dict[str, Any]:
    """Fold a stored run, compare the outputs, and write model.safetensors and config.json into `to`.

    Returns what config.json holds. float64 is the default although runs train in float32: the weights that are saved
    are then those whose outputs were found equal; float32 rounds them, and config.json says what that costs.
    """
    from safetensors.numpy import save as safetensors

    if dtype not in DTYPES:
        raise UsageError(f"--dtype: {dtype!r} is not one of {', '.join(DTYPES)}{nearest(dtype, DTYPES)}")
    with np.errstate(all="ignore"):  # a number that leaves its range is found by the comparison
        weights = stored(run)
        exact = fold(weights, run.spec)
        rounded = exact.to(dtype)
        largest, logit = difference(weights, run.spec, exact)
        saved = largest if dtype == "float64" else difference(weights, run.spec, rounded)[0]
    if not np.isfinite([largest, logit, saved]).all():
        raise UsageError(f"the outputs of {run.run_id} are not finite: there is nothing to compare")
    data = safetensors(
        {name: np.ascontiguousarray(array) for name, array in rounded.arrays.items()}, metadata={"format": "pt"}
    )
    config = {
        **_config(run, rounded),
        "dtype": dtype,
        "sha256": hashlib.sha256(data).hexdigest(),
        "largest_difference": largest,
        "largest_difference_as_saved": saved,
        "largest_logit": logit,
    }
    folder.write_file(to / "model.safetensors", data)
    folder.write_file(to / "config.json", (jsonlib.dumps(config, indent=1, allow_nan=False) + "\n").encode())
    return config


def _config(run: Run, folded: Folded) -> dict[str, Any]:
    """What the model is: where it comes from, its sizes, and how its outputs follow from its weights."""
    spec, config = run.spec, run.spec.model
    label = methods.label(spec.method, spec.options)
    crossed = "torch.nn.TransformerDecoderLayer" if config.encoder_layers else "torch.nn.TransformerEncoderLayer"
    return {
        "schema": SCHEMA,
        "what": f"Post-LN, folded from {label}",
        "stabkit": __version__,
        "run_id": run.run_id,
        "digest": run.digest,
        "method": spec.method,
        "options": dict(spec.options),
        "alpha_scale": spec.alpha_scale,
        "beta_scale": spec.beta_scale,
        "task": asdict(spec.task),
        "encoder_layers": config.encoder_layers,
        "decoder_layers": config.decoder_layers,
        "hidden": config.hidden,
        "ffn": config.ffn,
        "heads": config.heads,
        "vocab": spec.task.vocab,
        **({"encoder": "torch.nn.TransformerEncoderLayer"} if config.encoder_layers else {}),
        **({"decoder": crossed} if config.decoder_layers else {}),
        "norm_first": False,
        "activation": "relu",
        "embedding_factor": math.sqrt(config.hidden),
        "positions": {
            "kind": "sinusoidal",
            "count": MAX_POSITIONS,
            "entries": "[t, 2i] = sin(t * exp(-2i * ln(10000) / hidden)), [t, 2i + 1] = cos of the same angle",
            "rounded_to": "float32",
        },
        "padding_token": PAD,
        "masks": "keys that are padding, in the encoder's self-attention and in cross-attention; "
        "later keys, in the decoder's self-attention",
        "tied_output": "logits = states @ embedding.weight.T",
        "eps": dict(folded.eps),
        "omega": {name: _told(omega) for name, omega in folded.omega.items()},
    }


def _told(omega: NDArray[np.float64]) -> float | dict[str, float]:
    """An ω as JSON: a number, or of a vector its range and mean (the run itself keeps all its entries)."""
    if not omega.shape:
        return float(omega)
    return {"least": float(omega.min()), "mean": float(omega.mean()), "most": float(omega.max())}


def load(where: Path) -> Plain:
    """The model that `save` wrote, in eval mode and in the precision of its file; CorruptFolder for anything else."""
    from safetensors import SafetensorError
    from safetensors.numpy import load as safetensors

    try:
        config = jsonlib.loads(folder.read(where / "config.json", folder.SMALL))
        if config["schema"] != SCHEMA:
            raise ValueError(f"its schema is {config['schema']!r}, not {SCHEMA!r}")
        path = where / "model.safetensors"
        data = folder.read(path, path.stat().st_size)
        if hashlib.sha256(data).hexdigest() != config["sha256"]:
            raise ValueError("model.safetensors is not the one that config.json describes")
        names = ("encoder_layers", "decoder_layers", "hidden", "ffn", "heads")
        model = ModelConfig(**{name: config[name] for name in names})
        made = Plain(model, safetensors(data), config["eps"])
    except CorruptFolder:
        raise
    except OSError as error:
        raise CorruptFolder(f"{where}: {error.strerror or error}") from error
    except (SafetensorError, AttributeError, KeyError, TypeError, ValueError, RuntimeError, AssertionError) as error:
        raise CorruptFolder(f"{where}: not a folded model ({' '.join(str(error).split())})") from error
    made.eval()
    return made


def show(config: Mapping[str, Any], to: Path, *, json: bool) -> None:
    """`stabkit fold`: what was folded, how far the outputs differ, which eps are not everyone's, and where it lies."""
    if json:
        console.document(document.text({"schema": document.SCHEMA, "folder": str(to), "config": config}))
        return
    scales = [omega if isinstance(omega, float) else omega["mean"] for omega in config["omega"].values()]
    console.say(f"{config['run_id']}: {config['what']}")
    reach = f", {min(scales):.4g} to {max(scales):.4g}" if scales else ""
    console.say(f"  folded   ω of {len(scales)} of {len(config['eps'])} sub-layers{reach}")
    others = [(f"{eps:.3g}", name) for name, eps in config["eps"].items() if eps != EPS]
    for i, (eps, norm) in enumerate([*others, (f"{EPS:g}", "every other norm" if others else "every norm")]):
        console.say(f"  {'' if i else 'eps':8} {eps:9} {norm}")
    exact, logit = config["largest_difference"], config["largest_logit"]
    console.say(f"  outputs  differ by at most {exact:.1e} in float64; the largest logit is {logit:.3g}")
    if config["dtype"] != "float64":
        saved = config["largest_difference_as_saved"]
        console.say(f"           differ by at most {saved:.1e} as saved in {config['dtype']}")
    console.say(f"  saved    {to / 'model.safetensors'} ({config['dtype']}) and config.json")
