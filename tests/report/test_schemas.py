"""`stabkit schema`: what a command prints with `--json` is what its schema says, and nothing else."""

from __future__ import annotations

import ast
import json
import math
import shlex
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Literal, NotRequired, TypedDict

import pytest
import torch
from jsonschema import Draft202012Validator

import stabkit as api
from stabkit.cli.commands.schema import DOCUMENTS, NAMES, of
from stabkit.report.json_document import text
from stabkit.report.schema import schema
from stabkit.report.summary import summarise
from stabkit.report.sweep_document import sweep
from tests.commands import stabkit, strict
from tests.conftest import tiny
from tests.own import probe_models as models

pytestmark = pytest.mark.usefixtures("undrawn")
ROOT = Path(__file__).parents[2]
SMALL = "--hidden 16 --ffn 24 --vocab 200 --max-tokens 64 --out {out}"
RATES = "--seeds 0 --lr 1e-2..4e-2"
"""Of a search."""
PROBE = "probe tests.own.probe_models"
QUICK = {
    "sweep": f"sweep --models deepnorm,admin --depths 1,2 --steps 2 --warmup 4000 --seeds 5 {SMALL}",
    "sweep-dry-run": f"sweep --depths 1,2 --dry-run {SMALL}",
    "ablate-dry-run": f"ablate --depths 1 --seeds 0..9999 --dry-run {SMALL}",
    "landscape-dry-run": f"landscape --depths 1 --dry-run {SMALL}",
    "transfer-dry-run": "transfer --models pre-ln --hidden 16,32 --depths 1 --dry-run --out {out}",
    "paper-dry-run": "paper fig4 --budget 20m --dry-run --out {out}",
    "paper-ls": "paper ls",
    "probe": f"{PROBE}:deep_raises --depths 2,16 --seeds 0 --steps 2 --out {{out}}",
    "probe-widths": "probe tests.own.carried_models:tiny --depths 2 --widths 16,32 --seeds 0 --steps 2 --out {out}",
    "audit": f"audit {__name__}:violating --method deepnorm --depths 2x2",
    "log": f"log {ROOT}/tests/cli/dead.csv --classes 8000 --stop 0.1 --out {{out}}",
    "methods": "methods --arch encoder-only --depths 2",
    "runs-ls": "runs ls --out {out}",
    "runs-show": "runs show admin-1L-1L-s5 --out {out}",
    "runs-verify": "runs verify --out {out}",
}
SLOW = {
    "landscape": f"landscape --models deepnorm --depths 1 --steps 2 --snapshots 2 --points 3 --cut-points 5 {SMALL}",
    "ablate": f"ablate --models deepnorm --depths 1 --steps 45 {SMALL}",
    "transfer": f"transfer --models pre-ln --depths 1,2 --predict 4 --steps 40 --arch decoder-only {RATES} {SMALL}",
    "paper": "paper fig4 --depths 1,2 --steps 2 --vocab 200 --out {out}",
}
MORE = {
    "single steps at two rates": (
        "sweep",
        f"sweep --models deepnorm,post-ln --depths 1,2 --optimizer sgd --steps 1 --warmup 0 --lr 1e-4,1e-5 {SMALL}",
    ),
    "a watch": ("runs-show", "runs show watched --out {out}"),
    "a method that profiles": ("methods", "methods admin --depths 1x1"),
    "a change that is tried": ("probe", f"{PROBE}:post_ln --depths 2 --seeds 0 --lr 0.03 --time 20 --out {{out}}"),
    "a number that is not finite": ("probe", f"{PROBE}:exploding --depths 2,4 --seeds 0 --quick --out {{out}}"),
    "several methods": ("transfer", f"{SLOW['transfer']} --models pre-ln,deepnorm"),
    "a user's factory": (
        "transfer",
        "transfer tests.own.carried_models:tiny --depths 1,2 --seeds 0 --steps 3 --out {out}",
    ),
}
"""Documents that have what the first of their name lacks; {what: (name, command)}."""


def violating() -> object:
    """A model whose values are scaled, and nothing else."""
    from tests.own.audit_models import deepnorm

    tokens = torch.arange(12).reshape(2, 6)
    return deepnorm(2, 2, only=("value",)), (tokens, tokens)


@pytest.fixture(scope="module")
def printed(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Any]:
    """What a command prints with `--json`, once; all have one store, which has a sweep and a watch."""
    out = tmp_path_factory.mktemp("store")
    held: dict[str, Any] = {}

    def document(line: str) -> Any:
        if line not in held:
            done = stabkit(*shlex.split(line.format(out=out)), "--json", cwd=ROOT)
            assert done.stdout, done.stderr
            held[line] = strict(done.stdout)
        return held[line]

    document(QUICK["sweep"])
    model = models.Stack(2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with api.watch(model, optimizer, out=out, name="watched") as watch:
        loss = model(torch.zeros(models.SHAPE, dtype=torch.long)).square().mean()
        watch.loss(loss)
        loss.backward()
        optimizer.step()
    return document


schema_of = cache(of)


def errors(name: str, document: Any) -> list[str]:
    found = Draft202012Validator(schema_of(name)).iter_errors(document)
    return [f"{error.json_path}: {error.message[:300]}" for error in found]


CASES = [
    *QUICK.items(),
    *(pytest.param(name, line, marks=pytest.mark.slow) for name, line in SLOW.items()),
]


@pytest.mark.slow
@pytest.mark.parametrize(("name", "line"), CASES)
def test_what_a_command_prints_is_what_its_schema_says(name: str, line: str, printed: Callable[[str], Any]) -> None:
    document = printed(line)
    assert errors(name, document) == []
    assert all(errors(name, {**document, more: 1}) for more in ("more", "Schema")), "a name that is not there"
    for missing in document:
        rest = {key: value for key, value in document.items() if key != missing}
        assert errors(name, rest) or missing not in required(name, document), f"without {missing}"


def required(name: str, document: Any) -> list[str]:
    """What a document of this name must have; of a union the branch that it is."""
    whole = schema_of(name)
    branches = [whole] if "required" in whole else [{**branch, "$defs": whole["$defs"]} for branch in whole["anyOf"]]
    (mine,) = (branch for branch in branches if Draft202012Validator(branch).is_valid(document))
    names: list[str] = (mine if "required" in mine else whole["$defs"][mine["$ref"].rpartition("/")[2]])["required"]
    assert "schema" in names
    return names


@pytest.mark.parametrize(
    ("name", "line"),
    [
        pytest.param(
            name, line, id=what, marks=[] if what in ("a watch", "a method that profiles") else pytest.mark.slow
        )
        for what, (name, line) in MORE.items()
    ],
)
def test_so_is_what_it_prints_in_rarer_cases(name: str, line: str, printed: Callable[[str], Any]) -> None:
    assert errors(name, printed(line)) == []


def test_a_run_without_a_result_is_in_the_schema_of_a_sweep() -> None:
    document = strict(text(sweep(summarise([], [(tiny(), "out of memory")], ()), Path("page.html"))))
    assert document["runs"][0]["reason"] == "out of memory" and errors("sweep", document) == []


@pytest.mark.parametrize("name", NAMES)
def test_a_schema_is_valid_and_names_its_document(name: str) -> None:
    whole = schema_of(name)
    Draft202012Validator.check_schema(whole)
    assert whole["$id"] == f"urn:stabkit:2:{name}" and whole["title"] == f"stabkit {NAMES[name]} --json"
    assert json.dumps(whole).count('"const": "stabkit/2"') == len(whole.get("anyOf", [0]))


def test_every_document_has_a_name_and_every_name_a_test() -> None:
    """A class that is a `Document` is printed by some command."""
    classes = [
        node.name
        for file in (ROOT / "stabkit").rglob("*.py")
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8")))
        if isinstance(node, ast.ClassDef) and any(getattr(base, "id", "") == "Document" for base in node.bases)
    ]
    reached = json.dumps([schema_of(name) for name in NAMES])
    parts = {line.rpartition(":")[2] for line in DOCUMENTS.values()}
    assert [name for name in classes if name not in parts and f"/{name}" not in reached] == []
    assert {*QUICK, *SLOW} == set(NAMES)


def test_the_command_lists_them_prints_one_and_names_the_nearest() -> None:
    listed = stabkit("schema").stdout
    assert "probe-widths" in listed and "stabkit probe --widths --json" in listed
    assert strict(stabkit("schema", "runs", "show").stdout) == strict(stabkit("schema", "runs-show").stdout)
    unknown = stabkit("schema", "sweeep")
    assert unknown.returncode == 2 and "did you mean 'sweep'? `stabkit schema` lists them" in unknown.stderr


@dataclass
class _Inner:
    """An inner
    value."""

    a: int
    b: str = ""
    """In words."""


class _Outer(TypedDict):
    numbers: list[float]
    pair: tuple[int, str | None]
    word: Literal["yes", "no"]
    by: NotRequired[dict[Literal["x", "y"], bool]]
    inner: _Inner
    bare: Annotated[dict[str, Any], _Inner]


GOOD: dict[str, Any] = {"numbers": [1, 0.5, "nan", "-inf"], "pair": [1, None], "word": "yes", "bare": {"a": 1}}
GOOD |= {"inner": {"a": 1, "b": "x"}}


@pytest.mark.parametrize(
    ("change", "fine"),
    [
        ({}, True),
        ({"by": {"x": True}}, True),
        ({"by": {"z": True}}, False),
        ({"by": {"x": 1}}, False),
        ({"numbers": ["infinite"]}, False),
        ({"numbers": [None]}, False),
        ({"pair": [1]}, False),
        ({"pair": [1, "x", 2]}, False),
        ({"pair": [1.5, "x"]}, False),
        ({"word": "maybe"}, False),
        ({"inner": {"a": 1}}, False),
        ({"bare": {"a": 1, "b": "x"}}, True),
        ({"bare": {"b": "x"}}, False),
        ({"bare": {"a": 1, "c": 1}}, False),
        ({"bare": {"a": True}}, False),
    ],
)
def test_every_kind_of_type_becomes_what_json_has_of_it(change: dict[str, Any], fine: bool) -> None:
    whole = schema(_Outer, "outer", "Outer")
    assert Draft202012Validator(whole).is_valid({**GOOD, **change}) == fine
    inner = whole["$defs"]["_Inner"]
    assert inner["description"] == "An inner value." and inner["properties"]["b"]["description"] == "In words."


def test_a_type_that_json_has_nothing_of_is_refused() -> None:
    with pytest.raises(TypeError, match="no JSON Schema of <class 'complex'>"):
        schema(list[complex], "x", "X")


def test_numbers_that_are_not_finite_and_dataclasses_are_printed_as_the_schema_says() -> None:
    body = {**GOOD, "numbers": [math.nan, math.inf, 2.0], "inner": _Inner(1), "bare": {"a": 2}}
    assert Draft202012Validator(schema(_Outer, "outer", "Outer")).is_valid(strict(text(body)))
