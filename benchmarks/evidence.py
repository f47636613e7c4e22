"""Every committed page and picture, made anew by the version that lies here.

    python3 dev.py evidence                 the parts, what each makes, and how long it took when it was last made
    python3 dev.py evidence default slope   make these
    python3 dev.py evidence all             make all, those that were never made first

A part is an ordinary command of stabkit, or a study of the folder `studies`; its runs lie under `evidence/`, which git
ignores, so that a part that was interrupted goes on where it stopped, and one that is whole trains nothing. What was
made, when, by which version and in how long is a row of `reports/evidence.json`; `tests/report/test_committed.py` holds
the pages to it.
"""

from __future__ import annotations

import datetime
import json
import os
import platform
import shutil
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from stabkit.spec import ALGO_VERSION
from stabkit.version import __version__

ROOT = Path(__file__).parents[1]
STORES, ROWS = ROOT / "evidence", ROOT / "reports" / "evidence.json"
TEXT = "--data ../shared/data/multi30k --source de --target en"
"""The same on every machine, for it stands on the pages."""


@dataclass(frozen=True, kw_only=True)
class Part:
    """A page, the command that makes it, and the pictures that docs take from its runs."""

    page: str
    """From the root of the repository; ending in / for an index and its pages."""
    command: str
    """After the program; OUT is the part's own folder."""
    program: str = "stabkit"
    """A module with a command: stabkit, or studies."""
    before: str = ""
    """A script that leaves what the command reads."""
    which: str = ""
    """What the page's name holds, where the command makes several."""
    pictures: tuple[tuple[str, str], ...] = ()
    """(figure, file in docs/)."""
    beside: tuple[str, ...] = ()
    """Files that the command writes beside its page, which docs/ takes."""

    def line(self, name: str) -> str:
        """The command as people type it."""
        program = self.program if self.program == "stabkit" else f"python -m {self.program}"
        return f"{program} {self.command.replace('OUT', f'evidence/{name}')}"


PARTS: dict[str, Part] = {
    "default": Part(
        page="reports/multi30k-default.html",
        command=f"sweep --warmup 4000,0 --seeds 0..2 {TEXT} --out OUT",
        pictures=(("chain_order", "evidence/chain_order.png"),),
    ),
    "no-warmup": Part(
        page="reports/multi30k-no-warmup.html",
        command=f"sweep --depths 6,18 --steps 250 --warmup 0 --max-tokens 512 --seeds 0..2 {TEXT} --out OUT",
        pictures=(("validation_loss", "validation_loss.png"),),
    ),
    "slope": Part(
        page="reports/multi30k-slope.html",
        command="sweep --models all --depths 6,18,50 --seeds 0..2 --optimizer sgd --steps 1 --warmup 0 --lr 1e-5 "
        f"--dtype float64 --max-tokens 512 {TEXT} --out OUT",
    ),
    "landscape": Part(
        page="reports/multi30k-landscape.html", command=f"landscape --model deepnorm --seeds 0..2 {TEXT} --out OUT"
    ),
    "ablation": Part(page="reports/multi30k-ablation.html", command=f"ablate --seeds 0..2 {TEXT} --out OUT"),
    "llama": Part(
        page="reports/multi30k-llama.html",
        command="sweep --models post-ln,pre-ln,deepnorm,residual --arch decoder-only --block llama --depths 6,18 "
        f"--steps 150 --warmup 0 --seeds 0..2 {TEXT} --out OUT",
    ),
    "start": Part(page="reports/start.html", command=f"paper start {TEXT} --out OUT"),
    "paper": Part(page="reports/paper/", command=f"paper all {TEXT} --budget 75m --out OUT"),
    "forecast": Part(
        page="reports/forecast.html",
        program="studies",
        command=f"forecast {TEXT} --rows docs/evidence/forecast.csv --out OUT",
        beside=("which_link.png",),
    ),
    "recent": Part(
        page="docs/evidence/2026.md",
        program="studies",
        command=f"recent {TEXT} --rows docs/evidence/2026.csv --budget 70m --out OUT",
        beside=("2026_losses.csv", "2026_costs.csv"),
    ),
    "carried": Part(
        page="reports/transfer.html",
        command="transfer --models pre-ln,gpt2-init,depth-mup,completep --arch decoder-only --block llama "
        f"--optimizer adamw --depths 6,12,24 --lr 2.5e-4..0.25 --predict 48 {TEXT} --out OUT",
    ),
    "probe-gpt2": Part(
        page="reports/probe-gpt2.html",
        command="probe tests.own.library_models:gpt2 --depths 6,12,24,48 --no-fail --out OUT",
    ),
    "case-424": Part(  # a Post-LN model of the judging part of the corpus, which no fit has seen
        page="reports/case-424.html",
        command="probe studies.own.factories:case_424 --depths 4,8,16 --seeds 4 --no-fail --out OUT",
    ),
    "watch": Part(
        page="reports/watch-rate-too-high.html",
        before=f"benchmarks/watched.py {TEXT.split()[1]} OUT",
        command="report --store OUT",
        which="rate-too-high",
    ),
}


def main(named: list[str]) -> int:
    rows = json.loads(ROWS.read_text(encoding="utf-8")) if ROWS.exists() else {}
    if not named:
        for name, part in PARTS.items():
            row = rows.get(name, {})
            core = f"{row['trained_seconds'] / 60:.0f} min of one core" if row.get("trained_seconds") else "no runs"
            last = f"{core}, by {row['version']}, {row['date']}" if row else "never made"
            print(f"{name:16} {part.page:36} {last}")
        return 0
    wanted = sorted(PARTS, key=lambda name: name in rows) if named == ["all"] else named
    if unknown := [name for name in wanted if name not in PARTS]:
        print(f"no part {unknown[0]!r}; there are {', '.join(PARTS)}", file=sys.stderr)
        return 2
    for name in wanted:
        rows[name] = made(name)
        ROWS.write_text(json.dumps(rows, indent=1, sort_keys=True) + "\n", encoding="utf-8")
    return 0


def made(name: str) -> dict[str, Any]:
    """Make a part; returns its row. `seconds` is what this call took, `trained_seconds` what its runs took on one core,
    whenever they were trained."""
    part, store = PARTS[name], f"evidence/{name}"
    begun = time.monotonic()
    if part.before:
        subprocess.run([sys.executable, *part.before.replace("OUT", store).split()], cwd=ROOT, check=True)
    words = part.command.replace("OUT", store).split()
    done = subprocess.run([sys.executable, "-m", part.program, *words], cwd=ROOT, text=True, stdout=subprocess.PIPE)
    if done.returncode:
        raise SystemExit(f"evidence {name}: {part.line(name)} exited with {done.returncode}")
    told = [line.removeprefix("report: ") for line in done.stdout.splitlines() if line.startswith("report: ")]
    page = Path(next(line for line in told if part.which in line))
    target = ROOT / part.page
    if part.page.endswith("/"):
        shutil.rmtree(target, ignore_errors=True)
        shutil.copytree(page.parent, target)
    else:
        shutil.copy(page, target)
    for file in part.beside:
        shutil.copy(page.with_name(file), ROOT / "docs" / "evidence")
    if part.pictures:
        aside = STORES / f"{name}-pictures"
        words_ = ["report", "--store", store, "--out", str(aside / "page.html"), "--figures", str(aside)]
        subprocess.run([sys.executable, "-m", "stabkit", *words_], cwd=ROOT, check=True, stdout=subprocess.DEVNULL)
        for figure, file in part.pictures:
            shutil.copy(aside / f"{figure}.png", ROOT / "docs" / file)
    return {
        "page": part.page,
        "command": part.line(name),
        "version": __version__,
        "algorithm": ALGO_VERSION,
        "date": datetime.date.today().isoformat(),
        "seconds": round(time.monotonic() - begun),
        "trained_seconds": round(trained(STORES / name)),
        "processor": _processor(),
    }


def trained(store: Path) -> float:
    """Seconds that the runs of a store took."""
    found = [json.loads(path.read_text(encoding="utf-8")) for path in store.glob("runs/*/environment.json")]
    return sum(float(one.get("wall_seconds", 0.0)) for one in found)


def _processor() -> str:
    """What this machine calls itself."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return f"{names[0]}, {os.cpu_count()} cores" if names else platform.machine()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
