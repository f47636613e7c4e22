"""What does not move: tensors to be trained that no optimiser steps, that no gradient arrives at, or that have one and
stay what they are (a rate of 0, steps below half a unit in the last place of bfloat16); matrices whose gradient is
rounding, below FAINT of their sub-layer's.

A branch that starts at 0, a layer that is skipped at random, an expert that nobody asks or a warm-up from 0 look like
that for a few updates: it is told after IN_A_ROW readings. A graph that is cut is told at once: nothing arrives at the
lowest sub-layers, nor at the embeddings before them.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence, Set

import torch

from stabkit.own.chain.gradients import FAINT, OUTSIDE
from stabkit.own.sublayers.anatomy import and_more, most_alike
from stabkit.results.own.alarm import Alarm
from stabkit.results.own.cell import Sublayer
from stabkit.words import short

IN_A_ROW = 8
"""Readings."""


def described(names: Sequence[str], kinds: Mapping[str, str]) -> str:
    """`1 embedding and 13 norm tensors (wte.weight and 13 more)`."""
    counts: dict[str, int] = {}
    for name in names:
        kind = kinds.get(name, kinds.get(name.removesuffix("bias") + "weight", "other"))
        counts[kind] = counts.get(kind, 0) + 1
    words = {"embedding": "embedding", "norm": "norm tensor", "head": "head tensor"}
    words["other"] = "other tensor" if len(counts) > 1 else "tensor"
    parts = [f"{counts[kind]} {word}{'s' * (counts[kind] > 1)}" for kind, word in words.items() if kind in counts]
    return f"{' and '.join([', '.join(parts[:-1]), parts[-1]] if len(parts) > 1 else parts)} ({and_more(list(names))})"


def _alarm(step: int, link: str, sentence: str, names: Sequence[str], of: int) -> Alarm:
    numbers = {"tensors": len(names), "of": of}
    return Alarm(step=step, link=link, sentence=sentence, numbers=numbers, names=frozenset(names))


def unchosen(silent: Sequence[str], groups: Mapping[str, Sequence[str]], lists: Set[str]) -> dict[str, str]:
    """{tensor: its module} of members of a list of modules (`lists`: their names) all of whose tensors are silent while
    another member's in the same sub-layer are not: experts that no token chose. What is silent at the same place in
    most layers is no chance, and not among them."""
    still = set(silent)
    idle: dict[str, list[str]] = {}
    places, every = Counter[str](), Counter[str]()
    for site in groups.keys() - {OUTSIDE}:
        members: dict[str, dict[str, list[str]]] = {}
        for name in groups[site]:
            parts = name.split(".")
            for i in range(1, len(parts) - 1):
                if (stem := ".".join(parts[:i])) in lists:
                    members.setdefault(stem, {}).setdefault(f"{stem}.{parts[i]}", []).append(name)
        for own in members.values():
            quiet = {member: tensors for member, tensors in own.items() if still.issuperset(tensors)}
            every.update(_place(member) for member in own)
            if len(quiet) < len(own):
                places.update(_place(member) for member in quiet)
                idle.update(quiet)
    return {
        tensor: member
        for member, tensors in idle.items()
        if 2 * places[_place(member)] <= every[_place(member)]
        for tensor in tensors
    }


def _place(member: str) -> str:
    """`h.3.experts.0` → `h.#.experts.0`."""
    stem, _, index = member.rpartition(".")
    return re.sub(r"\d+", "#", stem) + f".{index}"


class Still:
    """Of one watch: counts readings in a row."""

    def __init__(self, kinds: Mapping[str, str], lists: Set[str] = frozenset()) -> None:
        """`lists`: the names of the model's lists of modules."""
        self.kinds, self.lists = kinds, lists
        self._silent: dict[str, int] = {}
        self._unmoved: dict[str, int] = {}
        self._faint: dict[str, int] = {}
        self.notes: list[str] = []
        """What is worth knowing and no fault: experts that no token chose."""

    def see(
        self,
        step: int,
        sublayers: Sequence[Sublayer],
        groups: Mapping[str, Sequence[str]],
        gradients: torch.Tensor,
        moved: torch.Tensor,
        causes: Mapping[str, str],
        unstepped: Set[str],
        arrives: torch.Tensor,
    ) -> Iterator[Alarm]:
        """After update `step`: (parameters,) squares of its gradients and of what it moved, in the order of `groups`,
        {site: names}. `causes`: {name: why it may stay where it is}; `unstepped`: whom no optimiser steps, of which
        another warning is; `arrives` (parameters,): whether a gradient is more than rounding."""
        names = [name for own in groups.values() for name in own]
        arrived = dict(zip(names, (gradients > 0).tolist(), strict=True))
        unknown = dict(zip(names, gradients.isnan().tolist(), strict=True))
        stays = dict(zip(names, (moved == 0).tolist(), strict=True))
        for name in names:
            has = arrived[name] or unknown[name]
            self._silent[name] = 0 if has else self._silent.get(name, 0) + 1
            stuck = has and stays[name] and name not in unstepped
            self._unmoved[name] = self._unmoved.get(name, 0) + 1 if stuck else 0
        yield from self._cut(step, sublayers, groups, gradients)
        still = [name for name in names if self._silent[name] >= IN_A_ROW]
        spared = unchosen(still, groups, self.lists)
        if spared and not self.notes:
            self.notes.append(f"no token chose {and_more(list(dict.fromkeys(spared.values())))} in {IN_A_ROW} readings")
        silent = [name for name in still if name not in spared]
        if silent:
            sentence = (
                f"no gradient reached {described(silent, self.kinds)}, although trainable, in {IN_A_ROW} readings"
            )
            yield _alarm(step, "reach", sentence, silent, len(names))
        for name, real in zip(names, arrives.tolist(), strict=True):
            self._faint[name] = 0 if real or not arrived[name] else self._faint.get(name, 0) + 1
        faint = most_alike([name for name in names if self._faint[name] >= IN_A_ROW], names)
        if faint:
            sentence = (
                f"no gradient but rounding, below {short(FAINT)} of their sub-layers', reached "
                f"{described(faint, self.kinds)} in {IN_A_ROW} readings"
            )
            yield _alarm(step, "reach", sentence, faint, len(names))
        unmoved = [name for name in names if self._unmoved[name] >= IN_A_ROW]
        if unmoved:
            known = dict.fromkeys(causes[name] for name in unmoved if name in causes)
            why = f": {', '.join(known)}" if known else ""
            sentence = (
                f"{described(unmoved, self.kinds)} did not move in {IN_A_ROW} readings, although a gradient "
                f"arrives{why}"
            )
            yield _alarm(step, "still", sentence, unmoved, len(names))

    def _cut(
        self, step: int, sublayers: Sequence[Sublayer], groups: Mapping[str, Sequence[str]], gradients: torch.Tensor
    ) -> Iterator[Alarm]:
        none = dict(zip((name for own in groups.values() for name in own), (gradients < 0).tolist(), strict=True))
        before = [name for name, kind in self.kinds.items() if kind == "embedding" and name in none]
        if all(none.values()) or any(not none[name] for name in before):
            return
        for stack in dict.fromkeys(own.stack for own in sublayers):
            trained = [own for own in sublayers if own.stack == stack and groups[own.name]]
            cut = []
            for own in trained:
                if not all(none[name] for name in groups[own.name]):
                    break
                cut.append(own)
            if cut and (before or len(cut) == len(trained) or self._silent[groups[cut[0].name][0]] >= 3):
                span = " … ".join(dict.fromkeys(f"{stack}.{end.layer}" for end in (cut[0], cut[-1])))
                sentence = f"no gradient reaches the trainable {span}"
                if len(cut) < len(trained):
                    sentence += (
                        f": something before {trained[len(cut)].name} cuts the graph (detach, no_grad, checkpointing "
                        "whose inputs need no gradient)"
                    )
                tensors = frozenset(name for name, absent in none.items() if absent)  # embeddings before them too
                numbers = {"sub-layers": len(cut)}
                yield Alarm(step=step, link="reach", sentence=sentence, numbers=numbers, names=tensors)
