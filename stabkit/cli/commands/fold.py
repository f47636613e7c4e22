"""`stabkit fold`: a stored run folded into a plain Post-LN model, the outputs compared, the files written, all told.

OUT/folded/<run_id>/    model.safetensors: `embedding.weight`, and every layer's weights as torch.nn names them
                        config.json: what that is, and all else that its outputs depend on
"""

from __future__ import annotations

import hashlib
import json as jsonlib
import math
from pathlib import Path
from typing import NotRequired, TypedDict

import numpy as np
from numpy.typing import NDArray

from stabkit import methods
from stabkit.cli import console
from stabkit.errors import UsageError
from stabkit.model.fold import EPS, Folded, Plain, difference, fold
from stabkit.model.positions import MAX_POSITIONS
from stabkit.options import ranges
from stabkit.report import json_document
from stabkit.report.json_document import Document, text
from stabkit.spec import ModelConfig, TaskConfig
from stabkit.storage import folder
from stabkit.storage.folder import CorruptFolder
from stabkit.storage.store import Run
from stabkit.storage.weights import arrays as stored
from stabkit.tasks.base import PAD
from stabkit.version import __version__

SCHEMA = "stabkit-folded/1"
DTYPES = ("float64", "float32")


class PositionsJson(TypedDict):
    """The vectors that are added to the embedding."""

    kind: str
    count: int
    entries: str
    rounded_to: str


class OmegaRangeJson(TypedDict):
    """An ω that is a vector (the run itself keeps all its entries)."""

    least: float
    mean: float
    most: float


class StacksJson(TypedDict):
    """The layers of torch.nn that the weights are for."""

    encoder: NotRequired[str]
    decoder: NotRequired[str]


class FoldedModel(StacksJson):
    """What a folded model is: where it comes from, its sizes, and how its outputs follow from its weights."""

    schema: str
    what: str
    stabkit: str
    run_id: str
    digest: str
    method: str
    options: dict[str, str]
    alpha_scale: float
    beta_scale: float
    task: TaskConfig
    encoder_layers: int
    decoder_layers: int
    hidden: int
    ffn: int
    heads: int
    vocab: int
    norm_first: bool
    activation: str
    embedding_factor: float
    positions: PositionsJson
    padding_token: int
    masks: str
    tied_output: str
    eps: dict[str, float]
    omega: dict[str, float | OmegaRangeJson]


class FoldedConfig(FoldedModel):
    """What config.json holds."""

    dtype: str
    sha256: str
    """Of model.safetensors."""
    largest_difference: float
    """Of the outputs before and after, in float64."""
    largest_difference_as_saved: float
    largest_logit: float


class FoldDocument(Document):
    """`stabkit fold`."""

    folder: str
    config: FoldedConfig


def home(out: Path, run: Run) -> Path:
    """Where a run of this output directory goes when it is folded; StoreError where a link stands in the way."""
    return folder.own(folder.own(out, "folded"), run.run_id)


def save(run: Run, to: Path, dtype: str = "float64") -> FoldedConfig:
    """Fold a stored run, compare the outputs, and write model.safetensors and config.json into `to`.

    Returns what config.json holds. float64 is the default although runs train in float32: the weights that are saved
    are then those whose outputs were found equal; float32 rounds them, and config.json says what that costs.
    """
    from safetensors.numpy import save as safetensors

    ranges.choice("--dtype", dtype, DTYPES)
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
    config: FoldedConfig = {
        **_config(run, rounded),
        "dtype": dtype,
        "sha256": hashlib.sha256(data).hexdigest(),
        "largest_difference": largest,
        "largest_difference_as_saved": saved,
        "largest_logit": logit,
    }
    folder.write_file(to / "model.safetensors", data)
    folder.write_file(to / "config.json", (text(config) + "\n").encode())
    return config


def _config(run: Run, folded: Folded) -> FoldedModel:
    spec, config = run.spec, run.spec.model
    label = methods.label_of(spec)
    crossed = "torch.nn.TransformerDecoderLayer" if config.encoder_layers else "torch.nn.TransformerEncoderLayer"
    stacks: StacksJson = {}
    if config.encoder_layers:
        stacks["encoder"] = "torch.nn.TransformerEncoderLayer"
    if config.decoder_layers:
        stacks["decoder"] = crossed
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
        "task": spec.task,
        "encoder_layers": config.encoder_layers,
        "decoder_layers": config.decoder_layers,
        "hidden": config.hidden,
        "ffn": config.ffn,
        "heads": config.heads,
        "vocab": spec.task.vocab,
        **stacks,
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


def _told(omega: NDArray[np.float64]) -> float | OmegaRangeJson:
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


def show(config: FoldedConfig, to: Path, *, json: bool) -> None:
    """`stabkit fold`: what was folded, how far the outputs differ, which eps are not everyone's, and where it lies."""
    if json:
        body: FoldDocument = {"schema": json_document.SCHEMA, "folder": str(to), "config": config}
        console.document(text(body))
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
