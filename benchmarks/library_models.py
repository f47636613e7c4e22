"""What `stabkit probe` says of models that nobody here wrote, and whether they train: docs/library_models.md.

    python3 dev.py libraries
    pip install --no-deps vit-pytorch open_clip_torch ftfy wcwidth litgpt    what else the table has a row of
    python benchmarks/library_models.py OUT [NAME…]

Small models with random weights (`tests/own/library_models.py`) on something to learn (`tests/own/tasks.py`): probed at
3 and 12 layers, one seed, by AdamW at 1e-3; a factory with an optimiser of its own keeps that. Then each is trained at
12 layers for 300 updates on the same source, by the same optimiser at the same rate without warm-up. About a quarter of
an hour on two cores; what is in OUT is neither probed nor trained again. Without NAME the page is written; a library
that is not there leaves its rows out, and says so.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
import warnings
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from multiprocessing import get_context
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from tests.own import library_models, tasks  # noqa: E402  # the models stand beside the tests that probe them

DEPTHS, TRAINED, UPDATES, RATE = "3,12", 12, 300, 1e-3
TITLES = {
    "gpt2": "GPT-2",
    "bert": "BERT (Post-LN)",
    "llama": "Llama, one key-value head",
    "gemma2": "Gemma 2 (norms before and after the branch)",
    "olmo2": "OLMo 2 (norm on the branch)",
    "granite": "Granite, residual multiplier 0.22",
    "gpt_neox": "GPT-NeoX (attention and feed-forward side by side)",
    "mixtral": "Mixtral (experts)",
    "albert": "ALBERT (all layers share their weights)",
    "t5": "T5",
    "qwen3": "Qwen3 (norms on queries and keys)",
    "phi": "Phi (side by side)",
    "opt": "OPT",
    "bloom": "BLOOM (ALiBi)",
    "falcon": "Falcon (side by side)",
    "modernbert": "ModernBERT",
    "olmoe": "OLMoE (experts, a router)",
    "mamba": "Mamba (no attention)",
    "rwkv": "RWKV (no attention)",
    "bart": "BART (encoder and decoder, Post-LN)",
    "conformer": "a Conformer's encoder (wav2vec 2.0)",
    "dinov2": "DINOv2's ViT",
    "swin": "Swin, the second of two stages grows",
    "timm_vit": "timm's ViT, LayerScale 1e-5",
    "timm_res_post": "timm's ViT, norm on the branch",
    "vit_pytorch": "vit-pytorch's ViT",
    "open_clip": "open_clip's text tower",
    "litgpt": "litgpt's Llama block",
    "torch_encoder": "nn.TransformerEncoder (Post-LN, layers start as copies)",
    "torch_pre_ln": "nn.TransformerEncoderLayer, norm first",
    "x_sandwich": "x-transformers, sandwich norms",
    "x_macaron": "x-transformers, macaron",
    "x_attention_residuals": "x-transformers, attention over depth",
    "x_streams": "x-transformers, four streams",
    "x_gru_gates": "x-transformers, GRU gates for sums",
    "x_value_residual": "x-transformers, value residual",
    "nano_gpt": "the GPT of docs/own_model.md",
    "nanochat": "nanochat (Muon and AdamW, λx + λ₀x₀, smear gate, backout)",
    "attention_residuals": "Attention Residuals, as published",
    "mhc": "mHC, as published",
    "hyper_connections": "hyper-connections (the package)",
    "hyper_connections_mhc": "mHC of the package (mHCv2)",
    "u_net": "a U-Net of layers",
}
HEAD = f"""# Models that people train, probed

Made by `python benchmarks/library_models.py OUT` with VERSIONS; random weights, width 64, {DEPTHS} layers, one seed,
AdamW at 1e-3 (nanochat: its own two optimizers), fresh batches of something to learn. Numbers are those of the deepest;
*probe* is the wall time of both depths, other work
beside it. The number beside a word is the forecast by sixteen updates; where that does not decide, the word is of a
training. The last column is another run: each model at {TRAINED} layers, {UPDATES}
updates by the same optimizer at the same rate, no warm-up, the mean loss of the last 20 updates beside that of who
knows frequencies alone; it `trains` from {tasks.LEARNT:g} nats below, less than docs/verdict.md asks for.
Nearly all do, so that saying `trains` of every model would be right as often. A verdict speaks of these small models
at this rate, not of the published ones.

| model, factory | found | gradient | update | tokens | loss | links that fail | it says | probe | trains? |
|---|---|---|---|---|---|---|---|---|---|
"""


def probed(name: str, out: Path) -> dict[str, Any]:
    command = [
        "probe",
        f"tests.own.tasks:{name}",
        "--depths",
        DEPTHS,
        "--seeds",
        "0",
        "--out",
        str(out),
        "--json",
        "--no-fail",
    ]
    begin = time.perf_counter()
    done = subprocess.run(
        [sys.executable, "-m", "stabkit", *command], cwd=ROOT, capture_output=True, text=True, env=os.environ
    )
    if done.returncode:
        return {"refused": done.stderr.strip().splitlines()[-1].removeprefix("error: ")}
    found: dict[str, Any] = json.loads(done.stdout)
    return {**found, "seconds": time.perf_counter() - begin}


def trained(name: str) -> str:
    """What became of it in so many updates; one process a model."""
    import torch

    from stabkit.own.probe.built_model import make

    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    made = make(getattr(library_models, name), name, TRAINED, 0, 0.0 if name == "nanochat" else RATE)
    end, word = tasks.trained(name, made, UPDATES)
    return f"{word}: {end:.2f} of {tasks.ignorance(name):.2f}"


def kept(name: str, out: Path, make: Any) -> Any:
    """A result that is there, or made and stored."""
    path = out / f"{name}.json"
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(make()))
    return json.loads(path.read_text())


def cell(link: dict[str, Any]) -> str:
    """`1.2 (of 0.2 to 3)`: the level, and what nine of ten models have that train."""
    healthy = link["healthy"]
    level = link["level"] if isinstance(link["level"], str) else f"{link['level']:.2g}"
    return f"{level} (of {healthy['low']:.2g} to {healthy['high']:.2g})" if healthy else level


def said(found: dict[str, Any]) -> str:
    """`likely trains 0.97`, or along which axes it is out of range."""
    forecast = found["forecast"]
    if forecast["probability"] is None:
        return f"{found['verdict']}: {', '.join(forecast['axes'])}"
    return f"{found['verdict']} {forecast['probability']:.2f}"


def versions() -> str:
    names = "torch transformers timm x-transformers hyper-connections vit-pytorch open_clip_torch litgpt".split()
    known = []
    for name in names:
        try:
            known.append(f"{name} {version(name)}")
        except PackageNotFoundError:
            continue
    return ", ".join(known)


def main(out: str, *asked: str) -> None:
    lacking = {name: lacks for name in asked or TITLES if (lacks := library_models.missing(name))}
    names = [name for name in asked or TITLES if name not in lacking]
    for name, lacks in lacking.items():
        print(f"{name}: {lacks} is not installed; its row is left out", file=sys.stderr)
    found = {name: kept(name, Path(out) / "probed", partial(probed, name, Path(out) / name)) for name in names}
    ended = Path(out) / "trained"
    fresh = get_context("spawn")  # each in a process of its own: libraries change what is loaded
    with ProcessPoolExecutor(2, fresh, max_tasks_per_child=1) as pool:
        futures = {name: pool.submit(trained, name) for name in names if not (ended / f"{name}.json").exists()}
        ends = {name: kept(name, ended, lambda name=name: futures[name].result()) for name in names}
    rows = []
    for name in names:
        one = found[name]
        if "refused" in one:
            rows.append(f"| {TITLES[name]}, `{name}` | {one['refused']} |{' – |' * 6} no result | – | {ends[name]} |")
            print(rows[-1], flush=True)
            continue
        deepest = one["found"][-1]
        links = " | ".join(cell(one["links"][link]) for link in ("gradient", "update", "tokens", "loss"))
        failing = ", ".join(link for link, own in one["links"].items() if own["verdict"] == "fail") or "–"
        rows.append(
            f"| {TITLES[name]}, `{name}` | {deepest['kinds']} of {deepest['model']}, by {deepest['found']} | {links} | "
            f"{failing} | **{said(one)}** | {one['seconds']:.0f} s | {ends[name]} |"
        )
        print(rows[-1], flush=True)
    counts = Counter((found[name].get("verdict", "no result"), ends[name].split(":")[0]) for name in names)
    summary = ", ".join(f"{word} and {end} {count}" for (word, end), count in sorted(counts.items()))
    print(summary)
    if not asked:
        path = ROOT / "docs" / "library_models.md"
        page = HEAD.replace("VERSIONS", versions()) + "\n".join(rows) + f"\n\nOf {len(names)}: {summary}.\n"
        path.write_text(page, encoding="utf-8")


if __name__ == "__main__":
    assert set(TITLES) == set(library_models.ZOO)
    main(*sys.argv[1:])
