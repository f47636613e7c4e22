"""Watches under right checksums whose values no watch writes."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from stabkit.results import records
from stabkit.results.records import Table
from tests.hostile.stores import put, sound_watch


# fmt: off
def _facts(**change: Any) -> Callable[[dict[str, Any]], None]:
    return lambda documents: documents["facts.json"].update(change)


def _alarm(**change: Any) -> Callable[[dict[str, Any]], None]:
    alarm = {"step": 1, "link": "step", "sentence": "s", "advice": "", "numbers": {"ratio": 2.0}, **change}
    return lambda documents: documents["alarms.json"].append(alarm)


FACTS: Mapping[str, tuple[Any, ...]] = {
    "steps": (-1, "nan", 1e400, 10**400, 2**63, None), "width": (-5, 0, 10**30, "nan"), "tokens": (-1, 10**400),
    "rate": ("nan", "inf", -1.0, 10**400), "parameters": (-3, 10**400), "how": ("", "\x1b[2J", "a" * 10**6),
    "model": ("<script>alert(1)</script>", "", "\udcff"), "notes": ([""], ["\n" * 9999], [["a"]], "abc"),
    "dtype": ("\0",), "seed": (-(10**400),), "factory": ("\x1b]0;x\7",), "broke": ({}, {"step": -1, "where": ""}),
}
ALARMS: Mapping[str, tuple[Any, ...]] = {
    "step": (-1, 10**400, "nan", 0.5), "link": ("", "tomorrow", "gradient", "<b>", None), "sentence": ("", "\x1b[2J"),
    "numbers": ({}, {"ratio": "nan"}, {"ratio": "inf"}, {"ratio": 10**400}, {"a": []}, []),
}
MANY = [{"step": i, "link": "still", "sentence": "s", "advice": "", "numbers": {"of": 2}} for i in range(20_000)]
ODD_VALUES: Mapping[str, Callable[[dict[str, Any]], None]] = {
    **{f"facts-{name}-{i}": _facts(**{name: x}) for name, values in FACTS.items() for i, x in enumerate(values)},
    **{f"alarm-{name}-{i}": _alarm(**{name: x}) for name, values in ALARMS.items() for i, x in enumerate(values)},
    "alarms-object": lambda documents: documents.update({"alarms.json": {}}),
    "alarms-many": lambda documents: documents["alarms.json"].extend(MANY),
    "ended-number": lambda documents: documents.update({"environment.json": {"ended": 1e999}}),
    "ended-long": lambda documents: documents.update({"environment.json": {"ended": "stopped: " + "\x1b<b>" * 9999}}),
    "ended-list": lambda documents: documents.update({"environment.json": []}),
}
ODD_RECORDS: Mapping[str, Callable[[Any, Any], tuple[Any, Any]]] = {
    "records-nan": lambda steps, values: (steps, values * np.nan),
    "records-huge": lambda steps, values: (steps, np.sign(values + 0.5) * 1.7e308),
    "records-negative": lambda steps, values: (steps, -values - 1),
    "records-negative-steps": lambda steps, values: (steps - 100, values),
    "records-late-steps": lambda steps, values: (steps + 2**62, values),
    "records-none": lambda steps, values: (steps[:0], values[:0]),
    "records-one": lambda steps, values: (steps[:1], values[:1]),
}
# fmt: on


def odd_watches(out: Path) -> list[str]:
    """A watch of each odd value; returns their names."""
    for name, change in ODD_VALUES.items():
        documents = {file: json.loads(body) for file, body in sound_watch().items() if file.endswith(".json")}
        change(documents)
        put(out, "own", {file: json.dumps(body).encode() for file, body in documents.items()}, name.encode())
    for name, alter in ODD_RECORDS.items():
        tables = records.from_bytes(sound_watch()["records.npz"])
        parts = {n: (*alter(t.steps, t.values), t.sites) for n, t in tables.items()}
        changed = {n: Table(steps, sites, values) for n, (steps, values, sites) in parts.items()}
        put(out, "own", {"records.npz": records.to_bytes(changed)}, name.encode())
    return [*ODD_VALUES, *ODD_RECORDS]
