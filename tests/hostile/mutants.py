"""Mutants of a good baseline file."""

from __future__ import annotations

import copy
import json
import random
from collections.abc import Iterator
from typing import Any

from tests.hostile.baselines import GOOD, Body

ODD = (
    None,
    True,
    -1,
    0,
    5,
    0.5,
    10**400,
    float("nan"),
    float("inf"),
    "",
    "x\n",
    "\ud800",
    "nan",
    [],
    [[]],
    {},
    {"a": 1},
)


def generated(count: int, seed: int) -> Iterator[bytes]:
    """Mutants of the good file, one to three changes each, the same for the same seed."""
    chance = random.Random(seed)
    for _ in range(count):
        body = copy.deepcopy(GOOD)
        for _ in range(chance.choice((1, 1, 2, 3))):
            _mutate(body, chance)
        yield json.dumps(body).encode()


def _mutate(body: Body, chance: random.Random) -> None:
    places = list(_places(body))
    if not places:
        return
    numbers = [(parent, key) for parent, key in places if type(parent[key]) in (int, float)]
    parent, key = chance.choice(numbers if numbers and chance.random() < 0.6 else places)
    value = parent[key]
    match chance.choice((0, 1, 1, 1, 2, 3, 4)):
        case 0:
            del parent[key]
        case 1:
            parent[key] = copy.deepcopy(chance.choice(ODD))
        case 2:
            parent[key] = chance.choice([[value], {"a": value}, [value, value], str(value)])
        case 3 if type(value) in (int, float) and abs(value) < 1e6:
            parent[key] = chance.choice([-value, value * 1e3, value + 1e-9, int(value), value / 3])
        case _:
            other, name = chance.choice(places)
            parent[key] = copy.deepcopy(other[name])


def _places(value: Any) -> Iterator[tuple[Any, Any]]:
    """(container, key) of everything within."""
    for key in list(value) if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ():
        yield value, key
        yield from _places(value[key])
