"""docs/evidence/ladder.md and ladder_words.csv: does a small copy say what becomes of the wide model? From the rows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from stabkit.results.intervals import wilson
from studies.ladder import judge, page_curves
from studies.ladder.cells import Rows, censored
from studies.ladder.design import GOOD, SENTENCES, WIDTHS, recipes, setups
from studies.ladder.judge import GROUPS, READINGS, Counts, JudgedRecipe, Reading, counts
from studies.ladder.others import OtherCell
from studies.markdown import table_lines
from studies.own.corpus import CorpusRow
from studies.own.judge import share

NAMES: Mapping[Reading, str] = {
    "kept": "a copy of width 64, the rate kept",
    "root": "a copy of width 64, √(d/64) times the rate",
    "whole": "a copy of width 64, d/64 times the rate",
    "at 256": "a copy of width 256, the rate kept",
    "quick": "the model itself, `--quick`",
    "own": "the model itself, trained up to 300 updates",
    "settings": "a table of settings, nothing trained",
    "all": "that everything trains",
}
COLUMNS = ("width", "group", "recipes", "train", "diverge", "reading", "right", "missed", "false", "undecided")
"""Of ladder_words.csv; a group of a width is all its recipes, or those of a scheme, an optimiser, …"""


def enough(some: Sequence[JudgedRecipe]) -> bool:
    """Whether half of the recipes have a clear outcome: of fewer no sentence follows."""
    return 2 * len(some) >= len(recipes())


def shown(rows: Rows, corpus: Sequence[CorpusRow]) -> dict[int, list[JudgedRecipe]]:
    """{width: its recipes with a clear outcome}, where half of all were run."""
    ran = [width for width in WIDTHS[1:] if 2 * len(judge.missing(rows, width)) <= len(recipes())]
    return {width: list(judge.judged(rows, width, corpus)) for width in ran}


def page(
    rows: Rows, by: Mapping[int, Sequence[JudgedRecipe]], curves: page_curves.Rows, cells: Sequence[OtherCell]
) -> str:
    """The whole page. `by`: of `shown`."""
    d = max((width for width, some in by.items() if enough(some)), default=WIDTHS[-1])
    judged = (_words(by, rows), _edges(rows)) if d in by else ()
    parts = (_head(by, d), *judged, _without(rows), page_curves.lines(curves, cells), _again())
    return "\n".join(line for part in parts for line in part) + "\n"


def words(by: Mapping[int, Sequence[JudgedRecipe]]) -> Iterator[tuple[object, ...]]:
    """The rows of ladder_words.csv."""
    for width, some in by.items():
        axes = {f"{axis}: {name}": own for axis in GROUPS for name, own in judge.groups(some, axis).items()}
        for group, own in {"all": some, **axes}.items():
            ends = [one.row.ends for one in own]
            for reading in READINGS:
                if (found := counts(own, reading)).of:
                    right = (found.right, found.missed, found.false, found.open)
                    who = (len(own), ends.count("trains"), ends.count("diverged"))
                    yield (width, group, *who, NAMES[reading], *right)


def answer(some: Sequence[JudgedRecipe], width: int) -> str:
    """The sentence with its n; of fewer than half of the recipes that there is none yet."""
    if not enough(some):
        return f"Not decided yet: {len(some)} of {len(recipes())} recipes have an outcome at width {width}."
    key, copy = judge.sentence(some), judge.best(some)
    return f"At width {width}: {SENTENCES[key]}. Its word is right in {_right(counts(some, copy))}."


def _cell(one: Counts) -> str:
    """`26 of 31 (0.67 to 0.93)`."""
    if not one.of:
        return "–"
    low, high = wilson(one.right / one.of, one.of)
    return f"{one.right} of {one.of} ({low:.2f} to {high:.2f})"


def _right(one: Counts) -> str:
    return share(one.right, one.of)


def _head(by: Mapping[int, Sequence[JudgedRecipe]], width: int) -> Iterator[str]:
    yield "# Does a small copy say what becomes of the wide model?"
    yield ""
    yield f"**{answer(by.get(width, ()), width)}**"
    for wider, some in by.items():
        if wider > width:
            adamw = sum(one.recipe.setup.optimizer == "adamw" for one in some)
            yield f"At width {wider} {len(some)} recipes have a clear outcome, {adamw} with AdamW: too few to say."
    yield (
        "Forty recipes were drawn: ten schemes under AdamW and under Muon, 8 to 24 layers. Their rates lie between an "
        "eighth of the highest that trains at width 64 and twice it. Each was probed and trained at four widths, with "
        "one seed, for 300 updates of 256 tokens. Models of billions of parameters may differ."
    )
    yield ""


def _words(by: Mapping[int, Sequence[JudgedRecipe]], rows: Rows) -> Iterator[str]:
    table = []
    for reading in READINGS:
        found = [counts(some, reading) for some in by.values()]
        table.append((NAMES[reading], *(_cell(one) for one in found)))
    yield from table_lines(("right words (95 %) of", *(f"width {width}" for width in by)), table)
    yield ""
    yield (
        "`probably trains` counts as `trains`; `undecided` is not right. A model trains as in "
        "[verdict.md](verdict.md), with two Pre-LN blocks as wide for a reference. The model itself is trained for the "
        "same updates as its outcome, so that its probe sees part of the answer. The table of settings is fitted on "
        f"the models of that page. A reading is good from {GOOD:g} on, if it is no worse than "
        "*everything trains*. Two recipes of a setup are alike, so that the intervals are somewhat too narrow."
    )
    yield ""
    floor = judge.floor(rows)
    if floor.of:
        yield f"At width 64 the word of another seed is right in {_right(floor)}. No copy can be expected to do better."
        yield ""
    yield "The rule was amended once, before any wide model was trained. By the first rule:"
    yield ""
    yield from (f"- width {width}: {SENTENCES[judge.first_rule(some)]}" for width, some in by.items())
    yield ""
    yield (
        "[ladder_words.csv](ladder_words.csv) has the missed and the false words, also by scheme, optimiser, depth, "
        "warm-up and text; [ladder.csv](ladder.csv) has every run."
    )
    yield ""
    yield (
        "![A point a recipe by its rate and scheme, a panel a width and a reading of the copy: whether it trains, and "
        "whether the word came true](ladder.png)"
    )
    yield ""


def _edges(rows: Rows) -> Iterator[str]:
    yield "## Does the highest rate that trains fall with the width?"
    yield ""
    yield "It is shown to fall where p is below 0.05. All widths have one criterion; the first line is chance alone."
    yield ""
    for width, again in ((WIDTHS[0], True), *((width, False) for width in WIDTHS[1:])):
        lost, won, p = judge.shift(rows, width, again=again)
        if lost or won:
            where = "with another seed" if again else f"at width {width}"
            yield f"- {lost} recipes train at width 64 and not {where}, {won} the other way (sign test, p = {p:.2g})."
    yield ""
    left = sum(censored(rows, setup) for setup in setups())
    yield f"{left} setups whose highest rate lies beyond the search are left out."
    yield ""


def _without(rows: Rows) -> Iterator[str]:
    ran = [
        f"{len(recipes()) - len(judge.missing(rows, width))} at width {width} ({judge.unclear(rows, width)} unclear)"
        for width in WIDTHS[1:]
    ]
    yield f"Of {len(recipes())} recipes were run: {', '.join(ran)}. What ended unclear counts nowhere."
    yield ""


def _again() -> Iterator[str]:
    yield "Again: `python -m studies.ladder train --data DIR`, `curves --data DIR`, `others --data DIR`, `judge`."
