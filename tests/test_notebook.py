"""docs/notebooks/your_model.ipynb: runs from its first cell to its last, and shows what its text says."""

from __future__ import annotations

import json
import re
import runpy
from html import unescape
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import need

ROOT = Path(__file__).parents[1]
NOTEBOOK = ROOT / "docs" / "notebooks" / "your_model.ipynb"


def text_of(cell: Any) -> str:
    """What a cell shows, without tags."""
    shown = [
        output.get("text") or "".join(output.get("data", {}).get("text/html", ""))
        if output.output_type != "error"
        else "ERROR"
        for output in cell.outputs
    ]
    return unescape(re.sub("<[^>]+>", "", "\n".join(shown)))


def code_cells(notebook: Any) -> list[str]:
    """What each cell of code shows, as text."""
    return [text_of(cell) for cell in notebook.cells if cell.cell_type == "code"]


def shows_what_its_text_says(shown: list[str]) -> None:
    """A model that fails at 8 layers with a change that trains, and the same at a tenth of the rate, under a watch."""
    installed, written, first, second, trained, said, page = shown
    assert installed == "" and "Writing tiny.py" in written
    assert "tiny trains to 4 layers, fails at 8" in first and "it trains: loss" in first
    assert sorted(first.count(line) for line in ("x = norm(2 * x + f(x))", "x = x + f(norm(x))")) == [1, 3], (
        "the better"
    )
    assert re.search(r"\d+ changes tried at 8 layers", first)
    assert second.lstrip().startswith("trains") and "fails" not in second and "tried" not in second
    assert trained.count("stabkit report rate-") == 2
    (broken, warned), (sound, silent) = re.findall(r"loss (\S+) after 60 updates; warnings: (\d)", said)
    assert float(broken) > 3.9 and int(warned) > 0 and float(sound) < 2.5 and silent == "0", said
    assert re.search(r"update \d+: stack\.1 \(\S+\) receives .* of the top layer's gradient", said)
    assert "stabkit-out/reports/probe-tiny-tiny-2L-8L-" in page


def test_the_notebook_is_committed_with_outputs_that_show_what_its_text_says() -> None:
    text = NOTEBOOK.read_text(encoding="utf-8")
    assert "/tmp/" not in text and "/home/" not in text and len(text) < 60_000
    committed = json.loads(text, object_hook=lambda body: AttrDict({**body, "text": "".join(body.get("text", ""))}))
    shows_what_its_text_says(code_cells(committed))


class AttrDict(dict[str, Any]):
    """Fields as attributes, as nbformat has them."""

    __getattr__ = dict.__getitem__


@pytest.mark.slow
@pytest.mark.libraries
@pytest.mark.filterwarnings("ignore")
def test_the_notebook_shows_the_same_when_it_is_run_again(tmp_path: Path) -> None:
    need("libraries", find_spec("nbclient") is not None and find_spec("ipykernel") is not None, "nbclient, ipykernel")
    run = runpy.run_path(str(NOTEBOOK.with_name("run.py")))
    shows_what_its_text_says(code_cells(run["executed"](tmp_path)))
    assert len(list((tmp_path / "stabkit-out" / "own").iterdir())) == 2
