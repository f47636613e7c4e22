"""What `stabkit probe` says of models that nobody here wrote, and whether they train: docs/evidence/library_models.md.

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
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from importlib.metadata import packages_distributions, version
from multiprocessing import get_context
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from studies.markdown import csv_text, table_lines  # noqa: E402
from tests.own import library_models, tasks  # noqa: E402  # the models stand beside the tests that probe them

DEPTHS, TRAINED, UPDATES, RATE = "3,12", 12, 300, 1e-3
PAGE = ROOT / "docs" / "evidence" / "library_models.md"
ROWS = PAGE.with_suffix(".csv")
LINKS = ("gradient", "update", "tokens", "loss")
COLUMNS = ("factory", "library", "found", *LINKS, "links that fail", "word", "probability", "seconds", "outcome")


def probed(name: str, out: Path) -> dict[str, Any]:
    command = ["probe", f"tests.own.tasks:{name}", "--depths", DEPTHS, "--seeds", "0", "--out", str(out)]
    begin = time.perf_counter()
    done = subprocess.run(
        [sys.executable, "-m", "stabkit", *command, "--json", "--no-fail"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        env=os.environ,
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


def row(name: str, found: dict[str, Any], ended: str) -> dict[str, str]:
    """Of a model: what the probe found at the deepest, its word, and what became of the model."""
    if "refused" in found:
        values = [found["refused"], *["–"] * 5, "no result", "–", "–", ended]
    else:
        deepest, forecast = found["found"][-1], found["forecast"]["probability"]
        failing = ", ".join(link for link, own in found["links"].items() if own["verdict"] == "fail") or "–"
        said = ", ".join(found["forecast"]["axes"]) if forecast is None else f"{forecast:.2f}"
        values = [
            f"{deepest['kinds']} of {deepest['model']}, by {deepest['found']}",
            *(cell(found["links"][link]) for link in LINKS),
            failing,
            found["verdict"],
            said,
            f"{found['seconds']:.0f}",
            ended,
        ]
    package = packages_distributions()[library_models.ZOO[name]][0]
    return dict(zip(COLUMNS, (name, f"{package} {version(package)}", *values), strict=True))


def pair(one: dict[str, str]) -> tuple[str, str]:
    """(the word, what became of the model)."""
    return one["word"], one["outcome"].partition(":")[0]


def page(rows: Sequence[dict[str, str]]) -> str:
    """The words against the outcomes, and the models whose word is another than `trains`."""
    table = []
    for key, count in Counter(map(pair, rows)).most_common():
        own = [f"`{one['factory']}`" for one in rows if pair(one) == key]
        table.append((*key, count, ", ".join(own) if count < 5 else "all others"))
    trains = sum(one["outcome"].startswith("trains") for one in rows)
    false = sum(pair(one) == ("fails", "trains") for one in rows)
    lines = [
        "# Does a probe pass healthy models of libraries?",
        "",
        f"`stabkit probe` ran on {len(rows)} small models of transformers, timm, x-transformers and others. They have "
        f"width 64, {' and '.join(DEPTHS.split(','))} layers, random weights, one seed and AdamW at {RATE:g} "
        "(nanochat: its own). "
        f"Then each was trained for {UPDATES} updates at {TRAINED} layers, without warm-up. {trains} of {len(rows)} "
        f"train; {false} of these were told `fails`. `trains` for every model would be right as often. The words are "
        "about these small models at this rate, not the published ones. `python benchmarks/library_models.py OUT`.",
        "",
        *table_lines(("the probe says", "after 300 updates it", "models", "which"), table),
        "",
        f"A model *trains* if its mean loss of the last 20 updates lies {tasks.LEARNT:g} nats below the unigram loss. "
        "That is less than [verdict.md](verdict.md) asks for.",
        "",
        "[library_models.csv](library_models.csv) has a row a model, with the version of its library. A link has the "
        "range of nine in ten models that train. The probability is that of the forecast by sixteen updates; where it "
        "does not decide, the word is of a training. The outcome has the loss at the end and the unigram loss.",
    ]
    return "\n".join(lines) + "\n"


def write(rows: Sequence[dict[str, str]]) -> None:
    """The rows, and the page of them."""
    ROWS.write_text(csv_text(COLUMNS, [list(one.values()) for one in rows]), encoding="utf-8")
    PAGE.write_text(page(rows), encoding="utf-8")


def main(out: str, *asked: str) -> None:
    every = asked or library_models.ZOO
    lacking = {name: lacks for name in every if (lacks := library_models.missing(name))}
    names = [name for name in every if name not in lacking]
    for name, lacks in lacking.items():
        print(f"{name}: {lacks} is not installed; its row is left out", file=sys.stderr)
    found = {name: kept(name, Path(out) / "probed", partial(probed, name, Path(out) / name)) for name in names}
    ended = Path(out) / "trained"
    fresh = get_context("spawn")  # each in a process of its own: libraries change what is loaded
    with ProcessPoolExecutor(2, fresh, max_tasks_per_child=1) as pool:
        futures = {name: pool.submit(trained, name) for name in names if not (ended / f"{name}.json").exists()}
        ends = {name: kept(name, ended, lambda name=name: futures[name].result()) for name in names}
    rows = [row(name, found[name], ends[name]) for name in names]
    for one in rows:
        print(*one.values(), sep="; ")
    if not asked:
        write(rows)


if __name__ == "__main__":
    main(*sys.argv[1:])
