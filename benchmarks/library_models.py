"""What `stabkit probe` finds in models that nobody here wrote: docs/library_models.md, a row a model.

    python3 dev.py libraries
    python benchmarks/library_models.py OUT [NAME…]

Small models with random weights (`tests/own/library_models.py`), 3 to 24 layers, three seeds, eight updates of AdamW at
1e-3 on random tokens or images. About five minutes on two cores; what is on the shelf in OUT is not probed again.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from tests.own import library_models  # noqa: E402  # the models stand beside the tests that probe them

DEPTHS = "3,6,12,24"
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
    "timm_vit": "timm's ViT, LayerScale 1e-5",
    "torch_encoder": "nn.TransformerEncoder (Post-LN, layers start as copies)",
    "x_sandwich": "x-transformers, sandwich norms",
    "nano_gpt": "the GPT of docs/own_model.md",
}
HEAD = f"""# Models of public libraries, probed

Made by `python benchmarks/library_models.py OUT` with VERSIONS; random weights, width 64,
{DEPTHS} layers, three seeds, eight updates of AdamW at 1e-3 on a fixed random batch. Numbers are those of the deepest,
exponents those over depth. A verdict speaks of these small models at this rate, not of the published ones.

| model, factory | found | stream | update | gradient | finite | verdict |
|---|---|---|---|---|---|---|
"""


def probed(name: str, out: Path) -> dict[str, Any]:
    command = [
        "probe",
        f"tests.own.library_models:{name}",
        "--depths",
        DEPTHS,
        "--out",
        str(out),
        "--json",
        "--no-fail",
    ]
    done = subprocess.run(
        [sys.executable, "-m", "stabkit", *command], cwd=ROOT, stdout=subprocess.PIPE, text=True, env=os.environ
    )
    if done.returncode:
        sys.exit(f"{name}: {done.returncode}")
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def cell(link: dict[str, Any]) -> str:
    """`pass: 1.2, N^0.02`."""
    if link["fit"] is None:
        growth = ", saturated" if link["saturated"] else ""
    elif link["fit"] == "power":
        growth = f", N^{link['exponent']:.2f}".replace("^-0.00", "^0.00").replace("-", "−")
    else:
        growth = f", ×{link['factor']:.3f} a layer"
    level = link["level"] if isinstance(link["level"], str) else f"{link['level']:.2g}"
    return f"{link['verdict']}: {level}{growth}" if link["evidence"] else link["verdict"]


def main(out: str, *names: str) -> None:
    rows = []
    for name in names or TITLES:
        found = probed(name, Path(out) / name)
        deepest = found["found"][-1]
        links = " | ".join(cell(found["links"][link]) for link in ("stream", "update", "gradient", "finite"))
        rows.append(
            f"| {TITLES[name]}, `{name}` | {deepest['kinds']} of {deepest['model']}, by {deepest['found']} | {links} | "
            f"**{found['verdict']}** |"
        )
        print(rows[-1], flush=True)
    if not names:
        libraries = ", ".join(f"{name} {version(name)}" for name in ("torch", "transformers", "timm", "x-transformers"))
        path = ROOT / "docs" / "library_models.md"
        path.write_text(HEAD.replace("VERSIONS", libraries) + "\n".join(rows) + "\n", encoding="utf-8")


if __name__ == "__main__":
    assert set(TITLES) == set(library_models.LIBRARY)
    main(*sys.argv[1:])
