"""Whether the suite of this folder has passed with the code that it attacks as it is now: exit code 0 or 1.

`python3 tests/hostile/passed.py --write` after it has passed; the line is committed. `.ci/run` runs the suite where the
line is of other code: it takes minutes, and most changes touch none of it.
"""

from __future__ import annotations

import hashlib
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
ATTACKED = ("own", "running", "storage", "results", "cli", "outside.py", "wording", "report/own")
LINE = HERE / "passed.txt"


def digest() -> str:
    """sha256 of the attacked rooms and of this suite."""
    tops = [*(ROOT / "stabkit" / name for name in ATTACKED), HERE]
    files = sorted(path for top in tops for path in ([top] if top.is_file() else top.rglob("*.py")))
    hashed = hashlib.sha256()
    for path in files:
        hashed.update(path.relative_to(ROOT).as_posix().encode() + path.read_bytes())
    return hashed.hexdigest()


if __name__ == "__main__":
    if "--write" in sys.argv:
        LINE.write_text(digest() + "\n")
    sys.exit(not LINE.is_file() or LINE.read_text().strip() != digest())
