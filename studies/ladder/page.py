"""docs/ladder.md: does a small copy say what becomes of the wide model? From the committed rows alone."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from studies.ladder import judge, page_curves
from studies.ladder.cells import Rows, censored
from studies.ladder.design import GOOD, SENTENCES, WIDTHS, recipes, setups
from studies.ladder.judge import COPIES, GROUPS, READINGS, Counts, JudgedRecipe, Reading, counts
from studies.ladder.others import OtherCell
from studies.markdown import table_lines
from studies.own.corpus import CorpusRow
from studies.own.judge import share
from studies.own.models import BASE

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
SHOWN: tuple[Reading, ...] = (*COPIES, "quick", "own")


def enough(some: Sequence[JudgedRecipe]) -> bool:
    """Whether half of the recipes have a clear outcome: of fewer no sentence follows."""
    return 2 * len(some) >= len(recipes())


def shown(rows: Rows, corpus: Sequence[CorpusRow]) -> dict[int, list[JudgedRecipe]]:
    """{width: its recipes with a clear outcome}, where half of all were run."""
    ran = [width for width in WIDTHS[1:] if 2 * len(judge.missing(rows, width)) <= len(recipes())]
    return {width: list(judge.judged(rows, width, corpus)) for width in ran}


def page(rows: Rows, corpus: Sequence[CorpusRow], curves: page_curves.Rows, cells: Sequence[OtherCell]) -> str:
    """The whole page."""
    by = shown(rows, corpus)
    d = max((width for width, some in by.items() if enough(some)), default=WIDTHS[-1])
    judged = (_words(by, rows), _edges(rows), _groups(by[d], d)) if d in by else ()
    first = (_head(by, d, rows), *judged, _without(rows))
    parts = (*first, page_curves.lines(curves, cells), _again())
    return "\n".join(line for part in parts for line in part) + "\n"


def answer(some: Sequence[JudgedRecipe], width: int) -> str:
    """The sentence with its n; of fewer than half of the recipes that there is none yet."""
    if not enough(some):
        return f"Not decided yet: {len(some)} of {len(recipes())} recipes have an outcome at width {width}."
    key, copy = judge.sentence(some), judge.best(some)
    said = "; ".join(f"that of {NAMES[r]} of {_right(counts(some, r))}" for r in ("quick", "own", "all"))
    muon = sum(one.recipe.setup.optimizer == "muon" for one in some)
    who = f"{len(some)} recipes, {len(some) - muon} with AdamW, {muon} with Muon and AdamW"
    return (
        f"At width {width}: {SENTENCES[key]}. The word of {NAMES[copy]}, the best of the three, is right of "
        f"{_right(counts(some, copy))}; {said} ({who})."
    )


def _right(one: Counts) -> str:
    return share(one.right, one.of)


def _head(by: Mapping[int, Sequence[JudgedRecipe]], width: int, rows: Rows) -> Iterator[str]:
    yield "# Does a small copy say what becomes of the wide model?"
    yield ""
    yield f"**{answer(by.get(width, ()), width)}**"
    yield ""
    for wider, some in by.items():
        if wider > width:
            adamw = sum(one.recipe.setup.optimizer == "adamw" for one in some)
            who = f"{len(some)} of 40 recipes have a clear outcome, {adamw} of them with AdamW"
            words = "; ".join(f"{NAMES[law]} {_right(counts(some, law))}" for law in COPIES)
            yield f"At width {wider} {who}: too few for a sentence. The words came true of {words}."
            yield ""
    long = sum(row.updates > row.case.updates for row in rows.values())
    yield (
        "Forty recipes: ten schemes, each with AdamW and with Muon and AdamW, at two rates around the highest that "
        "trains at width 64 (from an eighth of it to twice it); 8, 16 or 24 layers, with and without a warm-up of 50 "
        "updates, on subwords of Multi30k or of Python's standard library. Each is probed and trained at widths 64, "
        "128, 256 and 512 for 300 updates of 256 tokens (half of a warm-up more; where that decides nothing as many "
        f"again, {long} of {len(rows)} trainings), on the same batches, heads 32 wide. It trains where its held-out "
        "loss goes at least half of the way from the unigram level to that of two Pre-LN blocks as wide "
        "([verdict.md](verdict.md)). The design was committed before a run, and its rule amended before a wide one "
        "(`studies/ladder/design.py` says how and why). The words are those of `stabkit probe` with your own loss: a "
        "forecast, and where that does not decide a training of up to 300 updates."
    )
    yield ""


def _words(by: Mapping[int, Sequence[JudgedRecipe]], rows: Rows) -> Iterator[str]:
    yield "## Words against outcomes"
    yield ""
    heads = ("width d", "the word of", "right", "missed", "false", "undecided", "right, of all")
    table = []
    for width, some in by.items():
        for reading in READINGS:
            one = counts(some, reading)
            if one.of:
                table.append((width, NAMES[reading], one.right, one.missed, one.false, one.open, _right(one)))
    yield from table_lines(heads, table)
    yield ""
    if by:
        yield (
            "![A point a recipe by its rate and scheme, a panel a width and a reading of the copy: whether it trains, "
            "and whether the word came true](ladder.png)"
        )
        yield ""
        yield "In each row AdamW stands above, Muon with AdamW below."
        yield ""
    yield (
        "A word leans to its side: `probably trains` counts as `trains`. *missed*: told to train, and the wide model "
        "fails; *false*: told to fail, and it trains. The model itself is trained for the same updates as its outcome: "
        "its whole probe looks at part of the answer. The table of settings is fitted on the models of "
        "[verdict.md](verdict.md) (scheme, initialisation, optimiser, rate, depth, width, warm-up). Two recipes of a "
        "setup are alike, so that intervals are somewhat too narrow."
    )
    yield ""
    floor = judge.floor(rows)
    if floor.of:
        yield (
            f"With another seed at width 64 the word of the first comes true of {_right(floor)}: no copy can be "
            "expected to know more."
        )
        yield ""
    for width, some in by.items():
        lines = []
        for law in COPIES:
            more, fewer, p = judge.sign_test(some, "quick", law)
            lines.append(f"{NAMES[law]} {fewer}, `--quick` at the width {more} (p = {p:.2f})")
        old = SENTENCES[judge.first_rule(some)]
        yield f"- Width {width}, right alone: {'; '.join(lines)}. By the rule before its amendment: {old}."
    yield ""


def _edges(rows: Rows) -> Iterator[str]:
    yield "## Does the highest rate that trains fall with the width?"
    yield ""
    tables = {(width, False): judge.offsets(rows, width) for width in WIDTHS}
    tables[BASE, True] = judge.offsets(rows, BASE, again=True)
    offsets = sorted({half for table in tables.values() for half in table})
    places = [(BASE, False), (BASE, True), *((width, False) for width in WIDTHS[1:])]
    names = [f"width {width}{', another seed' * again}" for width, again in places]
    yield from table_lines(
        ("rate ÷ the highest that trains at width 64", *names),
        [(_times(half), *(_ends(tables[place].get(half)) for place in places)) for half in offsets],
    )
    yield ""
    yield (
        "How many train, by the bar of their own width and, in brackets, by that of width 64: the bar is lower where "
        "the reference is wider, so that a slow model may fail it without being unstable. Setups whose edge lies "
        f"beyond the search are left out: {'; '.join(_censored(rows)) or 'none'}."
    )
    yield ""
    for width, again in places[1:]:
        lost, won, p = judge.shift(rows, width, again=again)
        if lost or won:
            where = "with another seed" if again else f"at width {width}"
            yield f"- {lost} recipes train at width 64 and not {where}, {won} the other way (sign test, p = {p:.2g})."
    yield ""
    yield (
        "Most recipes lie at or below the edge of width 64, where they can only be lost: the line with another seed "
        "shows how many are lost by chance alone. (All by one bar.)"
    )
    yield ""


def _ends(cell: tuple[int, int, int] | None) -> str:
    return "–" if cell is None else f"{cell[0]} ({cell[1]}) of {cell[2]}"


def _censored(rows: Rows) -> list[str]:
    return [f"{setup.scheme} with {setup.optimizer}" for setup in setups() if censored(rows, setup)]


def _times(half: int) -> str:
    return f"{2 ** (half // 2):g}" if half >= 0 else f"1/{2 ** (-half // 2):g}"


def _groups(some: Sequence[JudgedRecipe], width: int) -> Iterator[str]:
    yield f"## By scheme, optimiser, depth, warm-up and text, at width {width}"
    yield ""
    heads = ("", "recipes", "train", "diverge", *(NAMES[reading].replace("a copy of ", "") for reading in SHOWN))
    rows = []
    for axis in GROUPS:
        for name, own in judge.groups(some, axis).items():
            right = [f"{one.right} of {one.of}" for one in (counts(own, reading) for reading in SHOWN)]
            ends = [one.row.ends for one in own]
            rows.append((f"{axis}: {name}", len(own), ends.count("trains"), ends.count("diverged"), *right))
    yield from table_lines(heads, rows)
    yield ""
    yield "Right words, of all."
    yield ""


def _without(rows: Rows) -> Iterator[str]:
    yield "## What was not run"
    yield ""
    for width in WIDTHS[1:]:
        left = judge.missing(rows, width)
        unclear = judge.unclear(rows, width)
        also = f" {unclear} ended between `trains` and `stuck` and count nowhere." if unclear else ""
        if not left:
            yield f"- Width {width}: every recipe has a row.{also}"
            continue
        named = Counter(f"{one.setup.scheme} with {one.setup.optimizer}, {one.setup.depth} layers" for one in left)
        listed = "; ".join(f"{name}{f' ({n} rates)' if n > 1 else ''}" for name, n in named.items())
        yield f"- Width {width}: {len(recipes()) - len(left)} of {len(recipes())} recipes.{also} Not run: {listed}."
    yield (
        f"- One seed a recipe, 300 updates of 256 tokens. A reading is good where it is right of {GOOD:g} of all "
        "recipes, and no less often than that everything trains. Models of billions of parameters may differ."
    )
    yield ""


def _again() -> Iterator[str]:
    yield "## Again"
    yield ""
    yield "```console"
    yield "$ python -m studies.ladder train --data DIR --minutes 75     # docs/ladder.csv, until it has every cell"
    yield "$ python -m studies.ladder curves --data DIR --minutes 75    # docs/ladder_curves.csv: logits, sensitivity"
    yield "$ python -m studies.ladder others --data DIR                 # docs/ladder_others.csv"
    yield "$ python -m studies.ladder judge                             # this page"
    yield "```"
