"""Damaged and odd files for `--baseline FILE`: a row each."""

from __future__ import annotations

import gzip
import json
import os
import socket
from collections.abc import Callable
from contextlib import chdir, closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from stabkit.results.own.baseline import Baseline, RateBaseline
from stabkit.version import __version__

# fmt: off
FACTORY, DEPTHS, SEEDS, STEPS = "no_such_module:f", (2, 4), (0,), 16
"""Of the probe that each file is compared with; it ends before any model is built."""
_RATE = RateBaseline(
    lr=None, rate=1e-3, verdict="trains", probability=0.99, apart=0.01, failing=("update",),
    levels={"gradient": 1.5, "scores": 0.125},
    words={"2": "trains"},
)
GOOD = json.loads(json.dumps(Baseline(stabkit=__version__, 
    factory=FACTORY, depths=DEPTHS, seeds=SEEDS, steps=STEPS, quick=False, rates=(_RATE,)).to_json()))
BAD_NOW = replace(_RATE, verdict="fails", probability=0.01, failing=("update", "gradient"))
"""What is worse than every baseline that can be read."""
Body = dict[str, Any]
@dataclass(frozen=True, slots=True)
class Row:
    """A file: the text of the good one changed, or a path that is made in a folder."""
    name: str
    text: Callable[[Body], bytes] | None = None
    path: Callable[[Path], Path] | None = None
    harmless: bool = False
    """Whether it is read as the good one is; all else ends with 2 and one line."""

def _top(**changes: Any) -> Callable[[Body], bytes]:
    return lambda good: json.dumps({**good, **changes}).encode()
def _rate(**changes: Any) -> Callable[[Body], bytes]:
    return lambda good: json.dumps({**good, "rates": [{**good["rates"][0], **changes}]}).encode()
def _raw(before: str, after: str) -> Callable[[Body], bytes]:
    """A piece of the text replaced: what json.dumps never writes."""
    return lambda good: after.join(json.dumps(good).split(before, 1)).encode(errors="surrogateescape")
def _path(name: str, make: Callable[[Path], object]) -> Callable[[Path], Path]:
    """What `make` makes at a name within a folder."""
    return lambda folder: (make(folder / name), folder / name)[1]
def _socket(path: Path) -> None:
    with closing(socket.socket(socket.AF_UNIX)) as bound, chdir(path.parent):  # a socket's path is short
        bound.bind(path.name)
def _sparse(path: Path) -> None:
    with path.open("wb") as file:
        file.truncate(30 << 30)
def _secret(path: Path) -> None:
    path.write_text(json.dumps(GOOD))
    path.chmod(0)
DIGITS = "9" * 400
PROBABILITY, APART, LEVEL = '"probability": 0.99', '"apart": 0.01', '"gradient": 1.5'
ROWS = (
    # paths
    Row("a directory", path=lambda folder: folder), Row("a FIFO", path=_path("fifo", os.mkfifo)),
    Row("a socket", path=_path("socket", _socket)), Row("endless zeros", path=lambda folder: Path("/dev/zero")),
    Row("endless chance", path=lambda folder: Path("/dev/urandom")),
    Row("nothing", path=lambda folder: Path("/dev/null")), Row("a file of 30 GB", path=_path("sparse", _sparse)),
    Row("a link to nothing", path=_path("link", lambda link: link.symlink_to("absent"))),
    Row("a link to itself", path=_path("link", lambda link: link.symlink_to("link"))),
    Row("a link to endless zeros", path=_path("link", lambda link: link.symlink_to("/dev/zero"))),
    Row("unreadable", path=_path("secret", _secret), harmless=os.geteuid() == 0),
    Row("a long name", path=lambda folder: folder / ("x" * 5000)),
    Row("a name with lines and ESC", path=lambda folder: folder / "a\n\x1b[31mb.json"),
    Row("a name that is no text", path=lambda folder: folder / "a\udcff.json"),
    Row("below a file", path=lambda folder: _path("file", Path.touch)(folder) / "b.json"),
    Row("memory of a process", path=lambda folder: Path("/proc/self/mem")),
    # texts
    Row("as it was", _top(), harmless=True),
    Row("with spaces and CRLF",
        lambda good: json.dumps(good, indent=3).replace("\n", "\r\n").encode() + b"\r\n ", None, True),
    Row("empty", lambda good: b""), Row("spaces", lambda good: b" \n" * 1000),
    Row("a byte-order mark", lambda good: b"\xef\xbb\xbf" + json.dumps(good).encode()),
    Row("UTF-16", lambda good: json.dumps(good).encode("utf-16")), Row("latin-1", _raw("no_such", "\udce9")),
    Row("NUL bytes", lambda good: b"\0" * 4096), Row("a NUL after it", lambda good: json.dumps(good).encode() + b"\0"),
    Row("gzip", lambda good: gzip.compress(json.dumps(good).encode())),
    Row("half of it", lambda good: json.dumps(good).encode()[:150]),
    Row("twice", lambda good: json.dumps(good).encode() * 2),
    Row("in a list", lambda good: json.dumps([good]).encode()),
    Row("in a text", lambda good: json.dumps(json.dumps(good)).encode()),
    Row("a comment", lambda good: b"// mine\n" + json.dumps(good).encode()),
    Row("a merge's conflict",
        lambda good: b"<<<<<<< HEAD\n" + json.dumps(good, indent=1).encode() + b"\n=======\n{}\n"),
    Row("deep lists", lambda good: b"[" * 200_000), Row("deep objects", lambda good: b'{"a":' * 200_000),
    Row("deep within a field", _raw(LEVEL, LEVEL[:12] + "[" * 50_000 + "]" * 50_000)),
    *(Row(f"only {word}", lambda good, word=word: word.encode()) for word in ("null", "5", "NaN", '"x"', "{}", "[]")),
    # numbers
    *(Row(f"a probability of {text[:9]}", _raw(PROBABILITY, f'"probability": {text}')) for text in (
        "NaN", "Infinity", "-Infinity", "-1", "-0.01", "1.01", "5", "1e999", DIGITS, "9" * 5000, '"nan"', '"0.9"',
        "true", "[]")),
    *(Row(f"{text[:9]} apart", _raw(APART, f'"apart": {text}')) for text in (
        "NaN", "Infinity", "-1", "5", "1e999", DIGITS, "null", '"inf"')),
    *(Row(f"a level of {text[:9]}", _raw(LEVEL, f'"gradient": {text}')) for text in (
        "NaN", "Infinity", "-1", "1e999", DIGITS, "null", '"1"', "{}")),
    *(Row(f"a rate of {text[:9]}", _raw('"rate": 0.001', f'"rate": {text}')) for text in (
        "NaN", "Infinity", "-0.001", "1e999", DIGITS, "null")),
    *(Row(f"{text[:9]} steps", _raw('"steps": 16', f'"steps": {text}')) for text in (
        "1e999", "NaN", "16.5", "-16", "0", "true", '"16"', DIGITS, "2")),
    *(Row(f"--lr of {text[:9]}", _raw('"lr": null', f'"lr": {text}')) for text in (
        "NaN", "-1", "0.1", "1e999", '""', DIGITS)),
    Row("a probability of 1", _rate(probability=1), harmless=True),
    Row("no probability", _rate(probability=None), harmless=True), Row("no levels", _rate(levels={}), harmless=True),
    Row("no rate that was used", _rate(rate=0.0), harmless=True),
    # fields
    *(Row(f"without {name}", lambda good, name=name: json.dumps({k: v for k, v in good.items() if k != name}).encode())
      for name in GOOD),
    *(Row(f"{name} of another type", _top(**{name: value})) for name, value in {
        "schema": 2, "factory": None, "depths": 2, "seeds": {"0": 0}, "rates": "x"}.items()),
    Row("a rate without fields", _top(rates=[{}])), Row("a rate that is none", _top(rates=[None, 5])),
    Row("a field more", _top(more=1)), Row("a rate's field more", _rate(more=1)),
    Row("a field twice", _raw(PROBABILITY, f"{PROBABILITY}, {PROBABILITY.replace('0.99', '0.02')}")),
    Row("no rates", _top(rates=[])),
    Row("a rate twice", lambda good: json.dumps({**good, "rates": good["rates"] * 2}).encode()),
    Row("of another model", _top(factory="other:model")), Row("of other depths", _top(depths=[2, 8])),
    Row("of depths that are texts", _top(depths=["2", "4"])), Row("of depths True", _top(depths=[True, 4])),
    Row("of other seeds", _top(seeds=[0, 1])), Row("of no seed", _top(seeds=[])),
    Row("of seeds nested", _top(seeds=[[0]])),
    Row("an unknown schema", _top(schema="stabkit-baseline/99")), Row("a schema of lists", _top(schema=[[]])),
    Row("an unknown verdict", _rate(verdict="shines")), Row("a verdict that is a list", _rate(verdict=["trains"])),
    Row("an old verdict that is a list", lambda good: _rate(verdict=[])({**good, "schema": "stabkit-baseline/1"})),
    Row("an unknown failing link", _rate(failing=["moon"])), Row("failing links in a text", _rate(failing="update")),
    Row("an unknown level", _rate(levels={"moon": 1.0})), Row("levels in a list", _rate(levels=[1.0])),
    Row("a surrogate", _top(factory="\ud800")), Row("control characters", _rate(verdict="a\n\x1b[31m\x00")),
    Row("a huge text", _rate(verdict="x" * 10_000_000)), Row("a huge list", _top(seeds=[0] * 1_000_000)),
    Row("a huge object", _rate(levels={str(n): 1.0 for n in range(300_000)})),
)
# fmt: on
