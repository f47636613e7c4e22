"""What a run recorded: one table (steps × sites) a probe. numpy only, so that every side of the store can hold it.

A probe has a version, which its table carries. A run stored before a probe was there, or by another version of it,
keeps its other tables and goes on being read; what it lacks is said, not trained again.

Which sites a table has: `sites.py`. Step t means after t updates.
"""

from __future__ import annotations

import io
import math
import re
import zipfile
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, fields, is_dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stabkit.errors import StoreError
from stabkit.results.sites import BY_NAME, parse, site_names, version_of
from stabkit.spec import RunSpec

ESSENTIAL = ("loss", "validation")
"""What every outcome is judged by."""
NAME = re.compile(r"(own-)?[a-z][a-z0-9_]{0,39}")
"""What a probe is called, `own-` before it if it is from a file of one's own: pictures are files of that name."""


LARGEST = 1_000_000_000
"""Bytes of all tables, where nothing says how many they are: a small archive may hold any number of zeros."""


PIECE = 1 << 20
"""Bytes that are unpacked at once."""
MOST_ARRAYS, MOST_SITES = 10_000, 200_000
ANYWAY, TIMES = 48_000_000, 20
"""Bytes that any archive may unpack to, and how many times its own a large one may: what is recorded hardly shrinks."""


class TooLarge(ValueError):
    """An archive that unpacks to more than it can hold."""


class UnreadableRecords(StoreError):
    """records.npz is damaged, or not the record of its run."""


@dataclass(frozen=True, slots=True)
class Table:
    """One probe's records: `values[i, j]` is its reading at `steps[i]` on `sites[j]` (float64; NaN and ±inf kept)."""

    steps: NDArray[np.int64]
    sites: tuple[str, ...]
    values: NDArray[np.float64]
    version: int = 1
    """Of the probe that read it."""

    def at(self, site: str) -> NDArray[np.float64]:
        """The series of one site over `steps`."""
        return self.values[:, self.sites.index(site)]

    def select(self, sites: list[str]) -> NDArray[np.float64]:
        """(steps × given sites), in the order given."""
        where = {name: i for i, name in enumerate(self.sites)}
        return self.values[:, [where[name] for name in sites]]

    def main(self) -> NDArray[np.float64]:
        """(steps × sites) of the main quantity, without those beside it."""
        return self.values[:, [not parse(name).beside for name in self.sites]]

    def until(self, step: float) -> Table:
        """The rows up to a step, that step with them."""
        kept = self.steps <= step
        return replace(self, steps=self.steps[kept], values=self.values[kept])

    def aligned(self, sites: tuple[str, ...]) -> Table:
        """With these sites in this order; NaN where one was not read."""
        if sites == self.sites:
            return self
        where = {name: i for i, name in enumerate(self.sites)}
        values = np.full((len(self.steps), len(sites)), np.nan)
        for i, name in enumerate(sites):
            if name in where:
                values[:, i] = self.values[:, where[name]]
        return replace(self, sites=sites, values=values)

    def row(self, step: int) -> dict[str, float] | None:
        """{site: value} at a step; None where it was not recorded."""
        where = np.flatnonzero(self.steps == step)
        return dict(zip(self.sites, self.values[where[0]].tolist(), strict=True)) if len(where) else None

    def value(self, site: str, step: int) -> float:
        """The reading of one site at a step; NaN where there is none."""
        where = np.flatnonzero(self.steps == step)
        return float(self.at(site)[where[0]]) if len(where) and site in self.sites else math.nan


Records = Mapping[str, Table]
"""Probe name → its table."""


class Recorder:
    """Collects rows while a run trains and makes tables of them at the end."""

    def __init__(self, tables: Mapping[str, Table] | None = None) -> None:
        """Empty, or with what was collected before."""
        self._rows: dict[str, tuple[tuple[str, ...], list[int], list[list[float]]]] = {
            name: (table.sites, table.steps.tolist(), table.values.tolist()) for name, table in (tables or {}).items()
        }

    def add(self, probe: str, step: int, sites: tuple[str, ...], values: list[float]) -> None:
        """One reading of one probe: a value for each site; those of its first reading count."""
        known, steps, rows = self._rows.setdefault(probe, (sites, [], []))
        if sites != known:
            given = dict(zip(sites, values, strict=True))
            values = [given.get(site, math.nan) for site in known]
        steps.append(step)
        rows.append(values)

    def tables(self) -> dict[str, Table]:
        """Everything added so far."""
        return {
            name: Table(np.array(steps, dtype=np.int64), sites, np.array(rows, dtype=np.float64), version_of(name))
            for name, (sites, steps, rows) in self._rows.items()
        }


def to_bytes(records: Records) -> bytes:
    """The records as a compressed npz without pickles; equal records give equal bytes (NaN made canonical)."""
    arrays: dict[str, NDArray[np.generic]] = {}
    for name, table in records.items():
        values = np.ascontiguousarray(table.values, dtype=np.float64)
        arrays[f"{name}.steps"] = np.asarray(table.steps, dtype=np.int64)
        arrays[f"{name}.sites"] = np.asarray(table.sites, dtype=np.str_)
        if table.version != 1:
            arrays[f"{name}.version"] = np.array(table.version, dtype=np.int64)
        arrays[f"{name}.values"] = np.where(np.isnan(values), np.nan, values)  # one NaN bit pattern for the digest
    out = io.BytesIO()
    np.savez_compressed(out, **arrays)  # type: ignore[arg-type]  # numpy types the keywords as bool
    return out.getvalue()


def unpacked(data: bytes, most: int, only: Collection[str] = ()) -> dict[str, NDArray[Any]]:
    """The arrays of an npz, {name: array}, of the probes in `only` where it names any; raises TooLarge where they hold
    more than `most` bytes, by what its directory says or by what comes out, and whatever zip and numpy raise for what
    is none."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        members, most = archive.infolist(), min(most, max(ANYWAY, TIMES * len(data)))
        if any(member.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED) for member in members):
            raise ValueError("it is packed in a way that stabkit does not write")  # and that is not counted in pieces
        if (size := sum(member.file_size for member in members)) > most or len(members) > MOST_ARRAYS:
            raise TooLarge(f"it unpacks to {size:,} bytes of {len(members)} arrays; at most {most:,} are possible")
        named = [(member.filename.removesuffix(".npy"), member) for member in members]
        return {
            name: _array(_member(archive, member))
            for name, member in named
            if not only or name.rpartition(".")[0] in only
        }


def _member(archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> bytes:
    """What one holds, in counted pieces: of what a directory says of sizes nothing is believed."""
    pieces, left = list[bytes](), member.file_size
    with archive.open(member) as file:
        while piece := file.read(min(PIECE, left + 1)):
            pieces.append(piece)
            if (left := left - len(piece)) < 0:
                raise TooLarge(f"{member.filename[:60]!r} holds more than the {member.file_size:,} bytes that it says")
    return b"".join(pieces)


def from_bytes(data: bytes, most: int = LARGEST, only: Collection[str] = ()) -> dict[str, Table]:
    """The records of `to_bytes`, of at most so many bytes, of `only` these probes where any are named; raises
    UnreadableRecords on anything else."""
    try:
        arrays = unpacked(data, most, only)
        tables = {
            name: Table(
                arrays[f"{name}.steps"],
                _sites(arrays[f"{name}.sites"]),
                arrays[f"{name}.values"],
                int(arrays[f"{name}.version"]) if f"{name}.version" in arrays else 1,
            )
            for name in (key.removesuffix(".values") for key in arrays if key.endswith(".values"))
        }
    except Exception as error:  # zip, npy header and memory errors alike: a file that is not ours
        why = str(error) if isinstance(error, TooLarge) else type(error).__name__
        raise UnreadableRecords(f"records.npz is not readable ({why})") from error
    for name, table in tables.items():
        if table.steps.dtype != np.int64 or table.steps.ndim != 1 or not (np.diff(table.steps) > 0).all():
            raise UnreadableRecords(f"records.npz: the steps of {name} are not whole numbers that rise")
        if table.values.shape != (len(table.steps), len(table.sites)) or table.values.dtype != np.float64:
            what = f"{table.values.dtype} {table.values.shape}"
            raise UnreadableRecords(f"records.npz: {name} is {what}, not (steps × sites)")
    return tables


def _sites(names: NDArray[Any]) -> tuple[str, ...]:
    if names.ndim != 1 or names.size > MOST_SITES or names.dtype.kind != "U":
        raise ValueError("its sites are not names")
    return tuple(map(str, names.tolist()))


HEADER = re.compile(rb"{'descr': '([<|][fiU]\d+)', 'fortran_order': False, 'shape': \(((?:\d+, ?)*\d*)\), } *\n")
"""Of an array that `to_bytes` writes."""


def _array(data: bytes) -> NDArray[Any]:
    """One .npy file; a header that is not of ours is numpy's to read, which takes twenty times as long: a store of a
    thousand runs has forty thousand."""
    length = int.from_bytes(data[8:10], "little")
    ours = HEADER.fullmatch(data, 10, 10 + length) if data[:8] == b"\x93NUMPY\x01\x00" else None
    if ours is None:
        array: NDArray[Any] = np.load(io.BytesIO(data), allow_pickle=False)
        return array
    shape = tuple(int(size) for size in ours[2].split(b",") if size.strip())
    return np.frombuffer(data, np.dtype(ours[1].decode()), offset=10 + length).reshape(shape).copy()


def current(records: Records, spec: RunSpec) -> dict[str, Table]:
    """The tables that are of today's version of their probe. Raises UnreadableRecords unless they are what a run of
    this spec records: from step 0 on, every site that is asked for, and those that every outcome needs.

    Values may be anything: a run diverges as it likes.
    """
    places = site_names(spec.model)
    for name in records:
        if not NAME.fullmatch(name):
            raise UnreadableRecords(f"records.npz: {name[:60]!r} is not the name of a probe")
    held = {name: table for name, table in records.items() if table.version == version_of(name)}
    for name in ESSENTIAL:
        if name not in held or not len(held[name].steps):
            raise UnreadableRecords(f"records.npz has no records of {name}")
    for name, table in held.items():
        asked = BY_NAME[name].sites(places) if name in BY_NAME else ()
        if missing := [site for site in asked if site not in table.sites]:
            raise UnreadableRecords(f"records.npz: {name} lacks {missing[0]}")
        begins = name == "validation" or (len(table.steps) and table.steps[0] == 0)
        if not begins or len(set(table.sites)) != len(table.sites) or (table.steps > spec.train.steps).any():
            raise UnreadableRecords(f"records.npz: {name} is not the record of steps 0 to {spec.train.steps}")
    return held


def lacking(each: Iterable[Iterable[str]]) -> str:
    """A sentence that names the probes that runs lack (a collection of names a run), with counts: `3 runs have no
    stream or cosine of the current version: …`; "" where none is missing."""
    by_count: dict[int, list[str]] = {}
    for probe, count in Counter(probe for probes in each for probe in probes).items():
        by_count.setdefault(count, []).append(probe)
    held = [
        f"{count} run{'s hold' if count > 1 else ' holds'} no {' or '.join(filter(None, (', '.join(names), last)))}"
        for count, (*names, last) in by_count.items()
    ]
    sentence = ", ".join(held)
    return sentence and f"{sentence} of the current version: left out where it is needed, not trained again"


def jsonable(value: Any) -> Any:
    """The same with every number that JSON cannot hold as "nan", "inf" or "-inf", and dataclasses as their fields."""
    if isinstance(value, Mapping):
        return {key: jsonable(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [jsonable(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return "nan" if math.isnan(value) else "inf" if value > 0 else "-inf"
    if is_dataclass(value) and not isinstance(value, type):
        return {entry.name: jsonable(getattr(value, entry.name)) for entry in fields(value)}
    return value
