"""The workflows call what is there; a release refuses another version's tag. actionlint reads them in `test.yml`."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from stabkit.version import __version__

ROOT = Path(__file__).parents[1]
FOLDER = ROOT / ".github" / "workflows"
WORKFLOWS: dict[str, dict[str, Any]] = {path.stem: yaml.safe_load(path.read_text()) for path in FOLDER.glob("*.yml")}
JOBS = [job for workflow in WORKFLOWS.values() for job in workflow["jobs"].values()]
STEPS = [step for job in JOBS for step in job.get("steps", ())]
COMMANDS = "\n".join(step.get("run", "") for step in STEPS)


def test_a_workflow_calls_what_is_there() -> None:
    documented = set(re.findall(r"^    python3 dev\.py ([a-z]+)", (ROOT / "dev.py").read_text(), re.M))
    called = set(re.findall(r"python3 dev\.py ([a-z]+)", COMMANDS))
    assert called == {"lint", "test"} and called <= documented
    for path in re.findall(r"\b(?:docs|stabkit)/\S+?\.\w+\b", COMMANDS):
        assert (ROOT / path).is_file(), path
    for uses in (entry["uses"] for entry in (*JOBS, *STEPS) if "uses" in entry):
        assert (ROOT / uses).exists() if uses.startswith("./") else re.search(r"@(release/)?v\d+$|:[\d.]+$", uses), uses
    for workflow in WORKFLOWS.values():
        for job in workflow["jobs"].values():
            needs = job.get("needs", [])
            assert set([needs] if isinstance(needs, str) else needs) <= set(workflow["jobs"])


def test_a_workflow_has_no_secret_and_writes_only_where_it_publishes() -> None:
    assert all("secrets" not in path.read_text() for path in FOLDER.glob("*.yml"))
    assert all(workflow["permissions"] == {"contents": "read"} for workflow in WORKFLOWS.values())
    granted = {name: job["permissions"] for name, job in WORKFLOWS["release"]["jobs"].items() if "permissions" in job}
    assert granted == {"publish": {"id-token": "write"}, "tags": {"contents": "write"}}
    assert WORKFLOWS["release"]["jobs"]["publish"]["environment"] == "pypi"


@pytest.mark.parametrize(
    ("kind", "name", "code"), [("tag", f"v{__version__}", 0), ("tag", "v0.0", 1), ("branch", "main", 0)]
)
def test_a_release_is_of_the_version_that_its_tag_has(kind: str, name: str, code: int, tmp_path: Path) -> None:
    (step,) = [step for step in WORKFLOWS["release"]["jobs"]["version"]["steps"] if step.get("id") == "version"]
    env = {"PATH": f"{Path(sys.executable).parent}:/usr/bin:/bin", "GITHUB_OUTPUT": str(tmp_path / "output")}
    env |= {"GITHUB_REF_TYPE": kind, "GITHUB_REF_NAME": name, "PUBLISH": ""}
    done = subprocess.run(["bash", "-e", "-c", step["run"]], cwd=ROOT, env=env, capture_output=True, text=True)
    assert done.returncode == code, done.stderr
    if code:
        assert done.stdout == f"::error::the tag is {name}, and stabkit/version.py has {__version__}\n"
    else:
        assert (tmp_path / "output").read_text() == f"version={__version__}\n"
