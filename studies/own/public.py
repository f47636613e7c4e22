"""Public logs, judged by `stabkit log`: log_public.csv has what each came to, where it is from, and what is right.

    python -m studies.own log [--check]     docs/evidence/log.md, its tables, and the bound's numbers (`stop.py`)

Limits were chosen on the parts `build` and `held` (on the latter after it had judged once); `fresh` and `last` were
collected afterwards, by somebody who did not know the program, and judge. `right` was written down from the numbers and
the thread before the program read them; of several words each is acceptable. A long log has every k-th entry.
"""

from __future__ import annotations

import csv
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from stabkit.results.log import TEXT, LogJudgement, Series, TrainingLog, Unit, judged
from stabkit.results.stop import bands
from studies.markdown import csv_text, table_lines
from studies.own.stop import HEADS

ROWS = Path(__file__).parents[2] / "docs" / "evidence" / "log_public.csv"
COLUMNS = ("name", "source", "form", "part", "right", "classes", "unit", "steps", "losses")
WORDS = {"spiked": "spiked", "restarted": "restarted", "sum": "summed"}
OPPOSITE = {
    "learning": {"at the level of frequencies", "diverged", "slow"},
    "diverged": {"learning", "slow", "at the level of frequencies", "not enough"},
    "at the level of frequencies": {"learning", "diverged"},
}
"""{a firm word: what makes it wrong with confidence}."""


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
        """Whether it is placed firmly where it is not, whatever else is said."""
        word = self.judgement.word
        return word not in self.right and bool(OPPOSITE.get(word, set()) & set(self.right))


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


def counts(logs: Sequence[PublicLog]) -> list[str]:
    """A line a part."""
    once = {"held": HELD_OUT_ONCE, "fresh": FRESH_ONCE, "last": LAST_ONCE}
    rows = []
    for part in dict.fromkeys(log.part for log in logs):
        own = [log for log in logs if log.part == part]
        wrong = [f"`{log.name}`" for log in own if log.is_confidently_wrong]
        right = sum(log.is_right for log in own)
        rows.append((part, len(own), right, ", ".join(wrong) or "none", once.get(part, "limits were chosen on it")))
    return table_lines(("part", "logs", "right now", "wrong with confidence", "when it was judged blind"), rows)


def words(logs: Sequence[PublicLog]) -> list[tuple[str, ...]]:
    """The rows of log_words.csv: what is right of each log, and what is said."""
    said = [sorted(log.words, key=lambda word: (word != log.judgement.word, word)) for log in logs]
    return [
        (log.name, log.source, log.part, " or ".join(log.right), ", ".join(own))
        for log, own in zip(logs, said, strict=True)
    ]


PAGE = """# What can a loss alone say?

`stabkit log` was tried on {logs} public logs. What is right of each was written down before the program read it. When
the last part was judged blind, 36 of 46 logs were right and one was placed firmly where it is not. With `--stop 0.05`
it stops {stopped} trainings that train. It finds {found} that fail. Of wider models and other data nothing is promised.
`python -m studies.own log` writes this page; [log.md](../log.md) has how to use the command.

## A stop with a bound

The looks are after 50, 100, … 300 updates, each at a mean of the twenty updates before. The band is conformal. Its edge
is counted on {count} trainings that train ({fewer} of them by ln V), below number 420 of [the corpus](own_corpus.csv).
With a confidence of 0.9, at most 5 % of trainings drawn like them are stopped. Judged on the cases from 420 on, which
chose no limit:

{bound}

*Nothing said*: the case is not like those counted. *Half by*: half of what is found is found by this update. By
warm-up, optimiser and embedding: [log_stop.csv](log_stop.csv). {beside}

Nothing is said, and the answer says why, of a log

- that has neither a level nor a number of classes;
- that counts epochs or entries, or has no two entries in the twenty updates before a look;
- whose rate rises for more than 200 updates;
- with ln V as its level, unless it is logged from update 10 or before, and begins at 0.8 to 1.5 of ln V on average.

The 400 curves that SureStop publishes are LoRA fine-tunes that begin at 2.4 of ln V = 11.9. Nothing is said of them.

## Public logs

{public}

The limits were chosen on the corpus below 420 and on `build`, later on `held` too. Since the blind judgements more
forms are read: no part is blind any more. A flat loss between {low} and {high} of ln V counts as the level.

- Each log with its source, what is right and what is said: [log_words.csv](log_words.csv).
- The curves, of a long one every k-th entry: [log_public.csv](log_public.csv).
"""
HELD_OUT_ONCE = "39 of 50 (commit 95c30c50)"
FRESH_ONCE = "26 of 30, four not read, one firmly wrong (97d06e7d)"
LAST_ONCE = '36 of 46, four not read, five "not enough", one firmly wrong (6544a582)'
"""What a part came to when nothing had been chosen on it, by the whole logs."""


def texts(logs: Sequence[PublicLog], bound: Sequence[Sequence[str]], beside: str) -> dict[str, str]:
    """{name of a file in docs/evidence/: what it holds}. `bound`: the rows of stop.HEADS; `beside`: what stands under
    them."""
    known = bound[0]
    page = PAGE.format(
        low=TEXT[0], high=TEXT[1], count=bands()["level"].count, fewer=bands()["uniform"].count,
        bound="\n".join(table_lines(HEADS, bound[:2])), beside=beside, logs=len(logs), public="\n".join(counts(logs)),
        stopped=known[2].partition(" (")[0], found=known[3],
    )  # fmt: skip
    return {
        "log.md": page,
        "log_stop.csv": csv_text(HEADS, bound),
        "log_words.csv": csv_text(("log", "source", "part", "right", "says"), words(logs)),
    }
