"""What the page of a user's model brings with it: its own pictures, and nothing of the papers'."""

from __future__ import annotations

import subprocess
import sys

import pytest

MOST = 100
"""Of our modules, for the page of one probe."""


def loaded(line: str) -> set[str]:
    """The modules of a fresh process after this line."""
    code = f"import sys; {line}; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return set(done.stdout.split())


@pytest.mark.slow
def test_the_page_of_a_probe_loads_few_of_our_modules_and_no_claim() -> None:
    ours = {name for name in loaded("import stabkit.report.own.probe") if name.split(".")[0] == "stabkit"}
    assert len(ours) <= MOST, sorted(ours)
    assert not {name for name in ours if name.startswith(("stabkit.claims", "stabkit.cli", "stabkit.figures.chain"))}


def test_a_verdict_needs_no_figure_no_claim_and_no_page() -> None:
    found = loaded("import stabkit.results.own.judged")
    rooms = {name.split(".")[1] for name in found if name.startswith("stabkit.")}
    assert not rooms & {"figures", "claims", "report", "cli", "paper"} and not found & {"pandas", "matplotlib", "torch"}
