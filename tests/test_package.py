"""The wheel and the sdist: built from a copy, installed into a fresh environment, where they are stabkit."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import tomllib
import venv
import zipfile
from pathlib import Path

import pytest

from stabkit.kernels import build
from stabkit.version import __version__

ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with both; without isolation, for what builds them is installed."""
    out = tmp_path_factory.mktemp("dist")
    words = [sys.executable, "-m", "build", "--no-isolation", "--wheel", "--sdist", "--outdir", str(out), str(ROOT)]
    done = subprocess.run(words, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return out


@pytest.mark.slow
def test_the_wheel_runs_in_a_fresh_environment_without_a_compiler(built: Path, tmp_path: Path) -> None:
    (wheel,) = built.glob("*.whl")
    venv.EnvBuilder(with_pip=True).create(tmp_path / "env")
    python = tmp_path / "env" / "bin" / "python"
    # what it needs is taken from here; the stabkit that lies here is not, for its own .pth is not read
    (site,) = (tmp_path / "env" / "lib").glob("python*/site-packages")
    (site / "needs.pth").write_text(f"{sysconfig.get_paths()['purelib']}\n{sysconfig.get_paths()['platlib']}\n")
    subprocess.run([python, "-m", "pip", "install", "-q", "--no-deps", "--no-index", wheel], check=True)
    tools = tmp_path / "tools"
    tools.mkdir()
    (tools / "grep").symlink_to(str(shutil.which("grep")))
    env = {"PATH": f"{python.parent}:{tools}", "HOME": str(tmp_path)}
    assert not any(shutil.which(name, path=env["PATH"]) for name in ("c++", "g++", "clang++", "cc"))
    told = subprocess.run(
        [python, "-c", "import stabkit; print(stabkit.__file__, stabkit.__version__)"],
        capture_output=True,
        text=True,
        check=True,
        cwd=tmp_path,
        env=env,
    ).stdout.split()
    assert told[0].startswith(str(site)) and told[1] == __version__
    config = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["cibuildwheel"]
    words = ["/bin/sh", "-c", " && ".join(config["test-command"])]
    done = subprocess.run(words, capture_output=True, text=True, cwd=tmp_path, env=env)
    assert "report: " in done.stdout and len(list((tmp_path / "reports").glob("sweep-2L-deepnorm-*.html"))) == 1
    took, code = ("fused", 0) if any(file.exists() for file in build.libraries().values()) else ("python (not", 1)
    assert f'"kernels": "{took}' in done.stdout and done.returncode == code, done.stderr


@pytest.mark.slow
def test_what_is_published_is_whole(built: Path) -> None:
    (wheel,), (sdist,) = built.glob("*.whl"), built.glob("*.tar.gz")
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
        metadata = archive.read(next(name for name in names if name.endswith("METADATA"))).decode()
    for name in (
        "py.typed",
        "report/assets/page.css",
        "paper/assets/index.html.j2",
        "results/forecast/coefficients.json",
        "results/own/coefficients.json",
    ):
        assert f"stabkit/{name}" in names, name
    assert not {name for name in names if name.startswith(("studies/", "tests/", "docs/", "reports/"))}
    for line in (f"Version: {__version__}", "License-Expression: MIT", "Requires-Python: >=3.11", "Typing :: Typed"):
        assert line in metadata, line
    assert "Description-Content-Type: text/markdown" in metadata and "## Your own model" in metadata
    with tarfile.open(sdist) as archive:
        inside = {name.partition("/")[2] for name in archive.getnames()}
    assert {
        "CITATION.cff",
        "LICENSE",
        "README.md",
        "dev.py",
        "docs/index.md",
        "tests/test_package.py",
        "studies/study.py",
    } <= inside


@pytest.mark.slow
def test_a_wheel_carries_the_kernels_where_they_compile_and_is_for_all_platforms_where_not(built, tmp_path) -> None:
    def contents(folder: Path) -> tuple[str, set[str]]:
        (wheel,) = folder.glob("*.whl")
        with zipfile.ZipFile(wheel) as archive:
            return wheel.name, {name for name in archive.namelist() if name.startswith("stabkit/kernels/stack")}

    name, kernels = contents(built)
    made = {file.name for file in build.libraries().values() if file.exists()}
    assert kernels == {"stabkit/kernels/stack.cpp", *(f"stabkit/kernels/{file}" for file in made)}
    platform = sysconfig.get_platform().replace("-", "_").replace(".", "_")
    assert name.endswith(f"py3-none-{platform if made else 'any'}.whl")
    words = [sys.executable, "-m", "build", "--no-isolation", "--wheel", "--outdir", str(tmp_path), str(ROOT)]
    subprocess.run(words, check=True, capture_output=True, env={**os.environ, "STABKIT_PURE": "1"})
    assert contents(tmp_path) == (name.replace(platform, "any"), {"stabkit/kernels/stack.cpp"})


def test_the_citation_and_the_changelog_are_of_this_version() -> None:
    assert f"version: {__version__}" in (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    assert f"## {__version__}\n" in (ROOT / "docs" / "changelog.md").read_text(encoding="utf-8")
    assert f"version = {{{__version__}}}" in (ROOT / "docs" / "citing.md").read_text(encoding="utf-8")
