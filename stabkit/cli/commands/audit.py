"""`stabkit audit`: an audit, shown in a terminal or as JSON."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypedDict

from stabkit import api
from stabkit.cli import console
from stabkit.errors import RecipeViolated, Undecided
from stabkit.own.audit import Audit, AuditRow
from stabkit.own.audit.case import Violation
from stabkit.report.json_document import SCHEMA, Document, text

FEW = 3
"""Parameters named of a finding that concerns many."""


class OutsideJson(TypedDict):
    """A matrix outside of all sub-layers."""

    parameter: str
    shape: tuple[int, ...]
    std: float


class AuditDocument(Document):
    """`stabkit audit`."""

    factory: str
    method: str
    source: str
    depth: str
    inputs: str
    """What the model was run with."""
    base: str
    """The base initialisation recognised."""
    coverage: float
    """Share of the numbers in the layers' matrices that was read."""
    found: tuple[AuditRow, ...]
    outside: list[OutsideJson]
    violations: tuple[Violation, ...]
    notes: tuple[str, ...]
    """What was not recognised, or not judged."""


def audit(given: Mapping[str, Any], *, json: bool) -> None:
    """Audit, and show what was found; raises RecipeViolated on a violation, Undecided where too little was read."""
    result = api.audit(**given)
    show(result.audit, given["factory"], json=json)
    if result.audit.findings:
        raise RecipeViolated(result.verdict)
    if result.audit.undecided and given.get("method"):
        raise Undecided(result.verdict)


def show(audit: Audit, name: str, *, json: bool) -> None:
    """Everything found in the model, then every violation with what the recipe says, what was measured, what to do."""
    if json:
        console.document(text(_body(audit, name)))
        return
    console.say(f"{name} against {audit.method.label} ({audit.method.source}), {audit.depth}")
    console.say(f"run with {audit.ran}; base initialisation: {audit.base}")
    for note in audit.notes:
        console.say(f"note: {note}")
    console.say()
    console.table(
        "Found; standard deviations relative to the recipe's, lowest and highest of all layers",
        ("stack", "sub-layer", "layers", "sum", "norm", "standard deviations"),
        [
            (
                row.stack,
                row.kind,
                row.layers,
                row.sum,
                row.norm,
                "\n".join(f"{role} {low:.2f}–{high:.2f}" for role, (low, high) in row.deviations.items()),
            )
            for row in audit.rows
        ],
    )
    for parameter, shape, std in audit.outside:
        console.say(f"outside the sub-layers: {parameter or 'a matrix'} {list(shape)}, standard deviation {std:.4g}")
    console.say()
    for number, finding in enumerate(audit.findings, 1):
        console.paragraph(f"{number}. {finding.what}", "   ")
        console.paragraph(f"   recipe: {finding.recipe}", "     ")
        console.paragraph(f"   measured: {finding.measured}", "     ")
        console.paragraph(f"   to do: {finding.remedy}", "     ")
        if finding.parameters:
            further = f" and {len(finding.parameters) - FEW} more" if len(finding.parameters) > FEW else ""
            console.paragraph(f"   parameters: {', '.join(finding.parameters[:FEW])}{further}", "     ")
    if not audit.findings and not audit.undecided:
        console.say(f"the model follows {audit.method.label}'s recipe")
    console.say()
    console.paragraph(
        f"to see whether it stays stable with depth: `stabkit probe {name} --depths 6,12,24,48` (a function of depth)"
    )


def _body(audit: Audit, name: str) -> AuditDocument:
    return {
        "schema": SCHEMA,
        "factory": name,
        "method": audit.method.key,
        "source": audit.method.source,
        "depth": audit.depth,
        "inputs": audit.ran,
        "base": audit.base,
        "coverage": audit.coverage.share,
        "found": audit.rows,
        "outside": [{"parameter": name, "shape": shape, "std": std} for name, shape, std in audit.outside],
        "violations": audit.findings,
        "notes": audit.notes,
    }
