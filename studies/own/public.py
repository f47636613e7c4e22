"""Public logs, judged by `stabkit log`: docs/log_public.csv has what each came to, where it is from, and what is right.

    python -m studies.own public [--check]     docs/log.md, with the bound's table (`stop.py`)

Two sentences of limits were chosen on the parts `build` and `held` (the latter after it had judged once); `fresh` was
collected afterwards, by somebody who did not know the program, and judges. `right` was written down from the numbers and
the thread before the program read them; of several words each is acceptable. A log of more entries has every k-th.
"""

from __future__ import annotations

import csv
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from stabkit.results.log import LogJudgement, Series, TrainingLog, Unit, judged

ROWS = Path(__file__).parents[2] / "docs" / "log_public.csv"
COLUMNS = ("name", "source", "form", "part", "right", "classes", "unit", "steps", "losses")
WORDS = {"spiked": "spiked", "restarted": "restarted", "sum": "summed"}
OPPOSITE = {
    "learning": {"at the level of frequencies", "diverged", "slow"},
    "diverged": {"learning", "slow", "at the level of frequencies", "not enough"},
    "at the level of frequencies": {"learning", "diverged"},
}
"""{a firm word: what makes it wrong with confidence, where none of what is right is among its own}."""


@dataclass(frozen=True, slots=True)
class PublicLog:
    """One of them."""

    name: str
    source: str
    part: str
    right: tuple[str, ...]
    judgement: LogJudgement

    @property
    def words(self) -> set[str]:
        """All that is said of it."""
        return {self.judgement.word, *(WORDS[event.kind] for event in self.judgement.events)}

    @property
    def is_right(self) -> bool:
        """Whether what is said has something that is right."""
        return bool(self.words & set(self.right))

    @property
    def is_confidently_wrong(self) -> bool:
        """Whether a firm word is the opposite of all that is right."""
        return not self.is_right and bool(OPPOSITE.get(self.judgement.word, set()) & set(self.right))


def read(path: Path = ROWS) -> list[PublicLog]:
    """All of them, judged by today's program."""
    with path.open(newline="", encoding="utf-8") as file:
        return [_judged(line) for line in csv.DictReader(file)]


def _judged(line: dict[str, str]) -> PublicLog:
    steps, losses = (np.array(line[name].split(), dtype=np.float64) for name in ("steps", "losses"))
    unit: Unit = line["unit"]  # type: ignore[assignment]
    log = TrainingLog(name=line["name"], form=line["form"], column="loss", unit=unit, loss=Series(steps, losses))
    judgement = judged(log, classes=int(line["classes"]) if line["classes"] else None)
    return PublicLog(line["name"], line["source"], line["part"], tuple(line["right"].split(";")), judgement)


def table(logs: Sequence[PublicLog]) -> list[str]:
    """A line a part, then each of the part that judges."""
    lines = ["| part | logs | right | wrong with confidence |", "|---|---|---|---|"]
    for part in dict.fromkeys(log.part for log in logs):
        own = [log for log in logs if log.part == part]
        wrong = [log.name for log in own if log.is_confidently_wrong]
        lines.append(f"| {part} | {len(own)} | {sum(log.is_right for log in own)} | {', '.join(wrong) or '0'} |")
    lines += ["", "| log | source | right | says |", "|---|---|---|---|"]
    for log in logs:
        if log.part == "fresh":
            words = ", ".join(sorted(log.words, key=lambda word: word != log.judgement.word))
            lines.append(f"| {log.name} | {log.source} | {' or '.join(log.right)} | {words} |")
    return lines
