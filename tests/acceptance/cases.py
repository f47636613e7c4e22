"""Public bug reports, rebuilt small: what each command says of the model as reported and as mended.

    python tests/acceptance/cases.py ../shared/cases [NAME …]

A row is a command, and for each twin its exit code, what stands in its answer, and what does not.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
AUDIT, PRE = "audit model:{} --depths 6", "audit model:{} --method pre-ln --depths 6 --arch decoder-only"
PROBE, TRAIN = "probe model:{} --depths 3,6,12 --quick", "train.py {}"
ANY, LINKS = "", r"links \[\]"


@dataclass(frozen=True)
class Said:
    """What an answer is to be."""

    has: str = ANY
    code: int | None = None
    lacks: str = "Traceback"


GOOD, SILENT = Said(code=0), Said(LINKS, 0, "StabilityWarning")
ROWS: list[tuple[str, str, Said, Said]] = [
    ("adaln-zero-missing", AUDIT, Said("6 self|self │ 6|self  *│ 6", lacks="no norm|Post-LN fits"),
     Said("self  *│ 6", lacks="no norm|Post-LN's recipe fits|scaled;")),
    ("adaln-zero-missing", PROBE, Said("trains|fails|undecided", lacks="classes|Traceback"),
     Said("trains|undecided", lacks="classes|broken|Traceback")),
    ("adaln-zero-missing", TRAIN, SILENT, SILENT),
    ("audit-takes-what-probe-takes", "audit model:with_step --depths 6", Said("follows Pre-LN", 0), Said("follows", 0)),
    ("audit-takes-what-probe-takes", "audit model:with_batches --depths 6", Said("follows Pre-LN", 0),
     Said("follows", 0)),
    ("audit-takes-what-probe-takes", "audit model:with_scheduler --depths 6", Said("follows Pre-LN", 0),
     Said("follows", 0)),
    ("audit-takes-what-probe-takes", "audit model:good --depths 6", Said("follows Pre-LN", 0), Said("follows", 0)),
    ("average-written-over-the-model", TRAIN, Said("100 % of each step is undone"), SILENT),
    ("blocks-in-a-python-list", PROBE, Said("not among the model's parameters", 7), Said("trains", 0)),
    ("blocks-in-a-python-list", TRAIN, Said("not among the model's parameters"), Said(lacks="StabilityWarning")),
    ("feed-forward-residual-of-normed", PRE,
     Said("feed-forward in all 6 layers: the shortcut takes the normed", 6, "2\\. "),
     GOOD),
    ("gpt2-init-at-768", "audit model:{} --method gpt2-init --depths 6 --arch decoder-only",
     Said("3.46 × too large: not scaled at all", 6), GOOD),
    ("head-of-variance-one", PROBE,
     Said("loss at the start is [12][0-9].*ln 100 = 4.61.*head.weight is (8|7.9) × 1/√d"),
     Said(lacks="loss at the start is")),
    ("inner-skip", "probe model:{} --depths 2,4,8 --lr 1e-4 --quick",
     Said("N\\^0\\.4[5-9]", lacks="left out"),
     Said()),
    ("layers-start-as-copies", PRE, Said("layers start identical: copies of one draw", 6), Said(lacks="copies")),
    ("ln-scale-buffer-lost", "audit model:{} --method layernorm-scaling --depths 6 --arch decoder-only",
     Said("multiplied by 0, not .*every branch reads 0", 6), GOOD),
    ("ln-scale-buffer-lost", PROBE, Said("fails", 7), Said("trains", 0)),
    ("ln-scale-buffer-lost", TRAIN, Said("no gradient reached 24 norm tensors"), Said(lacks="StabilityWarning")),
    ("logits-over-sqrt-of-width", PRE, Said("logits are multiplied by 0.125, not", 6), GOOD),
    ("lora-checkpoint-frozen-base", AUDIT, Said("low-rank adapters", 0, "logits|all zero"),
     Said("adapters", 0, "logits|all zero")),
    ("lora-checkpoint-frozen-base", TRAIN, Said("no gradient reaches the trainable"), SILENT),
    ("loss-summed-over-micro-batches", TRAIN, Said("is (4|3.9) times what the logits cost", lacks="outlook"), SILENT),
    ("muon-on-embedding-and-head", TRAIN, Said("Muon steps the embeddings wte.weight and wpe.weight"), SILENT),
    ("no-logit-scale", PRE, Said("logits are multiplied by 1, not", 6), GOOD),
    ("one-layer-detached", TRAIN, Said("no gradient reaches the trainable stack.1 … stack.3"),
     Said(lacks="StabilityWarning")),
    ("only-query-normed", PRE, Said("key and value read the stream without a norm", 6), GOOD),
    ("parameter-left-uninitialised", PROBE, Said("smear", 7), Said("trains", 0)),
    ("parameter-left-uninitialised", AUDIT, Said("parameter smear has 1 of 1 numbers", 6), Said("follows", 0)),
    ("parameter-left-uninitialised", TRAIN, Said("parameter smear", lacks="a tenth of the rate"), SILENT),
    ("pure-bfloat16", TRAIN, Said("weights in bfloat16"), Said(lacks="StabilityWarning")),
    ("resumed-at-peak-rate", TRAIN, Said("empty state at a rate of 0.01", lacks="clipped"), SILENT),
    ("resumed-at-peak-rate", "restart.py {}", Said("began with an empty state"), SILENT),
    ("rotation-along-the-heads", AUDIT, Said(code=0, lacks="LeCun|too small"), Said("follows", 0, "LeCun|too small")),
    ("rotation-along-the-heads", PROBE, Said("trains"), Said("trains", 0)),
    ("rotation-along-the-heads", TRAIN, SILENT, SILENT),
    ("router-top1-normalised", TRAIN, Said("no gradient but rounding.*blocks.0.gate.weight and 5 more"), SILENT),
    ("router-top1-normalised", PROBE, Said("no gradient but rounding reached 12 .*blocks.0.gate.weight"),
     Said("trains", 0, "rounding")),
    ("router-top1-normalised", AUDIT, Said("gates that weigh experts", lacks="inside the branch"),
     Said("follows", 0, "inside the branch")),
    ("row-wholly-masked", "probe model:{} --depths 2,4,8", Said("stack.1.self.*1 of 8 rows", 7), Said("undecided", 0)),
    ("sdpa-mask-inverted", AUDIT + " --arch decoder-only", Said("depends on the tokens after it", 6),
     Said("follows", 0)),
    ("sdpa-mask-inverted", PROBE, Said("sees the tokens after each"), Said("trains", 0, "tokens after")),
    ("sdpa-mask-inverted", "train.py {} 120", Said(LINKS), SILENT),
    ("shared-feed-forward", PRE, Said("feed-forward in all 6 layers: layers share one set", 6), GOOD),
    ("stream-mixing-dropped", TRAIN, Said("no gradient reached 12 tensors \\(blocks.0.mix.0", lacks="head tensor"),
     SILENT),
    ("stream-mixing-dropped", PROBE, Said("rounding reached 24 .*blocks.0.mix.0"),
     Said("trains", 0, "its width|rounding")),
    ("two-norms-in-a-row", PRE, Said("2 norms stand in a row", 6), GOOD),
    ("zero-centred-gain-starts-at-one", PRE, Said("final norm's output is multiplied by 2", 6), GOOD),
    ("zero-centred-gain-starts-at-one", PROBE, Said("trains"), Said("trains", 0)),
]  # fmt: skip


def answer(case: Path, command: str) -> tuple[int, str]:
    """(exit code, everything printed in one line) of a command in a copy of the case."""
    words = command.split()
    with tempfile.TemporaryDirectory() as kept:
        here = Path(shutil.copytree(case, Path(kept) / case.name))
        argv = ["-W", "ignore", *words] if words[0].endswith(".py") else ["-m", "stabkit", *words]
        argv += ["--out", f"{kept}/out"] if words[0] == "probe" else []
        environment = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1", "COLUMNS": "200"}
        done = subprocess.run([sys.executable, *argv], cwd=here, capture_output=True, text=True, env=environment)
    return done.returncode, " ".join((done.stdout + done.stderr).split())


def main(cases: Path, only: list[str]) -> int:
    """A line a command and twin that is not answered as it should be; how many cases are."""
    wrong: set[str] = set()
    names = {name for name, *_ in ROWS if not only or name in only}
    for name, command, *twins in ROWS:
        for twin, said in zip(("bad", "good"), twins, strict=True):
            if name not in names or ("{}" not in command and twin == "good"):
                continue
            code, text = answer(cases / name, command.format(twin))
            missing = said.has and not re.search(said.has, text, re.IGNORECASE)
            there = re.search(said.lacks, text) if said.lacks else None
            if missing or there or (said.code is not None and code != said.code):
                wrong.add(name)
                found = f"has {there[0]!r}" if there else f"exit {code}, not {said.code}"
                why = f"lacks {said.has!r}" if missing else found
                print(f"WRONG {name}: {command.format(twin)}: {why}\n      {text[-600:]}", flush=True)
    print(f"{len(names) - len(wrong)} of {len(names)} cases")
    return bool(wrong)


if __name__ == "__main__":
    raise SystemExit(main(Path(sys.argv[1]).resolve(), sys.argv[2:]))
