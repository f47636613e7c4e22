"""`stabkit audit` on every public implementation of the papers' methods that pip can install: evidence/audit_wild.md.

    python3 dev.py libraries
    python benchmarks/wild/audit.py DIR [NAME…]

Packages go to DIR without their dependencies (`packages.txt`); what a forward pass does not touch is stood in for
(`tests/own/stand_in.py`). fairseq 0.12.2 cannot be installed by a Python of today: unpack the `fairseq` of its source
distribution into DIR/site_fairseq. A line of `runs.txt` is FACTORY METHOD DEPTH ARCH; each leaves
DIR/out/FACTORY.METHOD.json, and a line here: exit code and findings. About ten minutes on two cores.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]


def install(folder: Path) -> None:
    for line in (HERE / "packages.txt").read_text().splitlines():
        where, *packages = line.split()
        if not (folder / where).exists() or where == "site":
            command = ["pip", "install", "--quiet", "--no-deps", "--target", str(folder / where), *packages]
            subprocess.run([sys.executable, "-m", *command], check=True)


def audit(folder: Path, line: str) -> str:
    name, method, depth, arch = line.split()
    done = subprocess.run(
        [sys.executable, "-m", "stabkit", "audit", f"benchmarks.wild.factories:{name}", "--method", method]
        + ["--depths", depth, "--arch", arch, "--json"],
        cwd=ROOT,
        env={**os.environ, "STABKIT_WILD": str(folder)},
        capture_output=True,
        text=True,
    )
    (folder / "out").mkdir(exist_ok=True)
    (folder / "out" / f"{name}.{method.replace(':', '_').replace('=', '_')}.json").write_text(
        done.stdout or done.stderr
    )
    if not done.stdout:
        return f"{name} {method}: {done.returncode}, {done.stderr.strip().splitlines()[-1][:160]}"
    found = json.loads(done.stdout)
    return f"{name} {method}: {done.returncode}, " + "; ".join(v["what"] for v in found["violations"])


def main(where: str, *names: str) -> None:
    folder = Path(where).resolve()
    if not (folder / "site").exists():
        install(folder)
    lines = [line for line in (HERE / "runs.txt").read_text().splitlines() if not names or line.split()[0] in names]
    with ThreadPoolExecutor(2) as pool:
        for told in pool.map(lambda line: audit(folder, line), lines):
            print(told, flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
