# ruff: noqa: E501  # command lines, each on its own
"""What stabkit prints, writes and exits with, as one folder of texts that two versions are compared by.

    captures.py take CHECKOUT OUT [--store STORE] [--only PREFIX]   run every command below by the program in CHECKOUT
    captures.py compare BEFORE AFTER                                what differs, byte for byte; exit 1 where anything

Without --store everything is trained anew (some minutes), digests of all run folders included; with the store of an
earlier `take` nothing is trained, so that pages hold the same wall times. Times of the command itself are replaced.
"""

from __future__ import annotations

import argparse
import difflib
import fcntl
import hashlib
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

WORK = Path(os.environ.get("STABKIT_CAPTURES", "/tmp/stabkit-captures"))
"""The same folder for every version: paths stand in pages and JSON."""
SMALL = "--hidden 16 --ffn 32 --vocab 200 --max-tokens 128"

COMMANDS = {
    "sweep": f"sweep --models post-ln,admin,deepnorm,pre-ln,dlcl --depths 2,3 --steps 20 --warmup 0,40 --seeds 0,1 {SMALL}",
    "sweep-default": "sweep --depths 2,6 --max-tokens 128",
    "sweep-judged": f"sweep --models post-ln,pre-ln,rezero,admin,t-fixup --depths 2,8 --steps 130 --warmup 0 --lr 5e-4,1e-2,3 {SMALL}",
    "sweep-block": f"sweep --models 2026 --arch decoder-only --block llama --depths 2 --steps 4 --warmup 0 {SMALL}",
    "sweep-encoder": f"sweep --models papers --arch encoder-only --depths 2x0,3x0 --steps 4 --recipe paper {SMALL}",
    "sweep-bleu": f"sweep --models deepnorm,post-ln --depths 2 --steps 4 --bleu {SMALL}",
    "ablate": f"ablate --depths 2 --steps 45 {SMALL}",
    "ablate-drop": f"ablate --models admin --depths 2 --drop omega,beta --steps 4 {SMALL}",
    "slope": f"sweep --models papers --depths 2,4 --optimizer sgd --steps 1 --warmup 0 --lr 1e-5 --dtype float64 {SMALL}",
    "transfer-highest": f"transfer --models post-ln,deepnorm --depths 2 --seeds 0 --steps 40 --highest {SMALL}",
    "landscape": f"landscape --depths 2 --steps 6 --snapshots 2 --points 5 --cut-points 7 --direction-seeds 0 {SMALL}",
    "paper-fig4": "paper fig4 --depths 2,3 --steps 16 --vocab 200",
    "paper-fig9": "paper fig9 --depths 2 --steps 4 --vocab 200",
    "paper-table1": "paper table1 --depths 2,3 --steps 4 --vocab 200",
    "probe-holds": "probe probe_models:pre_ln --depths 2,4,8",
    "probe-fails": "probe probe_models:growing --depths 2,4,8 --seeds 0,1",
    "probe-post": "probe probe_models:post_ln --depths 2,6,18 --seeds 0",
    "probe-boom": "probe probe_models:exploding --depths 2,4 --seeds 0 --strict",
    "probe-single": "probe probe_models:single --seeds 0",
}
"""Each is run with --out STORE, once as people read it and once with --json."""

READ = {
    "methods": "methods",
    "methods-json": "methods --json",
    "methods-admin": "methods admin --depths 2,18",
    "methods-2026": "methods 2026",
    "paper-ls": "paper ls",
    "audit": "audit audit_fixture:good",
    "audit-json": "audit audit_fixture:good --json",
    "audit-bad": "audit audit_fixture:bad --method deepnorm",
    "audit-bad-json": "audit audit_fixture:bad --method deepnorm --json",
    "dry-run": f"sweep --models all --depths 2,7 --dry-run {SMALL}",
    "dry-run-json": f"sweep --models all --depths 2,7 --dry-run --json {SMALL}",
    "dry-run-paper": "paper all --dry-run --budget 20m --json",
    "print-config": "sweep --depths 3 --print-config",
    "runs-ls": "runs ls --out {store}",
    "runs-ls-json": "runs ls --out {store} --json",
    "runs-verify": "runs verify --out {store}",
    "runs-show": "runs show post-ln-2L-2L-s0 --out {store}",
    "runs-show-json": "runs show deepnorm-8L-8L-s0 --out {store} --json",
    "export": "export --store {store}",
    "export-jsonl": "export --store {store} --to jsonl",
    "export-translations": "export --what translations --store {store}",
    "report": "report --store {store} --out {out}/report.html",
    "report-figures": "report post-ln-2L-2L-s0 --store {store} --out {out}/report-figures.html --figures {out}/figures",
}

HELP = "|sweep|ablate|transfer|landscape|paper|report|export|methods|probe|audit|runs|runs ls|runs show|runs verify|runs rm"

BAD = """
sweep --models deepnrom
sweep --models
sweep --models post-ln:omega=3
sweep --depths 0
sweep --depths six
sweep --depths 2x
sweep --depths 2 --lr -1
sweep --depths 2 --steps 0
sweep --depths 2 --seeds 4..0
sweep --depths 2 --optimizer adamm
sweep --depths 2 --arch decoder
sweep --depths 2 --hidden 15
sweep --depths 2 --block lama
sweep --depths 2 --recipe own
sweep --depths 2 --warmup x
sweep --depths 2 --device tpu
sweep --depths 2 --executor slurm
sweep --depths 2 --data /nonexistent
sweep --depth 2
sweeep
sweep --config /nonexistent.toml
sweep --depths 2 --beam 0 --bleu
sweep --depths 2 --dtype float16
ablate --alpha-scale 0
ablate --drop gamma
ablate --models post-ln,admin
sweep --lr 0
transfer --models pre-ln --depths 2 --highest --predict 4
landscape --points 2
landscape --weights x.safetensors
paper fig99
paper ls fig1
paper fig4 --budget soon
report --store /nonexistent
report nothing-at-all
export --to xlsx
export --what weights
methods deepnrom
methods check
methods check deepnrom
probe nomodule:f
probe probe_models:nothing_here
probe probe_models
probe probe_models:pre_ln --depths 0
probe probe_models:raises --depths 2
probe probe_models:nothing --depths 2
probe probe_models:wrong --depths 2
audit nomodule:f
audit probe_models:pre_ln --depths 2
audit audit_fixture:good --method nosuch
runs show nothing-at-all
runs rm nothing-at-all
"""

TIMES = [
    (r"\b\d+(\.\d+)? ms\b", "# ms"),
    (r"\b\d+(\.\d+)?( s\b| seconds?\b)", "# s"),
    (r"\b\d+ min( \d+ s)?\b", "# min"),
    (r"\b\d[\d,]* MB\b", "# MB"),
    (r'"(wall_seconds|seconds|seconds_a_step|peak_memory_bytes|cpu_seconds)": [\d.e+-]+', r'"\1": #'),
    (r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d(\.\d+)?)?(Z|\+00:00)?", "DATE"),
    (r"in \d+:\d\d(:\d\d)?", "in #"),
]


def take(checkout: Path, out: Path, store: Path | None, only: str) -> None:
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir(parents=True)
    shutil.rmtree(WORK, ignore_errors=True)
    WORK.mkdir(parents=True)
    here = WORK / "store"
    if store:
        shutil.copytree(store, here)
    fixtures(WORK)
    environment = {
        **{key: value for key, value in os.environ.items() if not key.startswith("STABKIT_")},
        "PYTHONPATH": f"{checkout}:{WORK}",
        "COLUMNS": "120",
        "NO_COLOR": "1",
        "PYTHONHASHSEED": "0",
    }

    def run(name: str, line: str) -> None:
        if not name.startswith(only):
            return
        where = dict(store=here, out=WORK)
        words = shlex.split(line.format(**where))
        done = subprocess.run(
            [sys.executable, "-m", "stabkit", *words], cwd=WORK, env=environment, capture_output=True, text=True
        )
        text = f"$ {line}\nexit {done.returncode}\n-- stdout\n{done.stdout}\n-- stderr\n{done.stderr}"
        (out / f"{name}.txt").write_text(neutral(text))

    for name, line in COMMANDS.items():
        before = set((here / "reports").glob("**/*")) if (here / "reports").exists() else set()
        stamps = {path: path.stat().st_mtime_ns for path in before}
        run(name, f"{line} --out {{store}}")
        pages = sorted(p for p in (here / "reports").glob("**/*.html") if p.stat().st_mtime_ns != stamps.get(p))
        for page in pages:
            shutil.copy(page, out / f"{name}--{page.name}")
        run(f"{name}-json", f"{line} --json --out {{store}}")
    for name, line in READ.items():
        run(name, line)
    for page in WORK.glob("report*.html"):
        shutil.copy(page, out / page.name)
    if (WORK / "figures").exists():
        digests = {p.name: digest(p) for p in sorted((WORK / "figures").iterdir()) if p.suffix in (".csv", ".svg")}
        (out / "figures.json").write_text(json.dumps(digests, indent=1))
    for command in HELP.split("|"):
        run(f"help-{command.replace(' ', '-') or 'root'}", f"{command} --help")
    for i, line in enumerate(BAD.strip().splitlines()):
        run(f"bad-{i:02}", line if "--out" in line or "probe" not in line else f"{line} --out {{store}}")
    folders = {
        f"{kind.name}/{folder.name}": json.loads((folder / "manifest.json").read_text())
        for kind in sorted(here.iterdir())
        if kind.is_dir()
        for folder in sorted(kind.iterdir())
        if (folder / "manifest.json").exists()
    }
    without_machine = {
        name: {k: v for k, v in flat(manifest).items() if "environment" not in k} for name, manifest in folders.items()
    }
    (out / "folders.json").write_text(json.dumps(without_machine, indent=1, sort_keys=True))
    if not store:
        shutil.copytree(here, out / "store")


def flat(value: object, key: str = "") -> dict[str, object]:
    if isinstance(value, dict):
        return {k: v for name, inner in value.items() for k, v in flat(inner, f"{key}/{name}").items()}
    return {key: value}


def fixtures(folder: Path) -> None:
    """The models of the tests as they were at the commit that all later ones are compared with."""
    for name in ("probe_models.py", "audit_models.py"):
        text = subprocess.run(
            ["git", "show", f"ffcc4d4:tests/own/{name}"],
            cwd=Path(__file__).parent,
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        (folder / name).write_text(text)
    (folder / "audit_fixture.py").write_text(FIXTURE)


FIXTURE = """
import torch
from audit_models import deepnorm
def good():
    return deepnorm(2, 2), (torch.arange(12).reshape(2, 6), torch.arange(12).reshape(2, 6))
def bad():
    return deepnorm(2, 2, only=("value",)), (torch.arange(12).reshape(2, 6), torch.arange(12).reshape(2, 6))
"""


def neutral(text: str) -> str:
    for pattern, replacement in TIMES:
        text = re.sub(pattern, replacement, text)
    return text


def unordered(path: Path) -> bytes:
    """A capture without the order in which workers came to their ends."""
    lines = path.read_bytes().split(b"\n")
    ended = sorted(re.sub(rb"^\[\d+/", b"[/", line) for line in lines if re.match(rb"\[\d+/\d+\]", line))
    return b"\n".join([line for line in lines if not re.match(rb"\[\d+/\d+\]", line)] + ended)


def digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()[:16]


def compare(before: Path, after: Path) -> int:
    names = {
        str(path.relative_to(folder))
        for folder in (before, after)
        for path in folder.rglob("*")
        if path.is_file() and "store" not in path.relative_to(folder).parts
    }
    different = 0
    for name in sorted(names):
        old, new = before / name, after / name
        if not old.exists() or not new.exists():
            print(f"{name}: only {'after' if new.exists() else 'before'}")
            different += 1
        elif unordered(old) != unordered(new):
            different += 1
            print(f"{name}: differs")
            lines = (path.read_text(errors="replace").splitlines() for path in (old, new))
            for line in list(difflib.unified_diff(*lines, lineterm="", n=0))[:8]:
                print(f"    {line[:300]}")
    print(f"{len(names)} captures, {different} differ")
    return 1 if different else 0


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("verb", choices=("take", "compare"))
    parser.add_argument("first", type=Path)
    parser.add_argument("second", type=Path)
    parser.add_argument("--store", type=Path)
    parser.add_argument("--only", default="")
    given = parser.parse_args()
    if given.verb == "take":
        with open(f"{WORK}.lock", "w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)  # the folder is one
            take(given.first.resolve(), given.second.resolve(), given.store and given.store.resolve(), given.only)
    else:
        sys.exit(compare(given.first, given.second))
