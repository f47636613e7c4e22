"""Healthy models against facts read from their source, and every sentence that audit has about each: docs/zoo.md.

python benchmarks/zoo.py OUT
"""

from __future__ import annotations

import sys
import warnings
from collections import Counter
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from stabkit.errors import StabkitError
from stabkit.options import audit as options
from stabkit.own import audit
from stabkit.own.probe import built_model
from tests.own import zoo_models
from tests.own.zoo_facts import FACTS
from tests.own.zoo_reading import DEPTH, answers, right


def sentences(model: Any, inputs: Any) -> list[str]:
    """Everything that audit says of a model, without a method."""
    try:
        said = audit.audit(model, inputs=inputs)
    except StabkitError as error:
        return [f"error: {error}"]
    return [*(f"note: {note}" for note in said.notes), *(finding.what for finding in said.findings)]


def main(out: Path, only: list[str]) -> None:
    """A row a model, then what was read wrongly or not, then the sentences."""
    rows, odd, said = [], [], []
    totals: Counter[str] = Counter()
    for name, facts in FACTS.items():
        if (only and name not in only) or zoo_models.missing(name):
            continue
        built_model.seeded(0)
        model, inputs = options.of(zoo_models.factory(name)(DEPTH), name)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            counts: Counter[str] = Counter()
            for fact, so, read in answers(facts, model, inputs):
                word = "not read" if read is None else "right" if right(so, read) else "wrong"
                counts[word] += 1
                if word != "right":
                    odd.append(f"- {name}: {fact}: {so}, {word}" + (f" as {read}" if read is not None else ""))
            said += [f"- {name}: {sentence}" for sentence in sentences(model, inputs)]
        totals += counts
        rows.append(f"| {name} | {counts['right']} | {counts['not read']} | {counts['wrong']} |")
        print(rows[-1], flush=True)
    read = totals["right"] + totals["wrong"]
    every = read + totals["not read"]
    text = [
        "# Healthy models, and what is read of them",
        "",
        f"Facts of {len(rows)} models, read by hand from their source (`tests/own/zoo_facts.py`), beside what "
        f"`stabkit audit` reads by running them: {totals['right']} right, {totals['wrong']} wrong, "
        f"{totals['not read']} of {every} not read ({100 * totals['not read'] / every:.0f} %). By "
        "`python benchmarks/zoo.py docs/zoo.md`.",
        "",
        "| model | right | not read | wrong |",
        "|---|---|---|---|",
        *rows,
        "",
        "## Not read, or wrongly",
        "",
        *odd,
        "",
        "## Every sentence of an audit without a method",
        "",
        *said,
    ]
    out.write_text("\n".join(text) + "\n")
    print(text[2])


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2:])
