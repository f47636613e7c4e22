"""Builders of odd stores: bombs under right checksums, names, links and values that no command of ours writes."""

from __future__ import annotations

import hashlib
import json
import os
import struct
import tempfile
import zlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from stabkit.results.own.cell import PROBE_VERSION
from stabkit.results.own.trial import TRIAL_VERSION, ModelTrial
from stabkit.results.surface import SURFACE_VERSION, At, Plane, SurfaceSpec
from stabkit.spec import ALGO_VERSION
from stabkit.storage import probed, surfaces, trials, watched
from stabkit.storage.folder import manifest_of
from stabkit.storage.watched import WatchShelf
from tests.conftest import files_of, tiny
from tests.hostile.training import Training

Files = Mapping[str, bytes | int]
"""{name: its bytes; or how many zeros a sparse file has}."""
RUN = tiny("post-ln")
SURFACE = SurfaceSpec(origin=At(run=RUN.run_id, step=3), plane=Plane(kind="random"), a=(0.0, 1.0))
CHUNK = 16_000_000
FULL = 15_900_000
"""Bytes, just below what a JSON document may have."""


@cache
def sound_watch() -> dict[str, bytes]:
    """The files of a watch of three updates, as one part."""
    with tempfile.TemporaryDirectory() as folder:
        Training(Path(folder), watched=True).run(3)
        shelf = WatchShelf(Path(folder))
        (own,) = map(shelf.load, shelf.ids())
    return watched.to_files(own.cell.facts, own.records, own.alarms, {"ended": own.ended})


def sound_probe() -> dict[str, bytes]:
    return {name: sound_watch()[name] for name in probed.FILES}


def sound_trial() -> dict[str, bytes]:
    numbers = {"depth": 2, "width": None, "lr": 1e-3, "seed": 0, "steps": 2, "made": 2, "start": 4.0, "loss": 3.0}
    rest = {"losses": (4.0, 3.0), "frequencies": None, "fresh": True, "parameters": 7, "notes": ()}
    trial = ModelTrial(factory="g:gpt", model="GPT", optimizer="AdamW", **numbers, **rest)  # type: ignore[arg-type]
    return trials.to_files(trial, {})


def sound_surface() -> dict[str, bytes]:
    return surfaces.to_files(SURFACE, np.zeros((1, 2)), {}, {}, {})


@dataclass(frozen=True, slots=True)
class Kind:
    """What stands in one folder of a store."""

    folder: str
    name: str
    version: int
    files: Callable[[], dict[str, bytes]]
    documents: tuple[str, ...]
    """Files of JSON that are read."""
    archive: str = ""
    """The .npz file."""


RUNS = ("outcome.json", "environment.json")
KINDS = {
    kind.folder: kind
    for kind in (
        Kind("own", "bomb-watch", PROBE_VERSION, sound_watch, ("facts.json", "alarms.json"), "records.npz"),
        Kind("probes", "bomb-probe", PROBE_VERSION, sound_probe, ("facts.json",), "records.npz"),
        Kind("trials", "bomb-trial", TRIAL_VERSION, sound_trial, ("trial.json",)),
        Kind("runs", RUN.run_id, ALGO_VERSION, lambda: files_of(RUN), RUNS, "records.npz"),
        Kind("surfaces", SURFACE.surface_id, SURFACE_VERSION, sound_surface, ("spec.json",), "surface.npz"),
    )
}


@cache
def checksum_of_zeros(count: int) -> str:
    digest, chunk = hashlib.sha256(), bytes(CHUNK)
    for start in range(0, count, CHUNK):
        digest.update(chunk[: count - start])
    return digest.hexdigest()


def put(out: Path, folder: str, changes: Files, name: str | bytes = "", manifest: bytes | None = None) -> Path:
    """A sound folder of a kind, but for these files, under right checksums (or another manifest); returns where."""
    kind = KINDS[folder]
    files: dict[str, bytes | int] = {**kind.files(), **changes}
    path = out / folder / os.fsdecode(name or kind.name) / ("000000" if folder == "own" else "")
    path.mkdir(parents=True)
    (out / "runs").mkdir(exist_ok=True)
    for file, body in files.items():
        if isinstance(body, int):
            with (path / file).open("wb") as sparse:
                sparse.truncate(body)
        else:
            (path / file).write_bytes(body)
    sums = {n: checksum_of_zeros(b) if isinstance(b, int) else hashlib.sha256(b).hexdigest() for n, b in files.items()}
    right = json.dumps(manifest_of(sums, kind.version)).encode()
    (path / "manifest.json").write_bytes(right if manifest is None else manifest)
    return path


def npy(shape: str, dtype: str = "<f8") -> bytes:
    header = f"{{'descr': '{dtype}', 'fortran_order': False, 'shape': {shape}, }}".encode()
    header += b" " * (63 - (10 + len(header)) % 64) + b"\n"
    return b"\x93NUMPY\1\0" + struct.pack("<H", len(header)) + header


def zipped(members: Mapping[str, tuple[bytes, int]], claimed: int | None = None) -> bytes:
    """A zip of {name: (its first bytes, how many zeros follow)}; its directory says `claimed` bytes of each."""
    raw = zlib.compressobj(9, zlib.DEFLATED, -15)
    block = raw.compress(bytes(CHUNK)) + raw.flush(zlib.Z_FULL_FLUSH)
    body, directory = bytearray(), bytearray()
    for name, (head, zeros) in members.items():
        first = zlib.compressobj(9, zlib.DEFLATED, -15)
        packed = first.compress(head) + first.flush(zlib.Z_FULL_FLUSH) + block * (zeros // CHUNK) + b"\x03\x00"
        check = zlib.crc32(head)
        for _ in range(0 if claimed is not None else zeros // CHUNK):
            check = zlib.crc32(bytes(CHUNK), check)
        size = len(head) + zeros // CHUNK * CHUNK if claimed is None else claimed
        common = struct.pack("<5H3L2H", 20, 0, 8, 0, 0x21, check, len(packed), size, len(name), 0)
        place = struct.pack("<3H2L", 0, 0, 0, 0, len(body))
        directory += b"PK\1\2" + struct.pack("<H", 20) + common + place + name.encode()
        body += b"PK\3\4" + common + name.encode() + packed
    end = struct.pack("<4s4H2LH", b"PK\5\6", 0, 0, len(members), len(members), len(directory), len(body), 0)
    return bytes(body + directory) + end


@cache
def lying() -> bytes:
    """Its directory says 1,000 bytes, and two gigabytes come out."""
    return zipped({"loss.values.npy": (npy("(250000000,)"), 2_000_000_000)}, claimed=1000)


@cache
def honest() -> bytes:
    """A gigabyte of zeros, and a directory that says so."""
    return zipped({"loss.values.npy": (npy("(20000000, 6)"), 960_000_000), "loss.steps.npy": (npy("(2,)", "<i8"), 0)})


@cache
def crowded() -> bytes:
    """Sixty thousand members, all of them empty."""
    return zipped({f"a{i}.npy": (b"", 0) for i in range(60_000)})


def headers() -> bytes:
    """Arrays of gigabytes and more by their headers alone: numpy may make room before it reads."""
    shapes = (
        "(125000000,)",
        "(1000000000000000000,)",
        "(1, 125000000, 1)",
        "(1000000000000, 0)",
        "(1, " * 60 + ")" * 60,
    )
    return zipped({f"a{i}.npy": (npy(shape, ">f8"), 0) for i, shape in enumerate(shapes)})


# fmt: off
DOCUMENTS: Mapping[str, Callable[[], bytes]] = {
    "brackets": lambda: b"[[" * (FULL // 2),
    "objects": lambda: b"[" + b"{}," * (FULL // 3 - 1) + b"{}]",
    "numbers": lambda: b"[" + b"1e9," * (FULL // 4 - 1) + b"1]",
    "one string": lambda: b'"' + b"a" * FULL + b'"',
    "keys": lambda: b"{" + b",".join(b'"%d":[]' % i for i in range(FULL // 13)) + b"}",
}
ARCHIVES: Mapping[str, Callable[[], bytes | int]] = {
    "lying zip": lying, "honest gigabyte": honest, "many members": crowded, "headers": headers,
    "sparse": lambda: 900_000_000,
}
# fmt: on


def more_updates(folder: str) -> bytes:
    """Facts that speak of so many updates that a gigabyte of records is in order."""
    return json.dumps({**json.loads(KINDS[folder].files()["facts.json"]), "steps": 10**12}).encode()


Bomb = tuple[str, str, Callable[[], tuple[Files, bytes | None]]]


def bombs() -> Iterator[Bomb]:
    """(what it is, kind, () → (files, manifest))."""
    for folder, kind in KINDS.items():
        for what, archive in ARCHIVES.items() if kind.archive else ():
            yield what, folder, lambda archive=archive, kind=kind: ({kind.archive: archive()}, None)
        for file in kind.documents:
            for what, text in DOCUMENTS.items():
                if what == "objects" or file in ("facts.json", "trial.json") and folder != "probes":
                    yield f"{file} of {what}", folder, lambda file=file, text=text: ({file: text()}, None)
        yield "manifest of objects", folder, lambda: ({}, DOCUMENTS["objects"]())
        if "facts.json" in kind.documents:
            more = {"records.npz": honest, "facts.json": lambda folder=folder: more_updates(folder)}
            yield "gigabyte of many updates", folder, lambda more=more: ({n: body() for n, body in more.items()}, None)


def tensors(header: Mapping[str, Any]) -> bytes:
    """A safetensors file of a header alone."""
    text = json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text


# fmt: off
SAFETENSORS: Mapping[str, Callable[[], bytes]] = {
    "a header longer than the file": lambda: struct.pack("<Q", 1 << 60) + b"{}",
    "terabytes": lambda: tensors({"a": {"dtype": "F32", "shape": [10**12], "data_offsets": [0, 4 * 10**12]}}),
    "a shape beyond its bytes": lambda: tensors({"a": {"dtype": "F32", "shape": [1 << 62, 4], "data_offsets": [0, 0]}}),
    "brackets": lambda: struct.pack("<Q", 40_000_000) + b"[" * 40_000_000,
}
NAMES = (
    b"x" * 240, b"x" * 254, b"a\x1b[2Jb", b"two\nlines", b"<img src=x onerror=alert(1)>", b"a..", b"-rf", b"--help",
    b"\xff\xfe", b"[bold red]", b"%s{0}", b"a b'c\"d", b"a&b#c?d", "\u202eno".encode(), "\U0001d518".encode() * 60,
)
"""Of folders."""
# fmt: on
