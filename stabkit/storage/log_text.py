"""What names and numbers a text has: documents, objects in each line, tables, printed lines.

    document   JSON: transformers' `trainer_state.json`, a list of entries, a list for each name (Keras' history)
    objects    a JSON object, or Python's dict as a trainer prints it, in each line
    table      a row an entry, by comma, tab, semicolon or bar, or in HTML; the long forms of MLflow (metric, value,
               step) and TensorBoard (Wall time, Step, Value) too
    metric     MLflow's own files: time, value and step of one metric in each line; two columns without names
    printed    `iter 2920: loss 3.9883`, `step:  10  loss:  8.1`, `| lm loss: 1.2E+01 |`: a name, then its number

A text is read once, line by line. A value is a name with a number, at the step of its line or of the last line that had
one; of a log without steps at its epoch, or its place. Of each name 32 bytes a value are held.
"""

from __future__ import annotations

import csv
import json
import math
import re
from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import lru_cache
from itertools import chain, islice, pairwise
from pathlib import Path
from typing import Any, Literal

import numpy as np

from stabkit.results.log import Series, TrainingLog, Unit
from stabkit.words import plain, some

Quantity = Literal["step", "epoch", "loss", "held_out", "gradient", "rate", "classes"]
Pairs = Iterable[tuple[str, float]]
MOST_DOCUMENT, MOST_LINE, MOST_VALUES = 192 << 20, 1 << 20, 2_000_000
"""Of a document that is read as a whole, of a line, of a quantity: what is beyond them is not read."""
HEAD, MOST_NAMES = 200, 100_000
"""Lines among which a table's names are looked for; characters of them."""
NAMES: Mapping[Quantity, tuple[str, ...]] = {
    "step": ("step", "global_step", "iter", "iteration", "num_updates", "update", "updates", "it", "optimizer_step",
             "current_steps", "training_iteration", "train_step", "n_iter", "steps", "iterations", "up", "s"),
    "epoch": ("epoch",),
    "loss": ("loss", "train_loss", "training_loss", "lm_loss", "loss_train", "loss_step", "train_loss_step", "trl",
             "nll_loss", "mlm_loss", "loss_mean", "total_loss", "avg_loss", "train_loss_epoch", "xent", "cost",
             "value"),
    "held_out": ("val_loss", "eval_loss", "valid_loss", "validation_loss", "test_loss", "tel"),
    "gradient": ("grad_norm", "gnorm", "gradient_norm", "norm", "grad", "total_norm"),
    "rate": ("lr", "learning_rate"),
    "classes": ("vocab_size", "n_vocab", "vocabulary_size", "num_labels", "num_classes"),
}  # fmt: skip
"""{quantity: names of it, by letters and digits alone, the more usual first}."""
OTHERS: tuple[tuple[re.Pattern[str], Quantity | None], ...] = (
    (
        re.compile(r"(^|_)(val|valid|validation|eval|test|dev|holdout)_.*loss|loss_(val|valid|eval|test|dev)$"),
        "held_out",
    ),
    (re.compile(r"loss.*_(scale|scaler|min|max|std|var|best|ema|per|ratio|reg)|(aux|balance|final|kl|z)_.*loss"), None),
    (re.compile(r"(^|_)(g|d|gen|disc|generator|discriminator|value|vf|policy|pg|actor|critic|entropy)_loss"), None),
    (re.compile(r"(^|_)loss(_|$)"), "loss"),
    (re.compile(r"grad.*norm"), "gradient"),
    (re.compile(r"^lr_|_lr$|learning_rate"), "rate"),
)
"""Of names that are not among these, the first that fits."""
NOT_OF = {
    "step": {
        "skipped",
        "total",
        "max",
        "nan",
        "warmup",
        "number",
        "every",
        "per",
        "save",
        "eval",
        "of",
        "each",
        "last",
    },
    "loss": {"time"},
}
"""What before `step`, `iterations` or `cost` makes it a number of something else."""
NUMBER = (
    r"[-+]?(?:\d[\d,]*\.?\d*(?:[eE][-+]?\d+)?(?:[kKM](?!\w))?|\.\d+(?:[eE][-+]?\d+)?|[nN][aA][nN]|[iI]nf(?:inity)?)"
)
PAIR = re.compile(
    rf"(?<![A-Za-z])(?:([A-Za-z]{{1,30}})[ -])?([A-Za-z_][\w./-]{{0,60}})['\"]?"
    rf"(?:\s{{0,9}}[:=]\s{{0,9}}|\s{{1,9}})['\"]?({NUMBER})(?![\w.]{{0,30}}[A-Za-z_]\w)"
)
ESCAPES = re.compile(r"\x1b?\[[0-9;]+m|\x1b\[[0-9;]*[A-Za-z]")
TRIPLE = re.compile(rf"(\d+) (train|val) ({NUMBER})\s*")
DARKNET = re.compile(rf"\s*(\d+)(?:, [\d.]+)?: ({NUMBER}), {NUMBER} avg\b.*", re.DOTALL)
EVALUATION = re.compile(r"(?i)(?<![\w/.])(eval|evaluation|valid|validation|val|test|testing|dev)(?![\w/.])")
PARTS, RUNS = ("phase", "split", "mode", "stage", "subset", "set"), ("run_id", "run", "run_name", "run_uuid")
"""Names of the part of the data that an entry is of, and of its run."""
METRIC_FORM = "MLflow's file of one metric"
THOUSAND = {"k": 1e3, "K": 1e3, "M": 1e6}
THOUSANDS, HUGE = re.compile(r"[-+]?\d{1,3}(,\d{3})+(\.\d*)?"), 1e100
METRIC, BARE = re.compile(r"\d{13} \S+ \d+\s*"), re.compile(rf"\s*{NUMBER}:?\s+{NUMBER}\s*")


@lru_cache(4096)
def spelt(name: str) -> str:
    """`train/loss` and `Train Loss` as `train_loss`; of `run-3 - train/loss`, as W&B exports it, what stands last."""
    return re.sub(r"[^a-z0-9]+", "_", name.rpartition(" - ")[2].lower()).strip("_")


@lru_cache(4096)
def quantity(name: str) -> tuple[Quantity, int] | None:
    """(what a name is of, its place among the names of that); None of what is not read."""
    name = spelt(name)
    for own, names in NAMES.items():
        if name in names:
            return own, names.index(name)
    kind = next((kind for pattern, kind in OTHERS if pattern.search(name)), None)
    return None if kind is None else (kind, len(name) + 100)


def number(text: Any) -> float | None:
    """A number as logs have it, `1,234`, `10,9`, `1.2k` and `NaN` too, ∞ of one beyond HUGE; None of what is none."""
    if isinstance(text, bool) or text is None:
        return None
    times = 1.0
    if isinstance(text, str):
        text = text.strip(" '\"\t")
        text, times = (text[:-1], THOUSAND[text[-1]]) if text[-1:] in THOUSAND else (text, 1.0)
        text = text.replace(",", "") if THOUSANDS.fullmatch(text) else text.replace(",", ".", 1)
    try:
        value = float(text) * times
    except (TypeError, ValueError):
        return None
    except OverflowError:
        return math.inf
    return value if not abs(value) > HUGE else math.copysign(math.inf, value)


class Values:
    """What was read so far: of each name its values in their order, each with its step, its epoch and its entry."""

    def __init__(self) -> None:
        self.entries, self.notes = 0, list[str]()
        self.last = {"step": math.nan, "epoch": math.nan}
        self.named: dict[str, tuple[array[float], ...]] = {}

    def entry(self, pairs: Pairs) -> None:
        """Of a line, or an object."""
        found = [(*known, name, value) for name, value in pairs if (known := quantity(name)) is not None]
        for place in ("step", "epoch"):
            at = [(rank, value) for kind, rank, _, value in found if kind == place and math.isfinite(value)]
            self.last[place] = min(at)[1] if at else self.last[place]
        self.entries += any(kind == "loss" for kind, *_ in found)
        for kind, _, name, value in found:
            columns = self.named.setdefault(name, tuple(array("d") for _ in range(4)))
            if kind not in self.last and len(columns[0]) < MOST_VALUES:
                for column, own in zip(columns, (*self.last.values(), self.entries, value), strict=True):
                    column.append(own)

    def logs(self, name: str, form: str) -> list[TrainingLog]:
        """One for each run: columns `run - train/loss` are several."""
        runs = dict.fromkeys(one.rpartition(" - ")[0] for one in self.named if (quantity(one) or "-")[0] == "loss")
        return [self._log(plain(run) or name if len(runs) > 1 else name, form, run) for run in runs]

    def _log(self, name: str, form: str, run: str) -> TrainingLog:
        best: dict[Quantity, str] = {}
        for kind in NAMES:
            own = [one for one in self.named if quantity(one) is not None and quantity(one)[0] == kind  # type: ignore[index]
                   and one.rpartition(" - ")[0] in (run, "")]  # fmt: skip
            if own:  # that of the most values: a mean over an epoch, or another loss, has fewer
                best[kind] = min(own, key=lambda one: (-len(self.named[one][0]), quantity(one)[1]))  # type: ignore[index]
        steps, epochs, entries, values = (np.array(own) for own in self.named[best["loss"]])
        notes = [*self.notes] + [f"only the first {MOST_VALUES:,} losses were read"] * (len(values) == MOST_VALUES)
        unit: Unit = "update"
        if not np.isfinite(steps).any() or (len(steps) > 3 and np.ptp(steps) == 0):
            unit = "epoch" if len(epochs) > 1 and (np.diff(epochs) > 0).all() else "entry"
        at = {"update": 0, "epoch": 1, "entry": 2}[unit]
        rest = {
            kind: Series(np.array(self.named[best[kind]][at]), np.array(self.named[best[kind]][3]))
            for kind in ("held_out", "gradient", "rate")
            if kind in best
        }
        if "num_updates" in self.named and {"gnorm", "nll_loss", "ppl"} & {*self.named}:
            values = values * math.log(2)
            notes.append("fairseq logs bits: they were read as nats")
        others = sorted(
            {spelt(one) for one in self.named if (quantity(one) or "-")[0] == "loss"} - {spelt(best["loss"])}
        )
        if others:
            notes.append(f"{plain(best['loss'])} was read, and not {plain(some(others, 4, ' and {} more'))}")
        classes = self.named[best["classes"]][3] if "classes" in best else array("d")
        first = np.where(np.isfinite(steps), steps, 0.0)
        return TrainingLog(
            name=name, form=form, column=plain(best["loss"]), unit=unit, notes=tuple(notes),
            loss=Series((first, epochs, entries)[at], values),
            held_out=rest.get("held_out"), gradient=rest.get("gradient"), rate=rest.get("rate"),
            classes=int(classes[-1]) if len(classes) and 2 <= classes[-1] < 1e9 else None,
        )  # fmt: skip


def read_text(path: Path, head: str, size: int, values: Values) -> str:
    """Reads it into `values`; returns its form."""
    if head.lstrip("\ufeff \t\r\n")[:1] in "{[" and size <= MOST_DOCUMENT:
        try:
            with path.open(encoding="utf-8-sig", errors="replace") as file:
                text = file.read()
            return _document(json.loads(text), values)
        except (ValueError, RecursionError):
            if cut := _cut_off(text):
                values.notes.append(f"the file is cut off: its {len(cut):,} whole entries were read")
                return _document({"log_history": cut}, values)
    lines = _lines(path)
    if "<td" in head and size <= MOST_DOCUMENT:
        lines = iter(
            re.sub(r"<[^>]*>", "", re.sub(r"</t[hd]>\s*", "\t", "".join(lines).replace("</tr>", "\n"))).splitlines()
        )
    first = list(islice(lines, HEAD))
    whole = chain(first, lines)
    if len(first) > 1 and all(METRIC.fullmatch(line) for line in first[:20]):
        for line in whole:
            _, value, step = (*line.split(), "", "")[:3]
            values.entry(_numbers({"step": step, "loss": value}).items())
        return METRIC_FORM
    if len(first) > 1 and all(BARE.fullmatch(line) for line in first):
        named = ("step", "loss") if _rises([line.split()[0].rstrip(":") for line in first]) else ("loss", "step")
        for line in whole:
            values.entry(_numbers(dict(zip(named, line.replace(":", " ").split(), strict=False))).items())
        return "two columns without names"
    if (table := _header(first)) is not None:
        at, mark, names = table
        _rows(
            csv.reader(islice(whole, at + 1, None), delimiter=mark), names, values, decimal="," if mark == ";" else "."
        )
        return "a table"
    objects = 0
    for line in whole:
        pairs = _object(line[line.index("{") :]) if "{" in line else None
        objects += pairs is not None
        values.entry(_printed(line) if pairs is None else pairs)
    return "an object in each line" if objects > values.entries / 2 else "printed lines"


def _rises(texts: Sequence[str]) -> bool:
    """Whether these are whole numbers that rise: steps."""
    values = [number(text) or 0.0 for text in texts]
    return all(a < b and math.isfinite(a) and a == round(a) for a, b in pairwise(values))


def _lines(path: Path) -> Iterator[str]:
    """Its lines without escapes; a bar that a terminal draws over itself is many."""
    with path.open(encoding="utf-8", errors="replace") as file:
        while line := file.readline(MOST_LINE):
            yield (ESCAPES.sub("", line) if "[" in line else line).replace("\0", "")


def _numbers(given: Mapping[str, Any], before: str = "", deep: int = 0) -> dict[str, float]:
    """{name: number} of an object, of what it holds too; of one that names what its value is of, under that name."""
    found: dict[str, float] = {}
    for name, value in given.items():
        if isinstance(value, Mapping) and deep < 4:
            found |= _numbers(value, f"{before}{name}/", deep + 1)
        elif (own := number(value)) is not None:
            found[f"{before}{name}"] = own
    texts = {spelt(name): own for name, own in given.items() if isinstance(own, str)}
    named = next((texts[name] for name in ("key", "metric", "tag") if name in texts), "")
    value = next((name for name in found if spelt(name) == "value"), "")
    if named and value:
        run = next((texts[name] for name in RUNS if name in texts), "")
        found[f"{run} - {named}" if run else named] = found.pop(value)
    held_out = any((quantity(name) or "-")[0] == "held_out" for name in found)
    if not held_out:
        found |= {n: math.nan for n, own in given.items() if own is None and (quantity(n) or "-")[0] == "loss"}
    if any(EVALUATION.fullmatch(texts[name].strip()) for name in PARTS if name in texts):
        found = {f"eval {name}" if (quantity(name) or "-")[0] == "loss" else name: own for name, own in found.items()}
    return found


def _document(given: Any, values: Values) -> str:
    form = "a JSON document"
    if isinstance(given, Mapping):
        values.entry(pair for pair in _numbers(given).items() if (quantity(pair[0]) or "-")[0] == "classes")
        if isinstance(given.get("log_history"), list):
            given, form = given["log_history"], "transformers' trainer_state.json"
        else:
            lists = [(name, own) for name, own in given.items() if isinstance(own, list) and own]
            entries = [own for _, own in lists if isinstance(own[0], Mapping)]
            longest = max((len(own) for _, own in lists), default=0)
            columns = [(name, own) for name, own in lists if len(own) == longest]
            rows = zip(*(own for _, own in columns), strict=True)
            names = [name for name, _ in columns]
            given = max(entries, key=len) if entries else [dict(zip(names, row, strict=True)) for row in rows]
    for one in given if isinstance(given, list) else ():
        if isinstance(one, Mapping):
            values.entry(_numbers(one).items())
        elif isinstance(one, list) and 2 <= len(one) <= 3:
            values.entry(_numbers(dict(zip(("step", "loss", "val_loss"), one, strict=False))).items())
    return form


def _cut_off(text: str) -> list[Any]:
    """The whole entries of a document that ends within its list; none of what is another text."""
    list_of = re.search(r'"log_history"\s*:\s*\[|\A\s*\[', text)
    found, at, decoder = [], list_of.end() if list_of else len(text), json.JSONDecoder()
    with suppress(ValueError, RecursionError):
        while True:
            at = text.index("{", at)
            one, at = decoder.raw_decode(text, at)
            found.append(one)
    return found


def _object(text: str) -> Pairs | None:
    """Of an object, or of Python's dict, at the beginning of a text; None of what is neither."""
    try:
        given, _ = json.JSONDecoder().raw_decode(text)
    except (ValueError, RecursionError):
        return _printed(text.partition("}")[0]) if re.match(r"\{\s*'", text) else None
    return _numbers(given).items() if isinstance(given, Mapping) else None


def _printed(text: str) -> Iterator[tuple[str, float]]:
    """Names and the numbers that follow them."""
    if triple := TRIPLE.fullmatch(text):
        yield from (("step", float(triple[1])), (f"{triple[2]}_loss", number(triple[3]) or 0.0))
    if darknet := DARKNET.fullmatch(text):
        yield from (("step", float(darknet[1])), ("loss", number(darknet[2]) or 0.0))
    held_out = EVALUATION.search(text)
    for found in PAIR.finditer(text):
        before, name, value = (one or "" for one in found.groups())
        own = number(value.rstrip(".,"))
        if held_out is not None and held_out.end() <= found.start() and (quantity(name) or "-")[0] == "loss":
            before, name = "eval", "loss"
        if own is not None and before and quantity(f"{before} {name}") is not None:
            yield f"{before} {name}", own
        elif own is not None and before.lower() not in NOT_OF.get((quantity(name) or "-")[0], ()):
            yield name, own


def _header(first: Sequence[str]) -> tuple[int, str, list[str]] | None:
    """(the line of a table's names, what separates them, the names); None of a text without one."""
    for at, line in enumerate(first[:-1]):
        for mark in ",\t;|" if len(line) < MOST_NAMES else "":
            names = [cell.strip() for cell in next(csv.reader([line], delimiter=mark), [])]
            if len(names) < 2 or any(number(name) is not None for name in names) or any(_printed(line)):
                continue
            known = {(quantity(name) or "-")[0] for name in names} | {spelt(name) for name in names}
            try:
                rows = list(csv.reader(first[at + 1 : at + 6], delimiter=mark))
            except csv.Error:  # a cell of more than 131,072 characters
                rows = []
            if known & {"loss", "metric", "key"} and any(len(row) == len(names) for row in rows):
                return at, mark, names
    return None


def _rows(rows: Iterator[list[str]], names: list[str], values: Values, *, decimal: str) -> None:
    """Each row an entry; a comma that is `decimal` is so in all but steps."""
    commas = {name for name in names if decimal == "," and (quantity(name) or "-")[0] != "step"}
    texts = ("key", "metric", "tag", *PARTS, *RUNS)
    read = [(i, name) for i, name in enumerate(names) if quantity(name) or spelt(name) in texts]
    while True:
        try:
            row = next(rows, None)
        except csv.Error:
            continue
        if row is None:
            return
        cells = {name: row[i].strip() for i, name in read if i < len(row)}
        values.entry(_numbers({n: own.replace(",", ".") if n in commas else own for n, own in cells.items()}).items())
