"""What is read of a model of the zoo, beside the facts of it."""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Iterator
from typing import Any

from stabkit.errors import UsageError
from stabkit.own.audit import recognised
from stabkit.own.audit.structure import measured
from tests.own.zoo_facts import Facts

DEPTH = 4
Answer = tuple[str, Any, Any]
"""(fact, what is so, what was read); None where it was not read."""


def answers(facts: Facts, model: Any, inputs: Any) -> Iterator[Answer]:
    """Every fact beside what was read of it."""
    try:
        read = recognised(model, None, inputs)
        anatomy, stacks, ahead = read.anatomy, read.stacks, read.called
    except UsageError:
        anatomy, stacks, ahead = None, {}, None
    whole = anatomy is not None and anatomy.coverage.whole
    for name, layers in facts.stacks.items():
        found = stacks.get(name)
        yield f"layers of the {name}", layers, found.layers if found is not None and whole else None
    main = stacks.get("decoder" if "decoder" in facts.stacks else "encoder")
    sublayers = main.sublayers if main is not None else ()
    kinds = Counter(own.word for own in sublayers)
    for kind, count in facts.kinds.items():
        read = kinds[kind] / main.layers if main is not None and whole else None
        yield f"{kind} a layer", count, read
    for kind, places in facts.norms.items():
        own = [one for one in sublayers if one.word == kind and one.entered and one.kind]
        read = list(zip(*map(measured, own), strict=True)) or [()] * 4
        for word, so, has in zip(("before", "inside", "after", "sum"), places, read, strict=True):
            if so is not None:
                yield f"{kind}: norm {word}", so, _one(has)
    yield "norms at the end", facts.final, main.final_norms if main is not None and whole else None
    yield "causal", facts.causal, None if ahead is None else not ahead
    if facts.logits is not None:
        yield "logits", facts.logits, _one([one.logit for one in sublayers if one.kind == "self"])
    for kind in facts.kinds:
        scale = facts.scale(kind)
        if scale is not None:
            own = [(one.omega, one.gamma) for one in sublayers if one.word == kind and not one.conditional]
            yield f"{kind}: scales", scale, _one([tuple(round(x, 3) for x in pair) for pair in own])
    for role, std in facts.std.items():
        parts = [p for one in sublayers if one.kind in ("self", "ffn") for p in one.parts if p.role == role]
        drawn = [float(p.weight.detach().double().std(correction=0)) for p in parts]
        yield f"{role}: deviation", std, statistics.fmean(drawn) if drawn else None


def _one(values: Any) -> Any:
    """The one value of all; None where there are none, all where they differ."""
    found = list(dict.fromkeys(values))
    return None if not found else found[0] if len(found) == 1 else tuple(found)


def right(so: Any, read: Any) -> bool:
    """Whether what was read is so; numbers within 5 %."""
    if isinstance(so, tuple):
        return isinstance(read, tuple) and len(read) == len(so) and all(map(right, so, read))
    if isinstance(so, float):
        return isinstance(read, (int, float)) and abs(read - so) <= 0.05 * abs(so)
    return bool(so == read)
