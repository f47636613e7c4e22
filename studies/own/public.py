"""Public logs, judged by `stabkit log`: log_public.csv has what each came to, where it is from, and what is right.

    python -m studies.own log [--check]     evidence/log.md, with the bound's table, and the bound's numbers (`stop.py`)

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


def table(logs: Sequence[PublicLog]) -> list[str]:
    """A line a part, then each of the part that judges."""
    lines = ["| part | logs | right | wrong with confidence |", "|---|---|---|---|"]
    for part in dict.fromkeys(log.part for log in logs):
        own = [log for log in logs if log.part == part]
        wrong = [log.name for log in own if log.is_confidently_wrong]
        lines.append(f"| {part} | {len(own)} | {sum(log.is_right for log in own)} | {', '.join(wrong) or '0'} |")
    lines += ["", "| log | source | right | says |", "|---|---|---|---|"]
    for log in logs:
        if log.part == "last":
            words = ", ".join(sorted(log.words, key=lambda word: (word != log.judgement.word, word)))
            lines.append(f"| {log.name} | {log.source} | {' or '.join(log.right)} | {words} |")
    return lines


PAGE = """# Logs: what a loss alone can say

```console
$ stabkit log trainer_state.json
$ stabkit log run.csv --classes 50257 --against healthy.csv --stop 0.05
```

`stabkit log` reads the log of any training, whatever wrote it, and says what its loss says. The form is found by the
content: transformers' `trainer_state.json`, CSV, TSV, JSONL, tables in Markdown and HTML, exports of Weights & Biases
and MLflow, TensorBoard's event files (extra `logs`), the printed lines of nanoGPT, torchtitan, Megatron, fairseq,
llm.c, litgpt and transformers, and a watch of stabkit. `stabkit.read_log(file)` does the same from Python.

| it says | when |
|---|---|
| learning | the loss has fallen, and none of the following |
| at the level of frequencies | it lies where knowing only how often each answer occurs leaves it |
| slow | it has not clearly moved, or is still high and hardly falls |
| diverged | it is no number, or exactly 0 in place of one; it is three times the first; it rose by a fifth and stayed |
| not enough | ten entries or twenty updates are the least |

On the way it may have *spiked*, have *restarted*, or be *a sum over M* batches, each with its update. The level is
`--level`, or counted from the token ids of `--tokens FILE`. Without both it is ln V of `--classes` V. Then a flat loss
between {low} and {high} of ln V counts as the level too: the unigram entropy of texts lies there, as of uneven
classes. Without `--classes` nothing is known of a level. What the log lacks is named.

## A stop with a bound

`--stop 0.05` ends with 7 where a training diverged, or left the band that is to hold 95 % of those that train.
`stabkit.watch(model, optimizer, stop=0.05)` raises `stabkit.Stuck` there. The looks are after 50, 100, … 300 updates,
each at a mean of the twenty updates before. The band is conformal: its edge is counted on {count} trainings that train
({fewer} of them by ln V), below number 420 of [the corpus](own_corpus.csv). With a confidence of 0.9, at most 5 % of
trainings drawn like them are stopped. Judged on the cases from 420 on, by the rule that the command has:

{bound}

*Nothing said* are cases that are not like those counted. {beside}

Of a log nothing is said, and the answer says why, where

- it has neither a level nor a number of classes,
- it counts epochs or entries, or has no two entries in the twenty updates before a look: a mean over a hundred updates
  lies higher than the last twenty of them,
- its rate rises for more than 200 updates,
- ln V is the level, and the first loss is not logged by update 10, or is not between 0.8 and 1.5 of ln V: weights that
  were trained before, or scores that are too large at the start.

That leaves trainings that are unlike ours in other ways, wider models and other data, of which nothing is promised. The
400 curves that SureStop publishes are LoRA fine-tunes of one model that all train, from 2.4 of ln V = 11.9 to 2.2: of
trained weights, so that nothing is said of them. `python -m studies.own log` writes this page.

## Public logs

{logs} public logs, each with what is right, written down from its numbers and its thread before the program read it.
The limits were chosen on the corpus below 420 and on `build`. `held` was judged once ({held}) and
was then chosen on too. `fresh` was judged once ({fresh}).
`last` was judged once ({last}); three of it are in no form
that is read, and left out. The table is of today's program: some forms are read since then, evaluation is told from
training, and what a hostile reader showed is mended. So no part is blind any more. [Every curve](log_public.csv) stands
beside this page, of a long one every k-th entry.

{public}
"""
HELD_OUT_ONCE = "39 of 50 right, by commit 95c30c50"
FRESH_ONCE = "26 of 30 right, four not read, one of the 26 placed firmly where it is not, by commit 97d06e7d"
LAST_ONCE = '36 of 46 right, four not read, five "not enough", one placed firmly where it is not, by commit 6544a582'
"""What a part came to when nothing had been chosen on it, by the whole logs."""


def page(logs: Sequence[PublicLog], bound: Sequence[str], beside: str) -> str:
    """docs/evidence/log.md. `bound`: the table's lines; `beside`: what stands under it."""
    return PAGE.format(
        low=TEXT[0], high=TEXT[1], count=bands()["level"].count, fewer=bands()["uniform"].count, bound="\n".join(bound),
        beside=beside, logs=len(logs),
        held=HELD_OUT_ONCE, fresh=FRESH_ONCE, last=LAST_ONCE, public="\n".join(table(logs)),
    )  # fmt: skip
