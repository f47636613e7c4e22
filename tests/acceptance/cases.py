# ruff: noqa: E501  # what is expected, a line each
"""Public bug reports rebuilt small (the folder `cases` of the project's shared files): what stabkit answers to each.

    python tests/acceptance/cases.py CASES

Each is run as its expected.txt says, `bad` and its healthy twin `good`; a line a case with what was found, exit 1 where
an answer lacks the word expected or a twin is complained of. Ends with a table.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PROBE = "probe model:{} --depths 3,6,12,24 --quiet"
AUDIT = "audit model:{{}} --method {} --depths 6 --arch decoder-only"
FAILS, VIOLATED, SOUND = 7, 6, 0
CASES: dict[str, list[tuple[str, int, str]]] = {
    "blocks-in-a-python-list": [
        (PROBE, FAILS, r"the weights of all 48 sub-layers are not among the model's parameters \(blocks, a plain list\)"),
        ("train.py {}", 0, r"the weights of all 12 sub-layers are not among the model's parameters"),
    ],
    "feed-forward-residual-of-normed": [
        (AUDIT.format("pre-ln"), VIOLATED, r"1\. decoder, feed-forward in all 6 layers: the shortcut takes the normed x(?s:.)*violated in 1 point"),
    ],
    "gpt2-init-at-768": [
        (AUDIT.format("gpt2-init"), VIOLATED, r"out and down in all 6 layers, 3\.46 × too large: not scaled at all"),
    ],
    "head-of-variance-one": [(PROBE, 0, r"[Tt]he loss at the start is 2\d[\d.]*; a uniform guess over 100 classes gives ln 100 = 4\.61")],
    "inner-skip": [("probe model:{} --depths 2,4,8 --lr 1e-4 --quiet", 0, r"N\^0\.4\d .*\n?.*3\.2 +│ 4\.5 +│ 6\.[23]")],
    "ln-scale-buffer-lost": [
        (AUDIT.format("layernorm-scaling"), VIOLATED, r"multiplied by 0, not 0\.40825 … 1: every branch reads 0"),
        (PROBE, FAILS, r"120 matrices .*received no non-zero gradient"),
        ("train.py {}", 0, r"no gradient reached 24 norm tensors"),
    ],
    "no-logit-scale": [
        (AUDIT.format("pre-ln"), VIOLATED, r"logits are multiplied by 1, not 1/√32 = 0\.1768"),
    ],
    "one-layer-detached": [("train.py {}", 0, r"update 1: no gradient reaches the trainable stack\.1 … stack\.3")],
    "only-query-normed": [
        (AUDIT.format("pre-ln"), VIOLATED, r"self-attention in all 6 layers: key and value read the stream without a norm"),
    ],
    "pure-bfloat16": [("train.py {}", 0, r"13 norm tensors .* did not move in 8 readings, although a gradient arrives: weights in bfloat16")],
    "row-wholly-masked": [
        ("probe model:{} --depths 2,4,8 --quiet", 2, r"stream of stack\.1\.self \(1 of 8 rows; the loss is 4\.61; 27 of 29 gradients are not finite\)"),
    ],
    "shared-feed-forward": [
        (AUDIT.format("pre-ln"), VIOLATED, r"1\. decoder, feed-forward in all 6 layers: layers share one set of weights"),
    ],
    "two-norms-in-a-row": [
        (AUDIT.format("pre-ln"), VIOLATED, r"self-attention in all 6 layers: 2 norms stand in a row before the branch"),
    ],
}  # fmt: skip
COMPLAINT = r"StabilityWarning|violated in|does not train as it stands|loss at the start"


def run(command: str, where: Path) -> tuple[int, str]:
    words = command.split() if command.startswith("train.py") else ["-m", "stabkit", *command.split()]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "COLUMNS": "400", "NO_COLOR": "1"}
    done = subprocess.run([sys.executable, *words], cwd=where, env=environment, capture_output=True, text=True)
    return done.returncode, done.stdout + done.stderr


def main(cases: str, *names: str) -> int:
    failed = 0
    with tempfile.TemporaryDirectory() as work:
        for name, commands in ((name, CASES[name]) for name in names or CASES):
            where = Path(work) / name
            shutil.copytree(Path(cases) / name, where)
            for command, code, said in commands:
                (bad, text), (good, twin) = run(command.format("bad"), where), run(command.format("good"), where)
                found = re.search(said, text)
                wrong = [
                    *([f"exit {bad}, not {code}"] if bad != code else []),
                    *([] if found else ["not said"]),
                    *([f"the twin exits with {good}"] if good != SOUND else []),
                    *([f"the twin: {c[0]}"] if (c := re.search(COMPLAINT, twin)) and name != "inner-skip" else []),
                ]
                failed += bool(wrong)
                answer = found[0].replace("\n", " ")[:90] if found else "; ".join(wrong) or "—"
                print(
                    f"| {name} | `{command.split(' model')[0].split(' {')[0]}` | {bad} | {answer} | {'; '.join(wrong) or 'passes'} |",
                    flush=True,
                )
    return int(bool(failed))


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
