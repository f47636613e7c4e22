"""The outcome rule against two readings that see only pictures.

    benchmarks/blind.py train DATA OUT LIST                train LIST (`first`: 60 runs, `after`: 20), draw its sheets
    benchmarks/blind.py compare OUT LIST ONE.csv TWO.csv   readings (number,word) beside the rule: docs/blind.csv

Each ladder is one method at one shape and five rates a factor of two apart, about the rate beyond which it no longer
trains, so that at least two of the five lie within a factor of two of that limit. Seeds, methods, tasks and rates are
not those that the rule's constants were set on (seed 0, 6 and 12 layers, docs/outcome.md). A list was committed before
the first of its runs. The sheets show the loss of the probe batch and of the validation set and the loss U of the best
constant predictor, in an order drawn by SHUFFLE, with a number and no other word. In the rows `blind` is what the rule
said when the readings were first compared, `rule` what it says today.
"""

from __future__ import annotations

import csv
import random
import subprocess
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

import matplotlib

matplotlib.use("svg")
import matplotlib.pyplot as plt

from stabkit.storage.store import Run, Store

ROWS = Path(__file__).resolve().parents[1] / "docs" / "blind.csv"
SHUFFLE = 20261122
A_SHEET = 6
COMMON = "--steps 250 --warmup 0 --max-tokens 256"
LADDERS = {
    "post-ln": "--models post-ln --depths 6 --lr 2.5e-4,5e-4,1e-3,2e-3,4e-3 --seeds 11",
    "post-ln, deeper": "--models post-ln --depths 10 --lr 1.25e-4,2.5e-4,5e-4,1e-3,2e-3 --seeds 12",
    "post-ln-init": "--models post-ln-init --depths 8 --lr 1e-3,2e-3,4e-3,8e-3,1.6e-2 --seeds 13",
    "admin": "--models admin --depths 8 --lr 1e-3,2e-3,4e-3,8e-3,1.6e-2 --seeds 14",
    "deepnorm": "--models deepnorm --depths 10 --lr 1e-3,2e-3,4e-3,8e-3,1.6e-2 --seeds 15",
    "pre-ln, warm-up": "--models pre-ln --depths 6 --lr 2e-3,4e-3,8e-3,1.6e-2,3.2e-2 --warmup 50 --seeds 16",
    "sub-ln": "--models sub-ln --depths 6 --lr 2e-3,4e-3,8e-3,1.6e-2,3.2e-2 --seeds 17",
    "post-ln, decoder-only": "--models post-ln --arch decoder-only --depths 12 --lr 5e-4,1e-3,2e-3,4e-3,8e-3 "
    "--seeds 18",
    "deepnorm, decoder-only": "--models deepnorm --arch decoder-only --depths 16 --lr 2e-3,4e-3,8e-3,1.6e-2,3.2e-2 "
    "--seeds 19",
    "post-ln, synthetic": "--models post-ln --depths 6 --lr 2.5e-4,5e-4,1e-3,2e-3,4e-3 --seeds 20",
    "deepnorm, synthetic": "--models deepnorm --depths 8 --lr 1e-3,2e-3,4e-3,8e-3,1.6e-2 --seeds 21",
    "admin, decoder-only synthetic": "--models admin --arch decoder-only --depths 12 --lr 1e-3,2e-3,4e-3,8e-3,1.6e-2 "
    "--seeds 22",
}
AFTER = {
    "post-ln, 7 layers": "--models post-ln --depths 7 --lr 2.5e-4,5e-4,1e-3,2e-3,4e-3 --seeds 31",
    "post-ln, decoder-only 9": "--models post-ln --arch decoder-only --depths 9 --lr 5e-4,1e-3,2e-3,4e-3,8e-3 "
    "--seeds 32",
    "post-ln, decoder-only 8 synthetic": "--models post-ln --arch decoder-only --depths 8 "
    "--lr 5e-4,1e-3,2e-3,4e-3,8e-3 --seeds 33",
    "ds-init": "--models ds-init --depths 6 --lr 5e-4,1e-3,2e-3,4e-3,8e-3 --seeds 34",
}
"""For the rule as it was mended after the first sixty, written down before the first of these runs."""
LISTS = {"first": LADDERS, "after": AFTER}
COLUMNS = (
    *("list", "number", "ladder", "run", "rate", "unigram", "validation", "lowest_ratio"),
    *("one", "two", "blind", "rule", "near_limit"),
)


def train(data: str, out: str, which: str) -> None:
    for ladder, words in LISTS[which].items():
        text = [] if "synthetic" in ladder else ["--data", data, "--source", "de", "--target", "en"]
        sweep = ["sweep", *COMMON.split(), *words.split(), *text, "--out", str(Path(out) / slug(ladder))]
        subprocess.run(
            [sys.executable, "-m", "stabkit", *sweep, "--json", "--quiet"], check=True, stdout=subprocess.DEVNULL
        )
    draw([run for _, run in shuffled(out, which)], Path(out))


def slug(ladder: str) -> str:
    return ladder.replace(", ", "_").replace(" ", "_")


def shuffled(out: str, which: str) -> list[tuple[str, Run]]:
    """(ladder, run) in the order of the sheets: number 1 first."""
    found = []
    for ladder in LISTS[which]:
        store = Store(Path(out) / slug(ladder))
        found += [(ladder, store.load(run_id)) for run_id in sorted(store.ids())]
    random.Random(SHUFFLE).shuffle(found)
    return found


def draw(runs: Sequence[Run], out: Path) -> None:
    for begin in range(0, len(runs), A_SHEET):
        figure, panels = plt.subplots(2, 3, figsize=(15, 8.4), layout="constrained")
        for number, (panel, run) in enumerate(zip(panels.flat, runs[begin:], strict=False), begin + 1):
            loss, validation = run.records["loss"], run.records["validation"]
            panel.plot(loss.steps, loss.at("probe"), lw=1, color="#4477aa", label="probe batch")
            panel.plot(validation.steps, validation.at("validation"), "o-", ms=4, color="#ee6677", label="validation")
            panel.axhline(float(run.kept["unigram_loss"]), ls="--", lw=1, color="#333333", label="U")
            panel.set_title(f"{number}", fontsize=16)
            panel.set_xlabel("update")
            high = max(loss.at("probe")[0], float(run.kept["unigram_loss"])) * 1.25
            if loss.at("probe").max() > high:
                panel.set_yscale("log")
        panels.flat[0].legend()
        figure.savefig(out / f"sheet-{begin // A_SHEET + 1:02}.png", dpi=100)
        plt.close(figure)


def compare(out: str, which: str, *readings: str) -> None:
    one, two = (read(path) for path in readings)
    told = {(row["list"], row["run"]): row["blind"] for row in kept()}
    rows = []
    for number, (ladder, run) in enumerate(shuffled(out, which), 1):
        outcome = run.outcome
        rows.append(
            {
                "list": which,
                "number": number,
                "ladder": ladder,
                "run": run.run_id,
                "rate": run.spec.train.lr,
                "unigram": round(float(run.kept["unigram_loss"]), 3),
                "validation": round(outcome.validation_loss, 3),
                "lowest_ratio": f"{outcome.chain.gradient_ratio_lowest:.1e}",
                "one": one[number],
                "two": two[number],
                "blind": told.get((which, run.run_id), outcome.word),
                "rule": outcome.word,
                "near_limit": "",
            }
        )
    for ladder in LISTS[which]:
        mark([row for row in rows if row["ladder"] == ladder])
    held = [row for row in kept() if row["list"] != which]
    with ROWS.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
        writer.writeheader()
        writer.writerows([*held, *rows])
    tell(rows)


def kept() -> list[dict[str, str]]:
    return list(csv.DictReader(ROWS.read_text(encoding="utf-8").splitlines())) if ROWS.exists() else []


def read(path: str) -> dict[int, str]:
    with open(path, encoding="utf-8") as file:
        return {int(row["number"]): row["word"].strip() for row in csv.DictReader(file)}


def mark(ladder: list[dict[str, object]]) -> None:
    """Which rates lie within a factor of two of the limit: between the last that both readings call training and the
    first beyond it that either does not."""
    ladder.sort(key=lambda row: float(str(row["rate"])))
    trained = [row["one"] == row["two"] == "trains" for row in ladder]
    for below, above in zip(range(len(ladder)), range(1, len(ladder)), strict=False):
        if trained[below] and not trained[above]:
            ladder[below]["near_limit"] = ladder[above]["near_limit"] = "yes"


def tell(rows: Sequence[Mapping[str, object]]) -> None:
    print(f"{len(rows)} runs, {sum(row['near_limit'] == 'yes' for row in rows)} within a factor of two of a limit")
    for left, right in (("one", "two"), ("one", "blind"), ("two", "blind"), ("one", "rule"), ("two", "rule")):
        pairs = [(str(row[left]), str(row[right])) for row in rows]
        print(f"{left} and {right}: {sum(a == b for a, b in pairs)} of {len(pairs)} agree, κ = {kappa(pairs):.2f}")
    for row in rows:
        if not row["one"] == row["two"] == row["rule"]:
            print(*(row[name] for name in COLUMNS))


def kappa(pairs: Sequence[tuple[str, str]]) -> float:
    """Cohen's κ: agreement beyond what the two readings' own shares of each word would give by chance."""
    count = len(pairs)
    seen = sum(a == b for a, b in pairs) / count
    first, second = Counter(a for a, _ in pairs), Counter(b for _, b in pairs)
    chance = sum(first[word] * second[word] for word in first) / count**2
    return (seen - chance) / (1 - chance) if chance < 1 else 1.0


if __name__ == "__main__":
    {"train": train, "compare": compare}[sys.argv[1]](*sys.argv[2:])
