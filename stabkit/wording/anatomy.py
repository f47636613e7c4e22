"""What a probe found in a user's model, what it noticed on the way, and by name what sixteen updates and a ramp cannot
see, which stands on every page of a probe."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple, TypedDict

from stabkit.results.own.alarm import JUMP, LATE, LOGIT, LOGIT_RECALL, LOOKED_AT
from stabkit.results.own.cell import COPIED, Facts, ModelCell, sublayer_counts
from stabkit.words import listed, plain


class FoundJson(TypedDict):
    """What was found at one depth, in words."""

    depth: str
    model: str
    parameters: str
    stacks: str
    found: str
    kinds: str
    span: str


def anatomy(cells: Sequence[ModelCell]) -> list[FoundJson]:
    """What was found at each depth: stacks, sub-layers by kind."""
    rows: dict[int | None, FoundJson] = {}
    for cell in cells:
        row: FoundJson = {
            "depth": str(cell.facts.depth or "–"),
            "model": plain(cell.facts.model),
            "parameters": f"{cell.facts.parameters:,}",
            "stacks": ", ".join(cell.stacks),
            "found": plain(cell.facts.how),
            "kinds": kinds(cell.facts),
            "span": plain(f"{cell.facts.sublayers[0].both_names} … {cell.facts.sublayers[-1].both_names}"),
        }
        rows.setdefault(cell.facts.depth, row)
    return list(rows.values())


def kinds(facts: Facts) -> str:
    """`6 self, 6 ffn`."""
    return listed(*(f"{count} {kind}" for kind, count in Counter(one.kind for one in facts.sublayers).items()))


def notes(cells: Sequence[ModelCell]) -> list[str]:
    """What was found on the way, each once."""
    notes: dict[str, str] = {}
    for cell in reversed(cells):  # of notes that differ in their numbers alone that of the deepest
        for note in cell.facts.notes:
            notes.setdefault(re.sub(r"\d+", "", note), plain(note))
    batches = {(cell.facts.seed, cell.facts.batch) for cell in cells}
    if len(batches) > len({seed for seed, _ in batches}):
        notes["batch"] = (
            "the batch differs between depths of one seed: draw it before the model is built, "
            "or from its own random generator"
        )
    return [*notes.values(), *filter(None, [uneven(cells), wide(cells)])]


def wide(cells: Sequence[ModelCell]) -> str:
    """What a copy of width 64 would say of a model at least as wide as those that were trained; "" of others."""
    own = max((cell.facts.width for cell in cells), default=0)
    width = max((width for width in COPIED if width <= own), default=None)
    if width is None:
        return ""
    kept, root, quick, of = COPIED[width]
    return (
        f"a copy of width 64 costs less: of {of} models of width {width} its word came true for {kept} at its rate and "
        f"for {root} at √(width/64) times it, that of --quick at its own width for {quick} (docs/evidence/ladder.md)"
    )


def uneven(cells: Sequence[ModelCell]) -> str:
    """How many sub-layers each depth has, where they do not follow it in a line; "" where they do."""
    pairs = sublayer_counts(cells)
    if len(pairs) < 3:
        return ""
    (a, few), (b, many) = pairs[0], pairs[-1]
    off = any(abs(n - few - (many - few) / (b - a) * (depth - a)) > 0.5 for depth, n in pairs)
    counts = ", ".join(f"{n} at {depth}" for depth, n in pairs)
    return f"the number of sub-layers is not linear in the depth: {counts}" if off else ""


class Unseen(NamedTuple):
    """One thing that goes wrong later."""

    what: str
    alarm: str
    """The links of `stabkit.watch` that would see it; "" for none."""
    when: str
    """From which update on, and how often."""


UNSEEN = (
    Unseen(
        "attention-logit growth",
        "logits",
        "beyond {:,.0f} and growing: it warned of {} of {} trainings without QK-norm at too high a rate, and of {} of "
        "{} that ended well, by update {:,}".format(LOGIT, *LOGIT_RECALL),
    ),
    Unseen("output-logit drift", "", "log Z is recorded at every reading; no alarm warns of it"),
    Unseen(
        "late spikes",
        "jump, loss, finite, level",
        f"a step {JUMP:.0f} times the usual one at any update, three times the first loss, or logits that say nothing "
        f"of the input after {LATE} updates",
    ),
    Unseen(
        "data: a bad shard, an order that changes, labels that do not fit",
        "outlook, level",
        f"only what the loss shows of it, after {', '.join(map(str, LOOKED_AT))} updates",
    ),
)
WHY = "Sixteen updates and a ramp see what breaks at the start. What grows over thousands of updates they cannot see"
