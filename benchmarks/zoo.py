"""Healthy models against facts read from their source, and what audit says of each: docs/evidence/zoo.csv and zoo.md.

python benchmarks/zoo.py [NAME…]     without NAME both are written
"""

from __future__ import annotations

import re
import sys
import warnings
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from stabkit.errors import StabkitError
from stabkit.options import audit as options
from stabkit.own import audit
from stabkit.own.probe import built_model
from studies.markdown import csv_text, table_lines
from tests.own import zoo_models
from tests.own.zoo_facts import FACTS
from tests.own.zoo_reading import DEPTH, answers, right

PAGE = Path(__file__).resolve().parents[1] / "docs" / "evidence" / "zoo.md"
ROWS = PAGE.with_suffix(".csv")
COUNTS = ("right", "not read", "wrong")
COLUMNS = ("model", *COUNTS, "facts not read or wrong", "sentences")
BETWEEN = " | "
"""Between the facts of a model, and between its sentences."""
FITS = re.compile("no --method was given: (.*?)'s recipe fits best")


def sentences(model: Any, inputs: Any) -> list[str]:
    """Everything that audit says of a model, without a method."""
    try:
        said = audit.audit(model, inputs=inputs)
    except StabkitError as error:
        return [f"error: {error}"]
    return [*(f"note: {note}" for note in said.notes), *(finding.what for finding in said.findings)]


def row(name: str) -> dict[str, str]:
    """Of a model: how many facts were read, which not, and the sentences."""
    built_model.seeded(0)
    model, inputs = options.of(zoo_models.factory(name)(DEPTH), name)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        counts: Counter[str] = Counter()
        odd = []
        for fact, so, read in answers(FACTS[name], model, inputs):
            word = "not read" if read is None else "right" if right(so, read) else "wrong"
            counts[word] += 1
            if word != "right":
                odd.append(f"{fact}: {so}, {word}" + (f" as {read}" if read is not None else ""))
        said = sentences(model, inputs)
    values = (name, *(str(counts[word]) for word in COUNTS), BETWEEN.join(odd), BETWEEN.join(said))
    return dict(zip(COLUMNS, values, strict=True))


def page(rows: Sequence[dict[str, str]]) -> str:
    """What the rows come to, and the models that are not read whole."""
    good, left, wrong = (sum(int(one[word]) for one in rows) for word in COUNTS)
    every = good + left + wrong
    fits = Counter(found for one in rows for found in FITS.findall(one["sentences"]))
    partly = [
        (f"`{one['model']}`", one["right"], one["not read"], one["wrong"])
        for one in rows
        if one["not read"] != "0" or one["wrong"] != "0"
    ]
    lines = [
        "# What does an audit read of healthy models?",
        "",
        f"Facts of {len(rows)} models of libraries and by hand were written down from their source "
        "(`tests/own/zoo_facts.py`). `stabkit audit` then read the models by running them once: "
        f"{good} right, {wrong} wrong, {left} of {every} not read ({100 * left / every:.0f} %). The models have four "
        "layers and random weights. Whether an audit finds a fault is another question: "
        "[audit_wild.md](audit_wild.md). `python benchmarks/zoo.py` writes this page.",
        "",
        f"Of {len(rows) - len(partly)} models every fact is read. The others have parts that an audit does not follow, "
        "such as a scan, a convolution, gates in place of sums, or attention over depth.",
        "",
        *table_lines(("model", "facts right", "not read", "wrong"), partly),
        "",
        "[zoo.csv](zoo.csv) has a row a model, with the facts that were not read and every sentence of its audit.",
        "",
        "Without `--method` the audit compares with the recipe that fits best: "
        + ", ".join(f"{recipe} ({count})" for recipe, count in fits.most_common())
        + ".",
    ]
    return "\n".join(lines) + "\n"


def write(rows: Sequence[dict[str, str]]) -> None:
    """The rows, and the page of them."""
    ROWS.write_text(csv_text(COLUMNS, [list(one.values()) for one in rows]), encoding="utf-8")
    PAGE.write_text(page(rows), encoding="utf-8")


def main(only: Sequence[str]) -> None:
    """A row a model, printed as it comes."""
    rows = []
    for name in FACTS:
        if (not only or name in only) and not zoo_models.missing(name):
            rows.append(row(name))
            print(*rows[-1].values(), sep="; ", flush=True)
    if not only:
        write(rows)


if __name__ == "__main__":
    main(sys.argv[1:])
