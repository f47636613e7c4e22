"""Compiles `stack.cpp` into shared libraries beside it: `python stabkit/kernels/build.py`, some seconds.

The file takes addresses and shapes, so that neither torch nor Python has a part in it: one library serves every version
of both, and no header of theirs is needed. Its name holds what it was made of, so that an older one is never loaded. On
x86 there are two, for AVX2 (every server and laptop since 2013) and for AVX-512, as there are of torch's own vectorised
code, which says what the processor has; elsewhere one, for the processor's least.

Nothing of stabkit is imported here: `dev.py` and the wheel's build run this file as it stands.
"""

from __future__ import annotations

import hashlib
import os
import platform
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
SOURCE = HERE / "stack.cpp"
FLAGS = ("-std=c++17", "-O3", "-fopenmp-simd", "-fno-math-errno", "-fno-trapping-math", "-fPIC", "-shared")
"""No -ffast-math: a NaN is a finding, and has to arrive."""
TIMEOUT = 60.0


def targets() -> dict[str, tuple[str, ...]]:
    """{what a processor has, as torch calls it: the flags for it}; the least comes first. `default`: no x86."""
    if platform.machine().lower() not in ("x86_64", "amd64"):
        return {"default": ()}
    return {"AVX2": ("-march=x86-64-v3",), "AVX512": ("-march=x86-64-v4", "-mprefer-vector-width=512")}


def libraries() -> dict[str, Path]:
    """{what a processor has: where the library of this very file for it is, or is to be}."""
    suffix = "dylib" if sys.platform == "darwin" else "so"
    source = SOURCE.read_bytes()
    digests = {name: hashlib.sha256(source + " ".join((*FLAGS, *flags)).encode()) for name, flags in targets().items()}
    return {name: HERE / f"stack-{name}-{digest.hexdigest()[:12]}.{suffix}" for name, digest in digests.items()}


def compiler() -> str:
    """A C++ compiler's path; "" where there is none that this file is written for."""
    named = os.environ.get("CXX", "")
    return "" if os.name == "nt" else next(filter(None, map(shutil.which, (named, "c++", "g++", "clang++"))), "")


def build() -> str:
    """Compile what is not there, all at once; returns why it could not be, "" where all is."""
    made = libraries()
    missing = {name: file for name, file in made.items() if not file.exists()}
    if not missing:
        return ""
    program = compiler()
    if not program:
        return "there is no C++ compiler"
    try:
        with tempfile.TemporaryDirectory(dir=HERE, prefix=".build-") as aside:
            running = {}
            for name, file in missing.items():
                command = [program, *FLAGS, *targets()[name], "-o", str(Path(aside) / file.name), str(SOURCE)]
                running[file] = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
            for file, process in running.items():
                try:
                    said = process.communicate(timeout=TIMEOUT)[1]
                except subprocess.TimeoutExpired:
                    for each in running.values():
                        each.kill()
                    return f"{program} took longer than {TIMEOUT:.0f} s"
                if process.returncode:
                    for each in running.values():
                        each.kill()
                    return f"{program} could not compile {SOURCE.name}: {(said.strip().splitlines() or ['?'])[0]}"
                os.replace(Path(aside) / file.name, file)
    except OSError as error:
        return f"{HERE} cannot be written to ({error.strerror or error})"
    for old in HERE.glob("stack-*.*"):
        if old not in made.values():
            old.unlink(missing_ok=True)
    return ""


if __name__ == "__main__":
    if reason := build():
        sys.exit(f"the fused kernels were not built: {reason}; stabkit runs without them, slower")
