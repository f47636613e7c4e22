"""docs/notebooks/your_model.ipynb: runs from its first cell to its last, and shows what its text says."""

from __future__ import annotations

import json
import os
import re
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
        output.get("text") or output.get("data", {}).get("text/html", "") if output.output_type != "error" else "ERROR"
        for output in cell.outputs
    ]
    return unescape(re.sub("<[^>]+>", "", "\n".join(shown)))


def test_the_notebook_is_committed_without_outputs() -> None:
    cells = json.loads(NOTEBOOK.read_text(encoding="utf-8"))["cells"]
    assert all(not cell["outputs"] and cell["execution_count"] is None for cell in cells if cell["cell_type"] == "code")


@pytest.mark.slow
@pytest.mark.libraries
@pytest.mark.filterwarnings("ignore")
def test_the_notebook_probes_applies_the_change_and_trains_under_a_watch(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    need("libraries", find_spec("nbclient") is not None and find_spec("ipykernel") is not None, "nbclient, ipykernel")
    import nbformat
    from nbclient import NotebookClient

    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(filter(None, (str(ROOT), os.environ.get("PYTHONPATH")))))
    notebook = nbformat.read(NOTEBOOK, as_version=4)
    NotebookClient(
        notebook, timeout=120, kernel_name="python3", resources={"metadata": {"path": str(tmp_path)}}
    ).execute()
    installed, written, first, second, trained, said, page = (
        text_of(cell) for cell in notebook.cells if cell.cell_type == "code"
    )
    assert installed == "" and "Writing tiny.py" in written
    assert "tiny trains to 4 layers, fails at 8" in first and "it trains: loss" in first
    assert first.count("x = norm(2 * x + f(x))") == 3, "in the sentence, as the change, among those tried"
    assert re.search(r"\d+ changes tried at 8 layers", first)
    assert second.lstrip().startswith("trains") and "fails" not in second and "tried" not in second
    assert trained.count("stabkit report rate-") == 2
    (broken, warned), (sound, silent) = re.findall(r"loss (\S+) after 60 updates; warnings: (\d)", said)
    assert float(broken) > 3.9 and int(warned) > 0 and float(sound) < 2.5 and silent == "0", said
    assert re.search(r"update \d+: stack\.1 \(\S+\) receives .* of the top layer's gradient", said)
    assert str(tmp_path / "stabkit-out" / "reports" / "probe-tiny-tiny-2L-8L-") in page
    assert len(list((tmp_path / "stabkit-out" / "own").iterdir())) == 2
