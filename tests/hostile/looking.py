"""What a process of its own prints of a store, and how much memory it takes."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

START = "import json, resource, sys; from pathlib import Path; resource.setrlimit(resource.RLIMIT_AS, (8 << 30,) * 2)\n"
END = "\nprint('peak', resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024, file=sys.stderr)"
UNDRAWN = """
from stabkit.report import cards
cards.drawing = lambda figure, frame, name: ('<svg viewBox="0 0 1 1"></svg>', [], "")
"""
MAIN = """
from stabkit.cli.entry import main
for words in json.loads(sys.argv[1]):
    sys.argv = ["stabkit", *words]
    try:
        main()
    except SystemExit as end:
        print("code", end.code or 0, file=sys.stderr)
"""
READ = """
from stabkit import spec; from stabkit.errors import StabkitError; from stabkit.results import surface
from stabkit.storage import weights; from stabkit.storage.shelf import Shelf; from stabkit.storage.store import Store
from stabkit.storage.surfaces import SURFACE, Tiles
out, text = Path(sys.argv[1]), json.loads(Path(sys.argv[2]).read_text())
try:
    print("read", EXPRESSION)
except StabkitError as error:
    print("refused", error)
"""


@dataclass(frozen=True, slots=True)
class Done:
    """What a process printed, line by line; the exit codes of its commands; its peak of memory in megabytes."""

    out: list[str]
    err: list[str]
    codes: list[int]
    peak: int

    @property
    def lines(self) -> list[str]:
        return [*self.out, *self.err]


def measured(program: str, *arguments: object) -> Done:
    """Run by a shell: what a process took begins with what the one took that it was forked from, and that is ours."""
    words = [sys.executable, "-c", START + program + END, *map(str, arguments)]
    done = subprocess.run(["sh", "-c", '"$@"; exit $?', "sh", *words], capture_output=True, timeout=120)
    out, err = (text.decode(errors="replace").split("\n")[:-1] for text in (done.stdout, done.stderr))
    assert "Traceback" not in done.stderr.decode(errors="replace") and done.returncode == 0, err[-30:]
    assert not [line[:99] for line in (*out, *err) if "\x1b" in line]
    codes = [int(line[5:]) for line in err if line.startswith("code ")]
    return Done(out, [line for line in err if line[:5] not in ("code ", "peak ")], codes, int(err[-1][5:]))


def commands(out: Path, *lines: str, program: str = MAIN) -> Done:
    return measured(program, json.dumps([[*line.split(" "), str(out)] for line in lines]))


def look(out: Path) -> Done:
    done = commands(out, "runs ls --out", "runs verify --out")
    assert not [line[:99] for line in done.lines if len(line) > 4000]
    return done


def report(out: Path) -> Done:
    return commands(out, "report --store", program=UNDRAWN + MAIN)


def evaluated(expression: str, out: Path, text: Path) -> Done:
    """`read VALUE` or `refused WHY`, of an expression of the store `out` and the JSON in the file `text`."""
    return measured(READ.replace("EXPRESSION", expression), out, text)


def files(folder: Path) -> dict[str, bytes]:
    return {str(p.relative_to(folder)): p.read_bytes() for p in folder.rglob("*") if p.is_file()}
