"""docs/ladder.md: does a small copy say what becomes of the wide model? From the committed rows alone."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from studies.ladder import curved, judge
from studies.ladder.cells import Rows
from studies.ladder.design import GOOD, SENTENCES, WIDTHS, recipes
from studies.ladder.judge import GROUPS, READINGS, Counts, Judged, Reading, counts
from studies.ladder.others import Cell
from studies.markdown import table_lines
from studies.own.corpus import CorpusRow
from studies.own.judge import share

NAMES: Mapping[Reading, str] = {
    "kept": "a copy of width 64, the rate kept",
    "root": "a copy of width 64, its rate times √(d/64)",
    "whole": "a copy of width 64, its rate times d/64",
    "at 256": "a copy of width 256, the rate kept",
    "own": "the model itself",
    "settings": "a table of settings, nothing trained",
}
COPIES: tuple[Reading, ...] = ("kept", "root", "whole")


def widest(rows: Rows) -> int:
    """The largest width at which half of the recipes have an outcome."""
    return max((d for d in WIDTHS[1:] if 2 * len(judge.judged(rows, d, ())) >= len(recipes())), default=WIDTHS[1])


def page(rows: Rows, corpus: Sequence[CorpusRow], curves: curved.Rows, cells: Sequence[Cell]) -> str:
    """The whole page."""
    by = {width: judge.judged(rows, width, corpus) for width in WIDTHS[1:]}
    quick = {width: judge.judged(rows, width, (), quick=True) for width in WIDTHS[1:]}
    d = widest(rows)
    first = (_head(by[d], d), _words(by, quick), _edges(rows), _groups(by[d], d), _without(rows))
    parts = (*first, curved.lines(curves, cells), _again())
    return "\n".join(line for part in parts for line in part) + "\n"


def answer(some: Sequence[Judged], width: int) -> str:
    """The sentence with its n; of fewer than half of the recipes that there is none yet."""
    if 2 * len(some) < len(recipes()):
        return f"Not decided yet: {len(some)} of {len(recipes())} recipes have an outcome at width {width}."
    key = judge.sentence(some)
    own, kept = counts(some, "own"), max((counts(some, law) for law in COPIES), key=lambda one: one.right)
    best, other = (own, kept) if key == "own" else (counts(some, key), own)  # type: ignore[arg-type]
    return (
        f"At width {width}: {SENTENCES[key]}. Of {best.of} recipes the word of {NAMES[best.reading]} decides "
        f"{best.decided}, {share(best.right, best.decided)} right; that of {NAMES[other.reading]} {other.decided}, "
        f"{share(other.right, other.decided)}."
    )


def _head(some: Sequence[Judged], width: int) -> Iterator[str]:
    yield "# Does a small copy say what becomes of the wide model?"
    yield ""
    yield f"**{answer(some, width)}**"
    yield ""
    yield (
        "Forty recipes: ten schemes, each with AdamW and with Muon and AdamW, at two rates around the highest that "
        "trains at width 64 (from an eighth of it to twice it); 8, 16 or 24 layers, with and without a warm-up of 50 "
        "updates, on subwords of Multi30k or of Python's standard library. Each is probed and trained for 300 updates "
        "of 256 tokens at widths 64, 128, 256 and 512, on the same batches, heads 32 wide. It trains where its "
        "held-out loss goes at least half of the way from the unigram level to that of two Pre-LN blocks as wide "
        "([verdict.md](verdict.md)). Design, and the sentences that it can end in, were committed before a run "
        "(`studies/ladder/design.py`). The words are those of `stabkit probe` with your own loss: a forecast, and "
        "where that does not decide a training of up to 300 updates."
    )
    yield ""


def _words(by: Mapping[int, Sequence[Judged]], quick: Mapping[int, Sequence[Judged]]) -> Iterator[str]:
    yield "## Words against outcomes"
    yield ""
    heads = ("width d", "the word of", "right", "missed", "false", "open", "right, of decided", "`--quick`, right")
    rows = []
    for width, some in by.items():
        for reading in READINGS:
            one = counts(some, reading)
            if one.of:
                fast = counts(quick[width], reading)
                soon = share(fast.right, fast.decided) if fast.of else "–"
                rows.append((width, NAMES[reading], one.right, one.missed, one.false, one.open, _share(one), soon))
    yield from table_lines(heads, rows)
    yield ""
    if any(by.values()):
        yield (
            "![A point a recipe by its rate and scheme, a panel a width and a reading of the copy: whether it trains, "
            "and whether the word came true](ladder.png)"
        )
        yield ""
        yield "In each row AdamW stands above, Muon with AdamW below."
        yield ""
    yield (
        "*missed*: the word is `trains`, and the wide model fails; *false*: `fails`, and it trains; *open*: "
        "`undecided` or `probably`. The table of settings is fitted on the models of [verdict.md](verdict.md) "
        "(scheme, initialisation, optimiser, rate, depth, width and warm-up)."
    )
    yield ""
    for width, some in by.items():
        lines = []
        for law in COPIES:
            more, fewer, p = judge.sign_test(some, "own", law)
            lines.append(f"{NAMES[law]} {fewer}, the model itself {more} (p = {p:.2f})")
        if some:
            yield f"At width {width}, right alone: {'; '.join(lines)}."
            yield ""


def _share(one: Counts) -> str:
    return share(one.right, one.decided)


def _edges(rows: Rows) -> Iterator[str]:
    yield "## Does the highest rate that trains fall with the width?"
    yield ""
    tables = {width: judge.offsets(rows, width) for width in WIDTHS}
    offsets = sorted({half for table in tables.values() for half in table})
    heads = ("rate ÷ the highest that trains at width 64", *(f"trains at {width}" for width in WIDTHS))
    cells = [
        (_times(half), *(share(*tables[width][half]) if half in tables[width] else "–" for width in WIDTHS))
        for half in offsets
    ]
    yield from table_lines(heads, cells)
    yield ""
    for width in WIDTHS[1:]:
        lost, won, p = judge.shift(rows, WIDTHS[0], width)
        yield (
            f"- From width 64 to {width}: {lost} recipes train at 64 alone, {won} at {width} alone (sign test, "
            f"p = {p:.2g})."
        )
    yield ""


def _times(half: int) -> str:
    return f"{2 ** (half // 2):g}" if half >= 0 else f"1/{2 ** (-half // 2):g}"


def _groups(some: Sequence[Judged], width: int) -> Iterator[str]:
    yield f"## By scheme, optimiser, depth, warm-up and text, at width {width}"
    yield ""
    heads = ("", "recipes", "train", *(NAMES[reading].replace("a copy of ", "") for reading in (*COPIES, "own")))
    rows = []
    for axis in GROUPS:
        for name, own in judge.groups(some, axis).items():
            each = [counts(own, reading) for reading in (*COPIES, "own")]
            right = [f"{one.right} of {one.decided}" for one in each]
            rows.append((f"{axis}: {name}", len(own), sum(one.trains for one in own), *right))
    yield from table_lines(heads, rows)
    yield ""
    yield "Right words, of those that decide."
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
        f"- One seed a recipe; 300 updates of 256 tokens. A reading is good where {GOOD:g} of its decided words come "
        "true. Models of billions of parameters may differ."
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
