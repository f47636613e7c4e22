#!/usr/bin/env python3
"""From a clone to a running stabkit in one command; needs nothing but Python 3.11 or newer.

    python3 dev.py sweep             set up, then `stabkit sweep --depths 6,18,50,100`
    python3 dev.py test [ARGS…]      set up, then the quick tests on every core; PATH…: all of it, the slow too;
                                     `.ci/run` adds the slow tests and all examples
    python3 dev.py lint              set up, then ruff, mypy, the order of the rooms and their budget of lines
    python3 dev.py acceptance [NAME…]  set up, then the scripts of tests/acceptance: what a user does, on real input
    python3 dev.py docs              set up, then the documentation site, strict: docs/_build/html/index.html
    python3 dev.py evidence [PART…]  set up, then make committed pages anew; without PART list them
    python3 dev.py studies STUDY …   set up, then a study beside the package, or its coefficients: `studies --help`
    python3 dev.py libraries         set up, then install the libraries whose models `pytest -m libraries` probes
    python3 dev.py COMMAND [ARGS…]   set up, then `stabkit COMMAND ARGS…`

Where there is a C++ compiler, `stabkit/kernels/stack.cpp` is compiled beside it, once, while the rest is set up.
Set-up goes into `.venv` beside this file, or, when you start it from an environment of your own that has torch, into
that environment. A torch that is already there is never replaced.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import shutil
import subprocess
import sys
import venv
from pathlib import Path

HERE = Path(__file__).resolve().parent
TORCH = "2.13.0"
CPU_INDEX = "https://download.pytorch.org/whl/cpu"
KERNELS = HERE / "stabkit" / "kernels" / "build.py"
ROOMS = "from importlinter.cli import lint_imports_command as check; check(['--no-cache'])"
SITE = "docs/_build/html"
INPUTS = ("pyproject.toml", "constraints.txt", "dev.py", "hatch_build.py", "stabkit/version.py")


def main(arguments: list[str]) -> int:
    if sys.version_info < (3, 11):  # noqa: UP036  # this file runs before anything has checked
        return fail(f"stabkit needs Python 3.11 or newer; this is {sys.version.split()[0]} ({sys.executable})")
    if not arguments or arguments[0] in ("-h", "--help"):
        print((__doc__ or "").strip())
        return 0
    python = environment()
    compiling = subprocess.Popen([sys.executable, str(KERNELS)], stderr=subprocess.PIPE, text=True)
    code = 0 if ready(python) else set_up(python)
    if refusal := compiling.communicate()[1]:
        say(refusal.strip())
    if code:
        return code
    command, *rest = arguments
    if command == "test":
        if not rest:
            rest = ["-n", "auto", "--dist", "worksteal"]
        elif "-m" not in rest:
            rest = ["-m", "not long and not hostile", *rest]
        return run([str(python), "-m", "pytest", *rest], cwd=HERE)
    if command == "docs":
        code = run([str(python), "-m", "sphinx", "-W", "--keep-going", "-q", "-b", "html", "docs", SITE], cwd=HERE)
        if not code:
            say(f"the site: {HERE / SITE / 'index.html'}")
        return code
    if command == "evidence":
        return run([str(python), "-m", "benchmarks.evidence", *rest], cwd=HERE)
    if command == "studies":
        return run([str(python), "-m", "studies", *rest], cwd=HERE)
    if command == "libraries":
        return libraries(python)
    if command == "acceptance":
        scripts = sorted(path for path in (HERE / "tests" / "acceptance").glob("*.sh") if path.stem != "common")
        os.environ["STABKIT_BIN"] = str(python.parent)
        return max([run(["bash", str(path)]) for path in scripts if not rest or path.stem in rest], default=2)
    if command == "lint":
        steps = (["-m", "ruff", "check"], ["-m", "ruff", "format", "--check"], ["-m", "mypy"], ["-c", ROOMS])
        return max([*(run([str(python), *step], cwd=HERE) for step in steps), budget()])
    if command == "sweep" and not any(a == "--depths" or a.startswith("--depths=") for a in rest):
        rest = ["--depths", "6,18,50,100", *rest]
    return run([str(python), "-m", "stabkit", command, *rest])


def budget() -> int:
    """Print the lines of each room beside its budget in pyproject.toml; 1 where a room has more, or a file too many."""
    import tomllib  # of Python 3.11, which `main` has made sure of

    table = tomllib.loads((HERE / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["stabkit"]["budget"]
    rooms, most, excused = table["rooms"], table["file"], table["longer"]
    folders = {room.partition("/")[0] for room in rooms}
    lines = {file: len(file.read_bytes().splitlines()) for top in folders for file in (HERE / top).rglob("*.py")}
    over = 0
    for room, allowed in rooms.items():
        here = [count for file, count in lines.items() if HERE / room in (file, *file.parents)]
        over += sum(here) > allowed
        too_many = "  <- over its budget" if sum(here) > allowed else ""
        print(f"{room:24} {sum(here):7,} of {allowed:7,} lines, {len(here):3} files{too_many}")
    for file, count in lines.items():
        name = file.relative_to(HERE).as_posix()
        if name.startswith("stabkit/") and count > most and name not in excused:
            over += 1
            print(f"{name}: {count} lines; a file has at most {most}, or a reason in pyproject.toml")
    return int(over > 0)


def environment() -> Path:
    """The Python that stabkit lives in; makes `.venv` the first time."""
    own = sys.prefix != sys.base_prefix or "CONDA_PREFIX" in os.environ
    has_torch = importlib.util.find_spec("torch") is not None
    folder = HERE / ".venv"
    if own and has_torch and Path(sys.prefix).resolve() != folder.resolve():
        return Path(sys.executable)
    python = folder / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
    if not python.exists():
        say(f"making {folder}")
        venv.EnvBuilder(
            with_pip=True, clear=folder.exists(), system_site_packages=has_torch, symlinks=os.name != "nt"
        ).create(folder)
    return python


def ready(python: Path) -> bool:
    """Whether the last set-up of this environment was of these very files."""
    try:
        return stamp(python).read_text() == fingerprint()
    except OSError:
        return False


def set_up(python: Path) -> int:
    pip = [str(python), "-m", "pip", "--disable-pip-version-check", "install", "--quiet"]
    if run([str(python), "-c", "import torch"], quiet=True):
        if code := install_torch(pip):
            return code
    say("installing stabkit and what it needs")
    if run([*pip, "-c", str(HERE / "constraints.txt"), "-e", f"{HERE}[test]"]):
        return fail("pip could not install stabkit; the lines above say why")
    stamp(python).write_text(fingerprint())
    return 0


def libraries(python: Path) -> int:
    """transformers, x-transformers, two trainers and four trackers; timm without torchvision, which would bring a torch
    of its own: tests that need it put an empty one in its place. Trackio without the older pillow that it asks for."""
    pip = [str(python), "-m", "pip", "--disable-pip-version-check", "install", "--quiet"]
    constraints = ["-c", str(HERE / "constraints.txt")]
    installed = [
        "import transformers, x_transformers, accelerate, lightning, hyper_connections, pytorch_optimizer",
        "import importlib.util as u; assert all(map(u.find_spec, ('timm', 'trackio', 'wandb', 'mlflow')))",
    ]
    if not any(run([str(python), "-c", line], quiet=True) for line in installed):
        return 0
    alone = ["timm", "trackio", "gradio_client", "orjson"]
    if run([*pip, *constraints, "-e", f"{HERE}[test,libraries]"]) or run([*pip, *constraints, "--no-deps", *alone]):
        return fail("pip could not install the libraries; the lines above say why")
    return 0


def install_torch(pip: list[str]) -> int:
    """A build that fits the machine. A plain `torch` on Linux without a GPU would bring gigabytes of CUDA."""
    if sys.platform != "linux" or (shutil.which("nvidia-smi") and not run(["nvidia-smi"], quiet=True)):
        say(f"installing torch {TORCH}")
        return run([*pip, f"torch=={TORCH}"]) and fail(
            f"pip could not install torch {TORCH}; install one yourself, then start again"
        )
    say(f"installing torch {TORCH} for CPUs")
    wanted = f"torch=={TORCH}+cpu"
    if not run([*pip, wanted], quiet=True) or not run([*pip, wanted, "--extra-index-url", CPU_INDEX, "--retries", "1"]):
        return 0
    return fail(
        f"no CPU build of torch could be had; install one (pip install torch --index-url {CPU_INDEX}), then start again"
    )


def stamp(python: Path) -> Path:
    return python.parent.parent / f".stabkit-{hashlib.sha256(str(HERE).encode()).hexdigest()[:8]}"


def fingerprint() -> str:
    return hashlib.sha256(b"".join((HERE / name).read_bytes() for name in INPUTS)).hexdigest()


def run(command: list[str], *, cwd: Path | None = None, quiet: bool = False) -> int:
    """The command's exit code; Ctrl-C is the command's to handle, and its code is passed on."""
    output = subprocess.DEVNULL if quiet else None
    with subprocess.Popen(command, cwd=cwd, stdout=output, stderr=output) as process:
        while True:
            try:
                code = process.wait()
            except KeyboardInterrupt:
                continue
            return code if code >= 0 else 128 - code


def say(message: str) -> None:
    print(f"dev.py: {message}", file=sys.stderr, flush=True)


def fail(message: str) -> int:
    say(message)
    return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
