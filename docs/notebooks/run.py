"""The notebook with the outputs of this version: `python docs/notebooks/run.py` (extra `libraries`).

Its files are made in a folder that goes; paths in its outputs begin where the notebook lies.
"""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path

import nbformat
from nbclient import NotebookClient

HERE = Path(__file__).parent
NOTEBOOK = HERE / "your_model.ipynb"


def executed(folder: Path) -> nbformat.NotebookNode:
    """The notebook as it is after its last cell, run in this folder; raises where a cell fails."""
    root = str(HERE.parents[1])
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, (root, os.environ.get("PYTHONPATH"))))
    notebook = nbformat.read(NOTEBOOK, as_version=4)
    resources = {"metadata": {"path": str(folder)}}
    NotebookClient(notebook, timeout=300, kernel_name="python3", resources=resources).execute()
    for cell in notebook.cells:
        cell.metadata = {}  # the times of its execution
    return notebook


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as made:
        text = nbformat.writes(executed(Path(made)))
        NOTEBOOK.write_text(text.replace(f"{made}/", "").replace(os.path.realpath(sys.prefix), "~") + "\n")
