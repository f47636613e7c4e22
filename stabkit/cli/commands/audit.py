"""`stabkit audit`: what is asked, read; an audit, shown in a terminal or as JSON."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from torch import Tensor, nn

from stabkit import methods
from stabkit.cli import console, ranges
from stabkit.errors import RecipeViolated, UsageError
from stabkit.own import audit as own_audit
from stabkit.own import factory
from stabkit.own.audit import Audit
from stabkit.own.probe import made
from stabkit.report.json_document import SCHEMA, text

FEW = 3
"""Parameters named of a finding that concerns many."""


def audit(factory: str, method: str, depths: str, arch: str, *, json: bool) -> None:
    """Compare the factory's model with the recipe and show what was found; raises RecipeViolated on a violation."""
    recipe = methods.build(*methods.parse(method)) if method else None
    n, m = depth(depths, arch or "encoder-decoder") if depths else (None, None)
    module, inputs = model(factory, n or m)
    if depths and not arch and "x" not in depths and not own_audit.both(module, inputs):
        n = 0  # one stack, as it was found to be
    if arch and not depths:
        asked = ranges.stacks("--arch", arch) == ranges.stacks("--arch", "encoder-decoder")
        if asked != own_audit.both(module, inputs):
            there = "one stack" if asked else "an encoder and a decoder that reads it"
            raise UsageError(f"--arch {arch}: the model has {there}; leave --arch out, or give --depths too")
    found = own_audit.audit(module, recipe, n, m, inputs)
    show(found, factory, json=json)
    if count := len(found.findings):
        raise RecipeViolated(f"{found.method.label}'s recipe is violated in {count} point{'s' * (count > 1)}")


def depth(depths: str, arch: str) -> tuple[int, int]:
    """(N, M) of `18x12`, or of `18` and an architecture."""
    found = ranges.depths("--depths", depths, ranges.stacks("--arch", arch))
    if len(found) > 1:
        raise UsageError(f"--depths: a model has one depth, like 18x12, not {len(found)}")
    return found[0]


def model(name: str, depth: int | None) -> tuple[nn.Module, Any]:
    """(module, inputs) of a factory; called with the depth if it takes one, by a fixed chance.

    It returns the module alone (then there are no inputs), (module, inputs), or what `stabkit probe` takes: (module,
    loss), and with them an optimizer; the inputs are then what the loss calls the module with.
    """
    made.seeded(0)
    given = factory.call("FACTORY", name, depth)
    if isinstance(given, tuple) and len(given) in (2, 3) and isinstance(given[0], nn.Module) and callable(given[1]):
        return given[0], made.called(given[0], given[1], name)[0]
    found, inputs = given if isinstance(given, tuple) and len(given) == 2 else (given, None)
    if not isinstance(found, nn.Module):
        kind = type(found).__name__
        raise UsageError(f"FACTORY: {name} is to return a torch.nn.Module, with inputs or a loss, not {kind}")
    if inputs is not None and not isinstance(inputs, (tuple, list, Mapping, Tensor)):
        raise UsageError(f"FACTORY: the inputs of {name} are to be a tuple or a dict, not {type(inputs).__name__}")
    return found, inputs


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
        "Found; standard deviations over the recipe's, least and greatest of all layers",
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
        console.say(f"outside of them: {parameter or 'a matrix'} {list(shape)}, standard deviation {std:.4g}")
    console.say()
    for number, finding in enumerate(audit.findings, 1):
        console.paragraph(f"{number}. {finding.what}", "   ")
        console.paragraph(f"   recipe: {finding.recipe}", "     ")
        console.paragraph(f"   measured: {finding.measured}", "     ")
        console.paragraph(f"   to do: {finding.remedy}", "     ")
        if finding.parameters:
            further = f" and {len(finding.parameters) - FEW} more" if len(finding.parameters) > FEW else ""
            console.paragraph(f"   parameters: {', '.join(finding.parameters[:FEW])}{further}", "     ")
    if not audit.findings:
        console.say(f"nothing of {audit.method.label}'s recipe is violated")
    console.say()
    console.paragraph(
        f"whether it stays stable with depth: `stabkit probe {name} --depths 6,12,24,48`, of a function of the depth"
    )


def _body(audit: Audit, name: str) -> dict[str, object]:
    return {
        "schema": SCHEMA,
        "factory": name,
        "method": audit.method.key,
        "source": audit.method.source,
        "depth": audit.depth,
        "inputs": audit.ran,
        "base": audit.base,
        "found": [asdict(row) for row in audit.rows],
        "outside": [{"parameter": name, "shape": list(shape), "std": std} for name, shape, std in audit.outside],
        "violations": [asdict(finding) for finding in audit.findings],
        "notes": list(audit.notes),
    }
