"""`stabkit schema`: the JSON Schema of what a command prints with `--json`, made from the document's type."""

from __future__ import annotations

import importlib
import json
import re
from collections.abc import Mapping
from typing import Any

from stabkit.cli import console
from stabkit.errors import UsageError, nearest

GRIDS = ("sweep", "ablate", "landscape")
HERE = "stabkit.cli.commands"
DOCUMENTS: Mapping[str, str] = {
    **{line: "stabkit.report.sweep_document:SweepDocument" for line in GRIDS},
    **{f"{line} --dry-run": f"{HERE}.dry_run:DryRunDocument" for line in GRIDS},
    "transfer": f"{HERE}.transfer:AnyTransferDocument",
    "transfer --dry-run": f"{HERE}.transfer:TransferDryRunDocument",
    "paper": f"{HERE}.paper:PaperDocument",
    "paper --dry-run": f"{HERE}.paper:PaperDryRunDocument",
    "paper ls": f"{HERE}.paper:PaperLsDocument",
    "probe": "stabkit.report.own.document:ProbeDocument",
    "probe --widths": "stabkit.report.own.document:WidthsDocument",
    "audit": f"{HERE}.audit:AuditDocument",
    "log": "stabkit.report.log:LogDocument",
    "methods": "stabkit.report.methods_document:MethodsDocument",
    "runs ls": f"{HERE}.runs:RunsLsDocument",
    "runs show": f"{HERE}.runs:RunsShowDocument",
    "runs verify": f"{HERE}.runs:RunsVerifyDocument",
}
"""{a command line: the type of the document that it prints with `--json`}; a module is loaded when it is asked for."""
NAMES: Mapping[str, str] = {re.sub("[ -]+", "-", line): line for line in DOCUMENTS}
"""{`sweep-dry-run`: `sweep --dry-run`}."""


def show(name: str) -> None:
    """The list, or the schema of one."""
    if name:
        console.document(json.dumps(of(name), indent=1, ensure_ascii=False))
    else:
        rows = [(name, _command(line)) for name, line in NAMES.items()]
        console.table("JSON Schemas; `stabkit schema NAME` prints one", ("name", "what prints the document"), rows)


def of(name: str) -> dict[str, Any]:
    """The schema of this name. Raises UsageError with the nearest name."""
    from stabkit.report import schema

    if name not in NAMES:
        raise UsageError(f"no document {name!r}{nearest(name, NAMES) or ';'} `stabkit schema` lists them")
    line = NAMES[name]
    module, _, document = DOCUMENTS[line].partition(":")
    return schema.schema(getattr(importlib.import_module(module), document), name, _command(line))


def _command(line: str) -> str:
    return f"stabkit {line} --json"
